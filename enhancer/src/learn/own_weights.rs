//! One frame network of one stream, learning the publisher's own last convolution for viewers.
//!
//! Source: [`LastLayer`](windlass_sr::LastLayer), in the integers that viewers run. What is measured is the picture that they
//! will show: cells that no network makes better are left out.
//!
//! Never worse: weights are sent only after validations on new pictures, of which nothing was learned yet, in a row and all
//! of one scene. Each must come out better by them than by the built-in weights, as viewers see it with and without the
//! publisher's own detail. While they are in use, every new picture of their scene validates them. Where one comes out
//! worse, they are taken back and learning begins anew. Viewers keep them from other scenes by themselves ([`Scene`]).

use std::sync::Arc;
use std::time::{Duration, Instant};

use windlass_network::difference::{read, write};
use windlass_network::{Changed, LastLayer, Network, Runner, Scene};
use windlass_sr::Moments;
use windlass_types::weights::OwnWeights;
use windlass_types::{Bitrate, Size};
use windlass_vp9::{Plane, Samples};

/// Validations in a row that must come out better before weights are sent.
const VALIDATIONS: u32 = 2;
/// Minimum gain of a validation over the built-in weights, in dB: less is not seen and costs bytes.
const MIN_GAIN_DB: f64 = 0.1;
/// Minimum time between two updates.
const EVERY: Duration = Duration::from_secs(5);
/// Bitrate of a network's updates at most; what is larger has longer pauses.
const MAX_RATE: Bitrate = Bitrate::kbps(8.0);
/// Decay of a picture's weight per further picture: half after 34.
const KEEP: f64 = 0.98;
/// The same where another scene begins.
const KEEP_AT_CUT: f64 = 0.25;
/// Low samples of a picture that are learned from, about.
const SAMPLES: usize = 4096;
/// One of so many blocks is held back, the same in all pictures.
const HOLD_EVERY: usize = 4;
/// Side of such a block, in low samples.
const BLOCK: usize = 16;
/// Side of the cells of a view's mask, in low samples.
const CELL: usize = windlass_hybrid::cells::CELL;
/// Bits of an update for each of its numbers, at most; the step of the differences is the least by which it is so small.
const BITS: usize = 8;

/// What a viewer has of a picture before the network.
#[derive(Clone, Copy)]
pub struct View<'a> {
    /// The rebuilt luma.
    pub rebuilt: Samples<'a>,
    /// By cell, row by row, whether no network runs there; `None`: it runs everywhere.
    pub kept: Option<&'a [bool]>,
}

/// What is to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing.
    Same,
    /// These weights.
    Send(OwnWeights),
    /// The built-in weights are better now.
    TakeBack,
}

/// Weights that viewers may be given.
#[derive(Clone)]
struct Candidate {
    network: Arc<Network>,
    difference: Vec<u8>,
}

/// Learns one network for one stream and size.
pub struct OwnWeightsTrainer {
    built_in: Arc<Network>,
    learned: Moments,
    held: Moments,
    pictures: usize,
    /// The last weights, to be validated on the next picture.
    candidate: Option<Candidate>,
    validations: u32,
    /// The scene of the last picture.
    scene: Option<Scene>,
    /// What viewers have, and the scene that they have it for.
    sent: Option<(Candidate, Scene)>,
    /// When an update may be sent again.
    due: Option<Instant>,
}

impl OwnWeightsTrainer {
    /// A trainer without pictures.
    pub fn new(built_in: Arc<Network>) -> Self {
        let last = built_in.last_layer();
        let (size, outputs) = (last.weights.len() / last.bias.len() + 1, last.bias.len());
        Self {
            built_in,
            learned: Moments::new(size, outputs),
            held: Moments::new(size, outputs),
            pictures: 0,
            candidate: None,
            validations: 0,
            scene: None,
            sent: None,
            due: None,
        }
    }

    /// Size of the rebuilt pictures over that of the low ones.
    pub fn scale(&self) -> usize {
        self.built_in.scale()
    }

