//! Learns a publisher's own last convolution of a frame network, for viewers who run that network.
//!
//! Source: [`LastLayer`](windlass_sr::LastLayer), in the integers that viewers run. A [`Lesson`] is a low picture, the
//! picture that viewers without anchors rebuild of it, and the publisher's own picture.
//!
//! What was learned is tried on the next lesson, by several strengths of the pull to the built-in weights. The strength
//! that did best on such later pictures is used: held-back blocks of the same picture promise twice as much as later
//! pictures keep. All pictures count alike, whatever their error.
//!
//! Weights are sent only after validations on new pictures of one scene, from which nothing was learned yet. Each must
//! come out better than by the built-in weights. Afterwards each new picture of the scene validates the weights that
//! were sent. If one comes out worse, they are taken back, and what was learned before counts for less. Viewers do not
//! use them in other scenes ([`Scene`]).

use std::sync::Arc;
use std::time::{Duration, Instant};

use windlass_network::difference::{read, write};
use windlass_network::{Changed, LastLayer, Network, Runner, Scene};
use windlass_sr::Moments;
use windlass_types::Size;
use windlass_types::weights::OwnWeights;
use windlass_vp9::{Plane, Samples};

/// Validations in a row that must come out better before weights are sent, the last on a picture of the scene of now.
const VALIDATIONS: u32 = 2;
/// Minimum gain of a validation over the built-in weights, in dB.
const MIN_GAIN_DB: f64 = 0.05;
/// Loss that counts as none, in dB.
const NO_LOSS_DB: f64 = 0.01;
/// Mean squared error that nobody sees. It is added to both errors of a comparison, so that pictures that are right
/// already decide nothing.
const UNSEEN: f64 = 0.5;
/// Minimum time between two updates.
const EVERY: Duration = Duration::from_secs(5);
/// Decay of a picture's weight per further picture: half after 34.
const KEEP: f64 = 0.98;
/// The same where another scene begins, or weights are taken back.
const KEEP_AT_CUT: f64 = 0.5;
/// Strengths of the pull to the built-in weights that are tried.
const PULLS: [f64; 6] = [0.003, 0.01, 0.03, 0.1, 0.3, 1.0];
/// Low samples of a picture that are learned from, about.
const SAMPLES: usize = 3000;
/// Maximum bits of an update for each of its numbers. The step of the differences is the least that keeps to it.
const BITS: usize = 8;

