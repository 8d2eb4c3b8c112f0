//! A simulated camera: three layers of frames with valid VP9 headers, and no picture data behind them.

use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use windlass_types::Layer;

/// Time between two frames, at 30 frames a second.
const EVERY: Duration = Duration::from_micros(33_333);
/// Maximum payload of a packet, in bytes.
const PAYLOAD: usize = 1100;
/// Maximum bitrates of the layers in our SDK, in bit/s.
const BPS: [f64; 3] = [150_000.0, 500_000.0, 1_500_000.0];
/// Size of a key frame over that of other frames.
const KEY: f64 = 6.0;
/// Duration of a frame in RTP ticks of 90 kHz.
const TICKS: u32 = 3000;

/// A packet that the camera sends.
pub struct CameraPacket {
    /// Layer of the packet.
    pub layer: Layer,
    /// Sequence number of the packet in its layer.
    pub seq: u64,
    /// RTP timestamp.
    pub timestamp: u32,
    /// Whether the packet is the last one of its frame (the RTP marker).
    pub marker: bool,
    /// VP9 payload.
    pub payload: Vec<u8>,
}

/// A simulated camera that sends simulcast VP9 packets.
pub struct Camera {
    dice: StdRng,
    number: u32,
    seq: [u64; 3],
    due: Instant,
    key: bool,
    /// Bytes of key frames beyond the layer's rate, which later frames must save.
    debt: [f64; 3],
}

impl Camera {
    /// A camera whose first frame comes at `due`.
    pub fn new(seed: u64, due: Instant) -> Camera {
        let dice = StdRng::seed_from_u64(seed);
        Camera { dice, number: 0, seq: [1; 3], due, key: true, debt: [0.0; 3] }
    }

    /// Time of the next frame.
    pub fn due(&self) -> Instant {
        self.due
    }

    /// Makes the next frame a key frame on all layers, as Chromium does.
    pub fn key_wanted(&mut self) {
        self.key = true;
    }

    /// The packets of the frame that is due, smallest layer first.
    pub fn shoot(&mut self, paused: [bool; 3]) -> Vec<CameraPacket> {
        self.due += EVERY;
        self.number += 1;
        let key = std::mem::take(&mut self.key);
        let timestamp = 90_000u32.wrapping_add(self.number * TICKS);
        let mut packets = Vec::new();
        for layer in Layer::ALL.into_iter().filter(|l| !paused[*l as usize]) {
            let share = BPS[layer as usize] / 8.0 * EVERY.as_secs_f64();
            let swing = self.dice.random_range(0.7..1.3);
            let saved = self.debt[layer as usize].min(share * 0.3);
            let bytes = if key { share * KEY } else { share * swing - saved };
            self.debt[layer as usize] += if key { bytes - share } else { -saved };
            let mut left = (bytes as usize).max(60);
            let mut begin = true;
            while left > 0 {
                let body = left.min(PAYLOAD);
                left -= body;
                let payload = self.payload(layer, key, begin, left == 0, body);
                let seq = self.seq[layer as usize];
                self.seq[layer as usize] += 1;
                packets.push(CameraPacket { layer, seq, timestamp, marker: left == 0, payload });
                begin = false;
            }
        }
        packets
    }

    fn payload(&self, layer: Layer, key: bool, begin: bool, end: bool, bytes: usize) -> Vec<u8> {
        let flags =
            0x80 | if key { 0 } else { 0x40 } | if begin { 8 } else { 0 } | if end { 4 } else { 0 };
        let id = (self.number & 0x7fff) as u16 | 0x8000;
        let mut payload = vec![flags];
        payload.extend(id.to_be_bytes());
        if key && begin {
            let shift = 2 - layer as u32;
            let size = u64::from((1280u32 >> shift) - 1) << 16 | u64::from((720u32 >> shift) - 1);
            payload.extend([0x82, 0x49, 0x83, 0x42]);
            payload.extend((size << 28 | 0x2000_0000_0000_0000).to_be_bytes());
        }
        // A packet has at least one byte behind its descriptor.
        payload.resize(bytes.max(payload.len() + 1), 0);
        payload
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_have_their_rates_key_frames_included() {
        let start = Instant::now();
        let mut camera = Camera::new(1, start);
        let mut bytes = [0usize; 3];
        for frame in 0..3000 {
            if frame % 300 == 0 {
                camera.key_wanted();
            }
            for packet in camera.shoot([false; 3]) {
                bytes[packet.layer as usize] += packet.payload.len();
            }
        }
        for (bytes, bps) in bytes.into_iter().zip(BPS) {
            let ratio = bytes as f64 * 8.0 / 100.0 / bps;
            assert!((0.95..1.1).contains(&ratio), "{ratio}");
        }
    }
}
