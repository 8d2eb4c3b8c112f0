//! The controller before a publisher that is a model itself, with a truth that the controller does not know.

use proptest::prelude::*;

use super::super::meter::LowMeasure;
use super::super::model::across;
use super::super::texture::Texture;
use super::*;

const SIZE: Size = Size::new(640, 360);

/// A publisher whose content behaves as a [`Model`] does.
#[derive(Clone)]
struct Publisher {
    truth: Model,
    /// Measurements are off by so much, up and down.
    noise: f64,
    state: u64,
    /// The next interval is the first of this content.
    cut: bool,
}

fn texture(bits: f64) -> Texture {
    let mut texture = Texture::default();
    // Blocks of two variances that mix to the wanted number of bits.
    for n in 0..100 {
        let part = if f64::from(n) < 50.0 { 0.6 } else { 1.4 };
        texture.add(2.0 * ((bits * part).exp2() - 1.0));
    }
    texture
}

impl Publisher {
    /// Content whose half layer has this step at 100 kbit/s and 30 frames a second.
    fn new(step: f64, texture_bits: [f64; 3], motion: f64) -> Publisher {
        let complexity = (step * 100.0 / 30f64.sqrt()).ln();
        let bits = texture_bits.map(|bits| texture(bits).bits());
        let truth = Model {
            bits,
            complexity: Layer::ALL.map(|layer| across(Layer::H, layer, step, complexity)),
            motion,
            camera_fps: 30.0,
            area: 640.0 * 360.0,
            scale: 4,
            enhanced_gain_db: None,
        };
        Publisher { truth, noise: 0.0, state: 1, cut: true }
    }

    fn shaken(&mut self, value: f64) -> f64 {
        self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let unit = (self.state >> 33) as f64 / f64::from(1u32 << 31) * 2.0 - 1.0;
        value * (1.0 + self.noise * unit)
    }

    fn measure(&mut self, knobs: &Knobs, uplink: f64) -> Measurements {
        let kbps = self.truth.expect(knobs).bitrate.as_kbps();
        let step = (self.truth.complexity[knobs.layer as usize] + 0.5 * knobs.fps.ln()).exp()
            / kbps.max(1.0);
        let distance = 30.0 / knobs.fps;
        let motion = self.truth.motion * [0.75, 0.92, 1.0][knobs.layer as usize];
        let all = self.truth.bits.map(texture_of);
        let first = Layer::F as usize - knobs.layer as usize;
        let octaves = std::array::from_fn(|i| if i < first { Texture::default() } else { all[i] });
        let low = LowMeasure {
            layer: knobs.layer,
            bitrate: Bitrate::kbps(kbps),
            fps: knobs.fps,
            inter_bitrate: Bitrate::kbps(self.shaken(kbps)),
            inter_step: self.shaken(step),
            motion: self.shaken(motion * distance.powf(1.38)),
            cut: std::mem::take(&mut self.cut),
            octaves,
        };
        Measurements {
            span: Duration::from_secs(1),
            uplink: Bitrate::kbps(uplink),
            size: SIZE,
            low: Some(low),
            enhanced_gain_db: None,
        }
    }

    /// The best that any knobs could give.
    fn best(&self, uplink: f64) -> f64 {
        let mut best = f64::MIN;
        for layer in Layer::ALL {
            for fps in [15.0, 30.0] {
                for usage in [0.3, 0.5, 0.75, 1.0] {
                    let bitrate = Bitrate::kbps(uplink * usage);
                    let knobs =
                        Knobs { layer, fps, bitrate, anchor_fraction: 0.0, anchor_bytes: 0 };
                    best = best.max(self.worth(&knobs, uplink));
                }
            }
        }
        best
    }

    fn worth(&self, knobs: &Knobs, uplink: f64) -> f64 {
        let expected = self.truth.expect(knobs);
        let share = expected.bitrate.as_kbps() / uplink;
        let price = ControllerConfig::default().bits_price;
        expected.quality - price * share.min(1.0) - OVER_PRICE * (share - 1.0).max(0.0)
    }
}

/// A texture of so many bits, as far as octaves of variance allow.
fn texture_of(bits: f64) -> Texture {
    let (mut low, mut high) = (0.0, 12.0);
    for _ in 0..40 {
        let middle = f64::midpoint(low, high);
        if texture(middle).bits() < bits { low = middle } else { high = middle }
    }
    texture(high)
}

