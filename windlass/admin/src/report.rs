//! Result of an action, for programs and for people.

use std::fmt::Write;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use comfy_table::Table;
use comfy_table::presets::NOTHING;
use serde_json::{Value, json};

use crate::find::{items, text};

/// Result of an action.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// The server's answer as JSON, or a description of what was done.
    pub json: Value,
    /// Lines of text for people.
    pub text: String,
}

impl Report {
    /// Report of what was done, if the server's answer has nothing more.
    pub(crate) fn sentence(text: String) -> Report {
        Report { json: json!({"done": &text}), text }
    }

    /// Adds that `silent` servers of the cluster did not answer.
    pub(crate) fn without(mut self, silent: usize) -> Report {
        if silent > 0 {
            self.json["silent_servers"] = silent.into();
            let servers =
                if silent == 1 { "1 server".to_owned() } else { format!("{silent} servers") };
            // Writing to a string does not fail.
            let _ = write!(
                self.text,
                "\n{servers} of the cluster did not answer: what is there is missing."
            );
        }
        self
    }
}

/// Report of the recording of a room.
pub(crate) fn recording(room: &str, json: Value) -> Report {
    let whom = match text(&json, "participant") {
        "" => format!("The room {room}"),
        who => format!("{who} in the room {room}"),
    };
    let text =
        format!("{whom} is recorded: {}. Everybody in it is told.", text(&json, "recording"));
    Report { json, text }
}

fn table(head: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut table = Table::new();
    table.load_preset(NOTHING).set_header(head.iter().copied());
    table.add_rows(rows);
    // The space of the first column's frame, and the end of each line.
    let lines = table.lines().map(|line| line.trim().to_owned());
    lines.collect::<Vec<_>>().join("\n")
}

/// Formats a number or a text; a dash if there is none.
fn shown(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

pub(crate) fn rooms(rooms: Value) -> Report {
    let rows: Vec<_> = items(&rooms, "rooms")
        .iter()
        .map(|room| {
            ["room", "participants", "tracks", "max_participants", "policy"]
                .map(|name| shown(&room[name]))
                .to_vec()
        })
        .collect();
    let text = if rows.is_empty() {
        "There are no rooms.".to_owned()
    } else {
        table(&["ROOM", "PARTICIPANTS", "TRACKS", "MAX", "POLICY"], rows)
    };
    Report { json: rooms, text }
}

pub(crate) fn room(room: Value) -> Report {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let text = described(&room, now);
    Report { json: room, text }
}

/// Describes a room, with times relative to `now` (since 1970).
fn described(room: &Value, now: Duration) -> String {
    let participants = items(room, "participants");
    let mut text = format!("Room {}: {}", self::text(room, "room"), count(participants.len()));
    for (name, head) in [("max_participants", "at most"), ("policy", "policy")] {
        if !room[name].is_null() {
            // Writing to a string does not fail.
            let _ = write!(text, ", {head} {}", shown(&room[name]));
        }
    }
    if participants.is_empty() {
        return text;
    }
    let rows = participants.iter().map(|who| {
        let receives = items(who, "receives");
        let rung = |of: &Value| format!("{} {}", self::text(of, "track"), self::text(of, "rung"));
        vec![
            shown(&who["id"]),
            shown(&who["identity"]),
            shown(&who["name"]),
            since(now.as_secs().saturating_sub(who["since"].as_u64().unwrap_or_default())),
            list(items(who, "tracks").iter().map(track)),
            list(receives.iter().map(rung)),
        ]
    });
    text.push('\n');
    text.push_str(&table(&["ID", "IDENTITY", "NAME", "SINCE", "TRACKS", "RECEIVES"], rows));
    text
}

fn count(participants: usize) -> String {
    match participants {
        0 => "nobody".to_owned(),
        1 => "1 participant".to_owned(),
        several => format!("{several} participants"),
    }
}

/// Describes a track, such as `t7 video camera, muted`.
fn track(track: &Value) -> String {
    let muted = match (track["muted"].as_bool(), track["muted_by_operator"].as_bool()) {
        (_, Some(true)) => ", muted by an operator",
        (Some(true), _) => ", muted",
        _ => "",
    };
    format!("{} {} {}{muted}", text(track, "id"), text(track, "kind"), text(track, "name"))
}

fn list(of: impl Iterator<Item = String>) -> String {
    let all: Vec<_> = of.collect();
    if all.is_empty() { "-".to_owned() } else { all.join("; ") }
}

/// Formats a duration in its largest unit, with the next smaller unit if it is not zero.
fn since(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3_600 => format!("{} min", seconds / 60),
        3_600..86_400 => format!("{} h {} min", seconds / 3_600, seconds / 60 % 60),
        _ => format!("{} d {} h", seconds / 86_400, seconds / 3_600 % 24),
    }
}

