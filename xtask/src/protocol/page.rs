//! Writes the pages of the reference: the admin API with its types and webhooks, and all errors.

use std::fmt::Write as _;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::api::{Api, Kind, MADE, Segment, Shape, Type};

/// The page of the admin API and its types.
pub(super) fn api(api: &Api) -> String {
    let mut page = format!(
        "# The admin API\n\n\
         [Who may use it](signaling.md#http-requests), and [what refuses a request](errors.md#the-admin-api). \
         Bodies are JSON. [Server SDKs](signaling.md#server-sdks) have a method for each request.\n\n{MADE}\n\n\
         ## Requests\n\n| request | what it does | body | answer |\n| --- | --- | --- | --- |\n"
    );
    for request in &api.requests {
        let mut path = String::from("/admin");
        for segment in &request.path {
            match segment {
                Segment::Fixed(name) => path.extend(["/", name]),
                Segment::Given(name, _) => path.extend(["/{", name, "}"]),
            }
        }
        let linked = |name: &Option<String>| name.as_deref().map(link).unwrap_or_default();
        let (method, says) = (&request.method, cell(&request.says));
        let (body, answer) = (linked(&request.body), linked(&request.answer));
        // Writing to a String cannot fail.
        let _ = writeln!(page, "| `{method} {path}` | {says} | {body} | {answer} |");
    }
    page += "\n## Types\n\nFields that are not always there have a question mark.\n";
    for kind in &api.types {
        page += &described(kind);
    }
    page
}

fn described(of: &Type) -> String {
    let mut text = format!("\n### {}\n\n{}\n", of.name, cell(&of.says));
    match &of.shape {
        Shape::Words(words) if words.iter().any(|word| word.says.is_some()) => {
            text += "\n| value | what it is |\n| --- | --- |\n";
            for word in words {
                let says = word.says.as_deref().map(cell).unwrap_or_default();
                let _ = writeln!(text, "| `{}` | {says} |", word.name);
            }
        }
        Shape::Words(words) => {
            let words: Vec<_> = words.iter().map(|word| format!("`{}`", word.name)).collect();
            let _ = writeln!(text, "\n{}.", words.join(", "));
        }
        Shape::Fields(fields) => {
            text += "\n| field | type | what it is |\n| --- | --- | --- |\n";
            for field in fields {
                let maybe = if field.required { "" } else { "?" };
                let null = if field.nullable { " or null" } else { "" };
                let (name, kind, says) = (&field.name, named(&field.kind), cell(&field.says));
                let _ = writeln!(text, "| `{name}`{maybe} | {kind}{null} | {says} |");
            }
        }
    }
    text
}

/// The page of the errors.
///
/// # Errors
///
/// Fails if the description lacks a table of the page.
pub(super) fn errors(document: &str) -> Result<String> {
    let document: Value = serde_json::from_str(document)?;
    let schemas = &document["components"]["schemas"];
    let mut page = format!(
        "# Errors\n\nEach error has a code for programs, a message, and a hint: what to do next. Codes are stable. \
         Those of the SDK itself are at [`ClientErrorCode`](../client-web/src/sdk/errors.ts).\n\n{MADE}\n\n\
         ## Calls\n\nThe codes of [signalling](signaling.md#errors), and of [WHIP and WHEP](signaling.md#whip-and-whep).\n\n\
         | code | when | what to do next |\n| --- | --- | --- |\n"
    );
    page += &rows(&schemas["ErrorCode"], &["description", "hint"]).context("ErrorCode")?;
    page += "\n## The admin API\n\n\
             | code | when | usual status | what to do next |\n| --- | --- | --- | --- |\n";
    let columns = ["description", "status", "hint"];
    page += &rows(&schemas["AdminErrorCode"], &columns).context("AdminErrorCode")?;
    Ok(page)
}

/// A row for each value of an enum, with what is said of it.
fn rows(schema: &Value, columns: &[&str]) -> Result<String> {
    let list = |name: &str| schema[name].as_array().with_context(|| format!("it has no {name}"));
    let (names, values) = (list("enum")?, list("x-enum-values")?);
    ensure!(names.len() == values.len(), "not all of its values are described");
    let mut all = String::new();
    for (name, value) in names.iter().zip(values) {
        let _ = write!(all, "| `{}` |", name.as_str().context("no text")?);
        for column in columns {
            let text = value.get(column).with_context(|| format!("{name} has no {column}"))?;
            let text = text.as_str().map_or_else(|| text.to_string(), cell);
            let _ = write!(all, " {text} |");
        }
        all.push('\n');
    }
    Ok(all)
}

/// A text as a table's cell has it.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

fn link(name: &str) -> String {
    format!("[{name}](#{})", name.to_lowercase())
}

fn named(kind: &Kind) -> String {
    match kind {
        Kind::Text => "string".to_owned(),
        Kind::Whole => "integer".to_owned(),
        Kind::Number => "number".to_owned(),
        Kind::Truth => "boolean".to_owned(),
        Kind::List(of) => format!("list of {}", named(of)),
        Kind::Named(name) => link(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_a_value_and_its_texts() {
        let values = serde_json::json!([{"x": "one", "y": 1}, {"x": "1|2", "y": 2}]);
        let schema = serde_json::json!({"enum": ["a", "b"], "x-enum-values": values});
        assert_eq!(rows(&schema, &["x", "y"]).unwrap(), "| `a` | one | 1 |\n| `b` | 1\\|2 | 2 |\n");
        assert!(rows(&schema, &["z"]).is_err(), "rather than without");
    }
}
