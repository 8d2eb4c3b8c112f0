//! A scene (a clip, or several one after the other, for changes of content), and the rate of the uplink over time.

use std::fmt::Write as _;
use std::num::NonZeroU32;
use std::path::Path;
use std::str::FromStr;

use anyhow::{Context, Result, bail, ensure};

use crate::eval::args::{ClipSpec, EvalArgs};
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
    pub(super) fn read(reader: &Path, specs: &[ClipSpec], args: &EvalArgs) -> Result<Scene> {
        let mut writer: Option<FrameWriter> = None;
        let (mut names, mut identity, mut parts) = (Vec::new(), String::new(), Vec::new());
        let (mut fps, mut count) = (0.0, 0);
        for spec in specs {
            // The quarter layer of these sizes has whole chroma samples too.
            let wanted = args.input.wanted(spec, "4".parse()?);
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
            parts.push((count, spec.screen || args.input.screen));
            for picture in clip.frames.frames()? {
                writer.push(&picture?).context("the clips of a chain must have one size")?;
                count += 1;
            }
        }
        let frames = writer.context("there is no clip")?.finish()?;
        Ok(Scene { name: names.join(" → "), identity, frames, fps, parts })
    }
}

/// The rate of an uplink over time: `150`, or `300@0/100@6` (kbit/s, each from a second on).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Trace {
    steps: Vec<(u32, NonZeroU32)>,
}

impl Trace {
    /// The bitrate in kbit/s at a second of the scene.
    pub(crate) fn at(&self, second: f64) -> f64 {
        let step = self.steps.iter().rfind(|(from, _)| f64::from(*from) <= second);
        step.map_or(0.0, |(_, kbps)| f64::from(kbps.get()))
    }
}

impl FromStr for Trace {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Trace> {
        let mut steps = Vec::new();
        for step in text.split('/') {
            let (kbps, from) = step.split_once('@').unwrap_or((step, "0"));
            let (Ok(kbps), Ok(from)) = (kbps.parse(), from.parse()) else {
                bail!(
                    "an uplink is kbit/s, or steps as 300@0/100@6 (from a second on), not {text:?}"
                );
            };
            steps.push((from, kbps));
        }
        let ordered = steps.windows(2).all(|pair| pair[0].0 < pair[1].0);
        ensure!(ordered && steps[0].0 == 0, "the steps of {text:?} must begin at 0 and ascend");
        Ok(Trace { steps })
    }
}

/// As on the command line.
impl std::fmt::Display for Trace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let step = |&(from, kbps): &(u32, NonZeroU32)| match self.steps.len() {
            1 => kbps.to_string(),
            _ => format!("{kbps}@{from}"),
        };
        f.pad(&self.steps.iter().map(step).collect::<Vec<_>>().join("/"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_holds_each_step_until_the_next() {
        let trace: Trace = "300@0/100@6".parse().unwrap();
        let rates: Vec<f64> = [0.0, 5.9, 6.0, 60.0].map(|s| trace.at(s)).into();
        assert_eq!(rates, [300.0, 300.0, 100.0, 100.0]);
        assert_eq!(trace.to_string(), "300@0/100@6");
        assert_eq!("150".parse::<Trace>().unwrap().to_string(), "150");
        for wrong in ["", "x", "0", "100@3", "100@0/200@0"] {
            assert!(wrong.parse::<Trace>().is_err(), "{wrong}");
        }
    }
}