/// Runs so many intervals; what held in each.
fn run(
    controller: &mut Controller,
    publisher: &mut Publisher,
    intervals: std::ops::Range<u64>,
    uplink: f64,
) -> Vec<Knobs> {
    let mut knobs =
        controller.current.unwrap_or_else(|| controller.start(Bitrate::kbps(uplink), SIZE));
    let mut held = Vec::new();
    for n in intervals {
        held.push(knobs);
        let measured = publisher.measure(&knobs, uplink);
        knobs = controller.observe(Duration::from_secs(n + 1), &measured).unwrap_or(knobs);
    }
    held
}

fn sharp() -> Publisher {
    Publisher::new(20.0, [1.0, 1.9, 3.0], 6.0)
}

fn soft() -> Publisher {
    Publisher::new(33.0, [0.5, 1.1, 2.9], 30.0)
}

#[test]
fn five_intervals_after_any_change_the_knobs_are_near_the_best() {
    let mut controller = Controller::new(ControllerConfig::default());
    let mut from = 0;
    for (mut publisher, uplink) in
        [(sharp(), 300.0), (sharp(), 60.0), (soft(), 60.0), (soft(), 200.0), (sharp(), 100.0)]
    {
        let held = run(&mut controller, &mut publisher, from..from + 8, uplink);
        from += 8;
        let (worth, best) = (publisher.worth(&held[5], uplink), publisher.best(uplink));
        assert!(worth > best - 1.0, "{uplink} kbit/s: {worth} of {best} by {:?}", held[5]);
    }
}

#[test]
fn it_begins_with_the_full_layer_only_where_that_is_clearly_the_better_one() {
    let first = |uplink, size| {
        Controller::new(ControllerConfig::default()).start(Bitrate::kbps(uplink), size).layer
    };
    assert_eq!([80.0, 300.0].map(|uplink| first(uplink, SIZE)), [Layer::H, Layer::F]);
    assert_eq!(first(300.0, Size::new(1920, 1080)), Layer::H);
}

#[test]
fn the_uplink_is_never_exceeded_from_the_first_word_on_a_fall() {
    let mut controller = Controller::new(ControllerConfig::default());
    let mut publisher = sharp();
    run(&mut controller, &mut publisher, 0..6, 300.0);
    let before = controller.current.unwrap();
    let measured = publisher.measure(&before, 50.0);
    let knobs = controller.observe(Duration::from_secs(20), &measured).expect("it must answer");
    assert!(knobs.bitrate <= Bitrate::kbps(50.0), "{knobs:?}");
}

#[test]
fn noisy_measurements_between_two_layers_do_not_make_it_oscillate() {
    // An uplink at which half and full size are worth the same.
    let mut publisher = soft();
    let gap = |publisher: &Publisher, uplink: f64| {
        let of = |layer| {
            let knobs = Knobs {
                layer,
                fps: 30.0,
                bitrate: Bitrate::kbps(uplink),
                anchor_fraction: 0.0,
                anchor_bytes: 0,
            };
            publisher.worth(&knobs, uplink)
        };
        (of(Layer::F) - of(Layer::H)).abs()
    };
    let tie =
        (40..400).map(f64::from).min_by(|a, b| gap(&publisher, *a).total_cmp(&gap(&publisher, *b)));
    let tie = tie.unwrap();
    publisher.noise = 0.1;
    let mut controller = Controller::new(ControllerConfig::default());
    let held = run(&mut controller, &mut publisher, 0..120, tie);
    let switches = held.windows(2).filter(|pair| pair[0].layer != pair[1].layer).count();
    assert!(switches <= 3, "{switches} switches in two minutes at {tie} kbit/s");
}

