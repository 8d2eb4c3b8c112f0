//! Writes WebM files of VP9 or AV1, and Opus, without I/O: frames in, bytes out.
//!
//! A file is written from its beginning to its end, cluster by cluster. So it plays when it is cut off anywhere: only
//! the last cluster is lost. Duration, sizes and index, which help players to seek, are written when the file is
//! complete ([`Webm::finish`]).

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use windlass_types::Size;

use crate::ebml::{Elements, long_size};

/// Maximum duration of a cluster. So much is lost when the server is killed.
const MAX_CLUSTER: Duration = Duration::from_secs(2);
/// Maximum bytes of a cluster. A frame beyond begins another.
const MAX_CLUSTER_BYTES: usize = 2 << 20;
/// Bytes reserved for the seek head, which has two entries.
const SEEK_HEAD_BYTES: usize = 64;
/// Seconds from 1970 to 2001, the origin of WebM's dates.
pub(crate) const EPOCH_2001: i64 = 978_307_200;
/// Clock rate of Opus, in Hz.
const OPUS_RATE: u32 = 48_000;
/// Time that an Opus decoder needs before the place that is played, in nanoseconds (80 ms).
const OPUS_SEEK_PRE_ROLL: u64 = 80_000_000;

/// Identifier of the element `Segment`.
pub(crate) const SEGMENT: u32 = 0x1853_8067;
/// Identifier of the element `SeekHead`.
const SEEK_HEAD: u32 = 0x114d_9b74;
/// Identifier of the element `Info`.
pub(crate) const INFO: u32 = 0x1549_a966;
/// Identifier of the element `Tracks`.
pub(crate) const TRACKS: u32 = 0x1654_ae6b;
/// Identifier of the element `Cluster`.
pub(crate) const CLUSTER: u32 = 0x1f43_b675;
/// Identifier of the element `Cues`.
const CUES: u32 = 0x1c53_bb6b;

/// The tracks of a file: one video track, one audio track, or both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Size of the video; `None` if there is none.
    pub video: Option<Size>,
    /// Whether there is audio.
    pub audio: bool,
}

/// Codec of the video track.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VideoCodec<'a> {
    /// VP9, which needs no header.
    Vp9,
    /// AV1, with the header of its stream (`av1C`).
    Av1(&'a [u8]),
}

/// A track of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Slot {
    /// The video track.
    Video,
    /// The audio track, in Opus.
    Audio,
}

impl Slot {
    pub(crate) fn number(self) -> u8 {
        match self {
            Slot::Video => 1,
            Slot::Audio => 2,
        }
    }
}

#[derive(Debug)]
struct Cluster {
    begins: Duration,
    /// Whether a player may begin at this cluster.
    is_entry: bool,
    blocks: Elements,
}

/// Bytes to be written at a place in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Patch {
    /// Offset in the file.
    pub at: u64,
    /// Bytes to write there.
    pub bytes: Vec<u8>,
}

/// Bytes that complete a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finish {
    /// Last bytes of the file.
    pub tail: Vec<u8>,
    /// Bytes for places that were written before.
    pub patches: Vec<Patch>,
}

/// A file that is being written.
#[derive(Debug)]
pub struct Webm {
    shape: Shape,
    cluster: Option<Cluster>,
    /// Time and offset in the segment of clusters where a player may begin.
    entries: Vec<(Duration, u64)>,
    /// Number of bytes that were given out.
    written: u64,
    /// Offset of the segment's data.
    segment: u64,
    /// Offset of the element `SeekHead`; the next fields are offsets of `Info`, `Tracks` and the duration.
    seek_head: u64,
    info: u64,
    tracks: u64,
    duration: u64,
    last: Duration,
}

impl Webm {
    /// Begins a file, and returns its first bytes. `began` is the time of its first frame.
    pub fn new(shape: Shape, codec: VideoCodec<'_>, began: SystemTime) -> (Webm, Vec<u8>) {
        let mut head = Elements::new();
        let mut ebml = Elements::new();
        ebml.uint(0x4286, 1).uint(0x42f7, 1).uint(0x42f2, 4).uint(0x42f3, 8);
        ebml.text(0x4282, "webm").uint(0x4287, 4).uint(0x4285, 2);
        head.of(0x1a45_dfa3, &ebml).open(SEGMENT);
        let segment = head.len() as u64;
        head.void(SEEK_HEAD_BYTES);
        let info = head.len() as u64;
        let mut about = Elements::new();
        let ns = nanoseconds_since_2001(began);
        about.uint(0x002a_d7b1, 1_000_000).float(0x4489, 0.0).int(0x4461, ns);
        about.text(0x4d80, "Windlass").text(0x5741, "Windlass");
        head.of(INFO, &about);
        // Behind the identifiers and sizes of Info, TimestampScale and Duration.
        let duration = info + 4 + 1 + (3 + 1 + 3) + (2 + 1);
        let tracks = head.len() as u64;
        head.of(TRACKS, &entries(shape, codec));
        let head = head.into_bytes();
        let webm = Webm {
            shape,
            cluster: None,
            entries: Vec::new(),
            written: head.len() as u64,
            segment,
            seek_head: segment,
            info,
            tracks,
            duration,
            last: Duration::ZERO,
        };
        (webm, head)
    }

