//! Markdown tables of what a command printed with `--json`: one of each list of rows, with all keys that hold a
//! single value.

use anyhow::{Result, ensure};
use serde_json::{Map, Value};

use super::tables;

/// The tables of a report. Columns that identify a row stand first.
pub(super) fn markdown(report: &Value) -> Result<String> {
    let mut all = Vec::new();
    for list in report.as_object().into_iter().flat_map(Map::values).filter_map(Value::as_array) {
        let rows: Vec<&Map<String, Value>> = list.iter().filter_map(Value::as_object).collect();
        let mut keys: Vec<&String> = Vec::new();
        for (key, value) in rows.iter().copied().flatten() {
            if !value.is_array() && !value.is_object() && !keys.contains(&key) {
                keys.push(key);
            }
        }
        keys.sort_by_key(|&key| !rows.iter().any(|row| row.get(key).is_some_and(Value::is_string)));
        if keys.is_empty() {
            continue;
        }
        let mut lines = vec![keys.iter().map(ToString::to_string).collect()];
        lines.push(keys.iter().map(|_| "---".to_owned()).collect());
        lines.extend(rows.iter().map(|row| keys.iter().map(|&key| cell(row.get(key))).collect()));
        all.push(tables::markdown(&lines));
    }
    ensure!(!all.is_empty(), "there are no rows, as `--json` prints them");
    Ok(all.join("\n"))
}

/// A cell's text; a number has at most three digits after the point.
fn cell(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => "–".into(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => match other.as_f64() {
            Some(number) => ((1000.0 * number).round() / 1000.0).to_string(),
            None => other.to_string(),
        },
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_rows_are_of_stands_before_their_figures() {
        let report = json!({"command": "bench", "seeds": [1, 2], "rows": [
            {"frame_ms": 1.23456, "case": "a", "queues": {}, "x": null}, {"case": "b", "frame_ms": 2, "late": 3},
        ]});
        assert_eq!(
            markdown(&report).unwrap(),
            "| case | frame_ms | x | late |\n| --- | --- | --- | --- |\n| a | 1.235 | – | – |\n| b | 2 | – | 3 |\n"
        );
        assert!(markdown(&json!({"rows": []})).is_err());
    }
}
