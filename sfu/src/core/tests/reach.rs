//! Clients that come by TCP, that lose their path and take another, and what they say of their own addresses.

use crate::api::JoinOptions;
use str0m::Output as RtcOutput;

use super::harness::*;
use crate::api::{Offer, Subscribe};
use crate::core::*;

fn joined(harness: &mut Harness, id: ParticipantId) {
    harness.core.join(harness.now, "room", id, JoinOptions::default()).expect("joined");
}

#[test]
fn a_call_goes_by_tcp_where_there_is_no_udp() {
    let mut harness = Harness::new(config());
    harness.core.set_tcp_candidates(vec![harness.sfu]);
    harness.by_tcp = true;
    joined(&mut harness, PUBLISHER);
    let track = harness.publish();
    harness.run(Duration::from_secs(2));
    joined(&mut harness, SUBSCRIBER);
    let at = harness.subscribe(SUBSCRIBER, track);
    harness.run(Duration::from_secs(3));
    assert_eq!(harness.core.stats().connected, 2);
    assert!(harness.clients[at].received.len() > 100);
    assert_continuous(&harness.clients[at].received);
    assert!(harness.core.routes.addresses().all(|remote| remote.via == Via::Tcp));
}

#[test]
fn a_session_of_media_alone_stays_without_checks() {
    // For 40 s; the stack gives others up after 15.
    for (media_only, connected) in [(true, 1), (false, 0)] {
        let mut harness = Harness::new(config());
        let options = JoinOptions { media_only, ..JoinOptions::default() };
        harness.core.join(harness.now, "room", PUBLISHER, options).expect("joined");
        harness.publish();
        harness.run(Duration::from_secs(2));
        assert_eq!(harness.core.stats().connected, 1);
        harness.clients[0].checks_end_here = true;
        harness.run(Duration::from_secs(40));
        assert_eq!(harness.core.stats().connected, connected, "media alone: {media_only}");
    }
}

#[test]
fn answers_name_tcp_only_where_it_is_listened_for_and_udp_first() {
    let mut harness = Harness::new(config());
    let candidates = |harness: &mut Harness| {
        joined(harness, PUBLISHER);
        harness.client(PUBLISHER);
        let mut api = harness.clients.last_mut().expect("client").rtc.sdp_api();
        api.add_channel("control".into());
        let (sdp, _) = api.apply().expect("offer");
        let offer = Offer { sdp: sdp.to_sdp_string(), publish: Vec::new(), subscribe: Vec::new() };
        let answer = harness.core.offer(harness.now, PUBLISHER, &offer).expect("answer").sdp;
        harness.core.leave(harness.now, PUBLISHER);
        let lines = answer.lines().filter_map(|l| l.strip_prefix("a=candidate:"));
        lines.map(|l| l.split(' ').skip(2).map(str::to_owned).collect()).collect::<Vec<Vec<_>>>()
    };
    assert_eq!(candidates(&mut harness).len(), 1);
    harness.core.set_tcp_candidates(vec!["192.0.2.1:443".parse().expect("address")]);
    let told = candidates(&mut harness);
    let of = |n: usize| (told[n][0].as_str(), told[n][2..4].join(":"));
    assert_eq!(of(0), ("udp", "192.0.2.1:7881".to_owned()));
    assert_eq!(of(1), ("tcp", "192.0.2.1:443".to_owned()));
    assert!(told[1].join(" ").contains("typ host tcptype passive"), "{told:?}");
    let priority = |n: usize| told[n][1].parse::<u32>().expect("priority");
    assert!(priority(0) > priority(1));
}

#[test]
fn one_address_may_be_two_clients_by_two_protocols() {
    let (mut harness, _, at) = call();
    let (here, datagram) = (harness.clients[at].address, [0x80; 40]);
    harness.core.set_tcp_candidates(vec![harness.sfu]);
    let before = harness.core.counters;
    harness.core.datagram(harness.now, here, &datagram);
    assert_eq!(harness.core.counters.datagrams_unknown, before.datagrams_unknown);
    harness.core.datagram(harness.now, RemoteAddr::tcp(here), &datagram);
    assert_eq!(harness.core.counters.datagrams_unknown, before.datagrams_unknown + 1);
}

#[test]
fn a_client_whose_nat_gives_it_another_address_is_sent_there_with_its_next_check() {
    let (mut harness, _, at) = call();
    let moved = harness.core.counters.paths_moved;
    harness.clients[at].address.set_port(4999);
    let before = harness.clients[at].received.len();
    harness.run(Duration::from_secs(4));
    let frames = (harness.clients[at].received.len() - before) / 2;
    // The client checks every two and a half seconds or so.
    assert!(frames > 30, "{frames} of about 114");
    assert_eq!(harness.core.counters.paths_moved, moved + 1);
    harness.run(Duration::from_secs(20));
    assert_eq!(harness.core.stats().connected, 2);
}

#[test]
fn a_client_that_moves_gets_a_key_frame_without_asking() {
    let (mut harness, _, at) = call();
    harness.run(Duration::from_secs(4));
    let asked = harness.core.counters.keyframe_requests_out;
    harness.clients[at].address.set_port(4999);
    harness.run(Duration::from_secs(4));
    let counters = harness.core.counters;
    assert_eq!(counters.keyframe_requests_in, 0);
    assert_eq!(counters.keyframe_requests_out, asked + 1);
}

