//! The anchors of a file, in a file beside it: the messages that viewers get, each behind its length. A message's RTP
//! timestamp is the number of its frame in the media file.
//!
//! An anchor is made after its frame has come, and the frame waits to be written. So anchors wait for their frames, or
//! find them among the last ones that were written. Anchors for which there is no room, or no frame, are dropped and
//! counted. Nothing that happens here ends a recording.

use std::collections::VecDeque;
use std::path::PathBuf;

use windlass_types::message::{AnchorHeader, MAX_CHUNK, encode_chunks};
use windlass_types::recording::RecordedAnchor;

use crate::files::Files;
use crate::group::FrameId;

/// Maximum number of written frames that late anchors find: ten seconds and more.
const MAX_RECENT: usize = 512;
/// Maximum number of anchors that wait for their frames, of one file; beyond it the oldest is dropped.
const MAX_WAITING: usize = 256;
/// Maximum bytes of anchors that wait for their frames, of one file; beyond it the oldest are dropped.
const MAX_WAITING_BYTES: usize = 4 << 20;
/// Maximum bytes of a file of anchors; what comes later is dropped.
const MAX_FILE_BYTES: u64 = 4 << 30;

/// Writes the anchors of a stream's files, one file after the other.
#[derive(Debug, Default)]
pub(crate) struct Anchors {
    /// Where the present file's anchors go; `None` without a file, and after an error.
    path: Option<PathBuf>,
    /// Number of frames of the present file.
    frames: u32,
    /// The last frames that were written, the newest last.
    recent: VecDeque<FrameId>,
    waiting: VecDeque<RecordedAnchor>,
    /// Bytes of the present file.
    written: u64,
    /// Number of anchors that were dropped.
    pub(crate) dropped: u64,
}

impl Anchors {
    /// Begins a file, whose anchors are written to `path`; `None`: they are not.
    pub(crate) fn begin(&mut self, path: Option<PathBuf>) {
        (self.path, self.frames, self.written) = (path, 0, 0);
        self.recent.clear();
    }

    /// Notes that a frame has been written.
    pub(crate) fn frame(&mut self, id: FrameId, files: &mut dyn Files) {
        let number = self.frames;
        self.frames = self.frames.saturating_add(1);
        if self.recent.len() >= MAX_RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back(id);
        for _ in 0..self.waiting.len() {
            let Some(anchor) = self.waiting.pop_front() else { break };
            if id_of(&anchor) == id {
                self.write(number, &anchor, files);
            } else {
                self.waiting.push_back(anchor);
            }
        }
    }

    /// Takes an anchor.
    pub(crate) fn push(&mut self, anchor: RecordedAnchor, files: &mut dyn Files) {
        let id = id_of(&anchor);
        if let Some(back) = self.recent.iter().rev().position(|frame| *frame == id) {
            return self.write(self.frames - 1 - back as u32, &anchor, files);
        }
        self.waiting.push_back(anchor);
        let bytes = |waiting: &VecDeque<RecordedAnchor>| -> usize {
            waiting.iter().map(|anchor| anchor.anchor.payload.len()).sum()
        };
        while self.waiting.len() > MAX_WAITING || bytes(&self.waiting) > MAX_WAITING_BYTES {
            self.waiting.pop_front();
            self.dropped += 1;
        }
    }

    /// Ends the present file.
    pub(crate) fn end(&mut self, files: &mut dyn Files) {
        if let Some(path) = self.path.take()
            && let Err(error) = files.close(&path)
        {
            tracing::warn!(file = %path.display(), %error, "anchors of a recording may be incomplete; check space and permissions of its folder");
        }
    }

    fn write(&mut self, number: u32, anchor: &RecordedAnchor, files: &mut dyn Files) {
        if self.try_write(number, anchor, files).is_none() {
            self.dropped += 1;
        }
    }

    /// Writes an anchor; `None` if it cannot be written.
    fn try_write(
        &mut self,
        number: u32,
        RecordedAnchor { anchor, .. }: &RecordedAnchor,
        files: &mut dyn Files,
    ) -> Option<()> {
        let path = self.path.as_ref()?;
        let header = AnchorHeader { rtp_timestamp: number, ..anchor.header() };
        let bytes = framed(&header, &anchor.payload)?;
        let written = self.written + bytes.len() as u64;
        if written > MAX_FILE_BYTES {
            return None;
        }
        if let Err(error) = files.append(path, &bytes) {
            tracing::warn!(file = %path.display(), %error, "anchors of a recording cannot be written: it goes on without; check space and permissions of its folder");
            self.path = None;
            return None;
        }
        self.written = written;
        Some(())
    }
}

