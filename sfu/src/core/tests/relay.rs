//! A room on two and three SFUs.

use std::sync::Arc;

use windlass_types::{
    ConnectionQuality, DataContent, DataMessage, Layer, Rung, TapInput, VideoCodec,
};

use super::backup::{Backup, wanted};
use super::calls::anchor_of;
use super::harness::*;
use crate::api::{Delivery, JoinOptions, TrackId, TrackInfo, TrackKind};
use crate::config::SfuConfig;
use crate::core::*;
use crate::relay::{NodeId, Relayed, RelayedData};

const MS: fn(u64) -> Duration = Duration::from_millis;

/// Nodes with all ways between them, but for those that are cut.
struct Nodes {
    harnesses: Vec<Harness>,
    cut: Vec<(usize, usize)>,
    /// How many messages of which kind each node sent.
    sent: Vec<Vec<(NodeId, Relayed)>>,
}

fn node(n: usize) -> NodeId {
    NodeId(100 + n as u64)
}

impl Nodes {
    fn new(count: usize) -> Nodes {
        let mut harnesses: Vec<_> = (0..count).map(|_| Harness::new(config())).collect();
        for (n, harness) in harnesses.iter_mut().enumerate() {
            let others: Vec<_> = (0..count).filter(|&other| other != n).map(node).collect();
            for &other in &others {
                harness.core.set_link(harness.now, other, true);
            }
            harness.core.share(harness.now, "room", &others);
        }
        Nodes { harnesses, cut: Vec::new(), sent: vec![Vec::new(); count] }
    }

    fn run(&mut self, span: Duration) {
        for _ in 0..span.as_millis() / STEP.as_millis() {
            for from in 0..self.harnesses.len() {
                self.harnesses[from].run(STEP);
                for (to, room, message) in std::mem::take(&mut self.harnesses[from].relayed) {
                    self.sent[from].push((to, message.clone()));
                    let at = (to.0 - 100) as usize;
                    if !self.cut.contains(&(from.min(at), from.max(at))) {
                        let harness = &mut self.harnesses[at];
                        harness.core.on_relayed(harness.now, node(from), &room, message);
                    }
                }
            }
        }
    }

    fn join(&mut self, at: usize, id: ParticipantId) -> (Vec<ParticipantId>, Vec<TrackInfo>) {
        let harness = &mut self.harnesses[at];
        harness.core.join(harness.now, "room", id, JoinOptions::default()).expect("joined")
    }

    /// Has somebody watch at the second node what is published at the first; the track, and who watches it.
    fn watch(&mut self) -> (TrackId, usize) {
        self.run(MS(1000));
        self.join(1, SUBSCRIBER);
        self.run(MS(100));
        let track = added(&self.harnesses[1]).expect("told of it");
        (track, self.harnesses[1].subscribe(SUBSCRIBER, track))
    }

    /// Cuts the way between two nodes, or mends it, and both notice.
    fn way(&mut self, a: usize, b: usize, up: bool) {
        self.cut.retain(|cut| *cut != (a, b));
        if !up {
            self.cut.push((a, b));
        }
        for (here, there) in [(a, b), (b, a)] {
            let harness = &mut self.harnesses[here];
            harness.core.set_link(harness.now, node(there), up);
        }
    }

    fn packets(&self, from: usize, to: usize, of: Layer) -> usize {
        let of = |m: &Relayed| matches!(m, Relayed::Packet(p) if p.layer == Some(of));
        self.sent[from].iter().filter(|(at, m)| *at == node(to) && of(m)).count()
    }

    fn asked(&self, from: usize) -> usize {
        let of = |m: &Relayed| matches!(m, Relayed::KeyFrame { .. });
        self.sent[from].iter().filter(|(_, m)| of(m)).count()
    }
}

/// Somebody publishes at the first node, and somebody watches at the second.
fn call(count: usize) -> (Nodes, TrackId, usize) {
    let mut nodes = Nodes::new(count);
    nodes.join(0, PUBLISHER);
    nodes.harnesses[0].publish();
    let (track, at) = nodes.watch();
    nodes.run(MS(3000));
    (nodes, track, at)
}

