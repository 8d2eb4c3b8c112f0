//! Rate-quality plots as SVG text.
//!
//! Rates on a logarithmic axis, quality on a linear one. Numbers have one decimal, so the same
//! figures give the same bytes. Colours are chosen to be told apart by colour-blind eyes too
//! (Okabe and Ito), and lines differ in their dashes from the eighth on.

use std::fmt::Write as _;

use super::bd::Point;

const WIDTH: f64 = 860.0;
const HEIGHT: f64 = 520.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 190.0;
const TOP: f64 = 50.0;
const BOTTOM: f64 = 52.0;
const COLOURS: [&str; 7] =
    ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000"];

/// What one method gives.
#[derive(Debug, Clone)]
pub struct Curve {
    /// Its name in the legend.
    pub name: String,
    /// The line.
    pub line: Vec<Point>,
    /// All points.
    pub dots: Vec<Point>,
}

/// One plot.
#[derive(Debug, Clone)]
pub struct Plot {
    /// What it is about.
    pub title: String,
    /// What the vertical axis counts.
    pub y_title: String,
    /// The methods.
    pub curves: Vec<Curve>,
}

/// From figures to places on the page.
struct Frame {
    rates: (f64, f64),
    qualities: (f64, f64),
}

impl Frame {
    fn around(curves: &[Curve]) -> Frame {
        let dots = || curves.iter().flat_map(|curve| &curve.dots);
        let range = |values: &mut dyn Iterator<Item = f64>| {
            values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| {
                (low.min(v), high.max(v))
            })
        };
        let (low, high) = range(&mut dots().map(|p| p.kbps.max(1.0)));
        let (worst, best) = range(&mut dots().map(|p| p.quality));
        let margin = ((best - worst) * 0.05).max(0.1);
        Frame { rates: (low / 1.15, high * 1.15), qualities: (worst - margin, best + margin) }
    }

    fn x(&self, kbps: f64) -> f64 {
        let (low, high) = self.rates;
        LEFT + (WIDTH - LEFT - RIGHT) * (kbps.max(1.0) / low).ln() / (high / low).ln()
    }

    fn y(&self, quality: f64) -> f64 {
        let (low, high) = self.qualities;
        HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (quality - low) / (high - low)
    }
}

// Writing to a String cannot fail.
impl Plot {
    /// The plot as an SVG document.
    pub fn svg(&self) -> String {
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{HEIGHT}\" \
             viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" font-size=\"12\">\n\
             <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n"
        );
        let frame = Frame::around(&self.curves);
        text(&mut out, LEFT, 20.0, "start", 15, &self.title);
        self.axes(&mut out, &frame);
        let shown = self.curves.iter().enumerate().filter(|(_, curve)| !curve.dots.is_empty());
        for (place, (number, curve)) in shown.enumerate() {
            let colour = COLOURS[number % COLOURS.len()];
            let dash = if number < COLOURS.len() { "" } else { " stroke-dasharray=\"6 4\"" };
            let line: Vec<String> = curve
                .line
                .iter()
                .map(|p| format!("{:.1},{:.1}", frame.x(p.kbps), frame.y(p.quality)))
                .collect();
            let _ = writeln!(
                out,
                "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"{dash}/>",
                line.join(" ")
            );
            for p in &curve.dots {
                let _ = writeln!(
                    out,
                    "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"2.5\" fill=\"{colour}\"/>",
                    frame.x(p.kbps),
                    frame.y(p.quality)
                );
            }
            let (x, y) = (WIDTH - RIGHT + 14.0, TOP + 10.0 + 20.0 * place as f64);
            let _ = writeln!(
                out,
                "<line x1=\"{x:.1}\" y1=\"{y:.1}\" x2=\"{:.1}\" y2=\"{y:.1}\" stroke=\"{colour}\" stroke-width=\"2\"{dash}/>",
                x + 22.0
            );
            text(&mut out, x + 28.0, y + 4.0, "start", 12, &curve.name);
        }
        out.push_str("</svg>\n");
        out
    }

    fn axes(&self, out: &mut String, frame: &Frame) {
        let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
        let _ = writeln!(
            out,
            "<rect x=\"{LEFT}\" y=\"{TOP}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"none\" stroke=\"#444444\"/>",
            right - LEFT,
            bottom - TOP
        );
        let mut grid = |x1: f64, y1: f64, x2: f64, y2: f64| {
            let _ = writeln!(
                out,
                "<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" stroke=\"#dddddd\"/>"
            );
        };
        let rates = rate_ticks(frame.rates);
        let (step, digits) = step_over(frame.qualities.1 - frame.qualities.0);
        let qualities = linear_ticks(frame.qualities, step);
        for &rate in &rates {
            grid(frame.x(rate), TOP, frame.x(rate), bottom);
        }
        for &quality in &qualities {
            grid(LEFT, frame.y(quality), right, frame.y(quality));
        }
        for &rate in &rates {
            text(out, frame.x(rate), bottom + 18.0, "middle", 12, &format!("{rate:.0}"));
        }
        for &quality in &qualities {
            let label = format!("{quality:.digits$}");
            text(out, LEFT - 6.0, frame.y(quality) + 4.0, "end", 12, &label);
        }
        text(
            out,
            f64::midpoint(LEFT, right),
            bottom + 40.0,
            "middle",
            12,
            "video and anchors (kbit/s)",
        );
        text(out, 8.0, TOP - 8.0, "start", 12, &self.y_title);
    }
}

