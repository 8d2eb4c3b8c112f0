//! A scene: a clip, or several one after the other, for changes of content.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context, Result};

use crate::eval::args::{ClipArgs, ClipSpec};
use crate::eval::clip;
use crate::eval::frames::{FrameStore, FrameWriter};

/// The camera's pictures of a scene.
#[derive(Debug)]
pub(super) struct Scene {
    /// Name of the scene in reports.
    pub name: String,
    /// Text that differs between different scenes: clips, sizes, lengths.
    pub identity: String,
    /// All pictures of the scene.
    pub frames: FrameStore,
    /// Frames per second.
    pub fps: f64,
    /// The frames at which a clip begins, each with whether the clip shows a screen.
    pub parts: Vec<(usize, bool)>,
}

impl Scene {
    /// Whether frame `n` is of a shared screen.
    pub(super) fn is_screen(&self, n: usize) -> bool {
        self.parts.iter().rfind(|(from, _)| *from <= n).is_some_and(|(_, screen)| *screen)
    }

    /// Reads clips of one size into one scene at the first one's frame rate.
    pub(super) fn read(reader: &Path, specs: &[ClipSpec], input: &ClipArgs) -> Result<Scene> {
        let mut writer: Option<FrameWriter> = None;
        let (mut names, mut identity, mut parts) = (Vec::new(), String::new(), Vec::new());
        let (mut fps, mut count) = (0.0, 0);
        for spec in specs {
            // The quarter layer of these sizes has whole chroma samples too.
            let wanted = input.wanted(spec, "4".parse()?);
            let clip = clip::read(reader, &spec.path, &wanted)
                .with_context(|| format!("reading {}", spec.path.display()))?;
            let stem = spec.path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
            let stem = stem.unwrap_or_default();
            let _ = write!(identity, "{stem} {wanted:?} {} ", spec.screen);
            names.push(stem.rsplit("__").next().unwrap_or_default().to_owned());
            let size = clip.frames.size();
            let writer = match &mut writer {
                Some(writer) => writer,
                none => {
                    fps = clip.fps;
                    none.insert(FrameWriter::new(size)?)
                }
            };
            parts.push((count, spec.screen || input.screen));
            for picture in clip.frames.frames()? {
                writer.push(&picture?).context("the clips of a chain must have one size")?;
                count += 1;
            }
        }
        let frames = writer.context("there is no clip")?.finish()?;
        Ok(Scene { name: names.join(" → "), identity, frames, fps, parts })
    }
}