/// A picture to learn from.
#[derive(Clone, Copy)]
pub struct Lesson<'a> {
    /// The low luma.
    pub low: Samples<'a>,
    /// The luma that viewers rebuild of it, before the network.
    pub rebuilt: Samples<'a>,
    /// The publisher's own luma.
    pub wanted: Samples<'a>,
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
    /// The change of weights by each pull.
    changes: [Option<Vec<f64>>; PULLS.len()],
    /// By each pull, the logarithms of the errors that its changes left of those of later pictures, as a sum.
    trials: [f64; PULLS.len()],
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
            changes: [const { None }; PULLS.len()],
            trials: [0.0; PULLS.len()],
            pictures: 0,
            candidate: None,
            validations: 0,
            scene: None,
            sent: None,
            due: None,
        }
    }

    /// Size of the rebuilt pictures over that of the low ones.
    fn scale(&self) -> usize {
        self.built_in.scale()
    }

    /// Learns from a picture.
    ///
    /// # Panics
    ///
    /// Where one of its lumas is not of the size that the others need.
    pub fn lesson(&mut self, now: Instant, runner: &mut Runner, lesson: Lesson<'_>) -> Verdict {
        let scene = Scene::of(lesson.low);
        if self.scene.as_ref().is_some_and(|last| !last.holds(&scene, true)) {
            self.learned.scale(KEEP_AT_CUT);
        }
        self.scene = Some(scene);
        // Viewers have dropped them by themselves; newcomers shall not get them.
        let stale = self.sent.take_if(|(_, of)| !of.holds(&scene, true)).is_some();
        let mut test = Test::new(&self.built_in, runner, lesson);
        if let Some((sent, _)) = &self.sent
            && test.gain_db(&sent.network, runner) < -NO_LOSS_DB
        {
            self.take_back();
            self.learned.scale(KEEP_AT_CUT);
            self.learn(runner, lesson, test.mean());
            return Verdict::TakeBack;
        }
        let proved = self.candidate.take().filter(|candidate| {
            let gain = test.gain_db(&candidate.network, runner);
            tracing::trace!(gain, "own weights tried");
            if gain < -NO_LOSS_DB {
                self.validations = 0;
            } else if gain >= MIN_GAIN_DB {
                self.validations += 1;
            }
            gain >= MIN_GAIN_DB && self.validations >= VALIDATIONS
        });
        let verdict =
            proved.map_or(Verdict::Same, |proved| self.send(now, lesson.low, proved, scene));
        self.learn(runner, lesson, test.mean());
        if stale && verdict == Verdict::Same { Verdict::TakeBack } else { verdict }
    }

    /// Takes back what viewers have, as it cannot be proved for now; whether they have anything.
    fn take_back(&mut self) -> bool {
        self.validations = 0;
        self.sent.take().is_some()
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
        self.due = Some(now + EVERY);
        let own = OwnWeights {
            size: Size::new(side(low.width), side(low.height)),
            hash: proved.network.last_layer().hash(),
            scene: scene.0,
            difference: proved.difference.clone().into(),
        };
        self.sent = Some((proved, scene));
        Verdict::Send(own)
    }

    /// Tries what was learned on a picture of this mean squared error, adds it to the sums, and makes new weights of
    /// them.
    fn learn(&mut self, runner: &mut Runner, lesson: Lesson<'_>, error: f64) {
        let (mut seen, count) = self.seen(runner, lesson);
        seen.scale(1.0 / error.max(UNSEEN));
        let (before, unseen) = (seen.squares(), count as f64 * UNSEEN / error.max(UNSEEN));
        if count > 0 {
            for (trial, change) in self.trials.iter_mut().zip(&self.changes) {
                let left = change.as_ref().map_or(before, |change| seen.left_by(change));
                *trial = KEEP * *trial + ((left.max(0.0) + unseen) / (before + unseen)).ln();
            }
        }
        self.learned.scale(KEEP);
        self.learned.merge(&seen);
        self.pictures += 1;
        self.changes = PULLS.map(|pull| self.learned.solve(pull));
        let best = self.trials.iter().zip(&self.changes).min_by(|a, b| a.0.total_cmp(b.0));
        let best = best.filter(|(trial, _)| **trial < 0.0).and_then(|(_, change)| change.clone());
        self.candidate = best.and_then(|change| self.changed(&change));
    }

    /// The sums over a picture, and of how many high samples they are.
    fn seen(&self, runner: &mut Runner, lesson: Lesson<'_>) -> (Moments, usize) {
        let Lesson { low, rebuilt, wanted } = lesson;
        let mut moments = Moments::new(self.learned.features(), self.learned.outputs());
        let (width, height, scale) = (low.width, low.height, self.scale());
        let seen = runner.features(&self.built_in, low, rebuilt);
        let (last, unit) = (self.built_in.last_layer(), f64::from(self.built_in.last_unit()));
        let step = ((width * height).div_ceil(SAMPLES) as f64).sqrt().ceil() as usize;
        let channels = seen.channels();
        let mut features = vec![0.0; self.learned.features()];
        let mut errors = vec![0.0; self.learned.outputs()];
        let mut count = 0;
        // Others in each picture, all in time.
        let start = 5 * self.pictures;
        for y in (start / step % step..height).step_by(step) {
            for x in (start % step..width).step_by(step) {
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
                    *error = of(wanted) - of(rebuilt) - answer;
                }
                moments.add(&features, &errors);
                count += errors.len();
            }
        }
        (moments, count)
    }

    /// The built-in weights with a change.
    fn changed(&self, change: &[f64]) -> Option<Candidate> {
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

/// A picture on which weights are tried.
struct Test<'a> {
    lesson: Lesson<'a>,
    shown: Plane,
    /// The squared error by the built-in weights.
    built_in: f64,
}