    /// Takes a picture of which `wanted` is the HR luma; `views`: what viewers may have of it.
    ///
    /// # Panics
    ///
    /// Where a view or `wanted` is not of the HR size.
    pub fn lesson(
        &mut self,
        now: Instant,
        runner: &mut Runner,
        low: Samples<'_>,
        views: &[View<'_>],
        wanted: Samples<'_>,
    ) -> Verdict {
        let scene = Scene::of(low);
        if self.scene.as_ref().is_some_and(|last| !last.holds(&scene, true)) {
            self.validations = 0;
            self.learned.scale(KEEP_AT_CUT);
            self.held.scale(KEEP_AT_CUT);
        }
        self.scene = Some(scene);
        let mut test = Test::new(&self.built_in, runner, low, views, wanted);
        if let Some((sent, of)) = &self.sent
            && of.holds(&scene, true)
            && test.gain_db(&sent.network, runner) < 0.0
        {
            // What is learned from then on is not held against what was before.
            let due = self.due;
            *self = Self { due, scene: Some(scene), ..Self::new(self.built_in.clone()) };
            self.learn(runner, low, views, wanted);
            return Verdict::TakeBack;
        }
        let proved = self.candidate.take().filter(|candidate| {
            let better = test.gain_db(&candidate.network, runner) >= MIN_GAIN_DB;
            self.validations = if better { self.validations + 1 } else { 0 };
            self.validations >= VALIDATIONS
        });
        let verdict = proved.map_or(Verdict::Same, |proved| self.send(now, low, proved, scene));
        self.learn(runner, low, views, wanted);
        verdict
    }

    /// Sends weights, if it is time to, and they or their scene are new to viewers.
    fn send(&mut self, now: Instant, low: Samples<'_>, proved: Candidate, scene: Scene) -> Verdict {
        let known = self.sent.as_ref().is_some_and(|(sent, of)| {
            sent.difference == proved.difference && of.holds(&scene, false)
        });
        let side = |length: usize| u16::try_from(length).unwrap_or(u16::MAX);
        if known || self.due.is_some_and(|due| now < due) {
            return Verdict::Same;
        }
        let bits = 8 * proved.difference.len() as u64;
        let pause = Duration::from_secs_f64(bits as f64 / MAX_RATE.as_bps() as f64);
        self.due = Some(now + pause.max(EVERY));
        let own = OwnWeights {
            size: Size::new(side(low.width), side(low.height)),
            hash: proved.network.last_layer().hash(),
            scene: scene.0,
            difference: proved.difference.clone().into(),
        };
        self.sent = Some((proved, scene));
        Verdict::Send(own)
    }

    /// Adds a picture to the sums, and makes new weights of them.
    fn learn(
        &mut self,
        runner: &mut Runner,
        low: Samples<'_>,
        views: &[View<'_>],
        wanted: Samples<'_>,
    ) {
        self.learned.scale(KEEP);
        self.held.scale(KEEP);
        for view in views {
            self.see(runner, low, *view, wanted);
        }
        self.pictures += 1;
        self.candidate = self.fitted();
    }

    /// Adds a view to the sums.
    fn see(&mut self, runner: &mut Runner, low: Samples<'_>, view: View<'_>, wanted: Samples<'_>) {
        let (width, height, scale) = (low.width, low.height, self.scale());
        let seen = runner.features(&self.built_in, low, view.rebuilt);
        let (last, unit) = (self.built_in.last_layer(), f64::from(self.built_in.last_unit()));
        let step = ((width * height).div_ceil(SAMPLES) as f64).sqrt().ceil() as usize;
        let channels = seen.channels();
        let mut features = vec![0.0; self.learned.features()];
        let mut errors = vec![0.0; self.learned.outputs()];
        // Others in each picture, all in time.
        let start = 5 * self.pictures;
        for y in (start / step % step..height).step_by(step) {
            for x in (start % step..width).step_by(step) {
                if view.keeps((x, y), width) {
                    continue;
                }
                for tap in 0..9 {
                    let place = ((x + tap % 3).wrapping_sub(1), (y + tap / 3).wrapping_sub(1));
                    let sample = seen.at(place.0, place.1);
                    for channel in 0..channels {
                        let value = sample.map_or(0.0, |sample| f64::from(sample[channel]));
                        features[9 * channel + tap] = value / unit;
                    }
                }
                features[9 * channels] = 1.0;
                for (output, error) in errors.iter_mut().enumerate() {
                    let weights = &last.weights[9 * channels * output..][..9 * channels];
                    let answer = weights.iter().zip(&features);
                    let answer: f64 = answer.map(|(&w, feature)| f64::from(w) * feature).sum();
                    // Half a unit of the bias is for rounding alone.
                    let answer = answer + f64::from(last.bias[output]) / unit - 0.5;
                    let at = (scale * x + output % scale, scale * y + output / scale);
                    let of = |plane: Samples<'_>| f64::from(plane.row(at.1)[at.0]);
                    *error = of(wanted) - of(view.rebuilt) - answer;
                }
                let held = (x / BLOCK + 2 * (y / BLOCK)) % HOLD_EVERY == HOLD_EVERY - 1;
                let moments = if held { &mut self.held } else { &mut self.learned };
                moments.add(&features, &errors);
            }
        }
    }

    /// Weights that would have been better on what was held back.
    fn fitted(&self) -> Option<Candidate> {
        let (change, _) = self.learned.best_change(&self.held)?;
        let (outputs, taps) = (self.learned.outputs(), self.learned.features() - 1);
        let unit = f64::from(self.built_in.last_unit());
        let mut last = self.built_in.last_layer();
        for output in 0..outputs {
            for (tap, weight) in last.weights[output * taps..][..taps].iter_mut().enumerate() {
                let sum = f64::from(*weight) + change[tap * outputs + output];
                *weight = sum.round() as i16;
            }
            let sum = f64::from(last.bias[output]) + change[taps * outputs + output] * unit;
            last.bias[output] = sum.round() as i32;
        }
        self.coded(&last)
    }

    /// The weights as viewers get them.
    fn coded(&self, last: &LastLayer) -> Option<Candidate> {
        let max = (last.weights.len() + last.bias.len()) * BITS / 8;
        let difference = (0..=8).find_map(|step| {
            write(&self.built_in, last, step).filter(|difference| difference.len() <= max)
        })?;
        let network = read(&self.built_in, &difference).ok()?;
        Some(Candidate { network: Arc::new(network), difference })
    }
}

impl View<'_> {
    /// Whether no network runs at a low sample.
    fn keeps(&self, (x, y): (usize, usize), width: usize) -> bool {
        self.kept.is_some_and(|kept| kept[y / CELL * width.div_ceil(CELL) + x / CELL])
    }
}

/// A picture on which weights are tried.
struct Test<'a> {
    low: Samples<'a>,
    views: &'a [View<'a>],
    wanted: Samples<'a>,
    scale: usize,
    shown: Plane,
    /// By view, the squared error by the built-in weights.
    built_in: Vec<f64>,
}

