//! Crops side by side, for the eye: the same detailed region as each method shows it.
//!
//! The region is where luma varies most from sample to sample within 8×8 blocks. Each sample
//! becomes 2×2 in the PNG, so that nothing but the methods interpolates.

use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use windlass_scores::{colour, rgb};
use windlass_vp9::{Picture, Plane};

use super::frames::Size;

/// Side of the shown region, in HR samples.
const REGION: usize = 160;
/// Side of the blocks whose deviation is measured, in samples.
const BLOCK: usize = 8;
/// Number of PNG pixels for one sample, in each direction.
const ZOOM: usize = 2;
/// Number of PNG pixels between two panels.
const GAP: usize = 4;

/// A rectangle in luma samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Region {
    /// Left edge.
    pub x: usize,
    /// Top edge.
    pub y: usize,
    /// Width.
    pub width: usize,
    /// Height.
    pub height: usize,
}

impl Region {
    /// A region of the shown size with its corner at `x`, `y`, or as near to it as fits.
    pub(crate) fn at(x: usize, y: usize, picture: Size) -> Region {
        let (width, height) = (picture.width.min(REGION), picture.height.min(REGION));
        Region { x: x.min(picture.width - width), y: y.min(picture.height - height), width, height }
    }

    /// The region scaled to a picture of another size.
    pub(crate) fn in_other(self, from: Size, to: Size) -> Region {
        let scaled = |at: usize, from: usize, to: usize| (at * to + from / 2) / from;
        Region::at(scaled(self.x, from.width, to.width), scaled(self.y, from.height, to.height), to)
    }
}

/// Panels side by side: the same region of pictures of one size, each with its name.
pub(crate) struct Line<'a> {
    /// The region that is shown of each picture.
    pub region: Region,
    /// The pictures with their names, from left to right.
    pub panels: Vec<(&'a str, &'a Picture)>,
}

/// The frames to show of a clip: early, middle and late.
pub(crate) fn chosen_frames(count: usize) -> Vec<usize> {
    let mut chosen: Vec<usize> = [count / 4, count / 2, count * 7 / 8].to_vec();
    chosen.dedup();
    chosen
}

/// The most detailed region of a picture.
pub(crate) fn busiest(luma: &Plane) -> Region {
    let (width, height) = (luma.width().min(REGION), luma.height().min(REGION));
    let (columns, rows) = (luma.width() / BLOCK, luma.height() / BLOCK);
    let deviations: Vec<Vec<f64>> = (0..rows)
        .map(|by| (0..columns).map(|bx| deviation(luma, bx * BLOCK, by * BLOCK)).collect())
        .collect();
    let (across, down) = (width / BLOCK, height / BLOCK);
    let mut best = (f64::MIN, 0, 0);
    for by in 0..=rows.saturating_sub(down) {
        for bx in 0..=columns.saturating_sub(across) {
            let sum: f64 = deviations
                .iter()
                .skip(by)
                .take(down)
                .map(|row| row.iter().skip(bx).take(across).sum::<f64>())
                .sum();
            if sum > best.0 {
                best = (sum, bx, by);
            }
        }
    }
    Region { x: best.1 * BLOCK, y: best.2 * BLOCK, width, height }
}

/// Standard deviation of a block. Its square root keeps one hard edge from outweighing texture.
fn deviation(luma: &Plane, x: usize, y: usize) -> f64 {
    let (mut sum, mut squares) = (0u32, 0u32);
    for row in y..y + BLOCK {
        for &v in &luma.row(row)[x..x + BLOCK] {
            sum += u32::from(v);
            squares += u32::from(v) * u32::from(v);
        }
    }
    let n = (BLOCK * BLOCK) as f64;
    let mean = f64::from(sum) / n;
    (f64::from(squares) / n - mean * mean).max(0.0).sqrt()
}

/// Writes `panels` (name and picture) side by side; their names become part of the file's.
pub(crate) fn write(
    folder: &Path,
    stem: &str,
    region: Region,
    panels: &[(&str, &Picture)],
) -> Result<PathBuf> {
    let names: Vec<&str> = panels.iter().map(|(name, _)| *name).collect();
    let path = folder.join(format!("{stem}_{}.png", names.join("_")));
    write_lines(&path, &[Line { region, panels: panels.to_vec() }])?;
    Ok(path)
}

/// Writes lines of panels one below the other, and makes the folder where it is not there.
pub(crate) fn write_lines(path: &Path, lines: &[Line<'_>]) -> Result<()> {
    let (width, height, rgb) = compose(lines)?;
    let writing = || format!("writing {}", path.display());
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).with_context(writing)?;
    }
    let file = File::create(path).with_context(writing)?;
    let mut encoder = png::Encoder::new(BufWriter::new(file), width as u32, height as u32);
    encoder.set_color(png::ColorType::Rgb);
    let mut writer = encoder.write_header().with_context(writing)?;
    writer.write_image_data(&rgb).with_context(writing)?;
    writer.finish().with_context(writing)
}

