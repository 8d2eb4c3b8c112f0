//! `windlass config --show`: lists the options that a server would have, with the origin of each value.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use anyhow::{Context, Result};
use clap::ArgMatches;
use clap::parser::ValueSource;
use serde_json::Value;

use super::annotated::{Described, options};
use super::former;
use super::settings::variable;
use super::{Config, File};

/// Options whose values are secrets, or contain some.
const SECRET: [&str; 7] =
    ["cluster-token", "nats", "token-key", "turn-secret", "turn-url", "webhook", "webhook-secret"];

/// Lists the options of `given` and of the file as a configuration file with a comment on each line. `given` has been
/// parsed with the options of `windlass serve`, and `config` is what both come to.
pub(crate) fn shown(given: &ArgMatches, file: Option<&Path>, config: &Config) -> Result<String> {
    let in_file = match file {
        None => BTreeMap::new(),
        Some(path) => {
            let text = std::fs::read_to_string(path)
                .with_context(|| format!("cannot read {}", path.display()))?;
            values(&former::translated(&text).0)?
        }
    };
    let from_file = file.map_or(String::new(), |path| path.display().to_string());
    let mut text = String::new();
    for option in options() {
        let by_public = || Some((by_public(&option.name, config)?, "by public".to_owned()));
        let set = found(&option, given, &in_file, &from_file).or_else(by_public);
        let (value, from) =
            set.map_or_else(|| by_default(&option), |(value, from)| (Some(value), from));
        let value = value.map(|value| hidden(&option.name, value));
        let line = match value {
            Some(value) => format!("{}: {value}", option.name),
            None => format!("#{}:", option.name),
        };
        // Writing to a string does not fail.
        let _ = writeln!(text, "{line:<40} # {from}");
    }
    Ok(text)
}

/// Values of a file, as text; empty if it has no key.
fn values(text: &str) -> Result<BTreeMap<String, String>> {
    let values: Option<BTreeMap<String, Value>> =
        serde_saphyr::from_str(text).context("the configuration file cannot be read")?;
    Ok(values.unwrap_or_default().into_iter().map(|(name, value)| (name, plain(&value))).collect())
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(all) => all.iter().map(plain).collect::<Vec<_>>().join(","),
        // YAML 1.1 reads `off` so.
        Value::Bool(false) => "off".to_owned(),
        other => other.to_string(),
    }
}

/// Value of an option that is given, and where it comes from.
fn found(
    option: &Described,
    given: &ArgMatches,
    in_file: &BTreeMap<String, String>,
    file: &str,
) -> Option<(String, String)> {
    let id = option.name.replace('-', "_");
    let raw = || {
        let values = given.get_raw(&id).into_iter().flatten();
        values.map(|value| value.to_string_lossy().into_owned()).collect::<Vec<_>>().join(",")
    };
    match given.value_source(&id) {
        Some(ValueSource::CommandLine) => Some((raw(), "command line".to_owned())),
        Some(ValueSource::EnvVariable) => Some((raw(), variable(&option.name))),
        _ => in_file.get(&option.name).map(|value| (value.clone(), file.to_owned())),
    }
}

/// Value that an option has because the server has a public name.
fn by_public(name: &str, config: &Config) -> Option<String> {
    let public = config.public.as_ref()?;
    match name {
        "http" => Some(config.http.to_string()),
        "udp" => Some(config.sfu.udp.to_string()),
        "metrics" => config.metrics.map(|address| address.to_string()),
        "tls" => config.tls.is_some().then(|| "acme".to_owned()),
        "token-key" => public.key.as_ref().map(|file| format!("k1=@{}", file.display())),
        _ => None,
    }
}

/// Value of an option that nobody gives, if that does not depend on the machine or on other options.
fn by_default(option: &Described) -> (Option<String>, String) {
    match &option.default {
        Some(default) if File::parse(&format!("{}: {default}", option.name)).is_ok() => {
            (Some(default.clone()), "default".to_owned())
        }
        Some(default) => (None, format!("default: {default}")),
        None => (None, "not set".to_owned()),
    }
}

/// Hides secrets in a value. Names of files that hold secrets are shown.
fn hidden(name: &str, value: String) -> String {
    if !SECRET.contains(&name) {
        return value;
    }
    let parts = value.split(',').map(|part| {
        let (front, secret) = part.split_once('=').map_or(("", part), |(id, key)| (id, key));
        if !secret.starts_with('@') {
            return "(hidden)".to_owned();
        }
        if front.is_empty() { secret.to_owned() } else { format!("{front}={secret}") }
    });
    parts.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use clap::{Args, Command};

    use super::*;
    use crate::config::Settings;

    fn given(args: &[&str]) -> ArgMatches {
        let command = Settings::augment_args(Command::new("windlass"));
        command.get_matches_from([&["windlass"], args].concat())
    }

    /// The line of an option, without the space before its comment.
    fn line(text: &str, name: &str) -> String {
        let line =
            text.lines().find(|line| line.trim_start_matches('#').split(':').next() == Some(name));
        line.unwrap().split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn each_value_says_where_it_comes_from() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(
            file.path(),
            "budget: 150ms\ndevice: off\norigins: [https://a, https://b]\n",
        )
        .unwrap();
        let path = file.path().display().to_string();
        let config = Config::resolve(Settings::default()).unwrap();
        let text = shown(&given(&["--budget=300ms"]), Some(file.path()), &config).unwrap();
        assert_eq!(line(&text, "budget"), "budget: 300ms # command line");
        assert_eq!(line(&text, "device"), format!("device: off # {path}"));
        assert_eq!(line(&text, "origins"), format!("origins: https://a,https://b # {path}"));
        assert_eq!(line(&text, "max-participants"), "max-participants: 32 # default");
        assert_eq!(line(&text, "tls"), "#tls: # default: plain HTTP; acme with public");
        assert_eq!(line(&text, "webhook"), "#webhook: # not set");
    }

    #[test]
    fn a_file_of_comments_says_nothing() {
        assert!(values("# budget: 150ms\n").unwrap().is_empty());
    }

    #[test]
    fn secrets_are_hidden_and_their_files_shown() {
        let of = |name: &str, value: &str| hidden(name, value.to_owned());
        assert_eq!(of("token-key", "a=@/etc/k1,b=0123"), "a=@/etc/k1,(hidden)");
        assert_eq!(of("turn-secret", "@/etc/turn"), "@/etc/turn");
        assert_eq!(of("turn-url", "turn:u:p@host"), "(hidden)");
        assert_eq!(of("http", "127.0.0.1:1"), "127.0.0.1:1");
        let shows = |option: &str| {
            let named = ["secret", "token", "key", "password"];
            named.iter().any(|part| option.contains(part)) && !SECRET.contains(&option)
        };
        assert_eq!(options().into_iter().find(|option| shows(&option.name)), None);
    }

    #[test]
    fn every_option_has_a_variable() {
        let command = Settings::augment_args(Command::new("windlass"));
        for argument in command.get_arguments() {
            let name = argument.get_long().unwrap();
            let variable = argument.get_env().unwrap().to_str().unwrap();
            assert_eq!(variable, format!("WINDLASS_{}", name.replace('-', "_").to_uppercase()));
        }
    }
}
