//! The media that publishers send: the same camera encoded once, as one stream for each layer, and a playhead that
//! repeats it without end.
//!
//! Layers go in step: picture n of one is picture n of the others, as in a camera's simulcast. So a requested key
//! frame must be where *all* layers have one: the playhead jumps to the next such picture. Numbers and timestamps
//! continue over loops and jumps, so that receivers see one stream without end.

use anyhow::{Result, bail, ensure};
use bytes::Bytes;
use windlass_types::{Layer, VideoCodec};

/// Clock rate of video in RTP, in Hz.
pub(super) const CLOCK_HZ: f64 = 90_000.0;

/// One encoded picture of one layer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Frame {
    /// The encoded frame. H.264: NAL units with start codes. AV1: a temporal unit.
    pub data: Bytes,
    /// Whether the frame is a key frame.
    pub key: bool,
}

impl Frame {
    /// A frame from its bytes, which say whether it is a key frame.
    pub(super) fn new(codec: VideoCodec, data: Vec<u8>) -> Frame {
        let key = match codec {
            // VP9 specification, 6.2: marker, profile, shows an existing frame, kind. Profile 3 has a reserved bit;
            // only profile 0 is sent in calls.
            VideoCodec::Vp9 => {
                data.first().is_some_and(|head| head >> 4 == 0b1000 && head & 0b1100 == 0)
            }
            // RFC 6386, 9.1.
            VideoCodec::Vp8 => data.first().is_some_and(|head| head & 1 == 0),
            // A slice of an IDR picture.
            VideoCodec::H264 => {
                data.windows(4).any(|w| matches!(w, [0, 0, 1, head] if head & 0x1f == 5))
            }
            // A sequence header behind the temporal delimiter (two bytes); encoders of calls repeat it there.
            VideoCodec::Av1 => data.get(2).is_some_and(|head| head >> 3 & 0xf == 1),
        };
        Frame { data: data.into(), key }
    }
}

/// A camera's layers, each encoded once.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Recording {
    /// The codec of all layers.
    pub codec: VideoCodec,
    /// Pictures in a second.
    pub fps: f64,
    layers: Vec<(Layer, Vec<Frame>)>,
    restarts: Vec<usize>,
    len: usize,
}

impl Recording {
    /// A recording of layers, cut to the shortest; all must begin with key frames.
    pub(super) fn new(
        codec: VideoCodec,
        fps: f64,
        layers: Vec<(Layer, Vec<Frame>)>,
    ) -> Result<Recording> {
        ensure!((1.0..=120.0).contains(&fps), "{fps} frames a second are not between 1 and 120");
        let len = layers.iter().map(|(_, frames)| frames.len()).min().unwrap_or_default();
        ensure!(len > 0, "there is nothing to send: no layer has frames");
        let restart = |n: &usize| layers.iter().all(|(_, frames)| frames[*n].key);
        let restarts: Vec<usize> = (0..len).filter(restart).collect();
        if restarts.first() != Some(&0) {
            let late = layers.iter().find(|(_, frames)| !frames[0].key);
            bail!(
                "layer {} does not begin with a key frame",
                late.map_or("?", |(layer, _)| layer.rid())
            );
        }
        Ok(Recording { codec, fps, layers, restarts, len })
    }

    /// The layers of the recording, smallest first.
    pub(super) fn layers(&self) -> impl Iterator<Item = Layer> + '_ {
        self.layers.iter().map(|(layer, _)| *layer)
    }

    /// Number of pictures of the recording.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Longest time in seconds between pictures from which the recording can be played.
    pub(super) fn key_every_s(&self) -> f64 {
        let ends = self.restarts.iter().skip(1).chain([&self.len]);
        let longest = self.restarts.iter().zip(ends).map(|(from, to)| to - from).max();
        longest.unwrap_or_default() as f64 / self.fps
    }

    /// Bitrate of a layer, in kbit/s.
    pub(super) fn kbps(&self, layer: Layer) -> f64 {
        let frames = self.layers.iter().find(|(l, _)| *l == layer).map(|(_, frames)| frames);
        let bytes: usize = frames.into_iter().flatten().take(self.len).map(|f| f.data.len()).sum();
        bytes as f64 * 8.0 / 1000.0 * self.fps / self.len as f64
    }

    /// The layers' frames of a picture.
    pub(super) fn frames(&self, at: usize) -> impl Iterator<Item = (Layer, &Frame)> {
        self.layers.iter().map(move |(layer, frames)| (*layer, &frames[at % self.len]))
    }

    /// The picture from which to go on, where picture `at` would be next and a key frame is needed.
    fn restart_from(&self, at: usize) -> usize {
        self.restarts.iter().copied().find(|&n| n >= at).unwrap_or(0)
    }
}

/// The place of one publisher in the recording.
#[derive(Debug, Clone)]
pub(super) struct Playhead {
    next: usize,
    shown: u64,
    key_wanted: bool,
}

/// A picture to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Picture {
    /// The picture's index in the recording.
    pub at: usize,
    /// Number of pictures that were sent before it.
    pub number: u64,
}

