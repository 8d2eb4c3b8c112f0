//! One recording: the groups of its participants, their files, and its manifest. The thread of [`crate::disk`] runs it.
//! Files are written through [`Files`], which tests replace.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use windlass_types::recording::{RecordInput, RecordedTrack};
use windlass_types::{ParticipantId, TrackId, TrackKind};

use crate::anchors::Anchors;
use crate::files::Files;
use crate::group::{Group, Media, Step};
use crate::manifest::{EndReason, Enhanced, Manifest, MediaFile, MediaTrack};
use crate::order::Who;
use crate::webm::{Shape, Slot, VideoCodec, Webm};

/// Maximum time for which a cluster is not written although no frame ends it.
const MAX_UNWRITTEN: Duration = Duration::from_secs(2);

/// A file that is being written.
struct Writing {
    webm: Webm,
    path: PathBuf,
    /// Index of the file in the manifest.
    index: usize,
    /// Time at which the last cluster was written.
    flushed: Instant,
}

/// Media of a participant that go into one file at a time.
struct Stream {
    participant: ParticipantId,
    /// Whether the stream is a screen.
    screen: bool,
    names: HashMap<Slot, String>,
    group: Group,
    writing: Option<Writing>,
    anchors: Anchors,
}

/// A recording of a room, with the files that are being written.
pub(crate) struct Recording {
    pub(crate) manifest: Manifest,
    folder: PathBuf,
    epoch: Epoch,
    streams: Vec<Stream>,
    tracks: HashMap<TrackId, (usize, Slot)>,
    /// Number of gaps in video.
    pub(crate) gaps: u64,
}

/// Start of the recorder, from which times are counted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Epoch {
    pub(crate) instant: Instant,
    /// Time of day at that instant.
    pub(crate) wall: SystemTime,
}

/// Tracks for which a step of a recording needs a key frame.
pub(crate) type Wanted = Vec<TrackId>;

impl Recording {
    pub(crate) fn new(manifest: Manifest, folder: PathBuf, epoch: Epoch) -> Recording {
        let (streams, tracks) = (Vec::new(), HashMap::new());
        Recording { manifest, folder, epoch, streams, tracks, gaps: 0 }
    }