fn added(harness: &Harness) -> Option<TrackId> {
    let events = harness.events.get(&SUBSCRIBER).into_iter().flatten();
    let mut added = events.filter_map(|e| match e {
        SfuEvent::TrackAdded(info) if info.participant == PUBLISHER => Some(info.track),
        _ => None,
    });
    added.next_back()
}

#[test]
fn a_backup_is_asked_for_at_the_publishers_node_and_seen_at_another() {
    let mut nodes = Nodes::new(2);
    nodes.join(0, PUBLISHER);
    nodes.harnesses[0].codecs = &[VideoCodec::Vp9, VideoCodec::Vp8];
    let track = nodes.harnesses[0].publish();
    nodes.run(MS(1000));
    nodes.join(1, SUBSCRIBER);
    nodes.run(MS(100));
    let remote = added(&nodes.harnesses[1]).expect("told of it");
    nodes.harnesses[1].codecs = &[VideoCodec::Vp8];
    let at = nodes.harnesses[1].subscribe(SUBSCRIBER, remote);
    nodes.run(MS(2000));
    assert_eq!(wanted(&nodes.harnesses[0]), [(track, vec![VideoCodec::Vp8])]);
    let (mut backup, _) = Backup::publish(&mut nodes.harnesses[0]);
    for _ in 0..60 {
        backup.send(&mut nodes.harnesses[0]);
        nodes.run(MS(35));
    }
    let harness = &nodes.harnesses[1];
    assert!(harness.clients[at].received.len() > 30, "{}", harness.clients[at].received.len());
    assert_continuous(&harness.clients[at].received);
    assert_eq!(added(harness), Some(remote), "nobody is told of the backup");

    let publishing = &mut nodes.harnesses[0];
    publishing.core.leave(publishing.now, PUBLISHER);
    nodes.run(MS(100));
    assert!(nodes.harnesses.iter().all(|harness| harness.core.tracks.len() == 0));
}

#[test]
fn what_is_published_at_one_node_is_seen_at_another() {
    let (nodes, track, at) = call(2);
    let harness = &nodes.harnesses[1];
    let joined = SfuEvent::ParticipantJoined { participant: PUBLISHER };
    assert!(harness.events[&SUBSCRIBER].contains(&joined));
    let received = &harness.clients[at].received;
    assert!(received.len() > 100, "{}", received.len());
    assert_continuous(received);
    assert_eq!(harness.rungs(SUBSCRIBER).last().map(|r| r.0), Some(Rung::F));
    assert_eq!(harness.core.counters.relay_unknown, 0);
    // The publisher's node has one more who is there.
    let joined = SfuEvent::ParticipantJoined { participant: SUBSCRIBER };
    assert!(nodes.harnesses[0].events[&PUBLISHER].contains(&joined));
    assert!(nodes.asked(1) <= 3, "{} key frames asked for", nodes.asked(1));
    assert!(harness.core.tracks.get(track).is_some());
}

#[test]
fn who_joins_later_finds_what_others_have_at_other_nodes() {
    let (mut nodes, track, _) = call(2);
    let (present, tracks) = nodes.join(1, ParticipantId(3));
    assert_eq!(present, [SUBSCRIBER, PUBLISHER]);
    assert_eq!(tracks.iter().map(|t| t.track).collect::<Vec<_>>(), [track]);
}

#[test]
fn each_track_goes_once_to_each_node_and_is_not_sent_on() {
    let (mut nodes, track, _) = call(3);
    nodes.join(2, ParticipantId(5));
    let (_, second) = nodes.join(1, ParticipantId(3));
    assert_eq!(second[0].track, track);
    nodes.harnesses[1].subscribe(ParticipantId(3), track);
    nodes.run(MS(1000));
    nodes.sent.iter_mut().for_each(Vec::clear);
    nodes.run(MS(1000));
    // Two packets every 35 ms, whoever watches.
    assert!(
        (54..=60).contains(&nodes.packets(0, 1, Layer::F)),
        "{}",
        nodes.packets(0, 1, Layer::F)
    );
    assert_eq!(nodes.packets(1, 2, Layer::F) + nodes.packets(1, 0, Layer::F), 0);
}

