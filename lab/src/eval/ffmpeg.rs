//! Finds an ffmpeg that reads clips, and one that has libvmaf, which is often another.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Result, bail};

/// The programs that were found.
#[derive(Debug, Clone)]
pub(crate) struct Ffmpeg {
    /// The ffmpeg that reads clips.
    pub reader: PathBuf,
    /// The ffmpeg that computes VMAF; `None` when none here has libvmaf.
    pub vmaf: Option<PathBuf>,
}

/// Finds programs: `given` first, then `ffmpeg` on the path, then that of Python's `imageio_ffmpeg`.
///
/// A given ffmpeg that does not run is an error; one without libvmaf still reads clips.
pub(crate) fn find(given: Option<&Path>) -> Result<Ffmpeg> {
    if let Some(path) = given
        && !runs(path)
    {
        bail!("{} is not an ffmpeg that runs; check --ffmpeg and WINDLASS_FFMPEG", path.display());
    }
    let candidates: Vec<PathBuf> = given
        .map(Path::to_path_buf)
        .into_iter()
        .chain([PathBuf::from("ffmpeg")].into_iter().filter(|path| runs(path)))
        .chain(from_python())
        .collect();
    let Some(reader) = candidates.first().cloned() else {
        bail!(
            "no ffmpeg found: install one (`apt install ffmpeg`), or name one with --ffmpeg PATH"
        );
    };
    let vmaf = candidates.into_iter().find(|path| has_vmaf(path));
    Ok(Ffmpeg { reader, vmaf })
}

fn runs(path: &Path) -> bool {
    output(path, &["-hide_banner", "-version"]).is_some()
}

fn has_vmaf(path: &Path) -> bool {
    output(path, &["-hide_banner", "-filters"]).is_some_and(|text| text.contains(" libvmaf "))
}

fn from_python() -> Option<PathBuf> {
    let program = "import imageio_ffmpeg; print(imageio_ffmpeg.get_ffmpeg_exe())";
    let text = output(Path::new("python3"), &["-c", program])?;
    let path = PathBuf::from(text.trim());
    runs(&path).then_some(path)
}

/// Standard output of a program that ended with success.
fn output(program: &Path, args: &[&str]) -> Option<String> {
    let done = Command::new(program)
        .args(args)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    done.status.success().then(|| String::from_utf8_lossy(&done.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_given_ffmpeg_that_does_not_run_is_an_error_that_names_the_option() {
        let error = find(Some(Path::new("/nowhere/ffmpeg"))).unwrap_err().to_string();
        assert!(error.contains("--ffmpeg"), "{error}");
    }
}
