//! The picture of a clip: the same part of one frame, as everything that was compared shows it.
//!
//! Networks of other scales stand on lines of their own, beside what they are compared with: the picture that a clip is
//! scaled to depends a little on the scale.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use windlass_vp9::Picture;

use super::args::At;
use crate::eval::frames::Size;
use crate::eval::networks::LANCZOS;
use crate::eval::pictures::{Line, Region, busiest, write_lines};

/// Maximum number of panels on a line.
const ACROSS: usize = 6;

/// One frame at one scale, by name: the source, then everything that was compared.
pub(super) type Shown = Vec<(String, Picture)>;

/// Writes `NAME.png`, and `NAME.txt` that says which panel is where, into `folder`.
pub(super) fn write(
    folder: &Path,
    name: &str,
    scales: &[Shown],
    at: Option<At>,
) -> Result<PathBuf> {
    let (_, source) = scales.first().and_then(|shown| shown.first()).context("nothing to show")?;
    let region = region(source, at)?;
    let lines: Vec<Line<'_>> =
        scales.iter().flat_map(|shown| lines(shown, region, source)).collect();
    let path = folder.join(format!("{}.png", plain(name)));
    write_lines(&path, &lines)?;
    let text = path.with_extension("txt");
    std::fs::write(&text, order(&lines)).with_context(|| format!("writing {}", text.display()))?;
    Ok(path)
}

/// The region to show: where the most detail is, or what begins at `at`.
fn region(source: &Picture, at: Option<At>) -> Result<Region> {
    let Some(At { x, y }) = at else { return Ok(busiest(&source.y)) };
    let size = Size::of(source);
    ensure!(
        x < size.width && y < size.height,
        "--crop-at {x},{y} is outside the picture, which is {size}"
    );
    Ok(Region::at(x, y, size))
}

/// The lines of one scale. Plain Lanczos is left out, as `lanczos@0.3` is the one to beat.
fn lines<'a>(shown: &'a Shown, region: Region, source: &Picture) -> Vec<Line<'a>> {
    let panels: Vec<(&str, &Picture)> = shown
        .iter()
        .filter(|(name, _)| name != LANCZOS)
        .map(|(name, picture)| (name.as_str(), picture))
        .collect();
    let size = panels.first().map_or(Size::of(source), |(_, picture)| Size::of(picture));
    let region = region.in_other(Size::of(source), size);
    panels.chunks(ACROSS).map(|panels| Line { region, panels: panels.to_vec() }).collect()
}

/// The text that says which panel is where.
fn order(lines: &[Line<'_>]) -> String {
    let mut text = String::new();
    for (n, Line { region, panels }) in lines.iter().enumerate() {
        let names: Vec<&str> = panels.iter().map(|(name, _)| *name).collect();
        let Region { x, y, width, height } = region;
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "line {}, {width}x{height} samples from {x},{y}: {}",
            n + 1,
            names.join(" | ")
        );
    }
    text
}

/// A name that every file system accepts.
fn plain(name: &str) -> String {
    let keep = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' };
    name.chars().map(keep).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(width: usize, names: &[&str]) -> Shown {
        names.iter().map(|name| ((*name).to_owned(), Picture::grey(width, 120))).collect()
    }

    #[test]
    fn many_panels_take_several_lines_and_the_text_tells_their_order() {
        let folder = tempfile::tempdir().unwrap();
        let names = ["source ×2", "bicubic", "lanczos", "lanczos@0.3", "xs", "s", "m", "l"];
        let scales = [shown(200, &names), shown(198, &["source ×3", "bicubic", "xs-x3"])];
        let path = write(folder.path(), "a/b #2_150k", &scales, None).unwrap();
        assert_eq!(path.file_name().unwrap(), "a_b__2_150k.png");
        let file = std::io::BufReader::new(std::fs::File::open(&path).unwrap());
        let reader = png::Decoder::new(file).read_info().unwrap();
        // Six panels of 160×120 samples, two pixels each, four between them; three lines.
        assert_eq!((reader.info().width, reader.info().height), (6 * 324 - 4, 3 * 244 - 4));
        let text = std::fs::read_to_string(path.with_extension("txt")).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].ends_with("source ×2 | bicubic | lanczos@0.3 | xs | s | m"), "{text}");
        assert!(lines[1].ends_with(": l") && lines[2].ends_with("xs-x3"), "{text}");
    }

    #[test]
    fn a_place_outside_is_refused_and_one_at_the_edge_shows_what_fits() {
        let source = Picture::grey(640, 360);
        let error = region(&source, Some(At { x: 640, y: 0 })).unwrap_err().to_string();
        assert!(error.contains("640x360"), "{error}");
        let found = region(&source, Some(At { x: 639, y: 100 })).unwrap();
        assert_eq!((found.x, found.y), (480, 100));
    }
}
