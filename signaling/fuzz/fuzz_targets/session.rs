//! One client's socket: texts of any content at any time, and any answers of the shell. The target asserts that there
//! is no panic, that the list of actions stays bounded, and that messages to the client can be parsed.

#![no_main]
// Some of the types that have defaults here are not exported.
#![allow(missing_docs, clippy::default_trait_access)]

use std::time::{Duration, Instant};

use libfuzzer_sys::fuzz_target;
use windlass_sfu::{Answer, DataError, JoinError, ParticipantId, TrackId};
use windlass_signaling::access::Grants;
use windlass_signaling::rights::Ruling;
use windlass_signaling::session::{Action, EnterError, Entered, Session, SessionConfig};

/// Maximum number of actions that one input may cause.
const MAX_ACTIONS: usize = 64;

fuzz_target!(|data: &[u8]| {
    let mut now = Instant::now();
    let mut session = Session::new(SessionConfig::default(), now);
    for line in data.split(|&b| b == b'\n') {
        let Some((&how, text)) = line.split_first() else { continue };
        now += Duration::from_millis(u64::from(how & 0x1f) * 20);
        match how >> 5 {
            0 => session.binary(now),
            1 => session.heard(now),
            2 => session.unreadable(how & 1 == 0),
            3 => session.tick(now),
            _ => session.text(now, &String::from_utf8_lossy(text)),
        }
        let mut done = 0;
        while let Some(action) = session.poll() {
            done += 1;
            assert!(done < MAX_ACTIONS, "it does not end");
            match action {
                Action::Join { .. } => session.joined(if how & 1 == 0 {
                    Ok(Entered {
                        id: ParticipantId(7),
                        identity: None,
                        name_is_fixed: how & 2 == 0,
                        attributes: Default::default(),
                        ruling: Ruling {
                            denied: None,
                            grants: Grants::participant(),
                            entry: Default::default(),
                            recording: how & 4 == 0,
                            waiting: Default::default(),
                        },
                        seat: None,
                        participants: Vec::new(),
                        tracks: Vec::new(),
                        ice: Default::default(),
                        others: Vec::new(),
                    })
                } else {
                    Err(EnterError::Join(JoinError::RoomFull))
                }),
                Action::SendData { id, .. } => {
                    session.sent(id, if how & 1 == 0 { Ok(()) } else { Err(DataError::Limited) });
                }
                Action::SetAttributes { id, attributes, .. } => {
                    let refused = Err(DataError::Limited);
                    session.changed(id, if how & 1 == 0 { Ok(attributes) } else { refused });
                }
                Action::Offer { id, offer } => {
                    let tracks = offer
                        .publish
                        .iter()
                        .enumerate()
                        .map(|(n, p)| (p.mid.clone(), TrackId(n as u64)));
                    let answer = Answer { sdp: "v=0".into(), tracks: tracks.collect() };
                    session.answered(id, Ok(answer));
                }
                _ => {}
            }
        }
    }
});
