//! Networks alone: every decoded picture of a clip by each of several networks, beside what needs none.
//!
//! In: a clip and networks of one scale. Out: `eval`'s own rows (`per-frame-sr` by the network's name), and one picture
//! of each. A network that looks at what the viewer sees is given what a viewer without anchors sees.

use std::path::Path;

use anyhow::Result;
use windlass_vp9::Picture;

use super::captured::CapturedSettings;
use super::clip::Clip;
use super::clip_run::{ClipRun, RunSettings};
use super::method::Method;
use super::row::Row;
use super::scale::Scale;
use super::sr::Upscaler;
use crate::progress::Progress;

/// Name of the method that every network is compared with.
pub(crate) const BICUBIC: &str = "bicubic";
/// Name of the method that is the base of every network.
pub(crate) const LANCZOS: &str = "lanczos";
/// Name of the method that sets the bar for VMAF, which sharpening alone raises.
pub(crate) const SHARPENED: &str = "lanczos@0.3";

/// The methods without a network.
const PLAIN: [Method; 3] = [Method::Bicubic, Method::Lanczos, Method::LanczosSharp];

/// A network by its name.
pub(crate) struct Network {
    /// The network's name in reports.
    pub name: String,
    /// The engine that runs the network.
    pub upscaler: Upscaler,
}

/// A clip at one uplink.
pub(crate) struct Call<'a> {
    /// Name of the clip in reports.
    pub name: &'a str,
    /// The pictures of the clip.
    pub clip: &'a Clip,
    /// Whether the clip is encoded as a shared screen.
    pub screen: bool,
    /// Bitrate of the low layer, in kbit/s.
    pub uplink_kbps: u32,
    /// The path of an ffmpeg with libvmaf, if there is one.
    pub vmaf: Option<&'a Path>,
    /// The progress that is told of every row.
    pub progress: &'a Progress,
}

/// A row, and the picture of the frame that was asked for.
pub(crate) type Shown = (Row, Option<Picture>);

/// Plays the call by every method without a network, then by each network of `scale`. Keeps the picture of frame
/// `keep`.
pub(crate) fn play(
    call: &Call<'_>,
    scale: Scale,
    networks: &mut [Network],
    keep: Option<usize>,
) -> Result<Vec<Shown>> {
    let mut networks: Vec<&mut Network> =
        networks.iter_mut().filter(|network| network.upscaler.scale() == scale).collect();
    if networks.is_empty() {
        return Ok(Vec::new());
    }
    let settings = RunSettings {
        scale,
        methods: Vec::new(),
        anchors: Vec::new(),
        captured: CapturedSettings::default(),
        nemo_step: 1,
        vmaf: call.vmaf,
        times: true,
        progress: None,
    };
    let clip_run = ClipRun::new(&settings, call.name, call.clip, call.uplink_kbps, call.screen)?;
    let keep = keep.as_slice();
    let mut found = Vec::new();
    let mut add = |method: Method, name: Option<&str>, upscaler: &mut Upscaler| -> Result<()> {
        let (mut row, kept) = clip_run.alone(method, upscaler, keep)?;
        row.method = name.map_or(row.method, str::to_owned);
        call.progress.begin(format!(
            "{} at {} kbit/s, ×{scale}: {}",
            call.name, call.uplink_kbps, row.method
        ))?;
        found.push((row, kept.into_iter().next()));
        Ok(())
    };
    if let Some(any) = networks.first_mut() {
        for method in PLAIN {
            add(method, None, &mut any.upscaler)?;
        }
    }
    for network in networks {
        add(Method::PerFrameSr, Some(&network.name), &mut network.upscaler)?;
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::synthetic;

    #[test]
    fn every_network_of_the_scale_has_a_row_beside_what_needs_none() {
        let clip = synthetic::panning(4);
        let progress = &Progress::new(1, "clips");
        let call =
            Call { name: "a", clip: &clip, screen: false, uplink_kbps: 300, vmaf: None, progress };
        let mut networks = [Network { name: "own".into(), upscaler: Upscaler::new().unwrap() }];
        let shown = play(&call, Scale::TWO, &mut networks, Some(2)).unwrap();
        let names: Vec<&str> = shown.iter().map(|(row, _)| row.method.as_str()).collect();
        assert_eq!(names, [BICUBIC, LANCZOS, SHARPENED, "own"]);
        assert!(shown.iter().all(|(row, picture)| row.frames == 4 && picture.is_some()));
        assert!(play(&call, "3".parse().unwrap(), &mut networks, None).unwrap().is_empty());
    }
}