impl<'a> Test<'a> {
    fn new(
        built_in: &Network,
        runner: &mut Runner,
        low: Samples<'a>,
        views: &'a [View<'a>],
        wanted: Samples<'a>,
    ) -> Self {
        let shown = Plane::filled(wanted.width, wanted.height, 0);
        let scale = built_in.scale();
        let mut test = Self { low, views, wanted, scale, shown, built_in: Vec::new() };
        test.built_in = test.errors(built_in, runner);
        test
    }

    /// What weights gain over the built-in ones where the network runs, in dB: of all views together, or, if one comes out
    /// worse, of that one.
    fn gain_db(&mut self, network: &Network, runner: &mut Runner) -> f64 {
        let own = self.errors(network, runner);
        let gain = |before: f64, after: f64| 10.0 * (before.max(1.0) / after.max(1.0)).log10();
        let worst = self.built_in.iter().zip(&own).map(|(&before, &after)| gain(before, after));
        let worst = worst.fold(f64::INFINITY, f64::min);
        let all = gain(self.built_in.iter().sum(), own.iter().sum());
        if worst < 0.0 { worst } else { all }
    }

    /// By view, the squared error of what a network shows, where it runs.
    fn errors(&mut self, network: &Network, runner: &mut Runner) -> Vec<f64> {
        let Self { low, views, wanted, scale, shown, .. } = self;
        let errors = views.iter().map(|view| {
            runner.run(network, *low, view.rebuilt, Changed::All, shown);
            let mut sum = 0;
            for y in 0..wanted.height {
                let rows = shown.row(y).chunks(CELL * *scale).zip(wanted.row(y).chunks(CELL * *scale));
                for (cell, (shown, wanted)) in rows.enumerate() {
                    if !view.keeps((cell * CELL, y / *scale), low.width) {
                        let pairs = shown.iter().zip(wanted);
                        sum += pairs.map(|(a, b)| u64::from(a.abs_diff(*b)).pow(2)).sum::<u64>();
                    }
                }
            }
            sum as f64
        });
        errors.collect()
    }
}

