//! Messages to others, and what a participant says of itself.

use windlass_protocol::{Base64, ServerMessage};
use windlass_sfu::{DataContent, DataError, DataMessage, Delivery};

use super::*;

const SEND: &str = r#"{"type":"send","id":7,"topic":"chat","text":"Tea?"}"#;

fn tea() -> DataMessage {
    let content = DataContent::Text("Tea?".into());
    DataMessage { topic: "chat".into(), content, reliable: true, number: None }
}

fn attributes(key: &str, value: &str) -> Attributes {
    [(key.to_owned(), value.to_owned())].into()
}

#[test]
fn a_message_is_sent_to_all_or_to_those_it_names() {
    let (mut session, now) = inside();
    session.text(now, SEND);
    let action = Action::SendData { id: Some(7), to: None, message: tea() };
    assert_eq!(drain(&mut session), [action]);
    let text = r#"{"type":"send","topic":"pen","bytes":"AAH/","to":["p1","x9","p01x","p1"],"reliable":false,"number":9}"#;
    session.text(now, text);
    let content = DataContent::Bytes(vec![0, 1, 255].into());
    let message = DataMessage { topic: "pen".into(), content, reliable: false, number: Some(9) };
    let to = Some(vec![ParticipantId(1), ParticipantId(1)]);
    assert_eq!(drain(&mut session), [Action::SendData { id: None, to, message }]);
}

#[test]
fn who_sent_a_message_with_an_id_hears_what_became_of_it() {
    let (mut session, _) = inside();
    session.sent(Some(7), Ok(()));
    assert_eq!(drain(&mut session), [Action::Send(ServerMessage::Done { id: Some(7) })]);
    session.sent(None, Ok(()));
    assert_eq!(drain(&mut session), []);
    session.sent(Some(8), Err(DataError::Limited));
    session.sent(None, Err(DataError::Limited));
    let limited = [(ErrorCode::RateLimited, Some(8)), (ErrorCode::RateLimited, None)];
    assert_eq!(errors(&drain(&mut session)), limited);
}

#[test]
fn messages_have_a_rate() {
    let (mut session, now) = inside();
    for _ in 0..40 {
        session.text(now, SEND);
    }
    assert_eq!(errors(&drain(&mut session)), []);
    session.text(now, SEND);
    assert_eq!(errors(&drain(&mut session)), [(ErrorCode::RateLimited, Some(7))]);
    let later = now + Duration::from_secs(1);
    for _ in 0..20 {
        session.text(later, SEND);
    }
    assert_eq!(errors(&drain(&mut session)), []);
    session.text(later, SEND);
    assert_eq!(errors(&drain(&mut session)), [(ErrorCode::RateLimited, Some(7))]);
}

