//! A figure as pages write it.

use anyhow::{Context, Result};

/// Writes a figure by its format. The format has the number of digits after the point. Before it, `+` is for gains
/// with a sign; behind it, `%` is for shares in percent. `fps` makes frames per second of a frame's milliseconds. A
/// figure that was not measured is a dash.
pub(super) fn written(value: Option<f64>, format: &str) -> Result<String> {
    let Some(value) = value else { return Ok("–".into()) };
    if format == "fps" {
        return written(Some(1000.0 / value), "0");
    }
    let (signed, digits) = format.strip_prefix('+').map_or((false, format), |rest| (true, rest));
    let (share, digits) = digits.strip_suffix('%').map_or((false, digits), |rest| (true, rest));
    let digits: usize =
        digits.parse().ok().with_context(|| format!("`{format}` is no format, as `+1` or `0%`"))?;
    let value = if share { 100.0 * value } else { value };
    let text = format!("{:.digits$}", value.abs());
    let nothing = !text.contains(|c: char| ('1'..='9').contains(&c));
    if nothing && digits == 0 {
        return Ok("0".into());
    }
    let sign = match () {
        () if value < 0.0 && !nothing => "−",
        () if signed => "+",
        () => "",
    };
    Ok(format!("{sign}{text}{}", if share { " %" } else { "" }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_shares_and_what_rounds_to_nothing() {
        for (value, format, text) in [
            (2.476, "+2", "+2.48"),
            (-0.54, "+1", "−0.5"),
            (-0.04, "+1", "+0.0"),
            (-0.3, "+0", "0"),
            (131.5, "0", "132"),
            (0.065, "1%", "6.5 %"),
            (0.0002, "1%", "0.0 %"),
            (0.0, "0%", "0"),
            (89.4, "fps", "11"),
        ] {
            assert_eq!(written(Some(value), format).unwrap(), text, "{value} by {format}");
        }
        assert_eq!(written(None, "1").unwrap(), "–");
        assert!(written(Some(1.0), "x").is_err());
    }
}