#[test]
fn layers_that_nobody_takes_at_another_node_are_not_sent_there() {
    let (mut nodes, track, _) = call(2);
    let harness = &mut nodes.harnesses[1];
    harness.core.set_max_rung(harness.now, SUBSCRIBER, track, Rung::Q);
    nodes.run(MS(8000));
    nodes.sent[0].clear();
    nodes.run(MS(1000));
    assert_eq!(nodes.packets(0, 1, Layer::F), 0);
    assert!(nodes.packets(0, 1, Layer::Q) > 50);
    let harness = &mut nodes.harnesses[1];
    harness.core.set_max_rung(harness.now, SUBSCRIBER, track, Rung::F);
    nodes.run(MS(2000));
    assert_eq!(nodes.harnesses[1].rungs(SUBSCRIBER).last().map(|r| r.0), Some(Rung::F));
}

#[test]
fn anchors_are_made_once_and_reach_those_at_another_node() {
    let (mut nodes, track, at) = call(2);
    let harness = &mut nodes.harnesses[1];
    harness.core.set_max_rung(harness.now, SUBSCRIBER, track, Rung::QPlus);
    nodes.run(MS(1500));
    assert!(nodes.harnesses[1].taps.is_empty(), "it is tapped where it is published");
    assert_eq!(nodes.harnesses[1].rungs(SUBSCRIBER).last().map(|r| r.0), Some(Rung::QPlus));
    let frame = nodes.harnesses[0].last_tapped();
    let harness = &mut nodes.harnesses[0];
    harness.core.on_enhancer_output(harness.now, anchor_of(&frame, harness.now));
    nodes.run(MS(300));
    let messages = &nodes.harnesses[1].clients[at].messages;
    assert!(!messages.is_empty(), "{:?}", nodes.harnesses[1].core.counters);
    assert_eq!(nodes.harnesses[1].core.counters.anchors_out, 1);
    // Who begins to watch is to have one that rests on no other.
    assert!(nodes.harnesses[0].requests.iter().any(is_key_anchor_request));
    // Nobody wants them any more.
    let harness = &mut nodes.harnesses[1];
    harness.core.set_max_rung(harness.now, SUBSCRIBER, track, Rung::Q);
    nodes.run(MS(1000));
    assert!(matches!(nodes.harnesses[0].taps.last(), Some(TapInput::Stop { .. })));
}

#[test]
fn stills_of_an_encrypted_track_reach_those_at_another_node() {
    let mut nodes = Nodes::new(2);
    for harness in &mut nodes.harnesses {
        harness.core.set_enhancement(harness.now, false);
    }
    let publishers = &mut nodes.harnesses[0];
    publishers.encrypted = true;
    publishers
        .core
        .join(publishers.now, "room", PUBLISHER, JoinOptions::default())
        .expect("joined");
    publishers.publish();
    publishers.camera.layers = vec![Layer::Q];
    publishers.offer_stills();
    let (_, at) = nodes.watch();
    nodes.run(MS(6000));
    let payload = vec![0xa5; 3000];
    nodes.harnesses[0].send_still(&payload);
    nodes.run(MS(400));
    let came = nodes.harnesses[1].clients[at].anchor().expect("a still");
    assert_eq!(came.payload, payload);
    assert!(nodes.harnesses.iter().all(|h| h.taps.is_empty() && h.requests.is_empty()));
}

#[test]
fn where_the_publishers_node_has_no_enhancer_its_tracks_are_plain() {
    let (mut nodes, track, _) = call(2);
    let harness = &mut nodes.harnesses[0];
    harness.core.set_enhancement(harness.now, false);
    let harness = &mut nodes.harnesses[1];
    harness.core.set_max_rung(harness.now, SUBSCRIBER, track, Rung::QPlus);
    nodes.run(MS(1500));
    assert_eq!(nodes.harnesses[1].rungs(SUBSCRIBER).last().map(|r| r.0), Some(Rung::Q));
    assert!(nodes.harnesses[0].taps.is_empty());
}