/// The next connectivity check that a client would send.
fn check_of(harness: &mut Harness, at: usize) -> Vec<u8> {
    loop {
        harness.now += STEP;
        let rtc = &mut harness.clients[at].rtc;
        rtc.handle_input(Input::Timeout(harness.now)).expect("client");
        let sent = std::iter::from_fn(|| match rtc.poll_output().expect("client") {
            RtcOutput::Timeout(_) => None,
            other => Some(other),
        });
        let mut checks = sent.filter_map(|output| match output {
            RtcOutput::Transmit(t) if t.contents.starts_with(&[0, 1]) => Some(t.contents.to_vec()),
            _ => None,
        });
        if let Some(request) = checks.next() {
            return request;
        }
    }
}

#[test]
fn an_address_at_which_somebody_receives_cannot_be_taken() {
    let (mut harness, _, at) = call();
    let (victim, attacker) = (harness.clients[at].address, 1 - at);
    let before = harness.clients[at].received.len();
    for _ in 0..4 {
        let request = check_of(&mut harness, attacker);
        harness.run(Duration::from_secs(1));
        harness.core.datagram(harness.now, victim, &request);
    }
    assert!(harness.clients[at].received.len() > before + 150);
    assert_eq!(harness.core.counters.paths_moved, 0);
}

#[test]
fn a_client_cannot_come_from_addresses_without_end() {
    let (mut harness, _, at) = call();
    // As it would be seen on its way, from everywhere.
    let request = check_of(&mut harness, at);
    let (here, moved) = (harness.clients[at].address, harness.core.counters.paths_moved);
    harness.core.datagram(harness.now, here, &request);
    for n in 0..3000_u16 {
        let from = SocketAddr::from(([198, 51, 100, (n % 250) as u8], 1000 + n));
        harness.core.datagram(harness.now, from, &request);
        harness.deliver();
    }
    let counters = harness.core.counters;
    assert!((1990..2010).contains(&counters.paths_refused), "{}", counters.paths_refused);
    assert!(harness.core.routes.addresses().len() < 40);
    // It was sent nothing but answers there, and goes on where it is.
    assert_eq!(counters.paths_moved, moved);
    let before = harness.clients[at].received.len();
    harness.run(Duration::from_secs(4));
    assert!(harness.clients[at].received.len() > before + 150);
    assert_eq!(harness.core.stats().connected, 2);
}

#[test]
fn a_client_that_restarts_ice_keeps_its_call_and_is_found_by_either_name_meanwhile() {
    let (mut harness, _, at) = call();
    let old = harness.clients[at].address;
    let mut api = harness.clients[at].rtc.sdp_api();
    api.ice_restart(true);
    let (sdp, pending) = api.apply().expect("offer");
    let subscribe: Vec<_> = harness
        .core
        .peers
        .get(SUBSCRIBER)
        .expect("it is there")
        .slots
        .iter()
        .map(|slot| Subscribe {
            mid: slot.mid.to_string(),
            track: slot.track.expect("track"),
            max: None,
        })
        .collect();
    let offer = Offer { sdp: sdp.to_sdp_string(), publish: Vec::new(), subscribe };
    let answer = harness.core.offer(harness.now, SUBSCRIBER, &offer).expect("answer");
    assert_eq!(harness.core.counters.ice_restarts, 1);
    assert_eq!(
        harness.core.peers.get(SUBSCRIBER).expect("it is there").link.paths.ufrags().len(),
        2
    );
    let ufrags = harness.core.peers.get(SUBSCRIBER).expect("it is there").link.paths.ufrags();
    assert!(ufrags.iter().all(|u| harness.core.routes.by_ufrag(u) == Some(SUBSCRIBER)));
    // Until the client knows of the answer, media goes on where it went.
    let before = harness.clients[at].received.len();
    harness.run(Duration::from_millis(500));
    assert!(harness.clients[at].received.len() > before + 20);
    // Then it has another address.
    harness.clients[at].address.set_port(4998);
    harness.accept(at, pending, &answer);
    let before = harness.clients[at].received.len();
    harness.run(Duration::from_secs(3));
    assert!(harness.clients[at].received.len() > before + 120);
    assert_eq!(harness.core.stats().connected, 2);
    let address = harness.clients[at].address.into();
    assert_eq!(harness.core.routes.by_address(address), Some(SUBSCRIBER));
    assert_ne!(harness.clients[at].address, old);
    let gone = |events: &Vec<SfuEvent>| {
        events
            .iter()
            .any(|e| matches!(e, SfuEvent::Disconnected(_) | SfuEvent::TrackRemoved { .. }))
    };
    assert!(!harness.events.values().any(gone));
}

#[test]
fn a_client_that_says_its_addresses_by_names_is_as_welcome() {
    let (mut harness, _, _) = call();
    let id = ParticipantId(9);
    joined(&mut harness, id);
    let at = harness.client(id);
    let mut api = harness.clients[at].rtc.sdp_api();
    api.add_channel("control".into());
    let (sdp, pending) = api.apply().expect("offer");
    let local = "a=candidate:1 1 udp 2113937151 4f1a2b3c-0d5e-4f60-8a7b-1c2d3e4f5a6b.local 51234 typ host \
                 generation 0 network-cost 999\r\n";
    let other = "a=candidate:2 1 tcp 1518280447 4f1a2b3c-0d5e-4f60-8a7b-1c2d3e4f5a6b.local 9 typ host \
                 tcptype active generation 0\r\n";
    let sdp = sdp.to_sdp_string() + local + other + "a=end-of-candidates\r\n";
    let offer = Offer { sdp, publish: Vec::new(), subscribe: Vec::new() };
    harness.exchange(at, id, &offer, pending);
    harness.run(Duration::from_secs(2));
    assert_eq!(harness.core.stats().connected, 3);
}
