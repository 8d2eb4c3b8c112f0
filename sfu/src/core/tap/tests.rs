//! What a tap makes of loss, reordering and layer switches.

use proptest::prelude::*;

use super::*;

const STREAM: StreamId = StreamId(3);

/// Packets of one frame: payloads that say which frame and part they are.
fn frame(
    seq: u64,
    number: u32,
    key: bool,
    packets: usize,
    now: Instant,
) -> Vec<(PacketIn, Arc<[u8]>)> {
    (0..packets)
        .map(|i| {
            let (first, last) = (i == 0, i + 1 == packets);
            let flags =
                if key { 0u8 } else { 0x40 } | if first { 8 } else { 0 } | if last { 4 } else { 0 };
            let mut payload = vec![flags];
            if key && first {
                payload.extend([0x82, 0x49, 0x83, 0x42, 0x20, 0x13, 0xf0, 0x0b, 0x30]);
            } else {
                payload.extend([number as u8, i as u8]);
            }
            let arrival = now + Duration::from_millis(u64::from(number) * 33);
            let packet = PacketIn {
                seq: seq + i as u64,
                timestamp: number * 3000,
                arrival,
                marker: last,
                handover_delay: Duration::ZERO,
                codec: windlass_types::VideoCodec::Vp9,
                frame: None,
                stale: false,
            };
            (packet, payload.into())
        })
        .collect()
}

fn drain(tap: &mut Tap) -> Vec<Result<(u32, bool, u16), ()>> {
    std::iter::from_fn(|| tap.poll())
        .map(|input| match input {
            TapInput::Frame(f) => Ok((f.rtp_timestamp / 3000, f.key, f.epoch.0)),
            _ => Err(()),
        })
        .collect()
}

fn tap() -> Tap {
    Tap::new(STREAM, Layer::Q, 5, 1 << 20)
}

#[test]
fn frames_come_out_whole_and_in_order() {
    let now = Instant::now();
    let mut tap = tap();
    let mut packets = frame(10, 0, true, 2, now);
    packets.extend(frame(12, 1, false, 3, now));
    packets.extend(frame(15, 2, false, 1, now));
    packets.swap(0, 1);
    packets.swap(3, 5);
    for (packet, payload) in &packets {
        tap.push(*packet, payload);
    }
    assert_eq!(drain(&mut tap), [Ok((0, true, 5)), Ok((1, false, 5)), Ok((2, false, 5))]);
}

#[test]
fn a_packet_that_never_comes_is_a_gap_and_a_key_frame_ends_it() {
    let now = Instant::now();
    let mut tap = tap();
    for (packet, payload) in frame(10, 0, true, 1, now).iter().chain(&frame(12, 2, false, 1, now)) {
        tap.push(*packet, payload);
    }
    assert_eq!(drain(&mut tap), [Ok((0, true, 5))]);
    let due = tap.timeout().expect("a packet is missing");
    tap.advance(due);
    assert_eq!(drain(&mut tap), [Err(())]);
    assert!(tap.take_key_request(now));
    for (packet, payload) in frame(13, 3, false, 1, now).iter().chain(&frame(14, 4, true, 1, now)) {
        tap.push(*packet, payload);
    }
    assert_eq!(drain(&mut tap), [Ok((4, true, 5))]);
}

#[test]
fn too_many_packets_behind_a_missing_one_are_a_gap() {
    let now = Instant::now();
    let mut tap = tap();
    let (first, payload) = &frame(10, 0, true, 1, now)[0];
    tap.push(*first, payload);
    for i in 0..=MAX_WAITING as u64 {
        let (packet, payload) = &frame(12 + i, 1, false, 1, now)[0];
        tap.push(*packet, payload);
    }
    assert_eq!(drain(&mut tap), [Ok((0, true, 5)), Err(())]);
}

#[test]
fn another_layer_begins_another_epoch() {
    let now = Instant::now();
    let mut tap = tap();
    for (packet, payload) in &frame(10, 0, true, 1, now) {
        tap.push(*packet, payload);
    }
    tap.set_layer(Layer::H);
    assert!(tap.take_key_request(now));
    for (packet, payload) in frame(700, 1, false, 1, now).iter().chain(&frame(701, 2, true, 1, now))
    {
        tap.push(*packet, payload);
    }
    assert_eq!(drain(&mut tap), [Ok((0, true, 5)), Ok((2, true, 6))]);
    assert_eq!((tap.layer_of(Epoch(5)), tap.layer_of(Epoch(6))), (Some(Layer::Q), Some(Layer::H)));
}

