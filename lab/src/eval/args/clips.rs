//! Options of the clips to measure, and of the part of them that is read.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::str::FromStr;

use anyhow::{Context, bail, ensure};
use clap::Args;

use crate::eval::clip::{Crop, Fps, Wanted};
use crate::eval::scale::Scale;

/// The options that say what is read of the clips.
#[derive(Debug, Clone, Args)]
pub(crate) struct ClipArgs {
    /// Video files in any format that ffmpeg reads.
    ///
    /// A file may have its own options after an @: crop=W:H:X:Y, height=LINES, screen, name=NAME (as in
    /// d13.mp4@crop=720:405:0:300,height=360).
    #[arg(required = true, value_name = "CLIP[@OPTION,…]")]
    pub clips: Vec<ClipSpec>,

    /// Part of the picture to use, as width:height:x:y in source pixels.
    #[arg(long, value_name = "W:H:X:Y")]
    pub crop: Option<Crop>,

    /// Height of the original (HR) picture in lines; larger sources are scaled down to it, smaller ones stay.
    #[arg(long, default_value = "540", value_name = "LINES")]
    pub height: NonZeroU32,

    /// Length to use of each clip in seconds, from its beginning [default: all of it].
    #[arg(long, value_name = "S")]
    pub seconds: Option<f64>,

    /// Frames per second of the call: `auto` takes the clip's own. Frames are never dropped or doubled.
    #[arg(long, default_value = "auto", value_name = "auto|N")]
    pub fps: Fps,

    /// The clips show shared screens: encode them as Chromium encodes a screen.
    #[arg(long)]
    pub screen: bool,
}

impl ClipArgs {
    /// Checks the arguments that clap cannot check.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        if let Some(seconds) = self.seconds {
            ensure!(
                seconds > 0.0 && seconds.is_finite(),
                "--seconds must be more than 0, not {seconds}"
            );
        }
        let own = self.clips.iter().filter_map(|clip| clip.height);
        for height in own.chain([self.height]) {
            ensure!(height.get() >= 64, "--height must be at least 64 lines, not {height}");
        }
        Ok(())
    }

    /// The part of a clip to read, for a low layer of this scale.
    pub(crate) fn wanted(&self, spec: &ClipSpec, scale: Scale) -> Wanted {
        Wanted {
            crop: spec.crop.or(self.crop),
            height: spec.height.unwrap_or(self.height).get(),
            seconds: self.seconds,
            fps: self.fps,
            scale,
        }
    }
}

/// A clip with options of its own, as `file.mp4@crop=720:405:0:300,height=360,screen`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ClipSpec {
    /// The clip's file.
    pub path: PathBuf,
    /// The part of the picture; `None`: that of `--crop`.
    pub crop: Option<Crop>,
    /// Maximum height in lines; `None`: that of `--height`.
    pub height: Option<NonZeroU32>,
    /// Whether the clip shows a shared screen.
    pub screen: bool,
    /// The clip's name in reports; `None`: the file's name.
    pub name: Option<String>,
}

impl FromStr for ClipSpec {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<ClipSpec> {
        let path = PathBuf::from(text);
        let mut spec = ClipSpec { path, crop: None, height: None, screen: false, name: None };
        let Some((path, options)) = text.rsplit_once('@') else {
            return Ok(spec);
        };
        // File names have @ too: text that does not begin with an option's name belongs to the file's.
        let key = options.split([',', '=']).next().unwrap_or_default();
        if !["crop", "height", "screen", "name"].contains(&key) || path.is_empty() {
            return Ok(spec);
        }
        spec.path = PathBuf::from(path);
        for option in options.split(',') {
            match option.split_once('=') {
                Some(("crop", value)) => spec.crop = Some(value.parse()?),
                Some(("height", value)) => {
                    let lines = value.parse();
                    let lines = lines.with_context(|| format!("a height in lines: {value:?}"))?;
                    spec.height = Some(lines);
                }
                Some(("name", value)) if !value.is_empty() => spec.name = Some(value.to_owned()),
                None if option == "screen" => spec.screen = true,
                _ => bail!(
                    "a clip's options are crop=W:H:X:Y, height=LINES, screen and name=NAME, not {option:?}"
                ),
            }
        }
        Ok(spec)
    }
}

/// A clip's name in the report: its own or its file's, with a number where an earlier clip has the same.
pub(crate) fn name(clips: &[ClipSpec], number: usize) -> String {
    let of = |spec: &ClipSpec| {
        if let Some(name) = &spec.name {
            return name.clone();
        }
        let name = spec.path.file_name();
        name.map_or_else(|| spec.path.display().to_string(), |n| n.to_string_lossy().into_owned())
    };
    let own = of(&clips[number]);
    match clips[..number].iter().filter(|spec| of(spec) == own).count() {
        0 => own,
        earlier => format!("{} #{}", own, earlier + 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clip_may_have_options_of_its_own() {
        let options = "crop=720:405:0:300,height=360,screen,name=c";
        let spec: ClipSpec = format!("a@b/c.mp4@{options}").parse().unwrap();
        assert_eq!(spec.name.as_deref(), Some("c"));
        assert_eq!(spec.path, PathBuf::from("a@b/c.mp4"));
        assert_eq!(spec.crop, Some("720:405:0:300".parse().unwrap()));
        assert_eq!((spec.height, spec.screen), (NonZeroU32::new(360), true));
        let plain: ClipSpec = "me@home.mp4".parse().unwrap();
        assert_eq!((plain.path, plain.crop), (PathBuf::from("me@home.mp4"), None));
        for wrong in
            ["a.mp4@crop=1:2", "a.mp4@height=tall", "a.mp4@screen,colour=no", "a.mp4@name="]
        {
            assert!(wrong.parse::<ClipSpec>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn clips_of_the_same_file_are_numbered() {
        let clips: Vec<ClipSpec> =
            ["x/a.mp4", "b.mp4", "a.mp4@height=360"].map(|text| text.parse().unwrap()).into();
        let names: Vec<String> = (0..3).map(|number| name(&clips, number)).collect();
        assert_eq!(names, ["a.mp4", "b.mp4", "a.mp4 #2"]);
        let named: Vec<ClipSpec> = vec!["x/a.mp4@name=anna".parse().unwrap()];
        assert_eq!(name(&named, 0), "anna");
    }
}
