//! Plots of curves as SVG text.
//!
//! The vertical axis is linear, the other one as well or logarithmic (rates). Numbers have one decimal, so the same
//! figures give the same bytes. Colours are chosen to be told apart by colour-blind eyes too
//! (Okabe and Ito), and lines differ in their dashes from the eighth on.

use std::fmt::Write as _;

/// Width of a plot, in pixels.
const WIDTH: f64 = 860.0;
/// Height of a plot, in pixels.
const HEIGHT: f64 = 520.0;
/// Margin to the left of the axes, in pixels.
const LEFT: f64 = 64.0;
/// Margin to the right of the axes, in pixels, for the legend.
const RIGHT: f64 = 190.0;
/// Margin above the axes, in pixels.
const TOP: f64 = 50.0;
/// Margin below the axes, in pixels.
const BOTTOM: f64 = 52.0;
/// Colours of the curves, in order (Okabe and Ito).
const COLOURS: [&str; 7] =
    ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000"];

/// A curve of points (x, y).
#[derive(Debug, Clone)]
pub(crate) struct Curve {
    /// Name of the curve in the legend.
    pub name: String,
    /// The line.
    pub line: Vec<(f64, f64)>,
    /// Points that are marked.
    pub dots: Vec<(f64, f64)>,
}

impl Curve {
    fn is_empty(&self) -> bool {
        self.line.is_empty() && self.dots.is_empty()
    }

    fn points(&self) -> impl Iterator<Item = &(f64, f64)> {
        self.line.iter().chain(&self.dots)
    }
}

/// One plot.
#[derive(Debug, Clone, Default)]
pub(crate) struct Plot {
    /// Title of the plot.
    pub title: String,
    /// Title of the horizontal axis, with its unit.
    pub x_title: String,
    /// Whether the horizontal axis is logarithmic; then no x is below 1.
    pub x_log: bool,
    /// Title of the vertical axis, with its unit.
    pub y_title: String,
    /// The curves.
    pub curves: Vec<Curve>,
}

/// Maps figures to places on the page.
struct Frame {
    x: (f64, f64),
    x_log: bool,
    y: (f64, f64),
}

impl Frame {
    fn around(plot: &Plot) -> Frame {
        let points = || plot.curves.iter().flat_map(Curve::points);
        let range = |values: &mut dyn Iterator<Item = f64>| {
            values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| {
                (low.min(v), high.max(v))
            })
        };
        let (low, high) = range(&mut points().map(|p| p.1));
        let margin = ((high - low) * 0.05).max(0.1);
        let y = (low - margin, high + margin);
        let least = if plot.x_log { 1.0 } else { f64::NEG_INFINITY };
        let (low, high) = range(&mut points().map(|p| p.0.max(least)));
        let x = if plot.x_log {
            (low / 1.15, high * 1.15)
        } else {
            let margin = ((high - low) * 0.02).max(0.01);
            (low - margin, high + margin)
        };
        Frame { x, x_log: plot.x_log, y }
    }

    fn x(&self, x: f64) -> f64 {
        let (low, high) = self.x;
        let share = if self.x_log {
            (x.max(1.0) / low).ln() / (high / low).ln()
        } else {
            (x - low) / (high - low)
        };
        LEFT + (WIDTH - LEFT - RIGHT) * share
    }

    fn y(&self, y: f64) -> f64 {
        let (low, high) = self.y;
        HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (y - low) / (high - low)
    }

    /// The marks of the horizontal axis, with the number of their decimals.
    fn x_ticks(&self) -> (Vec<f64>, usize) {
        if self.x_log {
            return (rate_ticks(self.x), 0);
        }
        let (step, digits) = step_over(self.x.1 - self.x.0);
        (linear_ticks(self.x, step), digits)
    }
}

// Writing to a String cannot fail.
impl Plot {
    /// Whether the plot has nothing to draw.
    pub(crate) fn is_empty(&self) -> bool {
        self.curves.iter().all(Curve::is_empty)
    }

