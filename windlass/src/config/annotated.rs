//! Writes `windlass.yaml` with every option, its help, unit and default, from the command line's declarations.

use std::fmt::Write;

use clap::{Arg, Args, Command};

use super::{Settings, is_live};

/// Width at which comments are wrapped, in characters.
const WIDTH: usize = 100;

/// An option, as its type describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Described {
    /// Name of the option without dashes: the key in the file.
    pub name: String,
    /// The option's help text, in one paragraph, without its default.
    pub help: String,
    /// Name of the option's value, or its unit.
    pub value: String,
    /// Default of the option as the help says it; `false` for switches.
    pub default: Option<String>,
    /// Heading under which the option stands.
    heading: String,
}

/// Every option that a file may have, in the order of the help.
pub(super) fn options() -> Vec<Described> {
    let command = Settings::augment_args(Command::new("windlass"));
    command.get_arguments().map(described).collect()
}

fn described(arg: &Arg) -> Described {
    let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
    let (help, default) = match help.rsplit_once("[default: ") {
        Some((help, default)) => (help.to_owned(), Some(default.trim_end_matches(']').to_owned())),
        None => (help, None),
    };
    let is_switch = arg.get_num_args().is_some_and(|n| n.min_values() == 0);
    let notation =
        arg.get_value_names().and_then(|names| names.first()).map(clap::builder::Str::as_str);
    let value = match notation.unwrap_or_default() {
        "BOOL" => "true or false",
        "TIME" => "a time such as 200ms, 30s, 1h",
        "DB" => "dB",
        "MIB" => "MiB",
        "N" => "a whole number",
        "SHARE" => "a share, 0 to 1",
        other => other,
    };
    Described {
        name: arg.get_long().unwrap_or_default().to_owned(),
        help: help.split_whitespace().collect::<Vec<_>>().join(" "),
        value: value.to_owned(),
        default: default.or_else(|| is_switch.then(|| "false".to_owned())),
        heading: arg.get_help_heading().unwrap_or("Other").to_owned(),
    }
}

/// A configuration file with all options, each with its help and its default.
pub(crate) fn annotated() -> String {
    let options = options();
    let mut text = String::from(
        "# windlass.yaml, for `windlass serve --config windlass.yaml`. Every option is here with its default; lines may\n\
         # be left out. Options of the command line have the same names and win. While the server runs, a changed file\n\
         # and SIGHUP are heeded for what is marked `live`; the rest is read at the start.\n",
    );
    let mut headings: Vec<&str> = Vec::new();
    for option in &options {
        if !headings.contains(&option.heading.as_str()) {
            headings.push(&option.heading);
        }
    }
    for heading in headings {
        let _ = write!(text, "\n# ---- {heading} ----\n");
        for option in options.iter().filter(|o| o.heading == heading) {
            entry(&mut text, option);
        }
    }
    text
}

/// Writes one option: comments, then the key with its default. It is commented out if the default is no value: it
/// depends on the machine, or there is none.
fn entry(text: &mut String, option: &Described) {
    let Described { name, help, value, default, .. } = option;
    let _ = writeln!(text);
    for line in wrapped(help) {
        let _ = writeln!(text, "# {line}");
    }
    let live = if is_live(name) { ", live" } else { "" };
    let shown = default.as_deref().unwrap_or("none");
    let _ = writeln!(text, "# ({value}; default: {shown}{live})");
    let line = format!("{name}: {shown}");
    let is_value = default.is_some() && super::file::File::parse(&line).is_ok();
    let _ = if is_value { writeln!(text, "{line}") } else { writeln!(text, "#{name}:") };
}

fn wrapped(text: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().filter(|l| l.is_empty() || l.len() + word.len() < WIDTH);
        match line {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) => {
                line.push(' ');
                line.push_str(word);
            }
            None => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::super::file::File;
    use super::*;
    use crate::config::Config;

    #[test]
    fn what_is_printed_says_the_defaults() {
        let read = File::parse(&annotated()).unwrap().settings;
        assert_ne!(read, Settings::default());
        let config = |settings| format!("{:?}", Config::resolve(settings).unwrap());
        assert_eq!(config(read), config(Settings::default()));
    }

    #[test]
    fn every_option_is_there_with_help_and_default() {
        let text = annotated();
        for option in options() {
            let (plain, out) = (format!("\n{}: ", option.name), format!("\n#{}:", option.name));
            assert!(text.contains(&plain) || text.contains(&out), "{}", option.name);
            assert!(!option.help.is_empty() && !option.value.is_empty(), "{option:?}");
        }
        assert!(text.contains("(a time such as 200ms, 30s, 1h; default: 200ms"), "{text}");
        assert!(text.lines().all(|l| l.len() <= 125), "{text}");
    }

    /// The tables of `docs/options.md`.
    fn tables() -> String {
        let mut text = String::from(
            "# Options\n\n\
             The options of `windlass serve`: flags on the command line, and keys of the configuration file. Those marked *live* take \
             effect when the file changes; the others wait for a restart.\n\n\
             This file is made of the program's declarations: `UPDATE_EXPECT=1 cargo test -p windlass options` writes it.\n",
        );
        let mut heading = String::new();
        let cell = |text: &str| text.replace('|', "\\|");
        for option in options() {
            if option.heading != heading {
                heading.clone_from(&option.heading);
                let _ = write!(text, "\n## {heading}\n\n");
                text.push_str(
                    "| option | value | default | what it is |\n| --- | --- | --- | --- |\n",
                );
            }
            let live = if is_live(&option.name) { " *live*" } else { "" };
            let (value, help) = (cell(&option.value), cell(&option.help));
            let default = cell(&option.default.unwrap_or_default());
            let _ = writeln!(text, "| `{}`{live} | {value} | {default} | {help} |", option.name);
        }
        text
    }

    #[test]
    fn the_options_of_the_documents_are_those_of_the_program() {
        windlass_files::hold("../docs/options.md", tables());
    }

    #[test]
    fn a_default_that_depends_on_the_machine_is_left_to_it() {
        assert!(annotated().contains("\n#enhancer-threads:"));
    }
}
