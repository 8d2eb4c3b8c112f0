//! How packets leave: together, soon, and with the time at which they came.

use super::harness::*;
use crate::core::connection::in_flight::rtp_numbers;
use crate::core::*;

/// The RTP packets to a client among what the core wants sent: when the packets that they forward had come.
fn sent(harness: &mut Harness, to: SocketAddr) -> Vec<Option<Instant>> {
    let mut sent = Vec::new();
    while let Some(output) = harness.core.poll() {
        if let Output::Transmit { to: at, data, arrival } = output
            && at.address == to
            && rtp_numbers(&data).is_some()
        {
            sent.push(arrival);
        }
    }
    sent
}

#[test]
fn a_frames_packets_leave_in_one_step_and_say_when_they_came() {
    let (mut harness, _, at) = call();
    let to = harness.clients[at].address;
    let (mut frames, mut together) = (0, 0);
    for _ in 0..40 {
        // The next frame is due.
        harness.run(Duration::from_millis(30));
        harness.now = harness.camera.due.expect("a camera").max(harness.now);
        sent(&mut harness, to);
        harness.shoot();
        assert_eq!(sent(&mut harness, to).len(), 0, "nothing leaves before the step");
        harness.core.advance(harness.now);
        let arrivals: Vec<Instant> = sent(&mut harness, to).into_iter().flatten().collect();
        assert!(arrivals.iter().all(|&arrival| arrival == harness.now));
        frames += usize::from(!arrivals.is_empty());
        together += usize::from(arrivals.len() == 2);
    }
    assert!(frames > 30 && together * 10 >= frames * 9, "{together} of {frames}");
}

#[test]
fn a_step_may_be_taken_in_parts() {
    let (mut harness, _, at) = call();
    let to = harness.clients[at].address;
    harness.run(Duration::from_millis(30));
    harness.now = harness.camera.due.expect("a camera").max(harness.now);
    sent(&mut harness, to);
    harness.shoot();
    harness.core.begin_step(harness.now);
    let mut parts = 0;
    while harness.core.continue_step(harness.now, 1) {
        parts += 1;
    }
    assert!(parts >= 1, "publisher and subscriber have a turn each");
    assert!(!sent(&mut harness, to).is_empty());
    assert!(harness.core.timeout() >= harness.now);
}

#[test]
fn strangers_are_asked_for_whom_they_come() {
    let (mut harness, _, _) = call();
    let before = harness.core.stats().counters;
    let stranger: SocketAddr = "192.0.2.99:9".parse().expect("address");
    // An RTP packet, and a STUN request for somebody whom nobody knows.
    let mut request = vec![0, 1, 0, 12, 0x21, 0x12, 0xa4, 0x42];
    request.extend([7; 12]);
    request.extend(*b"\x00\x06\x00\x08none:any");
    for datagram in [&[0x80; 40][..], &request] {
        harness.core.datagram(harness.now, stranger, datagram);
    }
    // The request lacks what the stack wants of one before it is asked whose it is.
    let after = harness.core.stats().counters;
    let refused = |c: &Counters| c.datagrams_unknown + c.datagrams_malformed;
    assert_eq!(refused(&after) - refused(&before), 2);
    assert!(after.datagrams_unknown > before.datagrams_unknown);
}