pub(crate) fn entry(room: &str, now: Value) -> Report {
    let text = match (now["locked"].as_bool(), now["lobby"].as_bool()) {
        (Some(true), _) => format!("The room {room} is locked: nobody new may enter."),
        (_, Some(true)) => format!("The room {room} has a lobby: who comes waits to be admitted."),
        _ => format!("The room {room} is open."),
    };
    Report { json: now, text }
}

pub(crate) fn policy(now: Value) -> Report {
    let of = match text(&now, "room") {
        "" => "all rooms without their own".to_owned(),
        room => format!("the room {room}"),
    };
    let text = match text(&now, "policy") {
        "" => format!("The policy of {of} is that of the configuration again."),
        policy => format!("The policy of {of} is {policy}."),
    };
    Report { json: now, text }
}

pub(crate) fn enhancer(now: Value, wanted: bool) -> Report {
    let text = match now["enabled"].as_bool() {
        Some(true) => "The enhancer runs.",
        _ if wanted => {
            "The enhancer does not run: the server was started without one (device: off)."
        }
        _ => "The enhancer is stopped: calls go on with plain video.",
    };
    Report { json: now, text: text.to_owned() }
}

pub(crate) fn muted(what: &str, now: &[Value]) -> Report {
    if now.is_empty() {
        return Report::sentence(format!("{what} publishes no sound: nothing was changed."));
    }
    let text = now.iter().map(track).collect::<Vec<_>>().join("\n");
    Report { json: json!({"tracks": now}), text }
}

pub(crate) fn drain(now: Value) -> Report {
    let seconds = now["seconds"].as_u64().unwrap_or_default();
    let text = match seconds {
        0 => "The server ends now.".to_owned(),
        _ => {
            format!("The server takes no new rooms. It ends with the last one, or in {seconds} s.")
        }
    };
    Report { json: now, text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rooms_are_a_table() {
        let report = rooms(json!({"rooms": [
            {"room": "tea", "participants": 2, "tracks": 3},
            {"room": "lectures", "participants": 11, "tracks": 1, "max_participants": 40,
             "policy": "cost-effective"}]}));
        let lines: Vec<_> =
            report.text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>()).collect();
        let expected: [Vec<&str>; 3] = [
            vec!["ROOM", "PARTICIPANTS", "TRACKS", "MAX", "POLICY"],
            vec!["tea", "2", "3", "-", "-"],
            vec!["lectures", "11", "1", "40", "cost-effective"],
        ];
        assert_eq!(lines, expected);
        assert_eq!(rooms(json!({"rooms": []})).text, "There are no rooms.");
    }

    #[test]
    fn a_room_says_who_is_in_it_and_what_each_gets() {
        let seen = json!({"room": "tea", "participants": [{"id": "p1", "name": "Ana Li", "since": 1000,
            "tracks": [{"id": "t1", "kind": "audio", "name": "microphone", "muted": true,
                "muted_by_operator": true}],
            "receives": [{"track": "t2", "rung": "h+"}]}]});
        let text = described(&seen, Duration::from_secs(4700));
        assert!(text.starts_with("Room tea: 1 participant\n"), "{text}");
        for part in ["1 h 1 min", "t1 audio microphone, muted by an operator", "t2 h+", "Ana Li"] {
            assert!(text.contains(part), "{part} is not in {text}");
        }
    }

    #[test]
    fn an_answer_without_all_servers_says_so() {
        let whole = Report::sentence("Done.".to_owned());
        assert_eq!(whole.clone().without(0), whole);
        let part = whole.without(1);
        assert!(
            part.text
                .ends_with("1 server of the cluster did not answer: what is there is missing.")
        );
        assert_eq!(part.json["silent_servers"], 1);
    }

    #[test]
    fn settings_of_a_room_are_told_where_it_has_its_own() {
        let own = json!({"room": "tea", "max_participants": 4, "policy": "cost-effective"});
        let expected = "Room tea: nobody, at most 4, policy cost-effective";
        assert_eq!(described(&own, Duration::ZERO), expected);
    }

    #[test]
    fn an_enhancer_that_cannot_run_is_told_from_one_that_was_stopped() {
        let answer = |now, wanted| enhancer(json!({"enabled": now}), wanted).text;
        assert!(answer(true, true).contains("runs."));
        assert!(answer(false, true).contains("device: off"));
        assert!(answer(false, false).contains("plain video"));
    }
}