/// The bytes of an anchor in its file; `None` if its payload is no anchor's.
pub(crate) fn framed(header: &AnchorHeader, payload: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(payload.len() + 64);
    for message in encode_chunks(header, payload, MAX_CHUNK).ok()? {
        bytes.extend_from_slice(&(message.len() as u32).to_be_bytes());
        bytes.extend_from_slice(&message);
    }
    Some(bytes)
}

fn id_of(anchor: &RecordedAnchor) -> FrameId {
    FrameId { layer: anchor.layer, rtp: anchor.anchor.rtp_timestamp }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::path::Path;
    use std::time::Instant;

    use windlass_types::message::HTJ2K;
    use windlass_types::{Anchor, AnchorSource, Epoch, Layer, Size, StageTimes, StreamId, TrackId};

    use super::*;
    use crate::manifest::Manifest;
    use crate::webm::Patch;

    /// Files in memory, which fail when they are full.
    #[derive(Default)]
    struct Memory {
        bytes: Vec<u8>,
        room: usize,
    }

    impl Files for Memory {
        fn append(&mut self, _: &Path, bytes: &[u8]) -> io::Result<()> {
            if self.bytes.len() + bytes.len() > self.room {
                return Err(io::ErrorKind::StorageFull.into());
            }
            self.bytes.extend_from_slice(bytes);
            Ok(())
        }

        fn complete(&mut self, _: &Path, _: &[Patch], _: &Path) -> io::Result<()> {
            Ok(())
        }

        fn close(&mut self, _: &Path) -> io::Result<()> {
            Ok(())
        }

        fn save(&mut self, _: &Manifest, _: &Path) -> io::Result<()> {
            Ok(())
        }
    }

    fn anchor(rtp: u32, bytes: usize) -> RecordedAnchor {
        let anchor = Anchor {
            stream: StreamId(1),
            epoch: Epoch(7),
            rtp_timestamp: rtp,
            arrival: Instant::now(),
            source: AnchorSource::Enhanced,
            codec: HTJ2K,
            tiled: true,
            size: Size::new(640, 360),
            beyond_prior: true,
            payload: vec![9; bytes].into(),
            times: StageTimes::default(),
        };
        RecordedAnchor { track: TrackId(1), layer: Layer::Q, anchor }
    }

    fn frame(layer: Layer, rtp: u32) -> FrameId {
        FrameId { layer, rtp }
    }

    /// Numbers of the frames whose anchors are in the file.
    fn numbers(mut bytes: &[u8]) -> Vec<u32> {
        let mut numbers = Vec::new();
        while let Some((len, rest)) = bytes.split_first_chunk() {
            let (message, rest) = rest.split_at(u32::from_be_bytes(*len) as usize);
            numbers.push(AnchorHeader::parse(message).expect("a message").0.rtp_timestamp);
            bytes = rest;
        }
        numbers
    }

    #[test]
    fn anchors_find_their_frames_before_and_after_those_are_written() {
        let (mut anchors, mut files) =
            (Anchors::default(), Memory { room: 1 << 20, ..Memory::default() });
        anchors.push(anchor(300, 40_000), &mut files);
        anchors.begin(Some("a.anchors".into()));
        for rtp in [100, 200, 300] {
            anchors.frame(frame(Layer::Q, rtp), &mut files);
        }
        anchors.push(anchor(200, 10), &mut files);
        // Of another layer, whose timestamps may be the same.
        anchors.push(RecordedAnchor { layer: Layer::H, ..anchor(100, 10) }, &mut files);
        anchors.end(&mut files);
        assert_eq!(numbers(&files.bytes), [2, 2, 2, 1]);
        assert_eq!((anchors.dropped, anchors.waiting.len()), (0, 1));
    }

    #[test]
    fn anchors_whose_frames_do_not_come_are_dropped_and_counted() {
        let (mut anchors, mut files) = (Anchors::default(), Memory::default());
        for rtp in 0..MAX_WAITING as u32 + 5 {
            anchors.push(anchor(rtp, 10), &mut files);
        }
        assert_eq!((anchors.dropped, anchors.waiting.len()), (5, MAX_WAITING));
        anchors.push(anchor(9000, MAX_WAITING_BYTES), &mut files);
        assert_eq!(anchors.waiting.len(), 1);
    }

    #[test]
    fn a_full_disk_ends_the_anchors_alone() {
        let (mut anchors, mut files) =
            (Anchors::default(), Memory { room: 100, ..Memory::default() });
        anchors.begin(Some("a.anchors".into()));
        for rtp in 0..3 {
            anchors.frame(frame(Layer::Q, rtp), &mut files);
            anchors.push(anchor(rtp, 50), &mut files);
        }
        assert_eq!((numbers(&files.bytes), anchors.dropped), (vec![0], 2));
    }
}
