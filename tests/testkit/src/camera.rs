//! A simulated camera: three layers of frames with valid headers of a codec, and no picture data behind them.

use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use windlass_types::{Bitrate, Layer, Size, VideoCodec};

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
    /// RTP payload of the camera's codec.
    pub payload: Vec<u8>,
}

/// A simulated camera that sends simulcast packets.
pub struct Camera {
    codec: VideoCodec,
    dice: StdRng,
    number: u32,
    seq: [u64; 3],
    due: Instant,
    key: bool,
    /// Bitrates of the layers, in bit/s.
    bps: [f64; 3],
    /// Bytes of key frames beyond the layer's rate, which later frames must save.
    debt: [f64; 3],
}

impl Camera {
    /// A camera whose first frame comes at `due`.
    pub fn new(codec: VideoCodec, seed: u64, due: Instant) -> Camera {
        let dice = StdRng::seed_from_u64(seed);
        Camera { codec, dice, number: 0, seq: [1; 3], due, key: true, bps: BPS, debt: [0.0; 3] }
    }

    /// Time of the next frame.
    pub fn due(&self) -> Instant {
        self.due
    }

    /// Makes the next frame a key frame on all layers, as Chromium does.
    pub fn key_wanted(&mut self) {
        self.key = true;
    }

    /// Limits the bitrate of a layer.
    pub fn limit(&mut self, layer: Layer, bitrate: Bitrate) {
        self.bps[layer as usize] = BPS[layer as usize].min(bitrate.as_bps() as f64);
    }

    /// The packets of the frame that is due, smallest layer first.
    pub fn shoot(&mut self, paused: [bool; 3]) -> Vec<CameraPacket> {
        self.due += EVERY;
        self.number += 1;
        let key = std::mem::take(&mut self.key);
        let timestamp = 90_000u32.wrapping_add(self.number * TICKS);
        let mut packets = Vec::new();
        for layer in Layer::ALL.into_iter().filter(|l| !paused[*l as usize]) {
            let share = self.bps[layer as usize] / 8.0 * EVERY.as_secs_f64();
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
        let shift = 2 - layer as u32;
        let size = Size::new(1280 >> shift, 720 >> shift);
        let mut payload = match self.codec {
            VideoCodec::Vp9 => {
                vp9(self.number as u16, (key && begin).then_some(size), key, begin, end)
            }
            VideoCodec::Vp8 => vp8((key && begin).then_some(size), begin),
            VideoCodec::H264 => h264((key && begin).then_some(size), key, begin, end),
            VideoCodec::Av1 => av1((key && begin).then_some(size), begin, end),
        };
        // A packet has at least one byte behind its header.
        payload.resize(bytes.max(payload.len() + 1), 0);
        payload
    }
}

/// The start of a VP9 packet (RFC 9628 §4.2), with the size of a key frame that begins in it.
fn vp9(number: u16, starts: Option<Size>, key: bool, begin: bool, end: bool) -> Vec<u8> {
    let flags =
        0x80 | if key { 0 } else { 0x40 } | if begin { 8 } else { 0 } | if end { 4 } else { 0 };
    let mut payload = vec![flags];
    payload.extend((number | 0x8000).to_be_bytes());
    if let Some(size) = starts {
        let size = u64::from(size.width - 1) << 16 | u64::from(size.height - 1);
        payload.extend([0x82, 0x49, 0x83, 0x42]);
        payload.extend((size << 28 | 0x2000_0000_0000_0000).to_be_bytes());
    }
    payload
}

/// The start of a VP8 packet (RFC 7741 §4.2), with the size of a key frame that begins in it.
fn vp8(starts: Option<Size>, begin: bool) -> Vec<u8> {
    if !begin {
        return vec![0];
    }
    let mut payload = vec![0x10, if starts.is_some() { 0x10 } else { 0x11 }, 2, 0];
    if let Some(size) = starts {
        payload.extend([0x9d, 1, 0x2a]);
        payload.extend([size.width, size.height].map(u16::to_le_bytes).concat());
    }
    payload
}

/// The start of an H.264 packet (RFC 6184). A key frame begins with an aggregate of a parameter set and a slice; all
/// other packets are fragments of a slice.
fn h264(starts: Option<Size>, key: bool, begin: bool, end: bool) -> Vec<u8> {
    if let Some(size) = starts {
        let set = parameter_set(size);
        let mut payload = vec![0x78];
        payload.extend((set.len() as u16).to_be_bytes());
        payload.extend(set);
        // The slice takes what is left of a packet that is filled up.
        payload.extend(((PAYLOAD - payload.len() - 2) as u16).to_be_bytes());
        payload.push(0x65);
        return payload;
    }
    let kind = if key { 5 } else { 1 };
    vec![0x7c, if begin { 0x80 } else { 0 } | if end { 0x40 } else { 0 } | kind]
}

/// An H.264 sequence parameter set of the baseline profile (H.264 §7.3.2.1.1).
fn parameter_set(size: Size) -> Vec<u8> {
    let mut bits = String::new();
    let golomb = |n: u32| format!("{:0width$b}", n + 1, width = 2 * (n + 1).ilog2() as usize + 1);
    let (columns, rows) = (size.width.div_ceil(16), size.height.div_ceil(16));
    let cropped = u32::from(rows * 16 - size.height) / 2;
    for n in [0, 0, 2, 1] {
        bits += &golomb(n);
    }
    bits += "0";
    bits += &golomb(u32::from(columns) - 1);
    bits += &golomb(u32::from(rows) - 1);
    bits += "11";
    bits += if cropped > 0 { "1" } else { "0" };
    if cropped > 0 {
        for n in [0, 0, 0, cropped] {
            bits += &golomb(n);
        }
    }
    bits += "01";
    [vec![0x67, 66, 0xc0, 31], packed(&bits)].concat()
}

/// The start of an AV1 packet (AV1 RTP §4.4), with the sequence header of a key frame that begins in it.
fn av1(starts: Option<Size>, begin: bool, end: bool) -> Vec<u8> {
    let flags = if begin { 0 } else { 0x80 } | if end { 0 } else { 0x40 };
    let Some(size) = starts else { return vec![flags | 0x10, 0x30] };
    // Profile 0, moving, full header; no timing, no delays, one operating point of level 5.
    let sides = format!("{:04b}{:04b}{:016b}{:016b}", 15, 15, size.width - 1, size.height - 1);
    let header =
        packed(&(format!("{:03b}{:02b}{:02b}{:05b}{:012b}{:05b}", 0, 0, 0, 0, 0, 5) + &sides));
    let mut payload = vec![flags | 0x28, header.len() as u8 + 1, 0x08];
    payload.extend(header);
    payload.push(0x30);
    payload
}

/// Bytes of a text of bits.
fn packed(bits: &str) -> Vec<u8> {
    let byte = |bits: &[u8]| {
        let bit = |(at, &bit): (usize, &u8)| u8::from(bit == b'1') << (7 - at);
        bits.iter().enumerate().map(bit).fold(0, |byte, bit| byte | bit)
    };
    bits.as_bytes().chunks(8).map(byte).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_have_their_rates_key_frames_included() {
        let start = Instant::now();
        let mut camera = Camera::new(VideoCodec::Vp9, 1, start);
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