#[test]
fn a_track_that_is_muted_or_removed_is_so_at_all_nodes() {
    let (mut nodes, track, at) = call(2);
    let own =
        nodes.harnesses[0].core.tracks.iter().next().map(|t| t.info.track).expect("published");
    let harness = &mut nodes.harnesses[0];
    harness.core.set_muted(harness.now, PUBLISHER, own, true);
    nodes.run(MS(200));
    let muted = SfuEvent::TrackMuted { track, muted: true };
    assert!(nodes.harnesses[1].events[&SUBSCRIBER].contains(&muted));
    let harness = &mut nodes.harnesses[0];
    harness.core.set_muted(harness.now, PUBLISHER, own, false);
    nodes.harnesses[1].clients[at].received.clear();
    nodes.harnesses[0].camera.key_wanted = true;
    nodes.run(MS(1000));
    assert!(nodes.harnesses[1].clients[at].received.len() > 20);
    let harness = &mut nodes.harnesses[0];
    harness.core.leave(harness.now, PUBLISHER);
    nodes.run(MS(100));
    let events = &nodes.harnesses[1].events[&SUBSCRIBER];
    assert!(events.ends_with(&[
        SfuEvent::TrackRemoved { track },
        SfuEvent::ParticipantLeft { participant: PUBLISHER }
    ]));
    assert!(nodes.harnesses[1].core.tracks.len() == 0);
}

#[test]
fn whoever_is_cut_off_is_gone_and_comes_again_with_the_way() {
    let (mut nodes, _, _) = call(2);
    nodes.way(0, 1, false);
    nodes.run(MS(200));
    let left = SfuEvent::ParticipantLeft { participant: PUBLISHER };
    assert!(nodes.harnesses[1].events[&SUBSCRIBER].contains(&left));
    assert!(nodes.harnesses[1].core.tracks.len() == 0);
    nodes.sent[0].clear();
    nodes.run(MS(500));
    assert!(nodes.sent[0].is_empty(), "nothing is sent to nobody");
    nodes.way(0, 1, true);
    nodes.run(MS(200));
    let track = added(&nodes.harnesses[1]).expect("there again");
    assert!(nodes.harnesses[1].core.tracks.get(track).is_some());
    assert_eq!(nodes.harnesses[1].core.tracks.len(), 1);
}

#[test]
fn a_node_without_participants_is_sent_nothing() {
    let (mut nodes, _, _) = call(2);
    let harness = &mut nodes.harnesses[1];
    harness.core.leave(harness.now, SUBSCRIBER);
    nodes.run(MS(100));
    nodes.sent[0].clear();
    nodes.run(MS(500));
    assert!(nodes.sent[0].is_empty(), "{}", nodes.sent[0].len());
    assert!(nodes.harnesses[1].core.tracks.len() == 0 && nodes.harnesses[1].core.rooms.len() == 0);
    nodes.join(1, SUBSCRIBER);
    nodes.run(MS(100));
    assert_eq!(nodes.harnesses[1].core.tracks.len(), 1);
}

#[test]
fn rooms_that_are_not_shared_and_loopbacks_stay_where_they_are() {
    let mut nodes = Nodes::new(2);
    let harness = &mut nodes.harnesses[0];
    harness.core.join(harness.now, "other", PUBLISHER, JoinOptions::default()).expect("joined");
    let alone = JoinOptions { loopback: true, ..JoinOptions::default() };
    harness.core.join(harness.now, "alone", ParticipantId(7), alone).expect("joined");
    nodes.run(MS(100));
    assert!(nodes.sent[0].is_empty());
    let harness = &mut nodes.harnesses[0];
    harness.core.on_relayed(harness.now, node(1), "alone", Relayed::Begin);
    nodes.run(MS(100));
    assert!(nodes.sent[0].is_empty(), "a loopback is nobody else's");
}

#[test]
fn a_node_gets_no_room_that_is_not_shared_with_it_until_it_is() {
    let (mut nodes, _, _) = call(2);
    let harness = &mut nodes.harnesses[0];
    let stranger = node(1);
    harness.core.share(harness.now, "room", &[]);
    nodes.run(MS(100));
    nodes.sent[0].clear();
    let harness = &mut nodes.harnesses[0];
    harness.core.on_relayed(harness.now, stranger, "room", Relayed::Begin);
    nodes.run(MS(500));
    assert!(nodes.sent[0].is_empty(), "{}", nodes.sent[0].len());
    // It was only early.
    let harness = &mut nodes.harnesses[0];
    harness.core.share(harness.now, "room", &[stranger]);
    nodes.run(MS(500));
    assert!(nodes.packets(0, 1, Layer::Q) > 10);
}