    /// The plot as an SVG document.
    pub(crate) fn svg(&self) -> String {
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{HEIGHT}\" \
             viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" font-size=\"12\">\n\
             <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n"
        );
        let frame = Frame::around(self);
        text(&mut out, LEFT, 20.0, "start", 15, &self.title);
        self.axes(&mut out, &frame);
        let shown = self.curves.iter().enumerate().filter(|(_, curve)| !curve.is_empty());
        for (place, (number, curve)) in shown.enumerate() {
            let colour = COLOURS[number % COLOURS.len()];
            let dash = if number < COLOURS.len() { "" } else { " stroke-dasharray=\"6 4\"" };
            let line: Vec<String> = curve
                .line
                .iter()
                .map(|&(x, y)| format!("{:.1},{:.1}", frame.x(x), frame.y(y)))
                .collect();
            let _ = writeln!(
                out,
                "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"{dash}/>",
                line.join(" ")
            );
            for &(x, y) in &curve.dots {
                let _ = writeln!(
                    out,
                    "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"2.5\" fill=\"{colour}\"/>",
                    frame.x(x),
                    frame.y(y)
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
        let (xs, x_digits) = frame.x_ticks();
        let (step, digits) = step_over(frame.y.1 - frame.y.0);
        let ys = linear_ticks(frame.y, step);
        for &x in &xs {
            grid(frame.x(x), TOP, frame.x(x), bottom);
        }
        for &y in &ys {
            grid(LEFT, frame.y(y), right, frame.y(y));
        }
        for &x in &xs {
            text(out, frame.x(x), bottom + 18.0, "middle", 12, &format!("{x:.x_digits$}"));
        }
        for &y in &ys {
            let label = format!("{y:.digits$}");
            text(out, LEFT - 6.0, frame.y(y) + 4.0, "end", 12, &label);
        }
        text(out, f64::midpoint(LEFT, right), bottom + 40.0, "middle", 12, &self.x_title);
        text(out, 8.0, TOP - 8.0, "start", 12, &self.y_title);
    }
}

/// The numbers 1, 2, 3, 5 and 7 times every power of ten in a range.
fn rate_ticks((low, high): (f64, f64)) -> Vec<f64> {
    (0..8)
        .flat_map(|power| [1.0, 2.0, 3.0, 5.0, 7.0].map(|digit| digit * 10f64.powi(power)))
        .filter(|rate| (low..=high).contains(rate))
        .collect()
}

/// A round step that divides a range into five to twelve parts, with the number of its decimals.
fn step_over(range: f64) -> (f64, usize) {
    let steps = [(0.05, 2), (0.1, 1), (0.2, 1), (0.5, 1)].into_iter();
    let whole = (0..12).flat_map(|power| [1.0, 2.0, 5.0].map(|n| (n * 10f64.powi(power), 0)));
    steps.chain(whole).find(|(step, _)| range / step <= 12.0).unwrap_or((range, 0))
}

fn linear_ticks((low, high): (f64, f64), step: f64) -> Vec<f64> {
    let (first, last) = ((low / step).ceil() as i64, (high / step).floor() as i64);
    (first..=last).map(|n| n as f64 * step).collect()
}

/// Text whose characters cannot become markup between tags.
pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

fn text(out: &mut String, x: f64, y: f64, anchor: &str, size: u32, words: &str) {
    let words = escaped(words);
    let _ = writeln!(
        out,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" font-size=\"{size}\">{words}</text>"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plot() -> Plot {
        let dots = vec![(100.0, 34.0), (200.0, 36.5), (800.0, 39.0)];
        let curve = Curve { name: "a & b".into(), line: dots.clone(), dots };
        let none = Curve { name: "none".into(), line: Vec::new(), dots: Vec::new() };
        Plot {
            title: "clip <1>".into(),
            x_title: "kbit/s".into(),
            x_log: true,
            y_title: "PSNR-Y (dB)".into(),
            curves: vec![curve, none],
        }
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
        let frame = Frame::around(&plot());
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
        assert_eq!((step_over(100.0), step_over(278_000.0)), ((10.0, 0), (50_000.0, 0)));
    }

    #[test]
    fn a_linear_axis_has_equal_distances() {
        let frame = Frame::around(&Plot { x_log: false, ..plot() });
        let step = |a, b| frame.x(b) - frame.x(a);
        assert!((step(100.0, 200.0) - step(700.0, 800.0)).abs() < 1e-9);
        assert_eq!(frame.x_ticks().0[..2], [100.0, 200.0]);
    }
}