#[test]
fn their_bytes_have_a_rate() {
    let (mut session, now) = inside();
    let large = format!(r#"{{"type":"send","id":1,"topic":"t","text":"{}"}}"#, "x".repeat(16_384));
    for _ in 0..8 {
        session.text(now, &large);
    }
    assert_eq!(errors(&drain(&mut session)), []);
    session.text(now, &large);
    assert_eq!(errors(&drain(&mut session)), [(ErrorCode::RateLimited, Some(1))]);
    session.text(now + Duration::from_millis(251), &large);
    assert_eq!(errors(&drain(&mut session)), []);
}

#[test]
fn messages_and_attributes_need_the_grant() {
    let set = r#"{"type":"attributes","id":7,"set":{"hand":"up"}}"#;
    let without = [Grant::Publish, Grant::Subscribe, Grant::Enhance, Grant::Moderate];
    for text in [SEND, set] {
        assert_eq!(errors(&said(&without, text)), [(ErrorCode::Forbidden, Some(7))], "{text}");
        assert_eq!(errors(&said(&[Grant::Data], text)), [], "{text}");
    }
    let (mut session, now) = inside();
    session.ruling(now, &ruling(&without));
    drain(&mut session);
    session.text(now, SEND);
    assert_eq!(errors(&drain(&mut session)), [(ErrorCode::Forbidden, Some(7))]);
    let (mut session, now) = outside();
    session.text(now, SEND);
    session.text(now, set);
    let not_joined = (ErrorCode::NotJoined, Some(7));
    assert_eq!(errors(&drain(&mut session)), [not_joined, not_joined]);
}

#[test]
fn messages_of_others_are_told_with_who_sent_them() {
    let (mut session, _) = inside();
    let content = DataContent::Bytes(vec![0, 1, 255].into());
    let bytes = DataMessage { content, number: Some(9), ..tea() };
    for (seq, message) in [(4, tea()), (5, bytes)] {
        let delivery = Delivery::new(ParticipantId(1), seq, message.into());
        session.event(SfuEvent::Data(delivery), someone);
    }
    let (from, topic) = ("p1".to_owned(), "chat".to_owned());
    let text = Some("Tea?".to_owned());
    let told = ServerMessage::Data {
        from: from.clone(),
        seq: 4,
        number: None,
        topic: topic.clone(),
        text,
        bytes: None,
    };
    let bytes = Some(Base64(vec![0, 1, 255]));
    let also = ServerMessage::Data { from, seq: 5, number: Some(9), topic, text: None, bytes };
    assert_eq!(drain(&mut session), [Action::Send(told), Action::Send(also)]);
}

#[test]
fn attributes_add_up_and_a_name_may_change() {
    let (mut session, now) = inside();
    session.text(now, r#"{"type":"attributes","set":{"hand":"up"}}"#);
    let hand_up = attributes("hand", "up");
    let action = Action::SetAttributes { id: None, name: None, attributes: hand_up.clone() };
    assert_eq!(drain(&mut session), [action]);
    session.changed(None, Ok(hand_up));
    let text = r#"{"type":"attributes","id":3,"set":{"pen":"red","hand":null},"name":"Anna"}"#;
    session.text(now, text);
    let (name, pen) = (Some("Anna".to_owned()), attributes("pen", "red"));
    let action = Action::SetAttributes { id: Some(3), name, attributes: pen.clone() };
    assert_eq!(drain(&mut session), [action]);
    session.changed(Some(3), Ok(pen));
    assert_eq!(drain(&mut session), [Action::Send(ServerMessage::Done { id: Some(3) })]);
}

#[test]
fn a_change_that_is_too_much_for_the_room_is_none() {
    let (mut session, now) = inside();
    session.text(now, r#"{"type":"attributes","id":3,"set":{"hand":"up"}}"#);
    drain(&mut session);
    session.changed(Some(3), Err(DataError::Limited));
    assert_eq!(errors(&drain(&mut session)), [(ErrorCode::RateLimited, Some(3))]);
    session.text(now, r#"{"type":"attributes","set":{"pen":"red"}}"#);
    let action =
        Action::SetAttributes { id: None, name: None, attributes: attributes("pen", "red") };
    assert_eq!(drain(&mut session), [action]);
}

#[test]
fn without_the_grant_any_more_there_are_no_attributes() {
    let (mut session, now) = inside();
    session.changed(None, Ok(attributes("hand", "up")));
    session.ruling(now, &ruling(&[Grant::Data]));
    assert!(!drain(&mut session).contains(&Action::ClearAttributes));
    session.ruling(now, &ruling(&[Grant::Subscribe]));
    assert!(drain(&mut session).contains(&Action::ClearAttributes));
    session.ruling(now, &ruling(&[Grant::Data]));
    session.text(now, r#"{"type":"attributes","set":{"pen":"red"}}"#);
    let action =
        Action::SetAttributes { id: None, name: None, attributes: attributes("pen", "red") };
    assert!(drain(&mut session).contains(&action));
}

#[test]
fn each_message_with_an_id_is_answered_whatever_else_is_sent() {
    let (mut session, now) = inside();
    for _ in 0..200 {
        session.text(now, r#"{"type":"ping","time":1}"#);
    }
    drain(&mut session);
    for id in 0..200 {
        session.text(now, &SEND.replace('7', &id.to_string()));
    }
    let actions = drain(&mut session);
    let sent = actions.iter().filter_map(|action| match action {
        Action::SendData { id, .. } => Some(*id),
        _ => None,
    });
    assert!(sent.eq((0..40).map(Some)));
    let refused = errors(&actions).into_iter().filter(|(_, id)| id.is_some());
    assert!(refused.eq((40..200).map(|id| (ErrorCode::RateLimited, Some(id)))));
    session.text(now, r#"{"type":"attributes","id":7,"set":{}}"#);
    let action = Action::SetAttributes { id: Some(7), name: None, attributes: Attributes::new() };
    assert_eq!(drain(&mut session), [action]);
    // What is refused all the time ends the socket, as other floods do.
    for _ in 0..SessionConfig::default().max_excess {
        session.text(now, SEND);
    }
    assert!(drain(&mut session).iter().any(|action| matches!(action, Action::Close { .. })));
}

#[test]
fn what_a_client_says_of_itself_in_join_is_where_changes_begin() {
    let (mut session, now) = outside();
    let join = JOIN.replace('}', r#","attributes":{"hand":"up"}}"#);
    session.text(now, &join);
    let Some(Action::Join { attributes: joined, .. }) = session.poll() else { panic!("no join") };
    assert_eq!(joined, attributes("hand", "up"));
    session.joined(Ok(Entered { attributes: joined, ..entered(Grants::participant()) }));
    let Some(Action::Send(ServerMessage::Welcome(welcome))) = session.poll() else {
        panic!("no welcome");
    };
    assert_eq!(welcome.attributes, attributes("hand", "up"));
    assert_eq!(welcome.participants[0].attributes, attributes("pen", "red"));
    session.text(now, r#"{"type":"attributes","set":{"hand":null}}"#);
    let action = Action::SetAttributes { id: None, name: None, attributes: Attributes::new() };
    assert_eq!(drain(&mut session), [action]);
}

#[test]
fn a_name_that_the_token_says_stays() {
    let (mut session, now) = outside();
    session.text(now, JOIN);
    session.joined(Ok(Entered { name_is_fixed: true, ..entered(Grants::participant()) }));
    drain(&mut session);
    let text = r#"{"type":"attributes","id":3,"set":{"hand":"up"},"name":"Boss"}"#;
    session.text(now, text);
    let actions = drain(&mut session);
    assert_eq!((errors(&actions), actions.len()), (vec![(ErrorCode::Forbidden, Some(3))], 1));
    session.text(now, r#"{"type":"attributes","set":{"pen":"red"}}"#);
    let action =
        Action::SetAttributes { id: None, name: None, attributes: attributes("pen", "red") };
    assert_eq!(drain(&mut session), [action], "nothing of a refused change holds");
}

#[test]
fn changes_have_a_rate_and_attributes_a_bound_after_each() {
    let (mut session, now) = inside();
    for n in 0..8 {
        let set = format!(r#"{{"type":"attributes","set":{{"a{n}":"x","b{n}":"x"}}}}"#);
        session.text(now, &set);
        let Some(Action::SetAttributes { attributes, .. }) = session.poll() else {
            panic!("refused");
        };
        session.changed(None, Ok(attributes));
    }
    assert_eq!(drain(&mut session), []);
    session.text(now, r#"{"type":"attributes","set":{"more":"x"}}"#);
    assert_eq!(errors(&drain(&mut session)), [(ErrorCode::TooLarge, None)]);
    session.text(now, r#"{"type":"attributes","set":{"more":"x","a0":null}}"#);
    assert_eq!(errors(&drain(&mut session)), []);
    session.text(now, r#"{"type":"attributes","set":{}}"#);
    assert_eq!(errors(&drain(&mut session)), [(ErrorCode::RateLimited, None)]);
    session.text(now + Duration::from_secs(1), r#"{"type":"attributes","set":{}}"#);
    assert_eq!(errors(&drain(&mut session)), []);
}

#[test]
fn changes_of_others_are_told_unless_they_have_left() {
    let (mut session, _) = inside();
    let info = ParticipantInfo {
        name: "Bob".into(),
        attributes: attributes("hand", "up"),
        ..ParticipantInfo::default()
    };
    let changed = SfuEvent::ParticipantChanged { participant: ParticipantId(1) };
    session.event(changed.clone(), |_| Some(info.clone()));
    let told = ServerMessage::ParticipantChanged {
        participant: "p1".into(),
        name: "Bob".into(),
        attributes: attributes("hand", "up"),
    };
    assert_eq!(drain(&mut session), [Action::Send(told)]);
    session.event(changed, someone);
    assert_eq!(drain(&mut session), []);
}
