//! A publisher with three layers, random switches, loss, reordering and wrap-around, against the rewriter.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::time::Duration;

use proptest::prelude::*;

use super::*;

const TRACK: TrackId = TrackId(1);

fn source(layer: Layer) -> Source {
    Source { track: TRACK, layer }
}

/// One layer of a publisher.
struct Encoder {
    layer: Layer,
    seq: u64,
    timestamp: u32,
    picture_id: u16,
    tl0: u8,
}

/// A packet on its way to the SFU.
#[derive(Clone, Debug)]
struct Sent {
    layer: Layer,
    packet: PacketIn,
    payload: Vec<u8>,
}

impl Encoder {
    fn new(layer: Layer, seq: u64, timestamp: u32, picture_id: u16) -> Encoder {
        Encoder { layer, seq, timestamp, picture_id: picture_id & 0x7fff, tl0: 250 }
    }

    /// A frame of `packets` packets, `ms` after the former one.
    fn frame(&mut self, key: bool, packets: usize, ms: u32, arrival: Instant) -> Vec<Sent> {
        self.timestamp = self.timestamp.wrapping_add(ms * 90);
        self.picture_id = self.picture_id.wrapping_add(1) & 0x7fff;
        self.tl0 = self.tl0.wrapping_add(1);
        (0..packets)
            .map(|i| {
                let (first, last) = (i == 0, i + 1 == packets);
                let flags = 0xa0
                    | if key { 0 } else { 0x40 }
                    | if first { 8 } else { 0 }
                    | if last { 4 } else { 0 };
                let [high, low] = self.picture_id.to_be_bytes();
                let mut payload = vec![flags, high | 0x80, low, 0, self.tl0];
                if key && first {
                    let wide = 4 - self.layer as u16;
                    let size = ((1280 / wide - 1) as u32) << 16 | (720 / wide - 1) as u32;
                    // The bits of a key frame's header, shifted by the four bits of colour space and range.
                    payload.extend([0x82, 0x49, 0x83, 0x42]);
                    payload.extend((u64::from(size) << 28 | 0x2000_0000_0000_0000).to_be_bytes());
                } else {
                    payload.push(0x86);
                }
                let packet = PacketIn {
                    seq: self.seq,
                    timestamp: self.timestamp,
                    arrival,
                    marker: last,
                    handover_delay: Duration::ZERO,
                    codec: windlass_types::VideoCodec::Vp9,
                    frame: None,
                    stale: false,
                };
                self.seq += 1;
                Sent { layer: self.layer, packet, payload }
            })
            .collect()
    }
}

