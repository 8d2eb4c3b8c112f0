//! The comparison as one page that needs no other file: a verdict, pictures to slide between, and curves.
//!
//! The pictures are written beside it too, as `CLIP-LAYER-original.png`, `-bicubic`, `-sharpened` and `-windlass`, to
//! cut crops from.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use windlass_vp9::Picture;

use super::compare::{self, ANY_SIZE, Case, Comparison};
use super::ours::StillsFrom;
use super::report::Report;
use super::row::{Row, Side};
use crate::eval::bd::{Point, hull};
use crate::eval::pictures;
use crate::eval::row::MEAN;
use crate::interrupt::Interrupted;
use crate::page;
use crate::plot::{Curve, Plot, escaped};

/// The script that moves the border between two pictures.
const SCRIPT: &str = "\
for(const pair of document.querySelectorAll('.pair')){
const over=pair.querySelector('.over');
pair.querySelector('input').addEventListener('input',e=>{over.style.clipPath=`inset(0 0 0 ${e.target.value}%)`});
pair.querySelector('button').addEventListener('click',()=>{pair.querySelector('.truth').toggleAttribute('hidden')});
}";

/// Two pictures of the same frame for about the same bits.
#[derive(Debug)]
pub(super) struct Sight {
    /// The clip's name.
    pub clip: String,
    /// The layer that was encoded: `q` or `h`.
    pub layer: &'static str,
    /// The frame's number.
    pub frame: usize,
    /// The clip's own picture.
    pub original: Picture,
    /// The video of `plain` enlarged by bicubic, without the sharpening of `plain`.
    pub bicubic: Picture,
    /// The picture of plain video.
    pub plain: Shown,
    /// The picture of the product.
    pub ours: Shown,
}

/// The picture that was kept of one way to show a clip, and the row of the whole clip.
#[derive(Debug)]
pub(super) struct Shown {
    /// The row of the whole clip.
    pub row: Row,
    /// The picture that was kept.
    pub picture: Picture,
}

/// Writes `index.html` and its pictures into the folder. Returns the page's path.
pub(super) fn write(
    folder: &Path,
    report: &Report,
    sights: &[Sight],
    interrupted: Option<Interrupted>,
) -> Result<PathBuf> {
    std::fs::create_dir_all(folder)
        .with_context(|| format!("making the folder {}", folder.display()))?;
    let path = folder.join("index.html");
    std::fs::write(&path, html(report, sights, interrupted)?)
        .with_context(|| format!("writing {}", path.display()))?;
    for sight in sights {
        let sides = [
            ("original", &sight.original),
            ("bicubic", &sight.bicubic),
            ("sharpened", &sight.plain.picture),
            ("windlass", &sight.ours.picture),
        ];
        for (side, picture) in sides {
            let path = folder.join(file_name(&sight.clip, sight.layer, side));
            std::fs::write(&path, pictures::png(picture)?)
                .with_context(|| format!("writing {}", path.display()))?;
        }
    }
    Ok(path)
}

/// The file name of a picture: a clip's name may be a path, or have any characters.
fn file_name(clip: &str, layer: &str, side: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' };
    let clip: String = clip.chars().map(plain).collect();
    format!("{clip}-{layer}-{side}.png")
}

fn html(report: &Report, sights: &[Sight], interrupted: Option<Interrupted>) -> Result<String> {
    let mut out = page::interrupted(interrupted.map(|i| i.to_string()).as_deref());
    // Writing to a String cannot fail.
    let _ = write!(
        out,
        "<p>{}</p><p><small>Equal bits: video, key frames and stills together. Plain video is taken at its best, \
         sharpened or not. On {}, {} threads.</small></p>",
        verdict(&report.comparisons),
        escaped(&report.machine.cpu),
        report.machine.threads
    );
    for clip in compare::clips(&report.rows) {
        let _ = write!(out, "<h2>{}</h2>", escaped(&clip));
        for sight in sights.iter().filter(|sight| sight.clip == clip) {
            pair(&mut out, sight)?;
        }
        for (metric, title) in compare::METRICS {
            out.push_str(&plot(report, &clip, metric, title).svg());
        }
    }
    let _ = write!(out, "<script>{SCRIPT}</script>");
    Ok(page::document(&format!("Windlass and plain VP9, shown at {}", report.display), &out))
}