impl<'a> Test<'a> {
    fn new(built_in: &Network, runner: &mut Runner, lesson: Lesson<'a>) -> Self {
        let shown = Plane::filled(lesson.wanted.width, lesson.wanted.height, 0);
        let mut test = Self { lesson, shown, built_in: 0.0 };
        test.built_in = test.error(built_in, runner);
        test
    }

    /// The mean squared error by the built-in weights.
    fn mean(&self) -> f64 {
        self.built_in / (self.shown.width() * self.shown.height()).max(1) as f64
    }

    /// What weights gain over the built-in ones, in dB.
    fn gain_db(&mut self, network: &Network, runner: &mut Runner) -> f64 {
        let unseen = UNSEEN * (self.shown.width() * self.shown.height()) as f64;
        let own = self.error(network, runner);
        10.0 * ((self.built_in + unseen) / (own + unseen)).log10()
    }

    /// The squared error of the picture that a network shows.
    fn error(&mut self, network: &Network, runner: &mut Runner) -> f64 {
        let Self { lesson, shown, .. } = self;
        runner.run(network, lesson.low, lesson.rebuilt, Changed::All, shown);
        let wanted = lesson.wanted;
        let squares = (0..wanted.height).map(|y| {
            let pairs = shown.row(y).iter().zip(wanted.row(y));
            pairs.map(|(a, b)| u64::from(a.abs_diff(*b)).pow(2)).sum::<u64>()
        });
        squares.sum::<u64>() as f64
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
            let x = x + 10 * second;
            let stripes = if x / 5 % 2 == 0 { 70 } else { 0 };
            let rough = (x * 31 + y * 17) * 2_654_435_761 >> 9 & 31;
            (60 + stripes + y / 2 + rough) as u8 - darker.min(50)
        };
        let low = (0..LOW.0 * LOW.1).map(|i| at(2 * (i % LOW.0), 2 * (i / LOW.0)));
        let high = (0..4 * LOW.0 * LOW.1).map(|i| at(i % (2 * LOW.0) / 2 * 2, i / (2 * LOW.0)));
        let plane = |size: (usize, usize), samples: Vec<u8>| {
            Plane::from_samples(size.0, size.1, samples).unwrap()
        };
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
            self.trainer.lesson(now, &mut self.runner, lesson(&low, &high, &wanted))
        }
    }

    fn lesson<'a>(low: &'a Plane, high: &'a Plane, wanted: &'a Plane) -> Lesson<'a> {
        Lesson { low: low.into(), rebuilt: high.into(), wanted: wanted.into() }
    }

    fn sent(verdict: &Verdict) -> &OwnWeights {
        let Verdict::Send(own) = verdict else { panic!("nothing was sent: {verdict:?}") };
        own
    }

    #[test]
    fn weights_are_sent_once_new_pictures_have_proved_them_and_then_no_more_than_every_five_seconds()
     {
        let (mut call, truth) = (Call::new(), other());
        for what in ["nothing is known", "nothing was tried", "one validation"] {
            assert_eq!(call.second(&truth), Verdict::Same, "{what}");
        }
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
        assert!(far(&network) < far(&built_in()) / 2);
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
    fn another_scene_needs_proof_of_its_own() {
        let (mut call, truth) = (Call::new(), other());
        while !matches!(call.second(&truth), Verdict::Send(_)) {
            assert!(call.second < 9);
        }
        let before = call.trainer.sent.as_ref().unwrap().1;
        // The built-in weights are right there: viewers have them by themselves, and newcomers get no others.
        assert_eq!(call.darker_second(&built_in(), 50), Verdict::TakeBack);
        for _ in 0..7 {
            assert_eq!(call.darker_second(&built_in(), 50), Verdict::Same);
        }
        assert!(!before.holds(&call.trainer.scene.unwrap(), true));
    }

    #[test]
    fn what_was_taken_back_is_proved_anew_before_it_is_sent_again() {
        let (mut call, truth) = (Call::new(), other());
        while !matches!(call.second(&truth), Verdict::Send(_)) {
            assert!(call.second < 9);
        }
        assert!(call.trainer.take_back() && !call.trainer.take_back());
        call.second += 9;
        assert_eq!(call.second(&truth), Verdict::Same);
        sent(&call.second(&truth));
    }
}
