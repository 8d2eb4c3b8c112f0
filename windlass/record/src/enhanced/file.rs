//! Makes one enhanced file: the sound as it was recorded, and each picture at its time.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::Path;
use std::time::Duration;

use windlass_transcode::{EncodeError, FileCounts, FileTranscoder, Packet, file_picture_size};
use windlass_types::Size;
use windlass_types::key_frame::key_frame_size;

use crate::manifest::{Enhanced, EnhancedState};
use crate::read_anchors::AnchorFile;
use crate::read_webm::{ReadError, Reader};
use crate::recording::{anchors_of, part_of};
use crate::webm::{Shape, Slot, VideoCodec, Webm};

/// Maximum bytes of sound that wait for pictures. Beyond it the encoder gives out what it holds.
const MAX_SOUND: usize = 1 << 20;

/// Why an enhanced file is not made.
#[derive(Debug, thiserror::Error)]
pub(super) enum EnhancedFileError {
    /// The recorded file.
    #[error("the recorded file cannot be read: {0}")]
    Read(#[from] ReadError),
    /// Reading the anchors, or writing.
    #[error("{0}")]
    Disk(#[from] io::Error),
    #[error(transparent)]
    Encode(#[from] EncodeError),
    /// The server stops.
    #[error("the server stops")]
    Stopped,
}

impl EnhancedFileError {
    /// Whether another attempt may succeed.
    pub(super) fn may_pass(&self) -> bool {
        matches!(self, EnhancedFileError::Disk(_) | EnhancedFileError::Read(ReadError::Disk(_)))
    }
}

/// Name of the enhanced file of a recorded one.
fn enhanced_name(file: &str) -> String {
    format!("{}.enhanced.webm", file.strip_suffix(".webm").unwrap_or(file))
}

/// Makes the enhanced file of a recorded one in its folder. An unfinished one is made anew. `stopped` is asked before
/// each frame.
pub(super) fn make_enhanced_file(
    folder: &Path,
    file: &str,
    stopped: &dyn Fn() -> bool,
) -> Result<Enhanced, EnhancedFileError> {
    let from = folder.join(file);
    let none = Enhanced { state: EnhancedState::NoAnchors, ..Enhanced::default() };
    let mut anchors = match AnchorFile::open(&anchors_of(&from)) {
        Ok(anchors) => anchors,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(none),
        Err(error) => return Err(error.into()),
    };
    let layers = layers(&from, stopped)?;
    let layer_of = |number: u32| {
        let after = layers.partition_point(|(first, _)| *first <= number);
        after.checked_sub(1).map(|at| layers[at].1)
    };
    let sizes = anchors.sizes().iter();
    let of_layers = sizes.filter_map(|&(number, size)| Some((layer_of(number)?, size)));
    let Some(size) = file_picture_size(layers.iter().map(|&(_, size)| size), of_layers) else {
        return Ok(none);
    };
    let name = enhanced_name(file);
    let whole = folder.join(&name);
    let part = part_of(&whole);
    let made = write(&from, &mut anchors, size, &part, stopped);
    if made.is_err() {
        // What cannot be used needs no space.
        let _ = std::fs::remove_file(&part);
    }
    let (counts, bytes) = made?;
    std::fs::rename(&part, &whole)?;
    Ok(Enhanced {
        state: EnhancedState::Made,
        file: Some(name),
        bytes,
        width: Some(size.width),
        height: Some(size.height),
        frames: counts.pictures,
        anchors: counts.anchors,
        error: None,
    })
}

/// Sizes of a recorded file's layers, each with the number of its first frame.
fn layers(path: &Path, stopped: &dyn Fn() -> bool) -> Result<Vec<(u32, Size)>, EnhancedFileError> {
    let mut reader = Reader::new(File::open(path)?)?;
    let (mut layers, mut number) = (Vec::<(u32, Size)>::new(), 0);
    while let Some(block) = reader.next()? {
        if stopped() {
            return Err(EnhancedFileError::Stopped);
        }
        if block.slot == Slot::Video {
            let size = key_frame_size(&block.data);
            let last = layers.last().map(|(_, size)| *size);
            layers.extend(size.filter(|size| last != Some(*size)).map(|size| (number, size)));
            number += 1;
        }
    }
    Ok(layers)
}

fn write(
    from: &Path,
    anchors: &mut AnchorFile,
    size: Size,
    to: &Path,
    stopped: &dyn Fn() -> bool,
) -> Result<(FileCounts, u64), EnhancedFileError> {
    let mut reader = Reader::new(File::open(from)?)?;
    let mut transcoder = FileTranscoder::new(size)?;
    let shape = Shape { video: Some(size), audio: reader.has_audio() };
    let codec = transcoder.header();
    let (webm, head) = Webm::new(shape, VideoCodec::Av1(&codec), reader.began());
    let mut output = Output::new(webm, File::create(to)?);
    output.file.write_all(&head)?;
    let (mut packets, mut number) = (Vec::new(), 0);
    while let Some(block) = reader.next()? {
        if stopped() {
            return Err(EnhancedFileError::Stopped);
        }
        match block.slot {
            Slot::Video => {
                output.times.push_back((number, block.at));
                let anchors = anchors.of_frame(number)?;
                transcoder.push(number, &block.data, &anchors, &mut packets)?;
                number += 1;
            }
            Slot::Audio => output.wait(block.at, block.data),
        }
        if output.sound_bytes > MAX_SOUND {
            transcoder.flush(&mut packets)?;
        }
        output.pictures(packets.drain(..))?;
        if transcoder.waiting() == 0 {
            output.sound(Duration::MAX)?;
        }
    }
    transcoder.flush(&mut packets)?;
    output.pictures(packets.drain(..))?;
    Ok((transcoder.counts(), output.finish()?))
}

/// The file that is written: pictures come late, as the encoder holds some, and sound waits for them.
struct Output {
    webm: Webm,
    file: BufWriter<File>,
    /// Times of the frames whose pictures have not come, with their numbers.
    times: VecDeque<(u32, Duration)>,
    sound: VecDeque<(Duration, Vec<u8>)>,
    sound_bytes: usize,
}

impl Output {
    fn new(webm: Webm, file: File) -> Output {
        let (times, sound) = (VecDeque::new(), VecDeque::new());
        Output { webm, file: BufWriter::new(file), times, sound, sound_bytes: 0 }
    }

    /// Keeps a packet of sound until the pictures before it are written.
    fn wait(&mut self, at: Duration, data: Vec<u8>) {
        self.sound_bytes += data.len();
        self.sound.push_back((at, data));
    }

    /// Writes pictures, each behind the sound before it.
    fn pictures(&mut self, packets: impl Iterator<Item = Packet>) -> io::Result<()> {
        for Packet { number, key, data } in packets {
            // Frames without a picture are left out.
            while self.times.front().is_some_and(|(other, _)| *other < number) {
                self.times.pop_front();
            }
            let Some((_, at)) = self.times.pop_front() else { continue };
            self.sound(at)?;
            self.push(Slot::Video, at, key, &data)?;
        }
        Ok(())
    }

    /// Writes the sound up to a time.
    fn sound(&mut self, until: Duration) -> io::Result<()> {
        while self.sound.front().is_some_and(|(at, _)| *at <= until) {
            let Some((at, data)) = self.sound.pop_front() else { break };
            self.sound_bytes -= data.len();
            self.push(Slot::Audio, at, true, &data)?;
        }
        Ok(())
    }

    fn push(&mut self, slot: Slot, at: Duration, key: bool, data: &[u8]) -> io::Result<()> {
        match self.webm.push(slot, at, key, data) {
            Some(cluster) => self.file.write_all(&cluster),
            None => Ok(()),
        }
    }

    /// Completes the file. Returns its size in bytes.
    fn finish(mut self) -> io::Result<u64> {
        self.sound(Duration::MAX)?;
        let written = self.webm.written();
        let finish = self.webm.finish();
        self.file.write_all(&finish.tail)?;
        for patch in finish.patches {
            self.file.seek(SeekFrom::Start(patch.at))?;
            self.file.write_all(&patch.bytes)?;
        }
        self.file.into_inner()?.sync_data()?;
        Ok(written + finish.tail.len() as u64)
    }
}

#[cfg(test)]
#[path = "file_tests.rs"]
mod tests;
