//! Session descriptions with lists of what is in them, of one participant after another and again: no panic, and what
//! is refused leaves the next one alone.

#![no_main]
#![allow(missing_docs)]

use libfuzzer_sys::fuzz_target;
use windlass_sfu::{JoinOptions, TrackKind, Offer, ParticipantId, Publish, Subscribe, TrackId};
use windlass_sfu_fuzz::{Bytes, Call};

fuzz_target!(|data: &[u8]| {
    let mut bytes = Bytes(data);
    let mut call = Call::new();
    for id in 1..=3 {
        let joined = call.core.join(call.now, "room", ParticipantId(id), JoinOptions::default());
        joined.expect("joined");
    }
    for _ in 0..6 {
        let (Some(who), Some(lists)) = (bytes.byte(), bytes.byte()) else { break };
        // All that is left, up to a mark, so that long descriptions fit.
        let end = bytes.0.iter().position(|&b| b == 0).unwrap_or(bytes.0.len());
        let (sdp, rest) = bytes.0.split_at(end);
        bytes.0 = rest.get(1..).unwrap_or_default();
        let mids = || (0..4u8).map(|n| n.to_string());
        let publish = mids().filter(|_| lists & 1 != 0).map(|mid| Publish {
            kind: if lists & 2 == 0 { TrackKind::Video } else { TrackKind::Audio },
            name: "x".into(),
            max: None,
            encrypted: lists & 8 != 0,
            backup_of: (lists & 16 != 0 && mid != "0").then(|| "0".to_owned()),
            mid,
        });
        let subscribe = mids().filter(|_| lists & 4 != 0).map(|mid| {
            let track = TrackId(u64::from(lists >> 4));
            Subscribe { mid, track, max: None }
        });
        let (publish, subscribe) = (publish.collect(), subscribe.collect());
        let offer = Offer { sdp: String::from_utf8_lossy(sdp).into_owned(), publish, subscribe };
        let _ = call.core.offer(call.now, ParticipantId(u64::from(who % 3) + 1), &offer);
        call.deliver();
    }
    assert_eq!(call.core.stats().participants, 3);
    // The SFU refuses what the stack would refuse, before the stack reads it.
    assert_eq!(call.core.counters.offers_failed, 0);
});
