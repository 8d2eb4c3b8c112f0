//! Lessons of publishers whose layers are drawn: the large layer shows what another network makes of the low one.

use bytes::Bytes;
use crossbeam_channel::unbounded;
use windlass_hybrid::{HybridConfig, HybridDecoder};
use windlass_network::{Changed, Network, difference};
use windlass_vp9::{DecodeError, DecodedFrame, FrameInfo, FrameKind, Plane};

use super::super::tests::parts::{Hand, SECOND};
use super::*;

const LOW: (usize, usize) = (96, 64);
const STREAM: StreamId = StreamId(7);
/// A chunk that no decoder takes, and one at which it panics.
const BROKEN: u8 = 250;
const PANIC: u8 = 251;

fn built_in() -> Arc<Network> {
    let networks = Tier::Xs.networks().iter();
    networks.clone().find(|network| network.scale() == BY).expect("it is built in").clone()
}

/// The built-in network with another last convolution.
fn other() -> Network {
    let built_in = built_in();
    let mut last = built_in.last_layer();
    for (n, weight) in last.weights.iter_mut().enumerate() {
        *weight = (f64::from(*weight) * if n % 3 == 0 { 0.4 } else { 1.2 }) as i16;
    }
    last.bias[1] += 3 * built_in.last_unit() as i32;
    built_in.with_last_layer(&last).expect("small numbers")
}

/// A low picture with something of everything, another one by each number.
fn low(number: u8) -> Plane {
    let at = |x: usize, y: usize| {
        let x = x + 5 * usize::from(number);
        let stripes = if x / 5 % 2 == 0 { 70 } else { 0 };
        let rough = (x * 31 + y * 17) * 2_654_435_761 >> 9 & 31;
        (60 + stripes + y + rough) as u8
    };
    let samples = (0..LOW.0 * LOW.1).map(|i| at(i % LOW.0, i / LOW.0)).collect();
    Plane::from_samples(LOW.0, LOW.1, samples).expect("its size")
}

/// The large picture of a number, as a network makes it.
fn large(number: u8, truth: &Network) -> Plane {
    let low = low(number);
    let [rebuilt, _, _] = enlarge(&FrameBuffer::from_luma(&low), BY);
    let mut shown = Plane::filled(rebuilt.width(), rebuilt.height(), 0);
    let mut runner = Runner::new(Isa::detect());
    runner.run(truth, (&low).into(), (&rebuilt).into(), Changed::All, &mut shown);
    shown
}

fn frame_of(y: Plane) -> DecodedFrame {
    let (width, height) = (y.width(), y.height());
    let mut info = FrameInfo::default();
    (info.kind, info.shown) = (FrameKind::Key, true);
    (info.width, info.height) = (width as u32, height as u32);
    DecodedFrame { picture: Arc::new(FrameBuffer::from_luma(&y)), info: Arc::new(info) }
}

/// A call whose large layer shows what `truth` makes.
struct Call {
    hand: Hand,
    teacher: Teacher,
    state: State,
    outputs: Receiver<EnhancerOutput>,
    number: u32,
}

impl Call {
    fn new(truth: Network) -> Self {
        let hand = Hand::new();
        let (output, outputs) = unbounded();
        let decoders: DecoderFactory = Arc::new(move |limit: SizeLimit| {
            let (large_layer, truth) = (limit.area == MAX_PIXELS, truth.clone());
            Box::new(move |chunk: &[u8]| match chunk.first() {
                None | Some(&BROKEN) => Err(DecodeError::Header),
                Some(&PANIC) => panic!("a decoder that panics, as the test asks"),
                Some(&number) if large_layer => Ok(vec![frame_of(large(number, &truth))]),
                Some(&number) => Ok(vec![frame_of(low(number))]),
            })
        });
        let teacher = Teacher {
            frames: unbounded().1,
            output,
            decoders,
            enabled: Arc::new(AtomicBool::new(true)),
            clock: hand.clock(),
            stats: Arc::default(),
        };
        let state = teacher.begin();
        Self { hand, teacher, state, outputs, number: 0 }
    }

    fn frame(&mut self, large: bool, chunk: u8, key: bool) {
        let frame = LessonFrame {
            stream: STREAM,
            large,
            number: self.number,
            low_timestamp: Some(3000 * self.number),
            key,
            data: Bytes::from(vec![chunk]),
        };
        self.teacher.take(&mut self.state, &frame);
    }

    /// A second with one frame of each layer. Returns what came of it.
    fn second(&mut self) -> Vec<EnhancerOutput> {
        let chunk = (self.number % 200) as u8;
        for large in [false, true] {
            self.frame(large, chunk, self.number == 0);
        }
        self.number += 1;
        self.hand.pass(SECOND);
        self.outputs.try_iter().collect()
    }

    /// The first update.
    fn learn(&mut self) -> OwnWeights {
        for _ in 0..9 {
            if let Some(EnhancerOutput::Weights(Weights { own: Some(own), .. })) =
                self.second().pop()
            {
                return own;
            }
        }
        panic!("nothing was learned: {:?}", self.teacher.stats.snapshot().counters);
    }
}

