//! Writes the Python SDK's types and requests.

use std::fmt::Write as _;

use super::api::{Api, Field, Kind, MADE, Request, Segment, Shape, Type, lines};

/// Maximum length of a line, in bytes.
const WIDTH: usize = 120;

/// The contents of `windlass_server_sdk/types_gen.py`.
pub(super) fn types(api: &Api) -> String {
    let imports = "from __future__ import annotations\n\nfrom dataclasses import dataclass\nfrom typing import Literal, Optional";
    let names = api.types.iter().map(|one| format!("    \"{}\",\n", one.name));
    let names = names.collect::<Vec<_>>().concat();
    let mut out = format!("\"\"\"{MADE}\"\"\"\n\n{imports}\n\n__all__ = [\n{names}]\n");
    for one in &api.types {
        match &one.shape {
            Shape::Words(words) => {
                let words = words
                    .iter()
                    .map(|word| format!("    \"{}\",\n", word.name))
                    .collect::<Vec<_>>()
                    .concat();
                let _ = write!(
                    out,
                    "\n\n{} = Literal[\n{words}]\n\"\"\"{}\"\"\"\n",
                    one.name, one.says
                );
            }
            Shape::Fields(fields) => {
                let fields: String = fields.iter().map(field).collect();
                let _ = write!(out, "\n\n@dataclass(frozen=True)\nclass {}:\n", one.name);
                out += &doc(&one.says, "    ");
                let _ = write!(out, "\n{fields}");
            }
        }
    }
    out
}

fn field(field: &Field) -> String {
    let default = if field.required { "" } else { " = None" };
    format!("    {}: {}{default}\n{}", field.name, annotation(field), doc(&field.says, "    "))
}

fn annotation(field: &Field) -> String {
    let kind = kind_name(&field.kind);
    if field.required && !field.nullable { kind } else { format!("Optional[{kind}]") }
}

fn kind_name(kind: &Kind) -> String {
    match kind {
        Kind::Text => "str".to_owned(),
        Kind::Whole => "int".to_owned(),
        Kind::Number => "float".to_owned(),
        Kind::Truth => "bool".to_owned(),
        Kind::List(of) => format!("list[{}]", kind_name(of)),
        Kind::Named(name) => name.clone(),
    }
}

/// A doc string, in several lines where it needs them.
fn doc(text: &str, indent: &str) -> String {
    let quoted = format!("{indent}\"\"\"{text}\"\"\"\n");
    if quoted.trim_end().len() <= WIDTH {
        return quoted;
    }
    let text = lines(text, indent, WIDTH - 6);
    format!("{indent}\"\"\"{}\n{indent}\"\"\"\n", text.trim())
}

/// The contents of `windlass_server_sdk/admin_gen.py`.
pub(super) fn requests(api: &Api) -> String {
    let head = "\n\nfrom __future__ import annotations\n\nfrom typing import Optional\n\nfrom . import types_gen as types\nfrom .connection import Connection\n\n\n";
    let mut out = format!("\"\"\"{MADE}\"\"\"{head}");
    out += "class AdminClient(Connection):\n    \"\"\"A client of the admin API. Each method sends one request.\"\"\"\n";
    out += &api.requests.iter().map(|one| request(one, &api.types)).collect::<String>();
    out
}

fn request(request: &Request, types: &[Type]) -> String {
    let body = request.body.as_ref().and_then(|body| types.iter().find(|one| one.name == *body));
    let fields = match body {
        Some(Type { shape: Shape::Fields(fields), .. }) => fields.as_slice(),
        _ => &[],
    };
    let mut given = vec!["self".to_owned()];
    given.extend(request.parameters().map(|(name, _)| format!("{name}: str")));
    if !fields.is_empty() {
        given.push("*".to_owned());
    }
    given.extend(fields.iter().map(|field| {
        let default = if field.required { "" } else { " = None" };
        let kind = in_types(&annotation(field), types);
        format!("{}: {kind}{default}", field.name)
    }));
    let answer = request.answer.as_ref();
    let returns = answer.map_or_else(|| "None".to_owned(), |name| format!("types.{name}"));
    let mut out = format!("\n    def {}({}) -> {returns}:\n", request.id, given.join(", "));
    if out.len() > WIDTH {
        let given =
            given.iter().map(|one| format!("        {one},\n")).collect::<Vec<_>>().concat();
        out = format!("\n    def {}(\n{given}    ) -> {returns}:\n", request.id);
    }
    out += &doc(&request.says, "        ");
    let path = request.path.iter().map(|segment| match segment {
        Segment::Fixed(text) => format!("\"{text}\""),
        Segment::Given(name, _) => name.clone(),
    });
    let path = path.collect::<Vec<_>>().join(", ");
    let named = |field: &Field| format!("{0}={0}", field.name);
    if let Some(body) = body {
        let fields = fields.iter().map(named).collect::<Vec<_>>().join(", ");
        let _ = writeln!(out, "        body = types.{}({fields})", body.name);
    }
    let sent = if body.is_some() { ", body" } else { "" };
    let send = format!("self._send(\"{}\", [{path}]{sent})", request.method);
    let _ = match answer {
        None => writeln!(out, "        {send}"),
        Some(name) => writeln!(out, "        return self._read(types.{name}, {send})"),
    };
    out
}

/// An annotation in a file that imports the types by the name of their module.
fn in_types(annotation: &str, types: &[Type]) -> String {
    let named = annotation.rsplit('[').next().unwrap_or_default().trim_end_matches(']');
    if types.iter().any(|one| one.name == named) {
        return annotation.replace(named, &format!("types.{named}"));
    }
    annotation.to_owned()
}
