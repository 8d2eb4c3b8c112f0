//! Reads files of the version before: renamed options are accepted with a warning, for one version.

/// Renamed options: the former name, which had the unit in it, today's name, and the unit.
const RENAMED: [(&str, &str, &str); 3] = [
    ("budget-ms", "budget", "ms"),
    ("drain-timeout-s", "drain-timeout", "s"),
    ("turn-ttl-s", "turn-ttl", "s"),
];

/// Removed options, and what does their work now.
const REMOVED: [(&str, &str); 2] = [
    ("max-rooms", "of rooms there may be 200, or a fifth of max-total-participants"),
    ("quality-sla-db", "write its value behind the policy: `policy: quality-sla:0.5`"),
];

/// Translates a file to today's names. Values keep their places. Also returns a warning for each changed line.
pub(super) fn translated(text: &str) -> (String, Vec<String>) {
    let mut warnings = Vec::new();
    let mut line = |(at, line): (usize, &str)| {
        let Some((key, rest)) = line.split_once(':') else { return line.to_owned() };
        if let Some((_, name, unit)) = RENAMED.iter().find(|(former, ..)| *former == key) {
            let (value, comment) = rest.split_once(" #").unwrap_or((rest, ""));
            let value = value.trim().trim_matches(['"', '\'']);
            warnings.push(format!(
                "line {}: `{key}` is now `{name}`: write `{name}: {}{unit}`; it is read for this version only",
                at + 1,
                value
            ));
            let space = " ".repeat(key.len() - name.len());
            let comment = if comment.is_empty() { String::new() } else { format!(" #{comment}") };
            return format!("{name}:{space} {value}{unit}{comment}");
        }
        if let Some((_, instead)) = REMOVED.iter().find(|(former, _)| *former == key) {
            warnings.push(format!("line {}: `{key}` is no option any more: {instead}", at + 1));
            return format!("#{line}");
        }
        line.to_owned()
    };
    let lines: Vec<_> = text.lines().enumerate().map(&mut line).collect();
    (lines.join("\n"), warnings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_gets_its_unit_where_it_stands() {
        let (text, warnings) = translated("http: 127.0.0.1:1\nbudget-ms: 150 # short\n");
        assert_eq!(text, "http: 127.0.0.1:1\nbudget:    150ms # short");
        assert_eq!(
            warnings,
            [
                "line 2: `budget-ms` is now `budget`: write `budget: 150ms`; it is read for this version only"
            ]
        );
    }

    #[test]
    fn a_number_in_quotes_is_one_too() {
        assert_eq!(translated("budget-ms: \"150\"").0, "budget:    150ms");
        assert_eq!(translated("turn-ttl-s: '60'").0, "turn-ttl:   60s");
    }

    #[test]
    fn what_is_gone_is_left_out_and_told() {
        let (text, warnings) = translated("max-rooms: 5");
        assert_eq!(text, "#max-rooms: 5");
        assert!(warnings[0].contains("max-total-participants"), "{warnings:?}");
    }

    #[test]
    fn the_words_of_today_stay_as_they_are() {
        let text = "budget: 150ms\n# budget-ms: 3\nlog: info";
        assert_eq!(translated(text), (text.to_owned(), Vec::new()));
    }
}