/// Width, height and pixels of all lines together; the rest of the rectangle is white.
fn compose(lines: &[Line<'_>]) -> Result<(usize, usize, Vec<u8>)> {
    let wide = |line: &Line<'_>| line.panels.len() * (line.region.width * ZOOM + GAP);
    let high = |line: &Line<'_>| line.region.height * ZOOM + GAP;
    let width = lines.iter().map(wide).max().unwrap_or(0).saturating_sub(GAP);
    let height = lines.iter().map(high).sum::<usize>().saturating_sub(GAP);
    ensure!(width > 0 && height > 0, "there is nothing to show");
    let mut rgb = vec![255; width * height * 3];
    let mut top = 0;
    for line in lines {
        for (n, (name, picture)) in line.panels.iter().enumerate() {
            let left = n * (line.region.width * ZOOM + GAP);
            draw(line.region, picture, &mut rgb[(top * width + left) * 3..], width)
                .with_context(|| format!("showing {name}"))?;
        }
        top += high(line);
    }
    Ok((width, height, rgb))
}

/// Draws a region of a picture at the beginning of `rgb`, whose rows have `width` pixels.
fn draw(region: Region, picture: &Picture, rgb: &mut [u8], width: usize) -> Result<()> {
    ensure!(
        region.x + region.width <= picture.width() && region.y + region.height <= picture.height(),
        "the picture is too small"
    );
    for y in 0..region.height * ZOOM {
        for x in 0..region.width * ZOOM {
            let at = (y * width + x) * 3;
            let colour = colour(picture, region.x + x / ZOOM, region.y + y / ZOOM);
            rgb[at..at + 3].copy_from_slice(&colour);
        }
    }
    Ok(())
}

/// A whole picture as a PNG file.
pub(crate) fn png(picture: &Picture) -> Result<Vec<u8>> {
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, picture.width() as u32, picture.height() as u32);
    encoder.set_color(png::ColorType::Rgb);
    let mut writer = encoder.write_header().context("making a PNG")?;
    writer.write_image_data(&rgb(picture)).context("making a PNG")?;
    writer.finish().context("making a PNG")?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_busiest_region_is_where_the_texture_is() {
        let mut picture = Picture::grey(640, 360);
        for y in 200..330 {
            for x in 400..540 {
                picture.y.samples_mut()[y * 640 + x] = if (x + y) % 2 == 0 { 60 } else { 200 };
            }
        }
        let region = busiest(&picture.y);
        assert!(region.x <= 400 && region.x + region.width >= 536, "{region:?}");
        assert!(region.y <= 200 && region.y + region.height >= 328, "{region:?}");
    }

    #[test]
    fn a_small_picture_is_shown_whole() {
        let region = busiest(&Picture::grey(40, 24).y);
        assert_eq!(region, Region { x: 0, y: 0, width: 40, height: 24 });
    }

    #[test]
    fn panels_stand_side_by_side_and_name_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let picture = Picture::grey(40, 24);
        let region = busiest(&picture.y);
        let path = write(
            folder.path(),
            "clip_150k_f0010",
            region,
            &[("original", &picture), ("hybrid", &picture)],
        );
        let path = path.unwrap();
        assert_eq!(path.file_name().unwrap(), "clip_150k_f0010_original_hybrid.png");
        let reader = png::Decoder::new(std::io::BufReader::new(File::open(path).unwrap()))
            .read_info()
            .unwrap();
        assert_eq!((reader.info().width, reader.info().height), (164, 48));
    }

    #[test]
    fn lines_stand_one_below_the_other_and_the_widest_gives_the_width() {
        let (dark, light) = (Picture::grey(40, 24), Picture::grey(36, 24));
        let size = Size::of(&dark);
        let lines = [
            Line { region: Region::at(0, 0, size), panels: vec![("a", &dark), ("b", &dark)] },
            Line { region: Region::at(0, 0, Size::of(&light)), panels: vec![("c", &light)] },
        ];
        let (width, height, rgb) = compose(&lines).unwrap();
        assert_eq!((width, height), (164, 100));
        let pixel = |x: usize, y: usize| rgb[(y * width + x) * 3];
        assert!(pixel(0, 0) < 200 && pixel(163, 47) < 200 && pixel(71, 99) < 200);
        assert_eq!([pixel(80, 0), pixel(0, 48), pixel(72, 99), pixel(163, 99)], [255; 4]);
        assert!(compose(&[]).is_err());
    }

    #[test]
    fn a_chosen_region_stays_within_the_picture_and_means_the_same_in_another_size() {
        let (large, small) = (Size { width: 640, height: 360 }, Size { width: 636, height: 360 });
        let region = Region::at(600, 10, large);
        assert_eq!(region, Region { x: 480, y: 10, width: 160, height: 160 });
        assert_eq!(region.in_other(large, small).x, 476);
        assert_eq!(region.in_other(large, large), region);
    }

    #[test]
    fn frames_are_chosen_early_in_the_middle_and_late() {
        assert_eq!(chosen_frames(300), [75, 150, 262]);
        assert_eq!(chosen_frames(2), [0, 1]);
    }
}