impl Playhead {
    /// A playhead that begins with the key frame at or after a share of the recording, 0 to 1. So publishers are not
    /// in step.
    pub(super) fn new(recording: &Recording, share: f64) -> Playhead {
        let at = (share.clamp(0.0, 1.0) * recording.len() as f64) as usize;
        Playhead { next: recording.restart_from(at), shown: 0, key_wanted: false }
    }

    /// Notes that a receiver needs a key frame.
    pub(super) fn want_key(&mut self) {
        self.key_wanted = true;
    }

    /// Moves to the next picture, and returns it.
    pub(super) fn advance(&mut self, recording: &Recording) -> Picture {
        if std::mem::take(&mut self.key_wanted) {
            self.next = recording.restart_from(self.next);
        }
        let picture = Picture { at: self.next, number: self.shown };
        self.next = (self.next + 1) % recording.len();
        self.shown += 1;
        picture
    }
}

impl Picture {
    /// Seconds from the first picture to this one, at the recorded rate.
    pub(super) fn seconds(self, fps: f64) -> f64 {
        self.number as f64 / fps
    }

    /// RTP timestamp of the picture in a timeline that began at `base`.
    pub(super) fn timestamp(self, base: u32, fps: f64) -> u32 {
        base.wrapping_add((self.seconds(fps) * CLOCK_HZ).round() as u64 as u32)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const KEY: u8 = 0x82;
    const INTER: u8 = 0x86;

    fn layer(kinds: &[u8]) -> Vec<Frame> {
        kinds.iter().map(|&kind| Frame::new(VideoCodec::Vp9, vec![kind, 0])).collect()
    }

    fn recording() -> Recording {
        let q = layer(&[KEY, INTER, KEY, INTER, INTER, KEY]);
        let h = layer(&[KEY, INTER, INTER, INTER, INTER, KEY, INTER]);
        Recording::new(VideoCodec::Vp9, 30.0, vec![(Layer::Q, q), (Layer::H, h)]).unwrap()
    }

    fn played(head: &mut Playhead, recording: &Recording, n: usize) -> Vec<usize> {
        (0..n).map(|_| head.advance(recording).at).collect()
    }

    #[test]
    fn a_frame_says_whether_it_is_a_key_frame() {
        assert!(Frame::new(VideoCodec::Vp9, vec![KEY]).key);
        for other in [INTER, 0x8a, 0x02] {
            assert!(!Frame::new(VideoCodec::Vp9, vec![other]).key, "{other:#x}");
        }
        assert!(!Frame::new(VideoCodec::Vp9, Vec::new()).key);
    }

    #[test]
    fn it_goes_round_in_the_length_of_the_shortest_layer() {
        let recording = recording();
        let mut head = Playhead::new(&recording, 0.0);
        assert_eq!(played(&mut head, &recording, 8), [0, 1, 2, 3, 4, 5, 0, 1]);
    }

    #[test]
    fn a_key_frame_that_is_wanted_is_the_next_of_all_layers_or_the_first() {
        let recording = recording();
        let mut head = Playhead::new(&recording, 0.0);
        played(&mut head, &recording, 2);
        head.want_key();
        assert_eq!(played(&mut head, &recording, 2), [5, 0], "picture 2 is a key frame of q alone");
        head.want_key();
        assert_eq!(played(&mut head, &recording, 1), [5]);
    }

    #[test]
    fn publishers_begin_with_different_key_frames() {
        let recording = recording();
        let first = |share| Playhead::new(&recording, share).advance(&recording).at;
        assert_eq!([first(0.0), first(0.5), first(1.0)], [0, 5, 0]);
    }

    #[test]
    fn time_goes_on_over_loops_and_wraps_around() {
        let recording = recording();
        let mut head = Playhead::new(&recording, 0.0);
        let base = u32::MAX - 8_000;
        let times: Vec<u32> =
            (0..8).map(|_| head.advance(&recording).timestamp(base, 30.0)).collect();
        assert!(times.windows(2).all(|w| w[1].wrapping_sub(w[0]) == 3000), "{times:?}");
    }

    #[test]
    fn what_cannot_be_played_is_refused_with_the_layer() {
        let late = Recording::new(VideoCodec::Vp9, 30.0, vec![(Layer::H, layer(&[INTER, KEY]))])
            .unwrap_err();
        assert!(late.to_string().contains("layer h"), "{late}");
        assert!(Recording::new(VideoCodec::Vp9, 30.0, Vec::new()).is_err());
        assert!(Recording::new(VideoCodec::Vp9, 0.0, vec![(Layer::Q, layer(&[KEY]))]).is_err());
    }

    #[test]
    fn its_longest_wait_for_a_key_frame_counts_the_loop() {
        assert!((recording().key_every_s() - 5.0 / 30.0).abs() < 1e-9);
    }

    proptest! {
        #[test]
        fn after_a_request_a_key_frame_comes_at_once(requests in prop::collection::vec(any::<bool>(), 1..60)) {
            let recording = recording();
            let mut head = Playhead::new(&recording, 0.0);
            for (n, request) in requests.into_iter().enumerate() {
                if request {
                    head.want_key();
                }
                let picture = head.advance(&recording);
                prop_assert_eq!(picture.number, n as u64);
                if request {
                    prop_assert!(recording.frames(picture.at).all(|(_, frame)| frame.key));
                }
            }
        }
    }
}