    /// Tracks of the file.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Time of the last frame.
    pub fn duration(&self) -> Duration {
        self.last
    }

    /// Number of bytes that were given out.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Takes a frame at its time in the file. A time before that of the last frame counts as that time. Returns the
    /// cluster that the frame completes.
    pub fn push(&mut self, slot: Slot, at: Duration, key: bool, data: &[u8]) -> Option<Vec<u8>> {
        let at = at.max(self.last);
        self.last = at;
        let is_entry = key && (slot == Slot::Video || self.shape.video.is_none());
        let begins_video = is_entry && slot == Slot::Video;
        let full = self.cluster.as_ref().is_some_and(|cluster| {
            begins_video
                || at >= cluster.begins + MAX_CLUSTER
                || cluster.blocks.len() + data.len() > MAX_CLUSTER_BYTES
        });
        let done = if full { self.flush() } else { None };
        let cluster = self.cluster.get_or_insert_with(|| {
            let mut blocks = Elements::new();
            blocks.uint(0xe7, at.as_millis() as u64);
            Cluster { begins: at, is_entry, blocks }
        });
        let mut block = Vec::with_capacity(4 + data.len());
        let within = at.as_millis() - cluster.begins.as_millis();
        block.push(0x80 | slot.number());
        block.extend_from_slice(&(within as u16).to_be_bytes());
        block.push(if key { 0x80 } else { 0 });
        block.extend_from_slice(data);
        cluster.blocks.bytes(0xa3, &block);
        done
    }

    /// Completes the cluster, if there is one.
    pub fn flush(&mut self) -> Option<Vec<u8>> {
        let cluster = self.cluster.take()?;
        if cluster.is_entry {
            self.entries.push((cluster.begins, self.written - self.segment));
        }
        let mut whole = Elements::new();
        whole.of(CLUSTER, &cluster.blocks);
        let bytes = whole.into_bytes();
        self.written += bytes.len() as u64;
        Some(bytes)
    }

    /// Completes the file.
    pub fn finish(mut self) -> Finish {
        let mut tail = self.flush().unwrap_or_default();
        let cues = (!self.entries.is_empty()).then_some(self.written - self.segment);
        let slot = if self.shape.video.is_some() { Slot::Video } else { Slot::Audio };
        if cues.is_some() {
            let mut points = Elements::new();
            for &(at, offset) in &self.entries {
                let (mut point, mut place) = (Elements::new(), Elements::new());
                place.uint(0xf7, slot.number().into()).uint(0xf1, offset);
                point.uint(0xb3, at.as_millis() as u64).of(0xb7, &place);
                points.of(0xbb, &point);
            }
            let mut index = Elements::new();
            index.of(CUES, &points);
            let bytes = index.into_bytes();
            self.written += bytes.len() as u64;
            tail.extend_from_slice(&bytes);
        }
        let places = [(INFO, self.info), (TRACKS, self.tracks)];
        let places = places.map(|(id, at)| (id, at - self.segment));
        let head = seek_head(places.into_iter().chain(cues.map(|at| (CUES, at))));
        let milliseconds = self.last.as_micros() as f64 / 1000.0;
        let patches = vec![
            Patch { at: self.segment - 8, bytes: long_size(self.written - self.segment).to_vec() },
            Patch { at: self.seek_head, bytes: head },
            Patch { at: self.duration, bytes: milliseconds.to_be_bytes().to_vec() },
        ];
        Finish { tail, patches }
    }
}

/// The seek head, filled with Void up to [`SEEK_HEAD_BYTES`].
fn seek_head(places: impl Iterator<Item = (u32, u64)>) -> Vec<u8> {
    let (mut head, mut seeks) = (Elements::new(), Elements::new());
    for (id, at) in places {
        let mut seek = Elements::new();
        seek.bytes(0x53ab, &id.to_be_bytes()).uint(0x53ac, at);
        seeks.of(0x4dbb, &seek);
    }
    head.of(SEEK_HEAD, &seeks);
    let left = SEEK_HEAD_BYTES.saturating_sub(head.len());
    head.void(left);
    head.into_bytes()
}

