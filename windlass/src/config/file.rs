//! Reads `windlass.yaml`. Errors name line, column and option, and say what is allowed.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_saphyr::Spanned;
use thiserror::Error;

use super::annotated::{Described, options};
use super::{Config, Invalid, Settings, former};

/// Minimum likeness (Jaro-Winkler, 0 to 1) of an unknown key to an option's name that is then suggested.
const NEAR: f64 = 0.8;

/// Why a configuration file cannot be used.
#[derive(Debug, Error)]
pub(crate) enum FileError {
    /// The file cannot be read.
    #[error("the file cannot be read: {0}; check its path, its permissions, and that it is UTF-8")]
    Io(#[from] std::io::Error),
    /// A value or key in the file is wrong.
    #[error("line {line}, column {column}: {problem}")]
    At {
        /// Line of the error, from 1.
        line: u64,
        /// Column of the error in characters, from 1.
        column: u64,
        /// The option, and what is allowed.
        problem: String,
    },
    /// The file's settings cannot be used, and no single line is to blame.
    #[error("{0}")]
    Whole(String),
}

/// Contents of a configuration file.
#[derive(Debug, Clone, Default)]
pub(crate) struct File {
    /// Settings of the file.
    pub settings: Settings,
    /// Warnings about lines that the next version will not read, with what to write instead.
    pub warnings: Vec<String>,
    /// Line and column of each key's value.
    places: BTreeMap<String, (u64, u64)>,
}

impl File {
    /// Reads and checks a file.
    pub(crate) fn read(path: &Path) -> Result<File, FileError> {
        Self::parse(&std::fs::read_to_string(path)?)
    }

    /// Reads and checks the text of a file, without settings of the command line.
    pub(crate) fn parse(text: &str) -> Result<File, FileError> {
        let options = options();
        let (text, warnings) = former::translated(text);
        let text = text.as_str();
        // A file of comments alone is no document to the reader.
        if text.lines().all(|line| line.trim().is_empty() || line.trim_start().starts_with('#')) {
            return Ok(File { warnings, ..File::default() });
        }
        // Before the keys are known, the line that is wrong may begin with one.
        let first = text.lines().enumerate().filter_map(|(at, line)| {
            Some((line.split_once(':')?.0.to_owned(), (at as u64 + 1, 1)))
        });
        let Keys(places) =
            serde_saphyr::from_str(text).map_err(|e| problem(&e, &first.collect(), &options))?;
        for (key, &(line, column)) in &places {
            if !options.iter().any(|o| o.name == *key) {
                return Err(FileError::At { line, column, problem: unknown(key, &options) });
            }
        }
        let settings: Settings =
            serde_saphyr::from_str(text).map_err(|e| problem(&e, &places, &options))?;
        let file = File { settings, warnings, places };
        file.check()?;
        Ok(file)
    }

    fn check(&self) -> Result<(), FileError> {
        let Err(error) = Config::resolve(self.settings.clone()) else { return Ok(()) };
        let option = error.downcast_ref::<Invalid>().map(|e| e.option);
        let problem = format!("{error:#}");
        match option.and_then(|option| self.places.get(option)) {
            Some(&(line, column)) => Err(FileError::At { line, column, problem }),
            None => Err(FileError::Whole(problem)),
        }
    }
}

/// Formats an error of the YAML reader, with the option at its place.
fn problem(
    error: &serde_saphyr::Error,
    places: &BTreeMap<String, (u64, u64)>,
    options: &[Described],
) -> FileError {
    // The first line is the message; the place stands in it in words of its own.
    let text = error.without_snippet().to_string();
    let text = text.lines().next().unwrap_or_default();
    let text = text.strip_prefix("error: ").unwrap_or(text);
    let Some(location) = error.location() else { return FileError::Whole(text.to_owned()) };
    let (line, column) = (location.line(), location.column());
    // The last value that begins here or before.
    let before = places.iter().filter(|(_, place)| **place <= (line, column));
    let option = before.max_by_key(|(_, place)| **place);
    let option = option.and_then(|(key, _)| options.iter().find(|o| o.name == *key));
    let text = text.split(" at line ").next().unwrap_or(text);
    let text = text.rsplit_once(": line ").map_or(text, |(text, _)| text);
    let problem = match option {
        // Words of the reader, and of Rust, about a value of another type.
        Some(Described { name, value, .. })
            if ["invalid ", "expected "].iter().any(|word| text.starts_with(word)) =>
        {
            format!("{name} must be {value}")
        }
        Some(option) => format!("{}: {text}", option.name),
        None => text.to_owned(),
    };
    FileError::At { line, column, problem }
}

fn unknown(key: &str, options: &[Described]) -> String {
    let near = |name: &str| strsim::jaro_winkler(key, name);
    // Written as in other programs' files, or as an option of the command line.
    let as_option = key.trim_start_matches('-').replace('_', "-").to_lowercase();
    let best = options.iter().max_by(|a, b| near(&a.name).total_cmp(&near(&b.name)));
    let meant = options
        .iter()
        .find(|o| o.name == as_option)
        .or(best.filter(|o| near(&o.name) >= NEAR))
        .map(|o| format!("did you mean `{}`?", o.name));
    let meant = meant.unwrap_or_else(|| "`windlass config --annotated` lists them all".to_owned());
    format!("`{key}` is no option; {meant}")
}

/// Keys of a mapping, with line and column of their values.
struct Keys(BTreeMap<String, (u64, u64)>);

impl<'de> Deserialize<'de> for Keys {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;

        impl<'de> Visitor<'de> for Reader {
            type Value = Keys;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("lines of `option: value`")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Keys, A::Error> {
                let mut keys = BTreeMap::new();
                while let Some(key) = map.next_key::<String>()? {
                    let value: Spanned<IgnoredAny> = map.next_value()?;
                    let place = value.referenced;
                    keys.insert(key, (place.line(), place.column()));
                }
                Ok(Keys(keys))
            }
        }

        deserializer.deserialize_map(Reader)
    }
}
