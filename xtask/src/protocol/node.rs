//! Writes the Node SDK's types and requests.

use std::fmt::Write as _;

use super::api::{Api, Field, Kind, MADE, Request, Segment, Shape, lines, pascal};

/// The contents of `src/types.gen.d.ts`.
pub(super) fn types(api: &Api) -> String {
    let mut out = format!("// {MADE}\n");
    for one in &api.types {
        let _ = write!(out, "\n/** {} */\n", one.says);
        match &one.shape {
            Shape::Words(words) => {
                let words = words
                    .iter()
                    .map(|word| format!("\n  | \"{}\"", word.name))
                    .collect::<Vec<_>>()
                    .concat();
                let _ = writeln!(out, "export type {} ={words};", one.name);
            }
            Shape::Fields(fields) => {
                let fields: String = fields.iter().map(field).collect();
                let _ = writeln!(out, "export interface {} {{\n{fields}}}", one.name);
            }
        }
    }
    out
}

fn field(field: &Field) -> String {
    let Field { name, says, kind, required, nullable } = field;
    let mark = if *required { "" } else { "?" };
    // A missing value is left out, never null.
    let null = if *required && *nullable { " | null" } else { "" };
    format!("  /** {says} */\n  {name}{mark}: {}{null};\n", kind_name(kind))
}

fn kind_name(kind: &Kind) -> String {
    match kind {
        Kind::Text => "string".to_owned(),
        Kind::Whole | Kind::Number => "number".to_owned(),
        Kind::Truth => "boolean".to_owned(),
        Kind::List(of) => format!("{}[]", kind_name(of)),
        Kind::Named(name) => name.clone(),
    }
}

/// The contents of `src/admin.gen.js`.
pub(super) fn requests(api: &Api) -> String {
    let types = api.requests.iter().flat_map(|request| [&request.body, &request.answer]);
    let mut types: Vec<&str> = types.flatten().map(String::as_str).collect();
    types.sort_unstable();
    types.dedup();
    let mut out = format!(
        "// {MADE}\nimport {{ Connection }} from \"./connection.js\";\n\n/**\n * @import {{\n"
    );
    for name in types {
        out.extend([" *   ", name, ",\n"]);
    }
    out += " * } from \"./types.gen.js\"\n */\n\n";
    out += "/** A client of the admin API. Each method sends one request. */\n";
    out += "export class AdminClient extends Connection {\n";
    out += &api.requests.iter().map(request).collect::<Vec<_>>().join("\n");
    out + "}\n"
}

fn request(request: &Request) -> String {
    let mut out = "  /**\n".to_owned() + &lines(&request.says, "   * ", 120);
    for (name, says) in request.parameters() {
        let _ = writeln!(out, "   * @param {{string}} {name} {says}.");
    }
    let mut given: Vec<&str> = request.parameters().map(|(name, _)| name).collect();
    if let Some(body) = &request.body {
        let _ = writeln!(out, "   * @param {{{body}}} body");
        given.push("body");
    }
    let answer = request.answer.as_deref().unwrap_or("void");
    let _ = writeln!(out, "   * @returns {{Promise<{answer}>}}\n   */");
    let path = request.path.iter().map(|segment| match segment {
        Segment::Fixed(text) => format!("\"{text}\""),
        Segment::Given(name, _) => name.clone(),
    });
    let path = path.collect::<Vec<_>>().join(", ");
    let name = pascal(&request.id);
    let name = name[..1].to_lowercase() + &name[1..];
    let body = if request.body.is_some() { ", body" } else { "" };
    let _ = writeln!(out, "  {name}({}) {{", given.join(", "));
    let _ = writeln!(out, "    return this.send(\"{}\", [{path}]{body});\n  }}", request.method);
    out
}
