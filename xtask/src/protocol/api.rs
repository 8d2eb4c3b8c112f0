//! Reads from the OpenAPI description what the server SDKs need: the requests of the admin API, and the types of
//! requests, webhooks and tokens.

use std::collections::BTreeSet;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

/// A type that nothing refers to: integrators sign its values themselves.
const CLAIMS: &str = "Claims";

/// The requests and types of the description.
pub(super) struct Api {
    /// The types, by name.
    pub types: Vec<Type>,
    /// The requests, by path.
    pub requests: Vec<Request>,
}

/// A named type.
pub(super) struct Type {
    pub name: String,
    /// The type's description, in one line.
    pub says: String,
    pub shape: Shape,
}

/// The contents of a type.
pub(super) enum Shape {
    /// The type is one of these words.
    Words(Vec<Word>),
    /// The type is an object with these fields.
    Fields(Vec<Field>),
}

/// A word that a value may be.
pub(super) struct Word {
    pub name: String,
    /// The word's description, if it has one.
    pub says: Option<String>,
}

/// A field of a type.
pub(super) struct Field {
    pub name: String,
    pub says: String,
    pub kind: Kind,
    /// Whether the field is always there.
    pub required: bool,
    /// Whether the field may be null where it is there.
    pub nullable: bool,
}

/// The kind of value that a field holds.
#[derive(Debug, PartialEq)]
pub(super) enum Kind {
    Text,
    Whole,
    Number,
    Truth,
    List(Box<Kind>),
    Named(String),
}

/// A request of the admin API.
pub(super) struct Request {
    /// The request's name, in lower case with underscores.
    pub id: String,
    pub says: String,
    pub method: String,
    /// The segments of the request's path after `/admin/`.
    pub path: Vec<Segment>,
    /// The type of the request's body.
    pub body: Option<String>,
    /// The type of the request's answer.
    pub answer: Option<String>,
}

/// A segment of a path.
pub(super) enum Segment {
    Fixed(String),
    /// A parameter's name and description.
    Given(String, String),
}

impl Request {
    /// The names and descriptions of the request's parameters.
    pub(super) fn parameters(&self) -> impl Iterator<Item = (&str, &str)> {
        self.path.iter().filter_map(|segment| match segment {
            Segment::Fixed(_) => None,
            Segment::Given(name, says) => Some((name.as_str(), says.as_str())),
        })
    }
}

impl Api {
    /// Reads an OpenAPI description.
    pub(super) fn read(document: &str) -> Result<Api> {
        let document: Value = serde_json::from_str(document)?;
        let schemas = document["components"]["schemas"].as_object().context("no schemas")?;
        let mut requests = Vec::new();
        let mut used = BTreeSet::from([CLAIMS.to_owned()]);
        used.extend(references(&document["webhooks"]));
        for (path, item) in document["paths"].as_object().context("no paths")? {
            let Some(path) = path.strip_prefix("/admin/") else { continue };
            used.extend(references(item));
            for (method, operation) in item.as_object().context("no methods")? {
                let read = request(method, path, operation);
                requests.push(read.with_context(|| format!("{method} /admin/{path}"))?);
            }
        }
        // The types that those types refer to are needed too.
        let mut rest = Vec::from_iter(used.clone());
        while let Some(name) = rest.pop() {
            let more = schemas.get(&name).map(references).unwrap_or_default().into_iter();
            rest.extend(more.filter(|name| used.insert(name.clone())));
        }
        let types = used.iter().map(|name| {
            let read = named(name, schemas);
            read.with_context(|| format!("the type {name}"))
        });
        Ok(Api { types: types.collect::<Result<_>>()?, requests })
    }
}

/// The types that a part of the description refers to.
fn references(value: &Value) -> Vec<String> {
    match value {
        Value::Object(fields) => match fields.get("$ref").and_then(Value::as_str) {
            Some(to) => vec![last(to).to_owned()],
            None => fields.values().flat_map(references).collect(),
        },
        Value::Array(items) => items.iter().flat_map(references).collect(),
        _ => Vec::new(),
    }
}

fn last(reference: &str) -> &str {
    reference.rsplit('/').next().unwrap_or(reference)
}

/// A description as one line of text.
fn says(value: &Value) -> Result<String> {
    let text = value.as_str().context("it is not described")?;
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    ensure!(!text.contains("*/") && !text.contains("\"\"\""), "what would end a comment: {text}");
    Ok(text)
}

fn request(method: &str, path: &str, operation: &Value) -> Result<Request> {
    let described = operation["parameters"].as_array().map(Vec::as_slice).unwrap_or_default();
    let segment = |text: &str| {
        let Some(name) = text.strip_prefix('{').and_then(|text| text.strip_suffix('}')) else {
            return Ok(Segment::Fixed(text.to_owned()));
        };
        let described = described.iter().find(|parameter| parameter["name"] == name);
        let said = says(&described.context("a parameter is not described")?["description"])?;
        Ok(Segment::Given(name.to_owned(), said))
    };
    let content = |of: &Value| -> Result<Option<String>> {
        let schema = &of["content"]["application/json"]["schema"];
        match (schema.is_null(), schema["$ref"].as_str()) {
            (true, _) => Ok(None),
            (false, Some(to)) => Ok(Some(last(to).to_owned())),
            (false, None) => bail!("a body of no named type"),
        }
    };
    let good = operation["responses"].as_object().context("no responses")?.iter();
    let (_, good) =
        good.into_iter().find(|(code, _)| code.starts_with('2')).context("no answer")?;
    let more = operation["description"].as_str().unwrap_or_default();
    let said = format!("{} {more}", operation["summary"].as_str().context("no summary")?);
    Ok(Request {
        id: operation["operationId"].as_str().context("no name")?.to_owned(),
        says: says(&Value::from(said))?,
        method: method.to_uppercase(),
        path: path.split('/').map(segment).collect::<Result<_>>()?,
        body: content(&operation["requestBody"])?,
        answer: content(good)?,
    })
}