fn entries(shape: Shape, codec: VideoCodec<'_>) -> Elements {
    let mut tracks = Elements::new();
    if let Some(size) = shape.video {
        let mut video = Elements::new();
        video.uint(0xb0, size.width.into()).uint(0xba, size.height.into());
        let mut track = Elements::new();
        track.uint(0xd7, Slot::Video.number().into()).uint(0x73c5, 1).uint(0x9c, 0);
        track.uint(0x83, 1);
        match codec {
            VideoCodec::Vp9 => track.text(0x86, "V_VP9"),
            VideoCodec::Av1(header) => track.text(0x86, "V_AV1").bytes(0x63a2, header),
        };
        track.of(0xe0, &video);
        tracks.of(0xae, &track);
    }
    if shape.audio {
        let mut audio = Elements::new();
        audio.float(0xb5, OPUS_RATE.into()).uint(0x9f, 2);
        let mut track = Elements::new();
        track.uint(0xd7, Slot::Audio.number().into()).uint(0x73c5, 2).uint(0x9c, 0);
        track.uint(0x83, 2).text(0x86, "A_OPUS").bytes(0x63a2, &opus_head());
        track.uint(0x56aa, 0).uint(0x56bb, OPUS_SEEK_PRE_ROLL).of(0xe1, &audio);
        tracks.of(0xae, &track);
    }
    tracks
}

/// The header of Opus (RFC 7845 §5.1): two channels, nothing to skip, no gain.
fn opus_head() -> Vec<u8> {
    let mut head = b"OpusHead\x01\x02\x00\x00".to_vec();
    head.extend_from_slice(&OPUS_RATE.to_le_bytes());
    head.extend_from_slice(&[0, 0, 0]);
    head
}

fn nanoseconds_since_2001(time: SystemTime) -> i64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let ns = i64::try_from(since.as_nanos()).unwrap_or(i64::MAX);
    ns.saturating_sub(EPOCH_2001 * 1_000_000_000)
}

/// The whole part of a file. Everything after it belongs to a cluster that was cut off.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Whole {
    /// Length of the whole part, in bytes.
    pub len: u64,
    /// Time at which its last cluster begins.
    pub last: Duration,
}

/// Finds the whole part of a file; `None` if not even its head is whole.
pub fn whole_part(mut read: impl FnMut(u64, &mut [u8]) -> Option<usize>) -> Option<Whole> {
    let (mut at, mut whole) = (0, None::<Whole>);
    loop {
        let mut head = [0; 12];
        let Some(len) = read(at, &mut head) else { return whole };
        let Some((id, size, header)) = element(&head[..len]) else { return whole };
        at += header;
        if id == SEGMENT {
            continue;
        }
        let end = at + size;
        let mut last = [0; 1];
        let there = size == 0 || read(end - 1, &mut last).is_some_and(|len| len == 1);
        if !there {
            return whole;
        }
        if matches!(id, TRACKS | CLUSTER | CUES) {
            let mut last = whole.unwrap_or_default().last;
            let mut first = [0; 12];
            if id == CLUSTER
                && let Some(len) = read(at, &mut first)
                && let Some((0xe7, size, header)) = element(&first[..len])
                && let Some(time) = first.get(header as usize..(header + size.min(8)) as usize)
            {
                let ms = time.iter().fold(0, |ms, &byte| ms << 8 | u64::from(byte));
                last = Duration::from_millis(ms);
            }
            whole = Some(Whole { len: end, last });
        }
        at = end;
    }
}

/// Identifier and size of an element, and the length of its header.
fn element(head: &[u8]) -> Option<(u32, u64, u64)> {
    let id_len = head.first()?.leading_zeros() as usize + 1;
    let id = head.get(..id_len).filter(|_| id_len <= 4)?;
    let id = id.iter().fold(0, |id, &byte| id << 8 | u32::from(byte));
    let first = *head.get(id_len)?;
    let len = first.leading_zeros() as usize + 1;
    let bytes = head.get(id_len..id_len + len).filter(|_| len <= 8)?;
    let marked = bytes.iter().fold(0, |size, &byte| size << 8 | u64::from(byte));
    Some((id, marked & !(1 << (7 * len)), (id_len + len) as u64))
}

#[cfg(test)]
#[path = "webm_tests.rs"]
mod tests;
