//! Writes the Go SDK's types and requests.

use std::fmt::Write as _;

use super::api::{Api, Field, Kind, MADE, Request, Segment, Shape, Type, Word, lines, pascal};

/// Maximum length of a comment's line, in bytes.
const WIDTH: usize = 100;
/// Parts of names that Go programmers write in capitals.
const INITIALISMS: [(&str, &str); 1] = [("id", "ID")];

/// The contents of `types_gen.go`.
pub(super) fn types(api: &Api) -> String {
    let mut out = format!("// {MADE} DO NOT EDIT.\n\npackage windlass\n");
    for one in &api.types {
        out.push('\n');
        out += &lines(&format!("{}: {}", one.name, one.says), "// ", WIDTH);
        match &one.shape {
            Shape::Words(list) => out += &words(&one.name, list),
            Shape::Fields(fields) => {
                let fields: String = fields.iter().map(|one| field(one, &api.types)).collect();
                let _ = writeln!(out, "type {} struct {{\n{fields}}}", one.name);
            }
        }
    }
    out
}

/// A type of words, and a constant for each, in columns as gofmt writes them.
fn words(name: &str, words: &[Word]) -> String {
    let constants: Vec<String> =
        words.iter().map(|word| format!("{name}{}", public(&word.name))).collect();
    let width = constants.iter().map(String::len).max().unwrap_or_default();
    let mut out = format!("type {name} string\n\n// The words of {name}.\nconst (\n");
    for (constant, word) in constants.iter().zip(words) {
        let _ = writeln!(out, "\t{constant:width$} {name} = \"{}\"", word.name);
    }
    out + ")\n"
}

fn public(name: &str) -> String {
    let initialism = INITIALISMS.iter().find(|(plain, _)| *plain == name);
    initialism.map_or_else(|| pascal(name), |(_, capitals)| (*capitals).to_owned())
}

fn field(field: &Field, types: &[Type]) -> String {
    let is_words = |name: &str| {
        types.iter().any(|one| one.name == name && matches!(one.shape, Shape::Words(_)))
    };
    // An empty string or `false` may be left out. Other values may be zero or empty, and be meant.
    let may_be_empty = match &field.kind {
        Kind::Text | Kind::Truth => false,
        Kind::Named(name) => !is_words(name),
        Kind::Whole | Kind::Number | Kind::List(_) => true,
    };
    let (mark, omit) = match (field.required, field.nullable) {
        (true, true) => ("*", ""),
        (true, false) => ("", ""),
        (false, _) => (if may_be_empty { "*" } else { "" }, ",omitempty"),
    };
    let kind = kind_name(&field.kind);
    let name = public(&field.name);
    let tag = format!("`json:\"{}{omit}\"`", field.name);
    lines(&field.says, "\t// ", WIDTH) + &format!("\t{name} {mark}{kind} {tag}\n")
}

fn kind_name(kind: &Kind) -> String {
    match kind {
        Kind::Text => "string".to_owned(),
        Kind::Whole => "int64".to_owned(),
        Kind::Number => "float64".to_owned(),
        Kind::Truth => "bool".to_owned(),
        Kind::List(of) => format!("[]{}", kind_name(of)),
        Kind::Named(name) => name.clone(),
    }
}

/// The contents of `admin_gen.go`.
pub(super) fn requests(api: &Api) -> String {
    let head = format!("// {MADE} DO NOT EDIT.\n\npackage windlass\n\nimport \"context\"\n");
    head + &api.requests.iter().map(request).collect::<String>()
}

fn request(request: &Request) -> String {
    let name = pascal(&request.id);
    let mut out = "\n".to_owned() + &lines(&format!("{name}: {}", request.says), "// ", WIDTH);
    let mut given = vec!["ctx context.Context".to_owned()];
    let texts: Vec<&str> = request.parameters().map(|(name, _)| name).collect();
    if !texts.is_empty() {
        given.push(format!("{} string", texts.join(", ")));
    }
    let body = request.body.as_ref().map_or("nil", |body| {
        given.push(format!("body {body}"));
        "body"
    });
    let given = given.join(", ");
    let path = request.path.iter().map(|segment| match segment {
        Segment::Fixed(text) => format!("\"{text}\""),
        Segment::Given(name, _) => name.clone(),
    });
    let path = format!("[]string{{{}}}", path.collect::<Vec<_>>().join(", "));
    let sent = format!("(ctx, c, \"{}\", {path}, {body})", request.method);
    let (returns, call) = match &request.answer {
        None => ("error".to_owned(), "send".to_owned()),
        Some(answer) => (format!("(*{answer}, error)"), format!("ask[{answer}]")),
    };
    let _ = writeln!(
        out,
        "func (c *AdminClient) {name}({given}) {returns} {{\n\treturn {call}{sent}\n}}"
    );
    out
}