/// The verdict in two sentences: for a size that is imposed, and for one that is free.
fn verdict(comparisons: &[Comparison]) -> String {
    let find = |case: Case, metric: &str| {
        let of = |clip: Option<&str>| {
            comparisons.iter().find(|one| {
                one.sizes == case.sizes
                    && one.stills_from == case.stills_from
                    && one.metric == metric
                    && clip.is_none_or(|c| one.clip == c)
            })
        };
        of(Some(MEAN)).or_else(|| of(None))
    };
    let better = |case: Case| {
        let parts: Vec<String> =
            [("psnr_y_db", "dB PSNR-Y"), ("vmaf_neg", "VMAF-NEG"), ("ssimulacra2", "SSIMULACRA2")]
                .iter()
                .filter_map(|(metric, unit)| {
                    let gain = find(case, metric)?.bd_quality?;
                    Some(format!("{gain:+.2} {unit}"))
                })
                .collect();
        if parts.is_empty() { "not comparable".to_owned() } else { parts.join(", ") }
    };
    let free = find(ANY_SIZE, "vmaf_neg")
        .and_then(|one| one.bd_rate_percent)
        .or_else(|| find(ANY_SIZE, "ssimulacra2").and_then(|one| one.bd_rate_percent));
    let free = match free {
        Some(percent) if percent < 0.0 => format!("takes {:.1} % fewer bits", -percent),
        Some(percent) => format!("takes {percent:.1} % more bits"),
        None => "cannot be compared".to_owned(),
    };
    format!(
        "For a viewer held to a quarter of the size shown (<code>q</code>), Windlass is {} against plain video of the \
         same bits; held to half (<code>h</code>): {}. For a publisher held to <code>q</code>: {}; for one that is free \
         to choose its size, Windlass {free} for the same picture.",
        better(Case::new("q", StillsFrom::F)),
        better(Case::new("h", StillsFrom::F)),
        better(Case::new("q", StillsFrom::Publisher))
    )
}

/// Adds two pictures with a border to move: plain on the left, Windlass on the right.
fn pair(out: &mut String, sight: &Sight) -> Result<()> {
    let says = |row: &Row| {
        let neg = row.quality.vmaf_neg.map_or(String::new(), |v| format!(", VMAF-NEG {v:.1}"));
        format!(
            "{} at {:.0} kbit/s ({:.2} dB{neg})",
            row.size, row.total_kbps, row.quality.psnr_y_db
        )
    };
    let _ = write!(
        out,
        "<figure class=\"pair\"><div class=\"stack\"><img alt=\"plain\" src=\"{}\">\
         <img class=\"over\" alt=\"Windlass\" src=\"{}\">\
         <img class=\"over truth\" style=\"clip-path:none\" hidden alt=\"original\" src=\"{}\"></div>\
         <input type=\"range\" value=\"50\" aria-label=\"border between plain and Windlass\">\
         <button>original</button>\
         <figcaption>Frame {}, from <code>{}</code>. Left: plain, sharpened, {}. Right: Windlass, {}, of which {:.0} \
         are {} stills.</figcaption></figure>",
        image(&sight.plain.picture)?,
        image(&sight.ours.picture)?,
        image(&sight.original)?,
        sight.frame,
        sight.layer,
        says(&sight.plain.row),
        says(&sight.ours.row),
        sight.ours.row.still_kbps,
        sight.ours.row.stills
    );
    Ok(())
}

fn image(picture: &Picture) -> Result<String> {
    Ok(format!("data:image/png;base64,{}", STANDARD.encode(pictures::png(picture)?)))
}

