//! Every figure of the trained networks by one command, as Markdown for `lab/notes/networks-all-figures.md`.
//!
//! In: the held-out clips of `models/data.toml` below `WINDLASS_CLIPS`, all of `models/*.safetensors`. Out, on standard
//! output: the table of `windlass-lab bench engine --quality`, that of `--choose`, and the same networks in other
//! libraries where `lab/engines` is there. What could not be measured is said in its place.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use crate::binaries::release_lab;
use crate::process::{Cmd, step};
use crate::{apt, root, target_dir};

/// The manifest of the program that runs the networks in other libraries. It is a workspace of its own, so that
/// nobody else builds those libraries.
const LIBRARIES: &str = "lab/engines/Cargo.toml";

/// What is measured.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Clips by their names in models/data.toml [default: those that training never sees].
    #[arg(long, value_delimiter = ',', value_name = "NAME,…")]
    clips: Vec<String>,
    /// Bit rates of the low layer in kbit/s.
    #[arg(long, value_delimiter = ',', value_name = "K,…", default_value = "150,300")]
    uplink: Vec<u32>,
    /// Seconds of each clip.
    #[arg(long, default_value_t = 4.0, value_name = "S")]
    seconds: f64,
    /// Where the pictures go: crops of the source and of what each network makes of it [default: models-crops in
    /// cargo's build folder].
    #[arg(long, value_name = "FOLDER")]
    crops: Option<PathBuf>,
    /// Leave out the other libraries.
    #[arg(long)]
    no_libraries: bool,
}

#[derive(Deserialize)]
struct List {
    clip: Vec<Clip>,
}

/// A clip of `models/data.toml`, with the fields that are used here.
#[derive(Deserialize)]
struct Clip {
    name: String,
    file: String,
    role: String,
    kind: String,
    crop: Option<String>,
    #[serde(default)]
    sizes: Vec<Size>,
}

#[derive(Deserialize)]
struct Size {
    hr: String,
}

/// Builds the programs, measures the networks and prints the figures.
pub(crate) fn run(args: &Args) -> Result<()> {
    let list = root().join("models/data.toml");
    let text =
        std::fs::read_to_string(&list).with_context(|| format!("reading {}", list.display()))?;
    let list: List =
        toml::from_str(&text).with_context(|| format!("reading {}", list.display()))?;
    let (clips, missing) = found(&wanted(list, &args.clips)?, &windlass_files::clips());
    apt::install(apt::BUILD)?;
    apt::install(apt::TEST)?;
    step("Building windlass-lab");
    Cmd::cargo(["build", "--release", "--quiet", "--package", "windlass-lab"]).run()?;
    println!("### Cost, speed and gain\n");
    for missing in &missing {
        println!("Not measured: {missing}.\n");
    }
    if clips.is_empty() {
        println!("No clip is there, so no gain was measured; WINDLASS_CLIPS names their folder.\n");
        step("Timing networks without clips");
        bench().arg("--threads").arg("1").run()?;
    } else {
        step("Measuring networks on clips");
        let crops = args.crops.clone().unwrap_or_else(|| target_dir().join("models-crops"));
        let uplinks: Vec<String> = args.uplink.iter().map(u32::to_string).collect();
        bench()
            .arg("--quality")
            .args(clips)
            .args(["--uplink", &uplinks.join(","), "--clip-seconds", &args.seconds.to_string()])
            .arg("--crops")
            .arg(&crops)
            .run()?;
        eprintln!("The pictures are in {}.", crops.display());
    }
    println!("\n### What the server would choose\n");
    step("Asking the scheduler");
    println!("```text");
    bench().args(["--choose", "1,10,50,200", "--sizes", "160x90,320x180"]).run()?;
    println!("```");
    println!("\n### In other libraries\n");
    libraries(args.no_libraries)
}

fn bench() -> Cmd {
    Cmd::new(release_lab()).args(["bench", "engine"])
}

