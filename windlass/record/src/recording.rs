//! One recording: the groups of its participants, their files, and its manifest. The thread of [`crate::disk`] runs it.
//! Files are written through [`Files`], which tests replace.

use std::collections::{BTreeMap, HashMap};
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
/// Number of files up to which the manifest is written at once whenever it changes. A longer one costs more, and people
/// who come and go must not keep the disk busy.
const PROMPT_FILES: usize = 100;
/// Minimum time between two writes of a longer manifest.
const MANIFEST_INTERVAL: Duration = Duration::from_secs(1);

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

/// A number that no other stream of a recording has had.
type StreamNumber = u64;

/// A recording of a room, with the files that are being written.
pub(crate) struct Recording {
    pub(crate) manifest: Manifest,
    folder: PathBuf,
    epoch: Epoch,
    /// The streams that have tracks.
    streams: BTreeMap<StreamNumber, Stream>,
    next_stream: StreamNumber,
    tracks: HashMap<TrackId, (StreamNumber, Slot)>,
    losses: Losses,
    /// Time at which the manifest was last written.
    saved: Option<Instant>,
    /// Whether it has changed since.
    unsaved: bool,
}

/// What is missing in a recording.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Losses {
    /// Number of gaps in video.
    pub(crate) gaps: u64,
    /// Number of audio packets that came too late.
    pub(crate) late: u64,
    /// Number of anchors that were dropped.
    pub(crate) anchors: u64,
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
        Recording {
            manifest,
            folder,
            epoch,
            streams: BTreeMap::new(),
            next_stream: 0,
            tracks: HashMap::new(),
            losses: Losses::default(),
            saved: None,
            unsaved: false,
        }
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
                let Some((_, stream)) = self.stream_of(anchor.track) else { return Ok(wanted) };
                stream.anchors.push(anchor, files);
                let dropped = std::mem::take(&mut stream.anchors.dropped);
                self.losses.anchors += dropped;
            }
            RecordInput::Gap(_) => self.losses.gaps += 1,
            RecordInput::End(track) => {
                let Some((number, stream)) = self.stream_of(track) else { return Ok(wanted) };
                let steps = stream.group.end(track).then(|| stream.group.finish());
                self.tracks.remove(&track);
                if let Some(steps) = steps {
                    let done = self.carry_out(number, steps, files, who, &mut wanted);
                    self.streams.remove(&number);
                    done?;
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
        let found = self.streams.iter().find(|(_, stream)| free(stream)).map(|(number, _)| *number);
        let number = found.unwrap_or_else(|| {
            self.next_stream += 1;
            self.next_stream
        });
        let stream = self.streams.entry(number).or_insert_with(|| Stream {
            participant,
            screen,
            names: HashMap::new(),
            group: Group::default(),
            writing: None,
            anchors: Anchors::default(),
        });
        stream.group.begin(slot, track);
        stream.names.insert(slot, name);
        self.tracks.insert(track, (number, slot));
    }

    fn stream_of(&mut self, track: TrackId) -> Option<(StreamNumber, &mut Stream)> {
        let (number, _) = *self.tracks.get(&track)?;
        Some((number, self.streams.get_mut(&number)?))
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
        let Some((number, stream)) = self.stream_of(track) else { return Ok(()) };
        let steps = stream.group.push(media, arrival);
        self.carry_out(number, steps, files, who, wanted)
    }

    /// Does what is due at `now`.
    pub(crate) fn advance(
        &mut self,
        now: Instant,
        files: &mut dyn Files,
        who: &Who,
    ) -> io::Result<Wanted> {
        let (mut wanted, at) = (Wanted::default(), self.micros(now));
        for number in self.numbers() {
            let Some(stream) = self.streams.get_mut(&number) else { continue };
            let steps = stream.group.advance(at);
            self.carry_out(number, steps, files, who, &mut wanted)?;
            let stream = self.streams.get_mut(&number);
            let Some(writing) = stream.and_then(|stream| stream.writing.as_mut()) else { continue };
            if now.saturating_duration_since(writing.flushed) >= MAX_UNWRITTEN {
                if let Some(cluster) = writing.webm.flush() {
                    files.append(&writing.path, &cluster)?;
                }
                writing.flushed = now;
            }
        }
        if self.unsaved {
            self.save(now, files)?;
        }
        Ok(wanted)
    }

    /// Writes the manifest, or leaves that to a later step if it is long and was written a moment ago.
    fn save(&mut self, now: Instant, files: &mut dyn Files) -> io::Result<()> {
        self.unsaved = true;
        let lately = |saved| now.saturating_duration_since(saved) < MANIFEST_INTERVAL;
        if self.manifest.files.len() > PROMPT_FILES && self.saved.is_some_and(lately) {
            return Ok(());
        }
        files.save(&self.manifest, &self.folder)?;
        (self.saved, self.unsaved) = (Some(now), false);
        Ok(())
    }

    fn numbers(&self) -> Vec<StreamNumber> {
        self.streams.keys().copied().collect()
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
        for number in self.numbers() {
            let Some(stream) = self.streams.get_mut(&number) else { continue };
            let steps = stream.group.finish();
            let done = self.carry_out(number, steps, files, who, &mut unwanted);
            result = result.and(done);
        }
        self.manifest.ended = Some(seconds(SystemTime::now()));
        self.manifest.reason = Some(reason);
        self.manifest.error = error;
        result.and(files.save(&self.manifest, &self.folder))
    }

    fn carry_out(
        &mut self,
        number: StreamNumber,
        steps: Vec<Step>,
        files: &mut dyn Files,
        who: &Who,
        wanted: &mut Wanted,
    ) -> io::Result<()> {
        for step in steps {
            match step {
                Step::KeyFrame(track) => wanted.push(track),
                Step::Open { shape, at } => self.open(number, shape, at, files, who)?,
                Step::Write { slot, at, key, data, frame } => {
                    let stream = self.streams.get_mut(&number);
                    let Some(Stream { writing: Some(writing), anchors, .. }) = stream else {
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
                Step::Close => self.close(number, files)?,
            }
        }
        if let Some(Stream { group, anchors, .. }) = self.streams.get_mut(&number) {
            self.losses.late += std::mem::take(&mut group.late);
            self.losses.anchors += std::mem::take(&mut anchors.dropped);
        }
        Ok(())
    }

    fn open(
        &mut self,
        number: StreamNumber,
        shape: Shape,
        at: i64,
        files: &mut dyn Files,
        who: &Who,
    ) -> io::Result<()> {
        let Some(stream) = self.streams.get_mut(&number) else { return Ok(()) };
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
        let now = Instant::now();
        stream.writing = Some(Writing { webm, path, index, flushed: now });
        self.save(now, files)
    }

    fn close(&mut self, number: StreamNumber, files: &mut dyn Files) -> io::Result<()> {
        let Some(stream) = self.streams.get_mut(&number) else { return Ok(()) };
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
        self.save(Instant::now(), files)
    }

    /// What has been lost since the last call.
    pub(crate) fn take_losses(&mut self) -> Losses {
        std::mem::take(&mut self.losses)
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

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use windlass_types::recording::{RecordedPacket, RecordedTime};

    use super::*;
    use crate::webm::Patch;

    /// Files that take everything, and count how often the manifest is written.
    #[derive(Default)]
    struct Counting {
        saved: usize,
    }

    impl Files for Counting {
        fn append(&mut self, _: &Path, _: &[u8]) -> io::Result<()> {
            Ok(())
        }

        fn complete(&mut self, _: &Path, _: &[Patch], _: &Path) -> io::Result<()> {
            Ok(())
        }

        fn close(&mut self, _: &Path) -> io::Result<()> {
            Ok(())
        }

        fn save(&mut self, _: &Manifest, _: &Path) -> io::Result<()> {
            self.saved += 1;
            Ok(())
        }
    }

    #[test]
    fn of_those_who_have_left_only_the_manifest_tells_and_the_disk_is_not_kept_busy() {
        let (mut files, start) = (Counting::default(), Instant::now());
        let epoch = Epoch { instant: start, wall: SystemTime::now() };
        let order = crate::Order {
            recording: "rec_1".to_owned(),
            room: "tea".to_owned(),
            participant: None,
            enhanced: false,
            started: seconds(epoch.wall),
            part: "a1".to_owned(),
        };
        let mut recording = Recording::new(order.manifest(), PathBuf::new(), epoch);
        let who: Who = Box::new(|_| None);
        let people = PROMPT_FILES as u64 + 200;
        for n in 0..people {
            let (track, participant) = (TrackId(n), ParticipantId(n));
            let (kind, name) = (TrackKind::Audio, "microphone".to_owned());
            let begin = RecordedTrack { track, room: "tea".into(), participant, kind, name };
            let time = RecordedTime { rtp: 0, arrival: start, report: None };
            let packet = RecordedPacket { track, time, data: Bytes::from_static(&[0xf8]) };
            for input in
                [RecordInput::Begin(begin), RecordInput::Audio(packet), RecordInput::End(track)]
            {
                recording.input(input, &mut files, &who).unwrap();
            }
        }
        assert!(recording.streams.is_empty() && recording.tracks.is_empty());
        assert_eq!(recording.manifest.files.len() as u64, people);
        assert!(recording.manifest.files.iter().all(|file| file.complete));
        // Each of the first ones when it begins and ends, and of the others one a second.
        assert!(files.saved < 2 * PROMPT_FILES + 50, "{}", files.saved);
        let saved = files.saved;
        recording.advance(Instant::now() + MANIFEST_INTERVAL, &mut files, &who).unwrap();
        assert_eq!(files.saved, saved + 1, "the rest of it");
    }
}