#[derive(Debug, Clone)]
enum Step {
    Target(u8),
    Key,
    Frame { packets: usize, lost: u8, swap: bool },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        1 => (0u8..3).prop_map(Step::Target),
        1 => Just(Step::Key),
        8 => (1usize..4, any::<u8>(), any::<bool>()).prop_map(|(packets, lost, swap)| Step::Frame { packets, lost, swap }),
    ];
    proptest::collection::vec(step, 1..200)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn the_output_is_one_continuous_stream(
        steps in steps(), seq in 0u64..200_000, timestamp: u32, picture_id: u16, start: u32,
    ) {
        let begin = Instant::now();
        let mut encoders: Vec<_> = Layer::ALL
            .into_iter()
            .enumerate()
            .map(|(i, l)| Encoder::new(l, seq + 7 * i as u64, timestamp.wrapping_add(i as u32 * 0x4000_0000), picture_id))
            .collect();
        let mut rewriter = Rewriter::new(start);
        rewriter.set_target(Some(source(Layer::Q)));
        let (mut key, mut tick) = (true, 0u64);
        let mut seen: Vec<Sent> = Vec::new();
        // By output number: timestamp, frame, span, the publisher's timestamp.
        let mut out: BTreeMap<u64, (u32, u16, usize, u32)> = BTreeMap::new();
        let mut spans: Vec<(Layer, u64, u64)> = Vec::new();
        let mut frames: HashMap<(usize, u32), u32> = HashMap::new();
        let mut late: Vec<Sent> = Vec::new();
        for step in steps {
            match step {
                Step::Target(i) => rewriter.set_target(Some(source(Layer::ALL[usize::from(i)]))),
                Step::Key => key = true,
                Step::Frame { packets, lost, swap } => {
                    tick += 1;
                    let arrival = begin + Duration::from_millis(33 * tick);
                    let mut flight = Vec::new();
                    for encoder in &mut encoders {
                        flight.extend(encoder.frame(key, packets, 33, arrival));
                    }
                    key = false;
                    if swap && flight.len() > 1 {
                        flight.swap(0, 1);
                    }
                    // What the former round held back comes now, after newer packets.
                    let held: Vec<_> = flight.iter().enumerate().filter(|(i, _)| *i % 8 == usize::from(lost) % 16).map(|(_, s)| s.clone()).collect();
                    flight.retain(|s| !held.iter().any(|h| h.layer == s.layer && h.packet.seq == s.packet.seq));
                    flight.append(&mut late);
                    if lost < 128 {
                        late = held;
                    }
                    let mut flight: VecDeque<_> = flight.into();
                    while let Some(sent) = flight.pop_front() {
                        if !seen.iter().any(|s| (s.layer, s.packet.seq) == (sent.layer, sent.packet.seq)) {
                            seen.push(sent.clone());
                        }
                        let mut payload = sent.payload.clone();
                        let Ok(got) = rewriter.push(source(sent.layer), sent.packet, &mut payload) else { continue };
                        prop_assert!(!out.contains_key(&got.seq), "number {} twice", got.seq);
                        if got.switched {
                            spans.push((sent.layer, sent.packet.seq, got.seq));
                            let mut again: Vec<_> = seen.iter().filter(|s| s.layer == sent.layer && s.packet.seq > sent.packet.seq).cloned().collect();
                            again.sort_by_key(|s| s.packet.seq);
                            again.into_iter().rev().for_each(|s| flight.push_front(s));
                        }
                        // Within a span every packet keeps its distance: gaps are real losses, and only those.
                        let &(_, from, to) = spans.last().expect("span");
                        prop_assert_eq!(got.seq - to, sent.packet.seq - from);
                        let d = crate::core::codec::vp9::parse(&payload).expect("descriptor");
                        prop_assert_eq!(rewriter.locate(source(sent.layer), sent.packet.timestamp).map(|l| l.0), Some(got.timestamp));
                        let &mut stamp = frames.entry((spans.len(), sent.packet.timestamp)).or_insert(got.timestamp);
                        prop_assert_eq!(stamp, got.timestamp);
                        // Picture id and frame counter move together.
                        prop_assert_eq!(d.picture_id.expect("id").value, got.frame & 0x7fff);
                        out.insert(got.seq, (got.timestamp, got.frame, spans.len(), sent.packet.timestamp));
                    }
                }
            }
        }
        // A new span begins right behind the last number of the former one.
        for pair in spans.windows(2) {
            let before = out.range(..pair[1].2).next_back().expect("former span");
            prop_assert_eq!(*before.0 + 1, pair[1].2);
        }
        let ordered: Vec<_> = out.values().collect();
        for pair in ordered.windows(2) {
            let (earlier, later) = (pair[0], pair[1]);
            prop_assert!((later.0.wrapping_sub(earlier.0) as i32) >= 0, "time runs back");
            let same_frame = (earlier.2, earlier.3) == (later.2, later.3);
            prop_assert_eq!(same_frame, earlier.0 == later.0);
            prop_assert_eq!(same_frame, earlier.1 == later.1);
            prop_assert!((later.1.wrapping_sub(earlier.1) as i16) >= 0);
        }
        let stamps: HashSet<_> = frames.values().collect();
        prop_assert_eq!(stamps.len(), frames.len());
    }
}