fn named(name: &str, schemas: &serde_json::Map<String, Value>) -> Result<Type> {
    let schema = schemas.get(name).context("it is not there")?;
    let shape = if let Some(words) = schema["enum"].as_array() {
        let described = schema["x-enum-values"].as_array();
        let word = |(n, word): (usize, &Value)| {
            let says = described.map(|all| says(&all[n]["description"])).transpose()?;
            Ok(Word { name: word.as_str().context("no word")?.to_owned(), says })
        };
        Shape::Words(words.iter().enumerate().map(word).collect::<Result<_>>()?)
    } else {
        let mut all = fields(schema, schemas)?;
        // Python's classes need the required fields first.
        all.sort_by_key(|field| !field.required);
        Shape::Fields(all)
    };
    Ok(Type { name: name.to_owned(), says: says(&schema["description"])?, shape })
}

/// The fields of an object, with those of the types that it is composed of.
fn fields(schema: &Value, schemas: &serde_json::Map<String, Value>) -> Result<Vec<Field>> {
    if let Some(to) = schema["$ref"].as_str() {
        return fields(schemas.get(last(to)).context("it is not there")?, schemas);
    }
    if let Some(parts) = schema["allOf"].as_array() {
        let parts = parts.iter().map(|part| fields(part, schemas)).collect::<Result<Vec<_>>>()?;
        return Ok(parts.into_iter().flatten().collect());
    }
    let required: BTreeSet<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let all = schema["properties"].as_object().context("it has no fields")?;
    let field = |(name, schema): (&String, &Value)| {
        let read = field(name, schema, required.contains(name.as_str()));
        read.with_context(|| format!("the field {name}"))
    };
    all.iter().map(field).collect()
}

fn field(name: &str, schema: &Value, required: bool) -> Result<Field> {
    let (kind, nullable) = kind(schema)?;
    let described = match schema["oneOf"].as_array() {
        Some(either) => or_null(either)?,
        None => schema,
    };
    let says = says(&described["description"])?;
    Ok(Field { name: name.to_owned(), says, kind, required, nullable })
}

/// The schema that may be null: the other one of two.
fn or_null(either: &[Value]) -> Result<&Value> {
    let others: Vec<&Value> = either.iter().filter(|one| one["type"] != "null").collect();
    ensure!(either.len() == 2 && others.len() == 1, "one of several");
    Ok(others[0])
}

/// The kind of value that a schema allows, and whether null is allowed too.
fn kind(schema: &Value) -> Result<(Kind, bool)> {
    if let Some(to) = schema["$ref"].as_str() {
        return Ok((Kind::Named(last(to).to_owned()), false));
    }
    if let Some(either) = schema["oneOf"].as_array() {
        return Ok((kind(or_null(either)?)?.0, true));
    }
    let names = match &schema["type"] {
        Value::Array(names) => names.iter().filter_map(Value::as_str).collect(),
        name => Vec::from_iter(name.as_str()),
    };
    let nullable = names.contains(&"null");
    let kind = match names.into_iter().find(|name| *name != "null") {
        Some("string") => Kind::Text,
        Some("integer") => Kind::Whole,
        Some("number") => Kind::Number,
        Some("boolean") => Kind::Truth,
        Some("array") => Kind::List(Box::new(kind(&schema["items"])?.0)),
        other => bail!("the type {other:?} is not known here"),
    };
    Ok((kind, nullable))
}

/// A name in Pascal case: one word, each part with a capital.
pub(super) fn pascal(name: &str) -> String {
    let part = |part: &str| match part {
        "" => String::new(),
        part => part[..1].to_uppercase() + &part[1..],
    };
    name.split('_').map(part).collect()
}

/// Text in lines of at most `width` bytes, each after `start`.
pub(super) fn lines(text: &str, start: &str, width: usize) -> String {
    let mut all = String::new();
    let mut line = String::new();
    for word in text.split(' ') {
        if !line.is_empty() && start.len() + line.len() + 1 + word.len() > width {
            all.extend([start, &line, "\n"]);
            line.clear();
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line += word;
    }
    all + &format!("{start}{line}\n")
}

/// The remark at the beginning of each generated file.
pub(super) const MADE: &str = "Made from signaling/sdk/openapi.json by `cargo xtask protocol`.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_schema_allows_is_read() {
        let read = |text: &str| kind(&serde_json::from_str(text).unwrap()).unwrap();
        assert_eq!(read(r#"{"type": "integer"}"#), (Kind::Whole, false));
        assert_eq!(read(r#"{"type": ["string", "null"]}"#), (Kind::Text, true));
        let either = r##"{"oneOf": [{"$ref": "#/components/schemas/A"}, {"type": "null"}]}"##;
        assert_eq!(read(either), (Kind::Named("A".to_owned()), true));
        let list = r#"{"type": "array", "items": {"type": "boolean"}}"#;
        assert_eq!(read(list), (Kind::List(Box::new(Kind::Truth)), false));
        assert!(kind(&serde_json::json!({"type": "object"})).is_err(), "rather than lost");
    }

    #[test]
    fn names_and_lines_are_those_of_the_languages() {
        assert_eq!(pascal("list_rooms"), "ListRooms");
        assert_eq!(lines("one two three", "// ", 10), "// one two\n// three\n");
    }
}