/// 1, 2, 3, 5 and 7 of every power of ten in the range.
fn rate_ticks((low, high): (f64, f64)) -> Vec<f64> {
    (0..8)
        .flat_map(|power| [1.0, 2.0, 3.0, 5.0, 7.0].map(|digit| digit * 10f64.powi(power)))
        .filter(|rate| (low..=high).contains(rate))
        .collect()
}

/// A round step that divides a range into five to twelve, with the decimals that it needs.
fn step_over(range: f64) -> (f64, usize) {
    for (step, digits) in [(0.05, 2), (0.1, 1), (0.2, 1), (0.5, 1), (1.0, 0), (2.0, 0), (5.0, 0)] {
        if range / step <= 12.0 {
            return (step, digits);
        }
    }
    (10.0, 0)
}

fn linear_ticks((low, high): (f64, f64), step: f64) -> Vec<f64> {
    let (first, last) = ((low / step).ceil() as i64, (high / step).floor() as i64);
    (first..=last).map(|n| n as f64 * step).collect()
}

fn text(out: &mut String, x: f64, y: f64, anchor: &str, size: u32, words: &str) {
    let words = words.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let _ = writeln!(
        out,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" font-size=\"{size}\">{words}</text>"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plot() -> Plot {
        let dots: Vec<Point> = [(100.0, 34.0), (200.0, 36.5), (800.0, 39.0)]
            .map(|(kbps, quality)| Point { kbps, quality })
            .into();
        let curve = Curve { name: "a & b".into(), line: dots.clone(), dots };
        let none = Curve { name: "none".into(), line: Vec::new(), dots: Vec::new() };
        Plot { title: "clip <1>".into(), y_title: "PSNR-Y (dB)".into(), curves: vec![curve, none] }
    }

    #[test]
    fn every_point_is_drawn_and_words_are_escaped() {
        let svg = plot().svg();
        assert_eq!(svg.matches("<circle").count(), 3);
        assert_eq!(svg.matches("<polyline").count(), 1);
        assert!(
            svg.contains("a &amp; b") && svg.contains("clip &lt;1&gt;") && !svg.contains("none</")
        );
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
        assert!(!svg.contains("NaN") && !svg.contains("inf"));
    }

    #[test]
    fn more_rate_is_right_and_more_quality_is_up() {
        let frame = Frame::around(&plot().curves);
        assert!(frame.x(100.0) > LEFT && frame.x(800.0) < WIDTH - RIGHT);
        assert!(frame.x(100.0) < frame.x(200.0) && frame.y(34.0) > frame.y(39.0));
    }

    #[test]
    fn a_single_point_has_a_frame_around_it() {
        let mut plot = plot();
        plot.curves[0].dots.truncate(1);
        plot.curves[0].line.truncate(1);
        assert!(!plot.svg().contains("NaN"));
    }

    #[test]
    fn ticks_are_round_numbers_inside_the_range() {
        assert_eq!(rate_ticks((90.0, 520.0)), [100.0, 200.0, 300.0, 500.0]);
        assert_eq!(linear_ticks((33.8, 36.1), 0.5), [34.0, 34.5, 35.0, 35.5, 36.0]);
        assert_eq!(step_over(5.0), (0.5, 1));
    }
}