#[test]
fn senseless_messages_of_another_node_change_nothing() {
    let (mut nodes, _, at) = call(2);
    let harness = &mut nodes.harnesses[1];
    let (track, layer) = (TrackId(999), Layer::H);
    let packet = crate::relay::RelayedPacket {
        track,
        layer: Some(layer),
        seq: u64::MAX,
        timestamp: 0,
        marker: true,
        level: Some(127),
        voice: None,
        blocks: Some(255),
        codec: windlass_types::VideoCodec::Vp9,
        frame: None,
        payload: vec![0xff; 40].into(),
    };
    let known = harness.core.relayed_tracks().next().expect("known");
    let told = crate::relay::RelayedTrack {
        track,
        participant: SUBSCRIBER,
        kind: TrackKind::Audio,
        name: String::new(),
        muted: false,
        encrypted: false,
        backup_of: None,
    };
    for message in [
        Relayed::Packet(packet.clone()),
        Relayed::Packet(crate::relay::RelayedPacket { track: known, ..packet.clone() }),
        Relayed::Packet(crate::relay::RelayedPacket { track: known, layer: None, ..packet }),
        Relayed::Joined { participant: SUBSCRIBER },
        Relayed::Left { participant: SUBSCRIBER },
        Relayed::Track(told),
        Relayed::KeyFrame { track, layer },
        Relayed::KeyAnchor { track },
        Relayed::Layers { track, wanted: [false; 3] },
        Relayed::TrackRemoved { track },
    ] {
        harness.core.on_relayed(harness.now, node(0), "room", message);
    }
    assert_eq!((harness.core.peers.len(), harness.core.tracks.len()), (1, 1));
    assert_eq!(harness.core.counters.relay_refused, 2);
    harness.clients[at].received.clear();
    nodes.run(MS(1000));
    assert!(nodes.harnesses[1].clients[at].received.len() > 20);
}

fn message(text: &str) -> DataMessage {
    let content = DataContent::Text(text.to_owned());
    DataMessage { topic: "chat".to_owned(), content, reliable: true, number: None }
}

/// The messages of the publisher that somebody got, with their numbers.
fn heard(harness: &Harness, id: ParticipantId) -> Vec<(u32, String)> {
    let events = harness.events.get(&id).into_iter().flatten();
    let of = |event: &SfuEvent| match event {
        SfuEvent::Data(Delivery { from: PUBLISHER, seq, message, .. }) => match &message.content {
            DataContent::Text(text) => Some((*seq, text.clone())),
            DataContent::Bytes(_) => None,
        },
        _ => None,
    };
    events.filter_map(of).collect()
}

#[test]
fn messages_reach_those_at_other_nodes_once_and_in_their_order() {
    let (near, far) = (ParticipantId(3), ParticipantId(4));
    let mut nodes = Nodes::new(3);
    for (at, id) in [(0, PUBLISHER), (0, near), (1, SUBSCRIBER), (2, far)] {
        nodes.join(at, id);
    }
    nodes.run(MS(100));
    let mut send = |to: Option<&[ParticipantId]>, text: &str| {
        let harness = &mut nodes.harnesses[0];
        harness.core.send_data(harness.now, PUBLISHER, to, message(text)).expect("sent");
    };
    send(None, "a");
    send(Some(&[far, near]), "b");
    send(None, "c");
    send(Some(&[ParticipantId(99)]), "d");
    nodes.run(MS(100));
    let told = |all: &[(u32, &str)]| -> Vec<(u32, String)> {
        all.iter().map(|(seq, text)| (*seq, (*text).to_owned())).collect()
    };
    let (all, some) = (told(&[(1, "a"), (2, "b"), (3, "c")]), told(&[(1, "a"), (3, "c")]));
    assert_eq!(heard(&nodes.harnesses[0], near), all);
    assert_eq!(heard(&nodes.harnesses[2], far), all);
    assert_eq!(heard(&nodes.harnesses[1], SUBSCRIBER), some);
    assert_eq!(heard(&nodes.harnesses[0], PUBLISHER), []);
    let sent = |m: &&(NodeId, Relayed)| matches!(m.1, Relayed::Data(_));
    assert_eq!(nodes.sent[0].iter().filter(sent).count(), 5, "to each node what it needs");
    assert_eq!(nodes.sent[1].iter().filter(sent).count(), 0, "nobody passes on what is another's");
}