/// Runs the networks in other libraries, and prints the figures.
fn libraries(left_out: bool) -> Result<()> {
    if left_out {
        println!("Not measured: left out by --no-libraries.");
        return Ok(());
    }
    if !root().join(LIBRARIES).is_file() {
        println!("Not measured: there is no {LIBRARIES}.");
        return Ok(());
    }
    step("Running the networks in other libraries (the first time these take minutes to build)");
    let done = Cmd::cargo(["run", "--release", "--quiet", "--manifest-path", LIBRARIES]).run();
    done.inspect_err(|_| println!("Not measured: {LIBRARIES} did not build or run."))
}

/// The clips by these names; those held out of training where none is named.
fn wanted(list: List, names: &[String]) -> Result<Vec<Clip>> {
    for name in names {
        ensure!(
            list.clip.iter().any(|clip| clip.name == *name),
            "models/data.toml has no clip {name}; it has {}",
            list.clip.iter().map(|clip| clip.name.as_str()).collect::<Vec<_>>().join(", ")
        );
    }
    let chosen = |clip: &Clip| {
        if names.is_empty() { clip.role == "holdout" } else { names.contains(&clip.name) }
    };
    Ok(list.clip.into_iter().filter(chosen).collect())
}

/// The clips that exist, as `windlass-lab` takes them, and a remark on each of the others.
fn found(clips: &[Clip], folder: &Path) -> (Vec<String>, Vec<String>) {
    let (mut there, mut missing) = (Vec::new(), Vec::new());
    for clip in clips {
        let path = folder.join(&clip.file);
        if path.is_file() {
            there.push(spec(clip, &path));
        } else {
            let Clip { name, file, .. } = clip;
            missing.push(format!("{name}, because {file} is not in {}", folder.display()));
        }
    }
    (there, missing)
}

/// A clip with its options.
fn spec(clip: &Clip, path: &Path) -> String {
    let mut options = vec![format!("name={}", clip.name)];
    options.extend(clip.crop.as_ref().map(|crop| format!("crop={crop}")));
    let size = clip.sizes.first().and_then(|size| size.hr.split_once('x'));
    options.extend(size.map(|(_, lines)| format!("height={lines}")));
    options.extend((clip.kind == "screen").then(|| "screen".to_owned()));
    format!("{}@{}", path.display(), options.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list() -> List {
        toml::from_str(&std::fs::read_to_string("../models/data.toml").unwrap()).unwrap()
    }

    fn names(clips: &[Clip]) -> Vec<&str> {
        clips.iter().map(|clip| clip.name.as_str()).collect()
    }

    #[test]
    fn held_out_clips_are_measured_unless_others_are_named() {
        let all = wanted(list(), &[]).unwrap();
        assert!(all.iter().all(|clip| clip.role == "holdout"), "{:?}", names(&all));
        for name in ["d13", "s18", "terminal"] {
            assert!(names(&all).contains(&name), "{name} is missing of {:?}", names(&all));
        }
        assert_eq!(names(&wanted(list(), &["d6".to_owned()]).unwrap()), ["d6"]);
        let error = wanted(list(), &["d99".to_owned()]).err().unwrap().to_string();
        assert!(error.contains("d99") && error.contains("terminal"), "{error}");
    }

    #[test]
    fn clips_have_the_options_of_the_list_and_missing_ones_are_told() {
        let folder = tempfile::tempdir().unwrap();
        for file in ["LivePortrait__d13.mp4", "chor2bspl__screencast.mp4"] {
            std::fs::write(folder.path().join(file), b"").unwrap();
        }
        let (there, missing) = found(&wanted(list(), &[]).unwrap(), folder.path());
        assert!(there[0].ends_with("d13.mp4@name=d13,crop=720:405:0:300,height=360"), "{there:?}");
        assert!(there[1].ends_with("@name=terminal,crop=1536:600:0:0,height=600,screen"));
        assert!(missing[0].starts_with("s18, because LivePortrait__s18.mp4"), "{missing:?}");
    }
}