    /// Folder of the recording.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    fn micros(&self, at: Instant) -> i64 {
        let since = at.checked_duration_since(self.epoch.instant).unwrap_or_default();
        i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
    }

    /// Takes media or an event of the recording's tracks.
    pub(crate) fn input(
        &mut self,
        input: RecordInput,
        files: &mut dyn Files,
        who: &Who,
    ) -> io::Result<Wanted> {
        let mut wanted = Wanted::default();
        match input {
            RecordInput::Begin(track) => self.begin(track),
            RecordInput::Video(frame) => {
                let (track, arrival) = (frame.track, self.micros(frame.time.arrival));
                self.media(track, frame.into(), arrival, files, who, &mut wanted)?;
            }
            RecordInput::Audio(packet) => {
                let (track, arrival) = (packet.track, self.micros(packet.time.arrival));
                self.media(track, packet.into(), arrival, files, who, &mut wanted)?;
            }
            RecordInput::Anchor(anchor) => {
                let Some(&(index, _)) = self.tracks.get(&anchor.track) else { return Ok(wanted) };
                self.streams[index].anchors.push(anchor, files);
            }
            RecordInput::Gap(_) => self.gaps += 1,
            RecordInput::End(track) => {
                let Some((index, _)) = self.tracks.remove(&track) else { return Ok(wanted) };
                if self.streams[index].group.end(track) {
                    let steps = self.streams[index].group.finish();
                    self.carry_out(index, steps, files, who, &mut wanted)?;
                }
            }
        }
        Ok(wanted)
    }

    fn begin(&mut self, track: RecordedTrack) {
        let RecordedTrack { track, participant, kind, name, .. } = track;
        let slot = if kind == TrackKind::Video { Slot::Video } else { Slot::Audio };
        let screen = name.contains("screen");
        let free = |stream: &Stream| {
            stream.participant == participant && stream.screen == screen && !stream.group.has(slot)
        };
        let index = self.streams.iter().position(free).unwrap_or_else(|| {
            let (names, group, anchors) = (HashMap::new(), Group::default(), Anchors::default());
            let writing = None;
            self.streams.push(Stream { participant, screen, names, group, writing, anchors });
            self.streams.len() - 1
        });
        self.streams[index].group.begin(slot, track);
        self.streams[index].names.insert(slot, name);
        self.tracks.insert(track, (index, slot));
    }

    fn media(
        &mut self,
        track: TrackId,
        media: Media,
        arrival: i64,
        files: &mut dyn Files,
        who: &Who,
        wanted: &mut Wanted,
    ) -> io::Result<()> {
        let Some(&(index, _)) = self.tracks.get(&track) else { return Ok(()) };
        let steps = self.streams[index].group.push(media, arrival);
        self.carry_out(index, steps, files, who, wanted)
    }

    /// Does what is due at `now`.
    pub(crate) fn advance(
        &mut self,
        now: Instant,
        files: &mut dyn Files,
        who: &Who,
    ) -> io::Result<Wanted> {
        let (mut wanted, at) = (Wanted::default(), self.micros(now));
        for index in 0..self.streams.len() {
            let steps = self.streams[index].group.advance(at);
            self.carry_out(index, steps, files, who, &mut wanted)?;
            let Some(writing) = &mut self.streams[index].writing else { continue };
            if now.saturating_duration_since(writing.flushed) >= MAX_UNWRITTEN {
                if let Some(cluster) = writing.webm.flush() {
                    files.append(&writing.path, &cluster)?;
                }
                writing.flushed = now;
            }
        }
        Ok(wanted)
    }

    /// Completes all files and the manifest. Goes on after an error, and returns the first one.
    pub(crate) fn end(
        &mut self,
        reason: EndReason,
        error: Option<String>,
        files: &mut dyn Files,
        who: &Who,
    ) -> io::Result<()> {
        // Nobody waits for key frames any more.
        let (mut unwanted, mut result) = (Wanted::default(), Ok(()));
        for index in 0..self.streams.len() {
            let steps = self.streams[index].group.finish();
            let done = self.carry_out(index, steps, files, who, &mut unwanted);
            result = result.and(done);
        }
        self.manifest.ended = Some(seconds(SystemTime::now()));
        self.manifest.reason = Some(reason);
        self.manifest.error = error;
        result.and(files.save(&self.manifest, &self.folder))
    }

    fn carry_out(
        &mut self,
        index: usize,
        steps: Vec<Step>,
        files: &mut dyn Files,
        who: &Who,
        wanted: &mut Wanted,
    ) -> io::Result<()> {
        for step in steps {
            match step {
                Step::KeyFrame(track) => wanted.push(track),
                Step::Open { shape, at } => self.open(index, shape, at, files, who)?,
                Step::Write { slot, at, key, data, frame } => {
                    let Stream { writing: Some(writing), anchors, .. } = &mut self.streams[index]
                    else {
                        continue;
                    };
                    count(&mut self.manifest.files[writing.index], slot);
                    if let Some(frame) = frame {
                        anchors.frame(frame, files);
                    }
                    if let Some(cluster) = writing.webm.push(slot, at, key, &data) {
                        writing.flushed = Instant::now();
                        files.append(&writing.path, &cluster)?;
                    }
                }
                Step::Close => self.close(index, files)?,
            }
        }
        Ok(())
    }

    fn open(
        &mut self,
        index: usize,
        shape: Shape,
        at: i64,
        files: &mut dyn Files,
        who: &Who,
    ) -> io::Result<()> {
        let stream = &mut self.streams[index];
        let began = self.epoch.wall + Duration::from_micros(at.max(0).unsigned_abs());
        let (webm, head) = Webm::new(shape, VideoCodec::Vp9, began);
        let id = stream.participant.to_string();
        let of = |file: &&MediaFile| file.participant == id;
        let number = self.manifest.files.iter().filter(of).count() + 1;
        let file = format!("{id}-{number}.webm");
        let whole = self.folder.join(&file);
        let (path, enhanced) = (part_of(&whole), shape.video.is_some() && self.manifest.enhanced);
        let person = who(stream.participant).unwrap_or_default();
        let name = |slot| stream.names.get(&slot).cloned().unwrap_or_default();
        let track = |slot, kind: &str, codec: &str| MediaTrack {
            kind: kind.to_owned(),
            codec: codec.to_owned(),
            name: name(slot),
            width: shape.video.filter(|_| slot == Slot::Video).map(|size| size.width),
            height: shape.video.filter(|_| slot == Slot::Video).map(|size| size.height),
            frames: 0,
        };
        let video = shape.video.map(|_| track(Slot::Video, "video", "vp9"));
        let audio = shape.audio.then(|| track(Slot::Audio, "audio", "opus"));
        self.manifest.files.push(MediaFile {
            file,
            participant: id,
            identity: person.identity,
            name: person.name,
            offset: milliseconds(seconds(began) - self.manifest.started),
            duration: 0.0,
            bytes: 0,
            tracks: video.into_iter().chain(audio).collect(),
            complete: false,
            enhanced: enhanced.then(Enhanced::default),
        });
        let index = self.manifest.files.len() - 1;
        files.append(&path, &head)?;
        stream.anchors.begin(enhanced.then(|| anchors_of(&whole)));
        stream.writing = Some(Writing { webm, path, index, flushed: Instant::now() });
        files.save(&self.manifest, &self.folder)
    }

    fn close(&mut self, index: usize, files: &mut dyn Files) -> io::Result<()> {
        let stream = &mut self.streams[index];
        stream.anchors.end(files);
        let Some(Writing { webm, path, index, .. }) = stream.writing.take() else {
            return Ok(());
        };
        let (duration, written) = (webm.duration(), webm.written());
        let finish = webm.finish();
        files.append(&path, &finish.tail)?;
        let file = &mut self.manifest.files[index];
        files.complete(&path, &finish.patches, &self.folder.join(&file.file))?;
        file.duration = milliseconds(duration.as_secs_f64());
        file.bytes = written + finish.tail.len() as u64;
        file.complete = true;
        files.save(&self.manifest, &self.folder)
    }

    /// Number of anchors that were dropped.
    pub(crate) fn anchors_dropped(&self) -> u64 {
        self.streams.iter().map(|stream| stream.anchors.dropped).sum()
    }

    /// Number of audio packets that came too late.
    pub(crate) fn late(&self) -> u64 {
        self.streams.iter().map(|stream| stream.group.late).sum()
    }
}

/// Path of the anchors of a file.
pub(crate) fn anchors_of(file: &Path) -> PathBuf {
    file.with_extension("anchors")
}

/// Path of a file until it is complete, from its final one.
pub(crate) fn part_of(whole: &Path) -> PathBuf {
    whole.with_extension("webm.part")
}

fn count(file: &mut MediaFile, slot: Slot) {
    let kind = if slot == Slot::Video { "video" } else { "audio" };
    if let Some(track) = file.tracks.iter_mut().find(|track| track.kind == kind) {
        track.frames += 1;
    }
}

/// Seconds since 1970.
pub(crate) fn seconds(at: SystemTime) -> f64 {
    let since = at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    milliseconds(since.as_secs_f64())
}

fn milliseconds(seconds: f64) -> f64 {
    (seconds * 1000.0).round() / 1000.0
}