#[cfg(test)]
mod tests {
    use windlass_network::Tier;
    use windlass_vp9::simd::Isa;

    use super::*;

    const LOW: (usize, usize) = (96, 64);

    fn built_in() -> Arc<Network> {
        Tier::Xxs.networks()[0].clone()
    }

    /// A picture with something of everything, and what the filters make of it, each second another.
    fn picture(second: usize, darker: u8) -> (Plane, Plane) {
        let at = |x: usize, y: usize| {
            let stripes = if (x + 3 * second) / 5 % 2 == 0 { 70 } else { 0 };
            let rough = (x * 31 + y * 17 + second * 7) * 2_654_435_761 >> 9 & 31;
            (60 + stripes + y + rough) as u8 - darker.min(50)
        };
        let low = (0..LOW.0 * LOW.1).map(|i| at(2 * (i % LOW.0), 2 * (i / LOW.0)));
        let high = (0..4 * LOW.0 * LOW.1).map(|i| at(i % (2 * LOW.0) / 2 * 2, i / (2 * LOW.0)));
        let plane = |size: (usize, usize), samples: Vec<u8>| Plane::from_samples(size.0, size.1, samples).unwrap();
        (plane(LOW, low.collect()), plane((2 * LOW.0, 2 * LOW.1), high.collect()))
    }

    /// The built-in network with another last convolution.
    fn other() -> Network {
        let built_in = built_in();
        let mut last = built_in.last_layer();
        for (n, weight) in last.weights.iter_mut().enumerate() {
            *weight = (f64::from(*weight) * if n % 3 == 0 { 0.4 } else { 1.2 }) as i16;
        }
        last.bias[1] += 3 * built_in.last_unit() as i32;
        built_in.with_last_layer(&last).unwrap()
    }

    /// A call in which each picture's truth is what some network makes of it.
    struct Call {
        trainer: OwnWeightsTrainer,
        runner: Runner,
        start: Instant,
        second: usize,
    }

    impl Call {
        fn new() -> Self {
            let trainer = OwnWeightsTrainer::new(built_in());
            Self { trainer, runner: Runner::new(Isa::detect()), start: Instant::now(), second: 0 }
        }

        fn second(&mut self, truth: &Network) -> Verdict {
            self.darker_second(truth, 0)
        }

        fn darker_second(&mut self, truth: &Network, darker: u8) -> Verdict {
            let (low, high) = picture(self.second, darker);
            self.second += 1;
            let mut wanted = high.clone();
            self.runner.run(truth, (&low).into(), (&high).into(), Changed::All, &mut wanted);
            let now = self.start + Duration::from_secs(self.second as u64);
            let views = [View { rebuilt: (&high).into(), kept: None }];
            self.trainer.lesson(now, &mut self.runner, (&low).into(), &views, (&wanted).into())
        }
    }

    fn sent(verdict: &Verdict) -> &OwnWeights {
        let Verdict::Send(own) = verdict else { panic!("nothing was sent: {verdict:?}") };
        own
    }