#[test]
fn weights_are_learned_from_both_layers_and_fit_the_publisher() {
    let (mut call, truth) = (Call::new(other()), other());
    let own = call.learn();
    let network = difference::read(&built_in(), &own.difference).expect("a sound difference");
    assert_eq!((network.last_layer().hash(), own.size.width), (own.hash, LOW.0 as u16));
    assert!(own.difference.len() <= 2400, "{} bytes", own.difference.len());
    let error = |network: &Network| {
        let (made, wanted) = (large(150, network), large(150, &truth));
        let pairs = made.samples().iter().zip(wanted.samples());
        pairs.map(|(a, b)| u64::from(a.abs_diff(*b)).pow(2)).sum::<u64>()
    };
    assert!(error(&network) < error(&built_in()) / 2);
}

#[test]
fn a_missing_or_broken_frame_waits_for_key_frames_that_are_asked_for() {
    let mut call = Call::new(other());
    assert!(call.second().is_empty());
    call.number += 1;
    let asked = call.second();
    assert!(
        matches!(asked[..], [EnhancerOutput::NeedLessonKeyFrames { stream: STREAM }]),
        "{asked:?}"
    );
    assert!(call.second().is_empty(), "asked a moment ago");
    let decoded = call.teacher.stats.snapshot().counters.lesson_frames;
    assert_eq!(decoded, 2, "nothing is decoded before a key frame");
    for large in [false, true] {
        call.frame(large, 3, true);
    }
    assert_eq!(call.teacher.stats.snapshot().counters.lesson_frames, 4);
    call.hand.pass(2 * SECOND);
    call.number += 1;
    call.frame(false, BROKEN, true);
    assert_eq!(call.outputs.try_iter().count(), 1);
    assert_eq!(call.teacher.stats.snapshot().counters.lesson_decode_errors, 1);
}

#[test]
fn when_the_share_is_used_up_nothing_is_decoded_until_the_rest_is_over() {
    let mut call = Call::new(other());
    call.second();
    call.state.budget.spend(call.teacher.clock.now(), SPAN);
    call.second();
    let decoded = call.teacher.stats.snapshot().counters.lesson_frames;
    for _ in 0..REST.as_secs() - 2 {
        assert!(call.second().is_empty(), "nothing is asked for meanwhile");
    }
    assert!(call.teacher.stats.snapshot().counters.lesson_frames <= decoded + 1);
    assert!(call.teacher.stats.snapshot().counters.dropped_lesson_frames > 50);
}

#[test]
fn what_was_learned_goes_with_the_publisher() {
    let mut call = Call::new(other());
    call.second();
    assert_eq!(call.state.publishers.len(), 1);
    call.hand.pass(IDLE);
    call.teacher.sweep(&mut call.state);
    assert!(call.state.publishers.is_empty());
}

#[test]
fn only_so_many_publishers_learn_at_a_time() {
    let mut call = Call::new(other());
    for stream in 0..=MAX_STREAMS as u32 {
        let frame = LessonFrame {
            stream: StreamId(stream),
            large: false,
            number: 0,
            low_timestamp: None,
            key: true,
            data: Bytes::from_static(&[1]),
        };
        call.teacher.take(&mut call.state, &frame);
    }
    assert_eq!(call.state.publishers.len(), MAX_STREAMS);
    assert_eq!(call.teacher.stats.snapshot().counters.dropped_lesson_frames, 1);
}

#[test]
fn after_a_panic_the_stream_begins_anew_and_its_weights_are_taken_back() {
    let mut call = Call::new(other());
    call.learn();
    call.frame(false, PANIC, true);
    let back = call.outputs.try_iter().last();
    assert!(matches!(back, Some(EnhancerOutput::Weights(Weights { own: None, .. }))), "{back:?}");
    assert!(call.state.publishers.is_empty());
    assert_eq!(call.teacher.stats.snapshot().counters.panics, 1);
}

/// Frames of a real stream.
const REALTIME: &[u8] = include_bytes!("../../../../hybrid/vp9/tests/fixtures/realtime.ivf");

#[test]
fn lessons_rebuild_the_low_picture_as_viewers_without_anchors_do() {
    let network = Some(Tier::Xs);
    let mut viewer =
        HybridDecoder::new(HybridConfig { scale: BY, network, ..HybridConfig::default() });
    let mut runner = Runner::new(Isa::detect());
    let mut rest = &REALTIME[32..];
    for n in 0..5 {
        let length = u32::from_le_bytes(rest[..4].try_into().expect("four bytes")) as usize;
        let frame = &rest[12..12 + length];
        rest = &rest[12 + length..];
        viewer.push_frame(3000 * n, frame).expect("a sound stream");
        let low = viewer.lr().expect("a picture");
        let [rebuilt, _, _] = enlarge(low, BY);
        let low = Samples::from(&low.planes()[0]);
        let mut shown = rebuilt.clone();
        runner.run(&built_in(), low, (&rebuilt).into(), Changed::All, &mut shown);
        assert!(viewer.hr().is_some_and(|hr| hr.y == shown), "frame {n}");
    }
}
