//! An ffmpeg that is fed with pictures by a pipe, and leaves a file in a folder of its own.

use std::io::BufWriter;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};

use anyhow::{Context, Error, Result, anyhow, bail};
use tempfile::TempDir;
use windlass_vp9::Picture;

use super::frames::write_i420;
use super::messages::Messages;
use crate::interrupt;

/// A running ffmpeg. Dropped before its end, it is killed.
#[derive(Debug)]
pub(crate) struct Fed {
    child: Child,
    pipe: Option<BufWriter<ChildStdin>>,
    messages: Option<Messages>,
    folder: TempDir,
    /// The work, for errors: "computing VMAF".
    work: String,
}

impl Fed {
    /// Starts `ffmpeg`, which reads I420 from `pipe:0`. Its files' names are relative to the folder.
    pub(crate) fn start(ffmpeg: &Path, work: String, arguments: &[&str]) -> Result<Fed> {
        let folder =
            TempDir::with_prefix("windlass-ffmpeg-").context("making a temporary folder")?;
        let mut child = interrupt::shield(&mut Command::new(ffmpeg))
            .args(["-hide_banner", "-loglevel", "error"])
            .args(arguments)
            .current_dir(folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .with_context(|| format!("starting {}", ffmpeg.display()))?;
        interrupt::end_with_us(Some(child.id()));
        let (Some(pipe), Some(stderr)) = (child.stdin.take(), child.stderr.take()) else {
            bail!("ffmpeg started without its pipes");
        };
        let pipe = Some(BufWriter::with_capacity(1 << 20, pipe));
        Ok(Fed { child, pipe, messages: Some(Messages::read(stderr)), folder, work })
    }

    /// Adds the next picture.
    pub(crate) fn push(&mut self, picture: &Picture) -> Result<()> {
        let written = self.pipe.as_mut().is_some_and(|pipe| write_i420(pipe, picture).is_ok());
        if written { Ok(()) } else { Err(self.failure()) }
    }

    /// Waits for ffmpeg, and returns what it wrote into this file.
    pub(crate) fn finish(mut self, file: &str) -> Result<Vec<u8>> {
        // Closing the pipe tells ffmpeg that all pictures are there.
        let closed = self.pipe.take().is_some_and(|pipe| pipe.into_inner().is_ok());
        let ended = self.child.wait().context("waiting for ffmpeg")?;
        if !closed || !ended.success() {
            return Err(self.failure());
        }
        let path = self.folder.path().join(file);
        std::fs::read(path).with_context(|| format!("reading what ffmpeg left when {}", self.work))
    }

    /// Why ffmpeg has ended.
    fn failure(&mut self) -> Error {
        self.pipe = None;
        let _ = self.child.wait();
        let why = self
            .messages
            .take()
            .map_or_else(|| "it gave no reason".to_owned(), Messages::last_line);
        anyhow!("ffmpeg failed when {}: {why}", self.work)
    }
}

impl Drop for Fed {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        interrupt::ended(self.child.id());
    }
}

#[cfg(test)]
mod tests {
    use windlass_skips::skip;

    use super::*;
    use crate::eval::ffmpeg;

    #[test]
    fn an_ffmpeg_that_ends_at_once_says_why() {
        let Ok(ffmpeg) = ffmpeg::find(None) else {
            return skip("there is no ffmpeg");
        };
        let raw = ["-f", "rawvideo", "-s", "64x64", "-i", "pipe:0"];
        let arguments = [&raw[..], &["-c:v", "no-such-encoder", "out.ivf"]].concat();
        let mut fed = Fed::start(&ffmpeg.reader, "encoding".to_owned(), &arguments).unwrap();
        // Until the pipe is full, nobody notices.
        let error = (0..10_000).find_map(|_| fed.push(&Picture::grey(64, 64)).err());
        let error = error.expect("it ends").to_string();
        assert!(error.contains("when encoding") && error.contains("no-such-encoder"), "{error}");
    }
}