#[test]
fn what_the_enhancer_refused_is_made_good_by_a_gap_and_a_key_frame() {
    let now = Instant::now();
    let mut tap = tap();
    for (packet, payload) in &frame(10, 0, true, 1, now) {
        tap.push(*packet, payload);
    }
    drain(&mut tap);
    tap.on_overflow();
    for (packet, payload) in frame(11, 1, false, 1, now).iter().chain(&frame(12, 2, true, 1, now)) {
        tap.push(*packet, payload);
    }
    assert_eq!(drain(&mut tap), [Err(()), Ok((2, true, 5))]);
}

#[test]
fn padding_between_frames_is_no_loss() {
    let now = Instant::now();
    let mut tap = tap();
    let mut packets = frame(10, 0, true, 1, now);
    let padding = PacketIn { seq: 11, marker: false, ..packets[0].0 };
    packets.push((padding, Arc::from([])));
    packets.extend(frame(12, 1, false, 1, now));
    for (packet, payload) in &packets {
        tap.push(*packet, payload);
    }
    tap.advance(now + Duration::from_secs(1));
    assert_eq!(drain(&mut tap), [Ok((0, true, 5)), Ok((1, false, 5))]);
    assert_eq!(tap.gaps, 0);
}

#[test]
fn a_frame_over_the_bound_is_a_gap() {
    let now = Instant::now();
    let mut tap = Tap::new(STREAM, Layer::Q, 0, 16);
    for (packet, payload) in frame(10, 0, true, 1, now).iter().chain(&frame(11, 1, false, 20, now))
    {
        tap.push(*packet, payload);
    }
    assert_eq!(drain(&mut tap), [Ok((0, true, 0)), Err(())]);
}

proptest! {
    #[test]
    fn no_frame_is_ever_torn_and_none_follows_a_loss_without_a_key_frame(
        lost in proptest::collection::vec(0u8..12, 100), delays in proptest::collection::vec(0usize..6, 100), keys in proptest::collection::vec(0u8..10, 100),
    ) {
        let now = Instant::now();
        let mut flight = Vec::new();
        let mut seq = 100;
        for n in 0..100u32 {
            let i = n as usize;
            let packets = 1 + i % 3;
            let sent = frame(seq, n, n == 0 || keys[i] == 0, packets, now);
            seq += packets as u64;
            for (j, p) in sent.into_iter().enumerate() {
                if lost[i] != j as u8 + 1 {
                    flight.push((3 * i + delays[(i + j) % 100], p));
                }
            }
        }
        flight.sort_by_key(|f| f.0);
        let mut tap = tap();
        for (_, (packet, payload)) in &flight {
            tap.push(*packet, payload);
        }
        tap.advance(now + Duration::from_secs(60));
        let mut last: Option<u32> = None;
        while let Some(input) = tap.poll() {
            match input {
                TapInput::Frame(f) => {
                    let number = f.rtp_timestamp / 3000;
                    prop_assert!(f.key || last == Some(number - 1), "{last:?} {number}");
                    prop_assert!(last.is_none_or(|l| l < number));
                    let parts = 1 + number as usize % 3;
                    prop_assert_eq!(f.data.len(), if f.key { 9 + 2 * (parts - 1) } else { 2 * parts });
                    last = Some(number);
                }
                _ => last = None,
            }
        }
    }
}

#[test]
fn larger_pictures_than_are_enhanced_do_not_come_out_and_no_key_frame_is_asked_for() {
    let now = Instant::now();
    let mut tap = tap();
    tap.set_terms(TapTerms { max_pixels: 320 * 180 - 1, ..tap.terms() });
    for (packet, payload) in frame(10, 0, true, 2, now).iter().chain(&frame(12, 1, false, 1, now)) {
        tap.push(*packet, payload);
    }
    assert!(drain(&mut tap).is_empty() && tap.is_too_large());
    assert!(!tap.take_key_request(now), "it would be as large");
    tap.set_terms(TapTerms { max_pixels: 320 * 180, ..tap.terms() });
    for (packet, payload) in &frame(13, 2, true, 1, now) {
        tap.push(*packet, payload);
    }
    assert_eq!(drain(&mut tap), [Err(()), Ok((2, true, 5))]);
    assert!(!tap.is_too_large());
}