#[test]
fn missing_and_absurd_measurements_leave_the_knobs_alone() {
    let mut controller = Controller::new(ControllerConfig::default());
    let mut publisher = sharp();
    run(&mut controller, &mut publisher, 0..8, 150.0);
    let before = controller.current.unwrap();
    let good = publisher.measure(&before, 150.0);
    let low = good.low.unwrap();
    let wrong = [
        Measurements { low: None, ..good },
        Measurements { uplink: Bitrate::kbps(f64::NAN), ..good },
        Measurements { uplink: Bitrate::kbps(-3.0), ..good },
        Measurements { low: Some(LowMeasure { inter_step: f64::NAN, ..low }), ..good },
        Measurements { low: Some(LowMeasure { inter_bitrate: Bitrate::ZERO, ..low }), ..good },
        Measurements { low: Some(LowMeasure { motion: f64::INFINITY, ..low }), ..good },
        Measurements { low: Some(LowMeasure { fps: -1.0, ..low }), ..good },
    ];
    for (n, measured) in wrong.iter().enumerate() {
        let answer = controller.observe(Duration::from_secs(100 + n as u64), measured);
        assert_eq!((answer, controller.current), (None, Some(before)), "{measured:?}");
    }
    assert_eq!(controller.observe(Duration::from_secs(3), &good), None, "time that runs back");
}

#[test]
fn layers_that_a_publisher_lacks_are_not_asked_for() {
    let config = ControllerConfig { layers: vec![Layer::Q], ..ControllerConfig::default() };
    let mut controller = Controller::new(config);
    let held = run(&mut controller, &mut sharp(), 0..8, 500.0);
    assert!(held.iter().all(|knobs| knobs.layer == Layer::Q));
}

#[test]
fn anchors_that_gain_nothing_are_no_longer_made_and_unknown_ones_stay() {
    let mut told =
        Controller::new(ControllerConfig { layers: vec![Layer::H], ..Default::default() });
    let mut publisher = sharp();
    let mut knobs = told.start(Bitrate::kbps(150.0), SIZE);
    let first = knobs.anchor_fraction;
    for n in 1..8 {
        let measured = publisher.measure(&knobs, 150.0);
        knobs = told.observe(Duration::from_secs(n), &measured).unwrap_or(knobs);
    }
    assert!((knobs.anchor_fraction - first).abs() < 1e-9);
    for n in 8..16 {
        let measured =
            Measurements { enhanced_gain_db: Some(0.0), ..publisher.measure(&knobs, 150.0) };
        knobs = told.observe(Duration::from_secs(n), &measured).unwrap_or(knobs);
    }
    assert!(knobs.anchor_fraction < 0.002, "{knobs:?}");
}

proptest! {
    #[test]
    fn whatever_is_measured_knobs_stay_in_their_ranges_and_equal_calls_give_equal_knobs(
        measured in prop::collection::vec(
            (
                prop::array::uniform6(prop_oneof![
                    5 => 0.0..500.0f64, 1 => Just(f64::NAN), 1 => -10.0..1e12,
                ]),
                0usize..3,
            ),
            1..12,
        ),
    ) {
        let mut pair = [(); 2].map(|()| Controller::new(ControllerConfig::default()));
        for (n, (values, layer)) in measured.iter().enumerate() {
            let [kbps, step, motion, fps, uplink, bits] = *values;
            let layer = Layer::ALL[*layer];
            let low = LowMeasure {
                layer,
                bitrate: Bitrate::kbps(kbps),
                fps,
                inter_bitrate: Bitrate::kbps(kbps),
                inter_step: step,
                motion,
                cut: motion > 100.0,
                octaves: [texture(bits.clamp(0.0, 10.0)); 3],
            };
            let measured = Measurements {
                span: Duration::from_secs(1),
                uplink: Bitrate::kbps(uplink),
                size: SIZE,
                low: Some(low),
                enhanced_gain_db: Some(motion),
            };
            let now = Duration::from_secs(n as u64 + 1);
            let before = pair[0].at;
            let [one, two] = pair.each_mut().map(|c| c.observe(now, &measured));
            prop_assert_eq!(one, two);
            let same_layer = one.is_none_or(|knobs| pair[1].current.is_some_and(|s| s.layer == knobs.layer));
            prop_assert!(same_layer);
            for (at, before) in pair[0].at.iter().zip(before) {
                prop_assert!((0.0..=1.0).contains(at) && before.is_finite());
            }
            let Some(knobs) = one else { continue };
            prop_assert!(knobs.bitrate <= Bitrate::kbps(uplink.max(1.0)));
            prop_assert!(knobs.fps >= 14.9 && knobs.fps <= 30.1 && knobs.bitrate > Bitrate::ZERO);
            prop_assert!((0.0..=0.1).contains(&knobs.anchor_fraction));
        }
    }
}