    #[test]
    fn weights_are_sent_once_new_pictures_have_proved_them_and_then_no_more_than_every_five_seconds() {
        let (mut call, truth) = (Call::new(), other());
        assert_eq!(call.second(&truth), Verdict::Same);
        assert_eq!(call.second(&truth), Verdict::Same, "one validation");
        let verdict = call.second(&truth);
        let own = sent(&verdict);
        let network = read(&built_in(), &own.difference).unwrap();
        assert_eq!(network.last_layer().hash(), own.hash);
        assert!(own.difference.len() <= network.last_layer().weights.len() + 4);
        let (low, high) = picture(40, 0);
        let mut made = |network: &Network| {
            let mut shown = high.clone();
            call.runner.run(network, (&low).into(), (&high).into(), Changed::All, &mut shown);
            shown
        };
        let wanted = made(&truth);
        let mut far = |network: &Network| {
            let pairs = made(network);
            let pairs = pairs.samples().iter().zip(wanted.samples());
            pairs.map(|(a, b)| u64::from(a.abs_diff(*b)).pow(2)).sum::<u64>()
        };
        assert!(far(&network) < far(&built_in()) / 4);
        for second in 1..5 {
            assert_eq!(call.second(&truth), Verdict::Same, "{second} s later");
        }
    }

    #[test]
    fn nothing_is_sent_where_the_built_in_weights_are_right() {
        let mut call = Call::new();
        for _ in 0..8 {
            assert_eq!(call.second(&built_in()), Verdict::Same);
        }
    }

    #[test]
    fn weights_are_taken_back_by_the_first_picture_that_comes_out_worse() {
        let (mut call, truth) = (Call::new(), other());
        while !matches!(call.second(&truth), Verdict::Send(_)) {
            assert!(call.second < 9);
        }
        assert_eq!(call.second(&built_in()), Verdict::TakeBack);
        assert_eq!(call.second(&built_in()), Verdict::Same);
    }

    #[test]
    fn another_scene_needs_proof_of_its_own_and_takes_nothing_back() {
        let (mut call, truth) = (Call::new(), other());
        while !matches!(call.second(&truth), Verdict::Send(_)) {
            assert!(call.second < 9);
        }
        let before = call.trainer.sent.as_ref().unwrap().1;
        // The built-in weights are right there: viewers have them by themselves.
        for _ in 0..7 {
            assert_eq!(call.darker_second(&built_in(), 50), Verdict::Same);
        }
        assert!(!before.holds(&call.trainer.scene.unwrap(), true));
    }

    #[test]
    fn cells_in_which_no_network_runs_count_for_nothing() {
        let (truth, mut call) = (other(), Call::new());
        let cells = LOW.0.div_ceil(CELL) * LOW.1.div_ceil(CELL);
        let all = vec![true; cells];
        for second in 0..6 {
            let (low, high) = picture(second, 0);
            let mut wanted = high.clone();
            call.runner.run(&truth, (&low).into(), (&high).into(), Changed::All, &mut wanted);
            let views = [View { rebuilt: (&high).into(), kept: Some(&all) }];
            let verdict =
                call.trainer.lesson(call.start, &mut call.runner, (&low).into(), &views, (&wanted).into());
            assert_eq!(verdict, Verdict::Same);
        }
    }

    #[test]
    fn a_picture_counts_as_better_only_if_it_is_in_every_view() {
        let (truth, mut runner) = (other(), Runner::new(Isa::detect()));
        let (low, high) = picture(3, 0);
        let mut wanted = high.clone();
        runner.run(&truth, (&low).into(), (&high).into(), Changed::All, &mut wanted);
        let good = View { rebuilt: (&high).into(), kept: None };
        let mut lighter = high.clone();
        // A rebuilt picture that is right already is made worse by any network that adds much.
        lighter.samples_mut().copy_from_slice(wanted.samples());
        let bad = View { rebuilt: (&lighter).into(), kept: None };
        let mut gain = |views: &[View<'_>]| {
            Test::new(&built_in(), &mut runner, (&low).into(), views, (&wanted).into())
                .gain_db(&truth, &mut runner)
        };
        assert!(gain(&[good]) > 1.0);
        assert!(gain(&[bad]) < 0.0);
        assert!(gain(&[good, bad]) < 0.0);
    }
}