/// A plot of the hulls of both sides, in every case.
fn plot(report: &Report, clip: &str, metric: &str, title: &str) -> Plot {
    let places = |points: &[Point]| points.iter().map(|p| (p.kbps, p.quality)).collect::<Vec<_>>();
    let curve = |side: Side, case: Case, name: String| {
        let dots = compare::points(&report.rows, clip, side, case, metric);
        Curve { name, line: places(&hull(&dots)), dots: places(&dots) }
    };
    let from_f = compare::CASES.iter().filter(|case| case.stills_from == StillsFrom::F);
    let plain = from_f.map(|&case| curve(Side::Plain, case, format!("plain, {}", case.sizes)));
    let any = std::iter::once(curve(Side::Plain, ANY_SIZE, "plain, any".to_owned()));
    let ours = compare::CASES.iter().map(|&case| {
        let from = if case.stills_from == StillsFrom::F { "f" } else { "publisher" };
        curve(Side::Windlass, case, format!("{}, {from}", case.sizes))
    });
    let curves = plain.chain(any).chain(ours).collect();
    Plot {
        title: format!("{clip}, shown at {}", report.display),
        x_title: "video and stills (kbit/s)".to_owned(),
        x_log: true,
        y_title: title.to_owned(),
        curves,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::display::compare::tests::{row, rows};
    use crate::eval::report::Machine;

    fn report() -> Report {
        let rows = rows();
        Report {
            command: "eval",
            machine: Machine::here(),
            display: "1280x720".to_owned(),
            frame_network: None,
            comparisons: compare::compare(&rows),
            gaps: compare::gaps(&rows),
            rows,
        }
    }

    fn sight(clip: &str) -> Sight {
        let picture = || Picture::grey(32, 16);
        Sight {
            clip: clip.to_owned(),
            layer: "q",
            frame: 3,
            original: picture(),
            bicubic: picture(),
            plain: Shown { picture: picture(), row: row(clip, Side::Plain, "q", 170.0, 33.0) },
            ours: Shown { picture: picture(), row: row(clip, Side::Windlass, "q", 170.0, 35.0) },
        }
    }

    #[test]
    fn the_pictures_lie_beside_the_page_whatever_the_clips_name() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), &report(), &[sight("../a b")], None).unwrap();
        let mut names: Vec<String> = std::fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        let of = |side: &str| format!(".._a_b-q-{side}.png");
        let pictures = ["bicubic", "original", "sharpened", "windlass"].map(of);
        assert_eq!(names, [pictures.as_slice(), &["index.html".to_owned()]].concat());
    }

    #[test]
    fn the_page_needs_nothing_from_elsewhere_and_has_a_verdict() {
        let page = html(&report(), &[sight("a")], None).unwrap();
        assert!(page.contains("+3.00 VMAF-NEG"), "{page}");
        assert_eq!(page.matches("data:image/png;base64,").count(), 3);
        let elsewhere = page.replace("http://www.w3.org/2000/svg", "");
        assert!(!elsewhere.contains("http") && !elsewhere.contains("src=\"/"));
    }

    #[test]
    fn a_clips_name_is_text_on_the_page() {
        let mut report = report();
        report.rows = vec![row("<img src=x>", Side::Plain, "q", 100.0, 30.0)];
        let page = html(&report, &[], None).unwrap();
        assert!(page.contains("<h2>&lt;img src=x&gt;</h2>"));
    }

    #[test]
    fn a_verdict_says_so_when_windlass_is_worse() {
        let worse = Comparison {
            clip: "a".to_owned(),
            sizes: "any",
            stills_from: StillsFrom::Publisher,
            metric: "vmaf_neg",
            bd_rate_percent: Some(7.25),
            bd_quality: None,
        };
        assert!(verdict(&[worse]).contains("takes 7.2 % more bits"));
    }
}