fn run(rewriter: &mut Rewriter, sent: &[Sent]) -> Vec<Result<PacketOut, Dropped>> {
    sent.iter().map(|s| rewriter.push(source(s.layer), s.packet, &mut s.payload.clone())).collect()
}

/// A publisher with three temporal layers: of four frames one is of the base, one of layer 1 and two of layer 2.
struct Layered {
    encoder: Encoder,
    frames: usize,
}

impl Layered {
    fn new(layer: Layer, seq: u64) -> Layered {
        Layered { encoder: Encoder::new(layer, seq, 0, 32_700), frames: 0 }
    }

    /// The next frame and its temporal layer. A key frame begins a group of four.
    fn frame(&mut self, key: bool, packets: usize, arrival: Instant) -> (u8, Vec<Sent>) {
        if key {
            self.frames = 0;
        }
        let temporal = [0, 2, 1, 2][self.frames % 4];
        let tl0 = self.encoder.tl0;
        let mut frame = self.encoder.frame(self.frames == 0, packets, 33, arrival);
        // Only base frames count, and each is a switching up point.
        self.encoder.tl0 = if temporal == 0 { self.encoder.tl0 } else { tl0 };
        for sent in &mut frame {
            let layers = temporal << 5 | u8::from(temporal == 0) << 4;
            (sent.payload[3], sent.payload[4]) = (layers, self.encoder.tl0);
        }
        self.frames += 1;
        (temporal, frame)
    }
}

/// A new highest temporal layer, seldom.
fn new_max() -> impl Strategy<Value = Option<Option<u8>>> {
    proptest::option::weighted(0.1, proptest::option::of(0u8..2))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn without_loss_nothing_is_missing_whatever_layers_are_left_out(
        steps in proptest::collection::vec((1usize..4, new_max(), 0usize..2), 1..150),
        seq in 0u64..200_000,
    ) {
        let mut publisher = Layered::new(Layer::Q, seq);
        let mut rewriter = Rewriter::new(7);
        rewriter.set_target(Some(source(Layer::Q)));
        let now = Instant::now();
        let (mut max, mut last, mut decoded) = (None, None, [true; 3]);
        for (packets, new, at) in steps {
            let (temporal, frame) = publisher.frame(false, packets, now);
            let (mut got, mut begun_by) = (Vec::new(), max);
            for (n, sent) in frame.iter().enumerate() {
                if let Some(new) = new.filter(|_| n == at) {
                    max = new;
                    rewriter.set_max_temporal(max);
                }
                if n == 0 {
                    begun_by = max;
                }
                got.extend(run(&mut rewriter, std::slice::from_ref(sent)));
            }
            let whole = got.iter().all(Result::is_ok);
            let left_out = Err(Dropped::HigherLayer { reserved: None });
            prop_assert!(whole || got.iter().all(|got| *got == left_out), "a part of a frame");
            prop_assert!(whole || temporal > 0);
            prop_assert!(!(whole && begun_by.is_some_and(|max| temporal > max)));
            if temporal == 0 {
                decoded = [true; 3];
            }
            prop_assert!(!whole || decoded[usize::from(temporal)], "it needs a frame that was left out");
            if !whole {
                decoded[usize::from(temporal)..].fill(false);
            }
            for out in got.into_iter().flatten() {
                if let Some((seq, number)) = last {
                    prop_assert_eq!(out.seq, seq + 1);
                    prop_assert_eq!(out.frame, if out.begin { number + 1 } else { number });
                }
                last = Some((out.seq, out.frame));
            }
        }
    }

    #[test]
    fn with_loss_and_switches_no_number_is_given_twice_and_only_losses_are_missing(
        steps in proptest::collection::vec((1usize..4, new_max(), 0u8..20, 0u8..40), 1..150),
    ) {
        let mut publishers = [Layer::Q, Layer::H].map(|layer| Layered::new(layer, 60));
        let mut rewriter = Rewriter::new(7);
        let now = Instant::now();
        let (mut current, mut key, mut lost) = (0, true, 0);
        rewriter.set_target(Some(source(Layer::Q)));
        let (mut numbers, mut frames, mut late) = (HashSet::new(), HashMap::new(), Vec::new());
        for (packets, new, loss, switch) in steps {
            if let Some(max) = new {
                rewriter.set_max_temporal(max);
            }
            if switch == 0 {
                current = 1 - current;
                rewriter.set_target(Some(source([Layer::Q, Layer::H][current])));
                key = true;
                lost += late.len();
            }
            let mut flight = publishers[current].frame(key, packets, now).1;
            let whole = std::mem::take(&mut key);
            flight.append(&mut late);
            match loss {
                _ if whole => {}
                0 => {
                    flight.remove(0);
                    lost += 1;
                }
                1 => late = vec![flight.remove(0)],
                _ => {}
            }
            for sent in flight {
                let (seq, frame) = match run(&mut rewriter, std::slice::from_ref(&sent))[0] {
                    Ok(out) => (out.seq, Some(out.frame)),
                    Err(Dropped::HigherLayer { reserved: Some((seq, _)) }) => (seq, None),
                    Err(Dropped::HigherLayer { reserved: None } | Dropped::OtherSource | Dropped::BeforeSwitch) => continue,
                    Err(other) => return Err(TestCaseError::fail(format!("{other:?}"))),
                };
                prop_assert!(numbers.insert(seq), "number {} twice", seq);
                if let Some(frame) = frame {
                    let of = (sent.layer, sent.packet.timestamp);
                    prop_assert_eq!(*frames.entry(frame).or_insert(of), of, "frame {} twice", frame);
                }
            }
        }
        let spread = numbers.iter().max().unwrap() - numbers.iter().min().unwrap() + 1;
        let missing = spread as usize - numbers.len();
        prop_assert!(missing <= lost + late.len(), "{} are missing of {} lost", missing, lost);
    }
}