#[test]
fn a_node_speaks_for_its_own_participants_only() {
    let mut nodes = Nodes::new(3);
    nodes.join(0, PUBLISHER);
    nodes.join(1, SUBSCRIBER);
    nodes.run(MS(100));
    let harness = &mut nodes.harnesses[1];
    harness.events.clear();
    let message = Arc::new(message("not mine"));
    let data = RelayedData { from: PUBLISHER, seq: 1, to: None, message };
    harness.core.on_relayed(harness.now, node(2), "room", Relayed::Data(data));
    let changed = Relayed::Changed { participant: PUBLISHER };
    harness.core.on_relayed(harness.now, node(2), "room", changed);
    nodes.run(MS(100));
    assert_eq!(nodes.harnesses[1].events.get(&SUBSCRIBER), None);
    assert_eq!(nodes.harnesses[1].core.counters.relay_unknown, 1);
}

#[test]
fn a_change_of_a_participant_is_told_at_other_nodes() {
    let mut nodes = Nodes::new(2);
    nodes.join(0, PUBLISHER);
    nodes.join(1, SUBSCRIBER);
    nodes.run(MS(100));
    let harness = &mut nodes.harnesses[0];
    harness.core.participant_changed(harness.now, PUBLISHER);
    nodes.run(MS(100));
    let told = SfuEvent::ParticipantChanged { participant: PUBLISHER };
    assert!(nodes.harnesses[1].events[&SUBSCRIBER].contains(&told));
    assert!(!nodes.harnesses[0].events.get(&PUBLISHER).is_some_and(|all| all.contains(&told)));
}

#[test]
fn what_goes_to_other_nodes_is_bounded_also_within_each_ones_own_rate() {
    let senders: Vec<_> = (200..500).map(ParticipantId).collect();
    let limits = crate::Limits { participants_per_room: 400, ..config().limits };
    let mut harness = Harness::new(SfuConfig { limits, ..config() });
    for &id in &senders {
        harness.core.join(harness.now, "room", id, JoinOptions::default()).expect("joined");
    }
    let nodes = [node(1), node(2)];
    for at in nodes {
        harness.core.set_link(harness.now, at, true);
    }
    harness.core.share(harness.now, "room", &nodes);
    for at in nodes {
        harness.core.on_relayed(harness.now, at, "room", Relayed::Begin);
        let joined = Relayed::Joined { participant: ParticipantId(at.0) };
        harness.core.on_relayed(harness.now, at, "room", joined);
    }
    let to = nodes.map(|at| ParticipantId(at.0));
    let mut sent = 0;
    for &id in senders.iter().cycle().take(300 * 10) {
        sent +=
            usize::from(harness.core.send_data(harness.now, id, Some(&to), message("x")).is_ok());
    }
    // 2,000 of both nodes at once, and a little for their bytes.
    assert!((900..=1001).contains(&sent), "{sent}");
}

#[test]
fn qualities_of_connections_are_known_on_all_nodes_also_to_who_comes_later() {
    let qualities = |nodes: &Nodes, at: usize, id: ParticipantId| {
        let events = nodes.harnesses[at].events.get(&id).into_iter().flatten();
        let of = events.filter_map(|event| match event {
            SfuEvent::Quality { participant: PUBLISHER, quality } => Some(*quality),
            _ => None,
        });
        of.collect::<Vec<_>>()
    };
    let (mut nodes, ..) = call(2);
    nodes.run(MS(8000));
    assert_eq!(qualities(&nodes, 1, SUBSCRIBER), [ConnectionQuality::Good]);
    nodes.harnesses[0].camera.layers = vec![Layer::Q];
    nodes.run(MS(6000));
    assert_eq!(qualities(&nodes, 1, SUBSCRIBER)[1..], [ConnectionQuality::Poor]);
    let newcomer = ParticipantId(9);
    nodes.join(1, newcomer);
    nodes.run(MS(50));
    assert_eq!(qualities(&nodes, 1, newcomer), [ConnectionQuality::Poor]);
    // Nothing is kept of who has left.
    let first = &mut nodes.harnesses[0];
    first.core.leave(first.now, PUBLISHER);
    nodes.run(MS(50));
    let known = nodes.harnesses[1].core.known_qualities("room");
    assert!(known.iter().all(|(id, _)| *id != PUBLISHER), "{known:?}");
}
