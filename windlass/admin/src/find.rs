//! Finds participants and tracks of a room by the names that people give them.

use serde_json::Value;

use crate::client::AdminError;

/// Items of the array `name`; empty if there is no such array.
pub(crate) fn items<'a>(of: &'a Value, name: &str) -> &'a [Value] {
    of[name].as_array().map_or(&[], Vec::as_slice)
}

/// Text of the field `name`; empty if there is no such text.
pub(crate) fn text<'a>(of: &'a Value, name: &str) -> &'a str {
    of[name].as_str().unwrap_or_default()
}

/// Finds a participant of the room by its id, its identity, or a display name that no other has.
pub(crate) fn participant<'a>(room: &'a Value, name: &str) -> Result<&'a Value, AdminError> {
    for key in ["id", "identity", "name"] {
        let called = |who: &&Value| text(who, key) == name;
        let found: Vec<_> = items(room, "participants").iter().filter(called).collect();
        match found[..] {
            [] => {}
            [one] => return Ok(one),
            _ => {
                let ids: Vec<_> = found.iter().map(|who| text(who, "id")).collect();
                let (name, ids) = (name.to_owned(), ids.join(", "));
                return Err(AdminError::Ambiguous { name, count: found.len(), ids });
            }
        }
    }
    Err(AdminError::Unknown { room: text(room, "room").to_owned(), name: name.to_owned() })
}

/// Finds tracks by a track's id, or by a participant: then all of its audio tracks.
pub(crate) fn tracks(room: &Value, name: &str) -> Result<Vec<String>, AdminError> {
    let of = |who: &'_ Value, wanted: &dyn Fn(&Value) -> bool| -> Vec<String> {
        let tracks = items(who, "tracks").iter().filter(|track| wanted(track));
        tracks.map(|track| text(track, "id").to_owned()).collect()
    };
    let all = items(room, "participants").iter();
    let by_id: Vec<String> =
        all.flat_map(|who| of(who, &|track| text(track, "id") == name)).collect();
    if !by_id.is_empty() {
        return Ok(by_id);
    }
    let who = participant(room, name)?;
    Ok(of(who, &|track| text(track, "kind") == "audio"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn room() -> Value {
        json!({"room": "tea", "participants": [
            {"id": "p1", "identity": "ana", "name": "Ana", "tracks": [
                {"id": "t1", "kind": "audio"}, {"id": "t2", "kind": "video"}]},
            {"id": "p2", "identity": "bo", "name": "Bo", "tracks": []},
            {"id": "p3", "name": "Bo", "tracks": [{"id": "t3", "kind": "video"}]}]})
    }

    #[test]
    fn participants_are_found_by_id_then_identity_then_name() {
        let room = room();
        for (name, id) in [("p1", "p1"), ("ana", "p1"), ("Ana", "p1"), ("bo", "p2"), ("p3", "p3")] {
            assert_eq!(participant(&room, name).unwrap()["id"], id, "{name}");
        }
    }

    #[test]
    fn a_name_that_several_have_is_refused_with_their_ids() {
        let error = participant(&room(), "Bo").unwrap_err().to_string();
        assert!(error.contains("(p2, p3)"), "{error}");
        assert!(matches!(participant(&room(), "Cy"), Err(AdminError::Unknown { .. })));
    }

    #[test]
    fn a_participant_stands_for_its_audio_tracks() {
        assert_eq!(tracks(&room(), "ana").unwrap(), ["t1"]);
        assert_eq!(tracks(&room(), "t3").unwrap(), ["t3"]);
        assert!(tracks(&room(), "p3").unwrap().is_empty());
        assert!(tracks(&room(), "t9").is_err());
    }
}