/// A publisher with three spatial layers in one encoding, in the flexible mode of VP9.
struct Stacked(Encoder);

impl Stacked {
    fn new(seq: u64) -> Stacked {
        Stacked(Encoder::new(Layer::Q, seq, 0, 32_700))
    }

    /// The next picture, whose layers have `packets` packets each.
    fn picture(&mut self, key: bool, packets: usize, arrival: Instant) -> Vec<Sent> {
        let encoder = &mut self.0;
        let before = (encoder.timestamp, encoder.picture_id, encoder.tl0);
        let mut picture = Vec::new();
        for spatial in 0..3 {
            (encoder.timestamp, encoder.picture_id, encoder.tl0) = before;
            let mut layer = encoder.frame(key, packets, 33, arrival);
            for sent in &mut layer {
                sent.packet.marker &= spatial == 2;
                sent.payload[0] |= 0x10;
                // The distance to the frame before it takes the place of TL0PICIDX.
                let references: &[u8] = if key { &[] } else { &[2] };
                sent.payload.splice(4..5, references.iter().copied());
                sent.payload[3] = spatial << 1 | u8::from(spatial > 0);
            }
            if key && spatial == 0 {
                layer[0].payload[0] |= 2;
                let sizes = [1u16, 2, 4].map(|n| [n * 320, n * 180].map(u16::to_be_bytes).concat());
                layer[0].payload.splice(4..4, [&[0x50][..], &sizes.concat()].concat());
            }
            picture.append(&mut layer);
        }
        picture
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn pictures_have_the_lower_spatial_layers_whole_and_their_last_packet_the_marker(
        steps in proptest::collection::vec((1usize..4, new_max(), 0usize..9, any::<bool>()), 1..100),
        seq in 0u64..200_000,
    ) {
        let (mut publisher, mut rewriter) = (Stacked::new(seq), Rewriter::new(7));
        rewriter.set_target(Some(source(Layer::Q)));
        let now = Instant::now();
        let (mut wanted, mut had, mut last) = (2, 2, None);
        for (n, (packets, new, at, given)) in steps.into_iter().enumerate() {
            let key = n == 0 || given && rewriter.needs_key_frame_of().is_some();
            let mut got = Vec::new();
            let begun_by = if at == 0 { new.map_or(wanted, |max| max.unwrap_or(2)) } else { wanted };
            for (n, sent) in publisher.picture(key, packets, now).iter().enumerate() {
                if let Some(max) = new.filter(|_| n == at) {
                    wanted = max.unwrap_or(2);
                    rewriter.set_max_spatial(max);
                }
                got.extend(run(&mut rewriter, std::slice::from_ref(sent)));
            }
            let max = if key { begun_by } else { had.min(begun_by) };
            had = max;
            let forwarded = packets * (usize::from(max) + 1);
            prop_assert!(got[..forwarded].iter().all(Result::is_ok), "{got:?}, up to {max}");
            let left_out = Err(Dropped::HigherLayer { reserved: None });
            prop_assert!(got[forwarded..].iter().all(|got| *got == left_out), "{got:?}, up to {max}");
            prop_assert_eq!(rewriter.needs_key_frame_of().is_some(), wanted > had);
            for (n, out) in got.into_iter().flatten().enumerate() {
                let ends = n + 1 == forwarded;
                prop_assert_eq!((out.begin, out.end, out.marker), (n == 0, ends, ends));
                if let Some((seq, frame)) = last {
                    prop_assert_eq!(out.seq, seq + 1);
                    prop_assert_eq!(out.frame, if n == 0 { frame + 1 } else { frame });
                }
                last = Some((out.seq, out.frame));
            }
        }
    }

    #[test]
    fn of_spatial_layers_no_number_is_given_twice_and_only_losses_are_missing(
        steps in proptest::collection::vec((1usize..4, new_max(), 0u8..20, 0usize..9), 1..150),
    ) {
        let (mut publisher, mut rewriter) = (Stacked::new(60), Rewriter::new(7));
        rewriter.set_target(Some(source(Layer::Q)));
        let (now, mut lost) = (Instant::now(), 0);
        let (mut numbers, mut frames, mut late) = (HashSet::new(), HashMap::new(), Vec::new());
        for (n, (packets, new, loss, at)) in steps.into_iter().enumerate() {
            if let Some(max) = new {
                rewriter.set_max_spatial(max);
            }
            let key = n == 0 || rewriter.needs_key_frame_of().is_some();
            let mut flight = publisher.picture(key, packets, now);
            flight.append(&mut late);
            let at = at % (3 * packets);
            match loss {
                _ if n == 0 => {}
                0 => {
                    flight.remove(at);
                    lost += 1;
                }
                1 => late = vec![flight.remove(at)],
                _ => {}
            }
            for sent in flight {
                let (seq, frame) = match run(&mut rewriter, std::slice::from_ref(&sent))[0] {
                    Ok(out) => (out.seq, Some(out.frame)),
                    Err(Dropped::HigherLayer { reserved: Some((seq, _)) }) => (seq, None),
                    Err(Dropped::HigherLayer { reserved: None }) => continue,
                    Err(other) => return Err(TestCaseError::fail(format!("{other:?}"))),
                };
                prop_assert!(numbers.insert(seq), "number {} twice", seq);
                if let Some(frame) = frame {
                    let of = sent.packet.timestamp;
                    prop_assert_eq!(*frames.entry(frame).or_insert(of), of, "frame {} twice", frame);
                }
            }
        }
        let spread = numbers.iter().max().unwrap() - numbers.iter().min().unwrap() + 1;
        let missing = spread as usize - numbers.len();
        prop_assert!(missing <= lost + late.len(), "{} are missing of {} lost", missing, lost);
    }
}

/// A viewer of three spatial layers up to one, and a publisher.
fn limited(max: Option<u8>) -> (Stacked, Rewriter) {
    let mut rewriter = Rewriter::new(0);
    rewriter.set_target(Some(source(Layer::Q)));
    rewriter.set_max_spatial(max);
    (Stacked::new(10), rewriter)
}

#[test]
fn late_pictures_have_their_numbers_although_higher_spatial_layers_are_left_out() {
    let now = Instant::now();
    let (mut publisher, mut rewriter) = limited(Some(0));
    let pictures: Vec<_> = (0..4).map(|n| publisher.picture(n == 0, 1, now)).collect();
    let mut number = |at: usize, layer: usize| {
        let got = run(&mut rewriter, &pictures[at][layer..=layer])[0];
        got.ok().map(|out| out.frame)
    };
    let first = number(0, 0).unwrap();
    for at in 0..3 {
        assert_eq!([number(at, 1), number(at, 2)], [None; 2], "left out");
    }
    assert_eq!(number(3, 0), Some(first + 3), "the smallest layers of 1 and 2 are missing");
    assert_eq!((number(2, 0), number(1, 0)), (Some(first + 2), Some(first + 1)), "they come late");
}

#[test]
fn a_picture_whose_smallest_layer_is_late_begins_with_it() {
    let now = Instant::now();
    let (mut publisher, mut rewriter) = limited(None);
    run(&mut rewriter, &publisher.picture(true, 1, now));
    let mut picture = publisher.picture(false, 1, now);
    picture.swap(0, 1);
    let got = run(&mut rewriter, &picture);
    let begin: Vec<_> = got.into_iter().map(|out| out.expect("forwarded").begin).collect();
    assert_eq!(begin, [false, true, false]);
}

#[test]
fn a_picture_without_its_smallest_layer_is_no_gap_and_begins_with_the_next_one() {
    let now = Instant::now();
    for (max, frames) in [(Some(0), vec![0, 1]), (None, vec![0, 1, 2])] {
        let (mut publisher, mut rewriter) = limited(max);
        let mut sent = publisher.picture(true, 1, now);
        let mut without = publisher.picture(false, 1, now);
        without.remove(0);
        publisher.0.seq -= 1;
        for sent in &mut without {
            sent.packet.seq -= 1;
        }
        sent.append(&mut without);
        sent.append(&mut publisher.picture(false, 1, now));
        let got: Vec<_> = run(&mut rewriter, &sent).into_iter().flatten().collect();
        let begun: Vec<_> = got.iter().filter(|out| out.begin).collect();
        let numbers: Vec<_> = begun.iter().map(|out| out.frame - begun[0].frame).collect();
        assert_eq!(numbers, frames, "{max:?}");
        assert!(got.windows(2).all(|pair| pair[1].seq == pair[0].seq + 1), "{got:?}");
    }
}

#[test]
fn the_size_is_that_of_the_largest_layer_and_of_the_smallest_what_its_frame_says() {
    let now = Instant::now();
    for (max, size) in [(Some(0), (322, 180)), (Some(1), (640, 360)), (None, (1280, 720))] {
        let (mut publisher, mut rewriter) = limited(max);
        let mut sent = publisher.picture(true, 1, now);
        // The width of 320 in the frame's header, in the structure behind the flags, the id and the layers.
        assert_eq!(sent[0].payload[5..7], 320u16.to_be_bytes());
        sent[0].payload[5..7].copy_from_slice(&318u16.to_be_bytes());
        let header = 4 + 13;
        assert_eq!(sent[0].payload[header], 0x82);
        sent[0].payload[header..header + 9]
            .copy_from_slice(&crate::core::tests::calls::key_header(322, 180));
        run(&mut rewriter, &sent);
        assert_eq!(rewriter.epoch().1, Some(Size::new(size.0, size.1)), "{max:?}");
    }
}

#[test]
fn base_frames_that_are_lost_are_counted_and_those_that_come_late_have_their_place() {
    let now = Instant::now();
    let (mut publisher, mut rewriter) = (Layered::new(Layer::Q, 10), Rewriter::new(0));
    rewriter.set_target(Some(source(Layer::Q)));
    rewriter.set_max_temporal(Some(0));
    let frames: Vec<_> = (0..17).map(|_| publisher.frame(false, 1, now).1.remove(0)).collect();
    let mut number = |at: usize| match run(&mut rewriter, &frames[at..=at])[0] {
        Ok(out) => Some(out.frame),
        Err(_) => None,
    };
    let first = number(0).unwrap();
    assert_eq!([number(1), number(2), number(3)], [None; 3]);
    assert_eq!(number(8), Some(first + 2), "4 is missing");
    assert_eq!((number(4), number(5)), (Some(first + 1), None), "it comes late");
    assert_eq!(number(16), Some(first + 4), "12 is lost");
}

#[test]
fn a_lost_base_frame_is_missed_by_the_frame_of_a_higher_layer_after_it() {
    let now = Instant::now();
    let (mut publisher, mut rewriter) = (Layered::new(Layer::Q, 10), Rewriter::new(0));
    rewriter.set_target(Some(source(Layer::Q)));
    rewriter.set_max_temporal(Some(1));
    let frames: Vec<_> = (0..9).map(|_| publisher.frame(false, 1, now).1.remove(0)).collect();
    let mut number = |at: usize| run(&mut rewriter, &frames[at..=at])[0].ok().map(|out| out.frame);
    let first = number(0).unwrap();
    assert_eq!([number(1), number(2), number(3)], [None, Some(first + 1), None]);
    assert_eq!(number(6), Some(first + 3), "4 is missing");
    assert_eq!(number(4), Some(first + 2), "it comes late");
    assert_eq!(number(8), Some(first + 4));
}

#[test]
fn a_number_that_padding_took_begins_no_switch() {
    let now = Instant::now();
    let mut q = Layered::new(Layer::Q, 10);
    let mut rewriter = Rewriter::new(0);
    rewriter.set_target(Some(source(Layer::Q)));
    let frames: Vec<_> = (0..3).map(|_| q.frame(false, 1, now).1.remove(0)).collect();
    run(&mut rewriter, &frames[..1]);
    rewriter.set_max_temporal(Some(0));
    run(&mut rewriter, &frames[2..]);
    let late = run(&mut rewriter, &frames[1..2])[0];
    let Err(Dropped::HigherLayer { reserved: Some((padding, _)) }) = late else {
        panic!("{late:?}");
    };
    rewriter.set_target(Some(source(Layer::H)));
    let mut h = Encoder::new(Layer::H, 700, 0, 0);
    let key = run(&mut rewriter, &h.frame(true, 1, 33, now))[0].unwrap();
    assert_eq!(key.seq, padding + 1);
}

#[test]
fn nothing_is_forwarded_before_a_key_frame() {
    let now = Instant::now();
    let mut q = Encoder::new(Layer::Q, 10, 0, 0);
    let mut rewriter = Rewriter::new(0);
    rewriter.set_target(Some(source(Layer::Q)));
    assert_eq!(run(&mut rewriter, &q.frame(false, 1, 33, now)), [Err(Dropped::OtherSource)]);
    assert_eq!(rewriter.waits_for(), Some(source(Layer::Q)));
    assert!(run(&mut rewriter, &q.frame(true, 1, 33, now))[0].is_ok());
    assert_eq!(rewriter.waits_for(), None);
}

#[test]
fn a_packet_from_before_the_switch_is_dropped() {
    let now = Instant::now();
    let mut q = Encoder::new(Layer::Q, 10, 0, 0);
    let mut rewriter = Rewriter::new(0);
    rewriter.set_target(Some(source(Layer::Q)));
    let before = q.frame(false, 1, 33, now);
    run(&mut rewriter, &q.frame(true, 1, 33, now));
    assert_eq!(run(&mut rewriter, &before), [Err(Dropped::BeforeSwitch)]);
}

#[test]
fn a_lost_frame_leaves_a_hole_in_the_frame_numbers() {
    let now = Instant::now();
    let mut q = Encoder::new(Layer::Q, 10, 0, 0);
    let mut rewriter = Rewriter::new(0);
    rewriter.set_target(Some(source(Layer::Q)));
    let first = run(&mut rewriter, &q.frame(true, 1, 33, now))[0].expect("forwarded");
    q.frame(false, 2, 33, now);
    let third = run(&mut rewriter, &q.frame(false, 1, 33, now))[0].expect("forwarded");
    assert_eq!((third.frame - first.frame, third.seq - first.seq), (2, 3));
}

#[test]
fn an_anchor_of_a_former_epoch_has_no_place() {
    let now = Instant::now();
    let (mut q, mut h) = (Encoder::new(Layer::Q, 10, 0, 0), Encoder::new(Layer::H, 10, 0, 0));
    let mut rewriter = Rewriter::new(0);
    rewriter.set_target(Some(source(Layer::Q)));
    let old = q.frame(true, 1, 33, now);
    run(&mut rewriter, &old);
    assert!(rewriter.locate(source(Layer::Q), old[0].packet.timestamp).is_some());
    rewriter.set_target(Some(source(Layer::H)));
    let (before, _) = rewriter.epoch();
    assert!(run(&mut rewriter, &h.frame(true, 1, 33, now))[0].expect("forwarded").new_epoch);
    assert_eq!(rewriter.epoch(), (before + 1, Some(Size::new(426, 240))));
    assert_eq!(rewriter.locate(source(Layer::Q), old[0].packet.timestamp), None);
}

#[test]
fn the_former_layer_goes_on_until_the_key_frame() {
    let now = Instant::now();
    let (mut q, mut h) = (Encoder::new(Layer::Q, 10, 0, 0), Encoder::new(Layer::H, 10, 0, 0));
    let mut rewriter = Rewriter::new(0);
    rewriter.set_target(Some(source(Layer::Q)));
    run(&mut rewriter, &q.frame(true, 1, 33, now));
    rewriter.set_target(Some(source(Layer::H)));
    assert!(run(&mut rewriter, &q.frame(false, 1, 33, now))[0].is_ok());
    assert!(run(&mut rewriter, &h.frame(false, 1, 33, now))[0].is_err());
    assert!(run(&mut rewriter, &h.frame(true, 1, 33, now))[0].is_ok());
    assert!(run(&mut rewriter, &q.frame(false, 1, 33, now))[0].is_err());
}

#[test]
fn a_key_frame_that_a_newer_one_overtook_begins_no_epoch() {
    let now = Instant::now();
    let mut rewriter = Rewriter::new(0);
    rewriter.set_target(Some(source(Layer::H)));
    let mut encoder = Encoder::new(Layer::H, 10, 0, 0);
    run(&mut rewriter, &encoder.frame(true, 1, 33, now));
    let before = rewriter.epoch();
    // The encoder went down to the size of another layer for one frame.
    encoder.layer = Layer::Q;
    let mut overtaken = encoder.frame(true, 1, 33, now);
    overtaken[0].layer = Layer::H;
    encoder.layer = Layer::H;
    run(&mut rewriter, &encoder.frame(true, 1, 33, now));
    let late = run(&mut rewriter, &overtaken);
    assert!(late[0].is_ok_and(|out| !out.new_epoch), "{late:?}");
    assert_eq!(rewriter.epoch(), before);
}
