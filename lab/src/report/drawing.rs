//! The plot beside a table, from the same figures: `docs/pictures/TABLE.svg`.

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use super::figures::Figures;
use crate::plot::{Curve, Plot};

/// What a table's plot shows.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Drawing {
    /// Says what is to be seen.
    pub title: String,
    /// The horizontal axis, with its unit.
    x: String,
    /// Whether the horizontal axis is logarithmic.
    #[serde(default)]
    x_log: bool,
    /// The vertical axis, with its unit.
    y: String,
    curves: Vec<Drawn>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Drawn {
    name: String,
    /// Each point: cells that give one number each.
    #[serde(default)]
    points: Vec<(String, String)>,
    /// Points from all rows that fit: a dot for each, and a line over those that no row to their left reaches.
    rows: Option<Rows>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Rows {
    /// `REPORT/VALUE…`, as in cells.
    of: String,
    /// The key of the horizontal place.
    x: String,
    /// The key of the vertical one.
    y: String,
}

impl Drawing {
    /// The plot as SVG.
    pub(super) fn svg(&self, figures: &Figures) -> Result<String> {
        let curves = self
            .curves
            .iter()
            .map(|curve| curve.curve(figures).with_context(|| format!("the curve {}", curve.name)));
        let plot = Plot {
            title: self.title.clone(),
            x_title: self.x.clone(),
            x_log: self.x_log,
            y_title: self.y.clone(),
            curves: curves.collect::<Result<_>>()?,
        };
        ensure!(!plot.is_empty(), "a plot without points");
        Ok(plot.svg())
    }
}

impl Drawn {
    fn curve(&self, figures: &Figures) -> Result<Curve> {
        let number = |cell: &str| -> Result<f64> {
            let text = figures.fill(cell)?;
            let digits = text.trim_end_matches(['%', ' ']);
            digits.parse().with_context(|| format!("`{text}` is no number"))
        };
        let Some(Rows { of, x, y }) = &self.rows else {
            let points = self.points.iter().map(|(x, y)| Ok((number(x)?, number(y)?)));
            let line = points.collect::<Result<Vec<_>>>()?;
            return Ok(Curve { name: self.name.clone(), dots: line.clone(), line });
        };
        let mut dots = figures.points(of, x, y)?;
        dots.sort_by(|a, b| a.0.total_cmp(&b.0).then(b.1.total_cmp(&a.1)));
        let mut line: Vec<(f64, f64)> = Vec::new();
        for &point in &dots {
            if line.last().is_none_or(|last| point.1 > last.1) {
                line.push(point);
            }
        }
        Ok(Curve { name: self.name.clone(), line, dots })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::report::figures::tests::figures;

    fn drawing(curve: &serde_json::Value) -> Drawing {
        let value = json!({"title": "t", "x": "x", "y": "y", "curves": [curve]});
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn points_are_cells_or_rows() {
        let cells =
            json!({"name": "a", "points": [["1", "{links/3g/utilisation:0%}"], ["2", "80"]]});
        let curve = drawing(&cells).curves[0].curve(&figures()).unwrap();
        assert_eq!(curve.line, [(1.0, 70.0), (2.0, 80.0)]);
        let rows = json!({"name": "a", "rows": {"of": "links/publishers=4", "x": "publishers", "y": "utilisation"}});
        let curve = drawing(&rows).curves[0].curve(&figures()).unwrap();
        assert_eq!(curve.dots, [(4.0, 0.78), (4.0, 0.7)]);
        assert_eq!(curve.line, [(4.0, 0.78)], "the other one is not above it");
    }

    #[test]
    fn a_plot_without_points_is_refused() {
        assert!(drawing(&json!({"name": "a"})).svg(&figures()).is_err());
    }
}
