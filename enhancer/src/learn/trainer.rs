//! Trains one network of one stream, picture by picture.
//!
//! Learned weights are never worse than the generic ones on what was seen. They are used only after validations on new
//! pictures, from which nothing was learned yet. In each, they must give a better result than the generic weights, for
//! every input that the network may get. Every new picture validates the weights before it is learned from. If one
//! gives a worse result, the generic weights are used again, and training restarts.

use std::sync::Arc;

use windlass_sr::{Engine, InferError, Input, LastLayer, Learned, Luma, Model, SwapError};

/// Minimum pictures before weights are fitted.
const MIN_PICTURES: u64 = 2;
/// Validations in a row that must come out better before weights are first used, each on a new picture.
const VALIDATIONS: u32 = 2;
/// Decay of a picture's weight per further picture: half after 34.
const KEEP: f64 = 0.98;

/// Result of a training step.
#[derive(Debug, Clone)]
pub(crate) enum Report {
    /// The weights in use stay in use.
    Same,
    /// The given weights are better: they are to be used.
    Use(Arc<Model>),
    /// The learned weights do not fit any more: the generic ones are to be used.
    GivenUp,
}

/// Trains one network of one stream.
pub(crate) struct Trainer {
    generic: Arc<Model>,
    sums: LastLayer,
    /// Weights that were fitted last, to be validated on the next picture.
    candidate: Option<Learned>,
    validations: u32,
    used: Option<Arc<Model>>,
    pictures: u64,
}

impl Trainer {
    /// Creates a trainer without samples. `used` are weights that were learned before and are in use.
    pub(crate) fn new(generic: Arc<Model>, used: Option<Arc<Model>>) -> Self {
        let known = used.clone().map(|model| Learned { model, held_back_db: 0.0 });
        Trainer {
            sums: LastLayer::new(generic.clone()),
            generic,
            candidate: known,
            validations: 0,
            used,
            pictures: 0,
        }
    }

    /// Validates and trains with a picture whose HR luma is `wanted`. `views` are the inputs that the network may get
    /// for it; the first is what it would get now, and is learned from. `engine` must have the generic network's
    /// architecture.
    pub(crate) fn train(
        &mut self,
        engine: &mut dyn Engine,
        views: &[Input<'_>],
        wanted: Luma<'_>,
    ) -> Result<Report, InferError> {
        let Some(view) = views.first() else { return Ok(Report::Same) };
        let report = self.tried(engine, views, wanted)?;
        if matches!(report, Report::GivenUp) {
            return Ok(report);
        }
        self.sums.forget(KEEP);
        let seen = self.sums.see(engine, view, wanted);
        self.sums.release();
        seen?;
        self.pictures += 1;
        if self.pictures >= MIN_PICTURES
            && let Some(learned) = self.sums.learned()
            && runs_alike(engine, &self.generic, &learned.model)?
        {
            self.candidate = Some(learned);
        }
        Ok(report)
    }

    /// Validates the last weights on a picture from which they did not learn.
    fn tried(
        &mut self,
        engine: &mut dyn Engine,
        views: &[Input<'_>],
        wanted: Luma<'_>,
    ) -> Result<Report, InferError> {
        let Some(candidate) = &self.candidate else { return Ok(Report::Same) };
        let mut min = f64::INFINITY;
        for view in views {
            let gain = candidate.gain_db(engine, &self.generic, view, wanted)?;
            tracing::trace!(gain, held_back = candidate.held_back_db, "learned weights tried");
            min = min.min(gain);
        }
        if min < 0.0 {
            if self.used.is_some() {
                *self = Trainer::new(self.generic.clone(), None);
                return Ok(Report::GivenUp);
            }
            (self.candidate, self.validations) = (None, 0);
            return Ok(Report::Same);
        }
        self.validations += 1;
        let known = self.used.as_ref().is_some_and(|used| Arc::ptr_eq(used, &candidate.model));
        if known || (self.used.is_none() && self.validations < VALIDATIONS) {
            return Ok(Report::Same);
        }
        self.used = Some(candidate.model.clone());
        Ok(Report::Use(candidate.model.clone()))
    }
}

/// Whether an engine runs learned weights in the same type of number as the generic ones. In another type, the time
/// would be that of a network that was not measured.
fn runs_alike(
    engine: &mut dyn Engine,
    generic: &Arc<Model>,
    learned: &Arc<Model>,
) -> Result<bool, InferError> {
    let failed = |error: SwapError| InferError::Device(error.to_string());
    engine.swap(learned).map_err(failed)?;
    let own = engine.backend();
    engine.swap(generic).map_err(failed)?;
    Ok(own == engine.backend())
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_sr::fixtures::{LOW, changed, made, pictures, scaled};
    use windlass_sr::{Architecture, CpuEngine};

    const HIGH: (usize, usize) = (2 * LOW.0, 2 * LOW.1);

    fn view(low: &[u8]) -> Input<'_> {
        Input { low: Luma::packed(low, LOW.0, LOW.1).unwrap(), twin: None }
    }

    fn networks() -> (Arc<Model>, Arc<Model>) {
        let generic = Arc::new(Model::random(Architecture::chain(2, 8, 3), 3).unwrap());
        let other = changed(&generic);
        (generic, other)
    }

    /// A trainer in a call of which each second's truth is what some network makes of the picture.
    struct Call {
        trainer: Trainer,
        engine: CpuEngine,
        seconds: usize,
    }

    impl Call {
        fn new(generic: &Arc<Model>, used: Option<Arc<Model>>) -> Self {
            let engine = CpuEngine::new(generic.clone());
            Call { trainer: Trainer::new(generic.clone(), used), engine, seconds: 0 }
        }

        fn second(&mut self, truth: &Arc<Model>) -> Report {
            let (low, _) = pictures(self.seconds, 2);
            self.seconds += 1;
            let view = view(&low);
            let wanted = made(&mut CpuEngine::new(truth.clone()), &view);
            let wanted = Luma::packed(&wanted, HIGH.0, HIGH.1).unwrap();
            self.trainer.train(&mut self.engine, &[view], wanted).unwrap()
        }
    }

    #[test]
    fn weights_are_used_once_new_pictures_have_proved_them_and_given_up_by_the_first_that_does_not()
    {
        let (generic, truth) = networks();
        let mut call = Call::new(&generic, None);
        for second in 1..MIN_PICTURES + u64::from(VALIDATIONS) {
            assert!(matches!(call.second(&truth), Report::Same), "too early: {second}");
        }
        let Report::Use(learned) = call.second(&truth) else { panic!("they were proved") };
        let (low, _) = pictures(50, 2);
        let view = view(&low);
        let distance = |model: &Arc<Model>| {
            let picture = |model: &Arc<Model>| made(&mut CpuEngine::new(model.clone()), &view);
            let pairs = picture(model).into_iter().zip(picture(&truth));
            pairs.map(|(a, b)| u64::from(a.abs_diff(b)).pow(2)).sum::<u64>()
        };
        assert!(distance(&learned) < distance(&generic) / 2);
        assert!(matches!(call.second(&truth), Report::Use(_)), "better ones of more pictures");
        assert!(matches!(call.second(&generic), Report::GivenUp), "the content has changed");
        for _ in 0..8 {
            assert!(matches!(call.second(&generic), Report::Same), "nothing to learn");
        }
    }

    #[test]
    fn weights_that_do_not_pass_validation_are_never_used() {
        let (generic, truth) = networks();
        let mut call = Call::new(&generic, None);
        for _ in 0..MIN_PICTURES {
            call.second(&truth);
        }
        assert!(call.trainer.candidate.is_some());
        for _ in 0..8 {
            assert!(matches!(call.second(&generic), Report::Same));
        }
        assert!(call.trainer.used.is_none());
    }

    #[test]
    fn a_picture_counts_as_better_only_if_it_is_in_every_view() {
        let (generic, truth) = networks();
        let mut call = Call::new(&generic, None);
        for _ in 0..MIN_PICTURES {
            call.second(&truth);
        }
        let learned = call.trainer.candidate.clone().expect("made of two pictures");
        let (good, _) = pictures(20, 2);
        let wanted = made(&mut CpuEngine::new(truth), &view(&good));
        let wanted = Luma::packed(&wanted, HIGH.0, HIGH.1).unwrap();
        let mut gain =
            |low: &[u8]| learned.gain_db(&mut call.engine, &generic, &view(low), wanted).unwrap();
        assert!(gain(&good) > 0.0);
        // What adds light fits no picture that is lighter already, or the other way round.
        let lighter = |by: i16| good.iter().map(move |&v| (i16::from(v) + by).clamp(0, 255) as u8);
        let bad = [-60, 60].map(|by| lighter(by).collect::<Vec<u8>>());
        let bad = bad.into_iter().find(|low| gain(low) < 0.0).expect("one of them");
        let views = [view(&good), view(&bad)];
        call.trainer.train(&mut call.engine, &views, wanted).unwrap();
        assert_eq!(call.trainer.validations, 0);
        assert!(
            call.trainer.train(&mut call.engine, &[], wanted).is_ok(),
            "no view teaches nothing"
        );
    }

    #[test]
    fn weights_of_before_are_tried_like_any_others() {
        let (generic, truth) = networks();
        let mut call = Call::new(&generic, Some(truth.clone()));
        assert!(matches!(call.second(&truth), Report::Same), "they are used already");
        assert!(matches!(call.second(&generic), Report::GivenUp));
    }

    #[test]
    fn weights_that_need_another_type_of_number_are_seen() {
        let (generic, truth) = networks();
        let mut engine = CpuEngine::new(generic.clone());
        assert!(runs_alike(&mut engine, &generic, &truth).unwrap());
        let wild = scaled(&generic, 300.0);
        let alike = runs_alike(&mut engine, &generic, &wild).unwrap();
        assert_eq!(alike, CpuEngine::new(wild).backend() == CpuEngine::new(generic).backend());
        let wider = Arc::new(Model::random(Architecture::chain(2, 16, 3), 3).unwrap());
        assert!(runs_alike(&mut engine, &wider, &wider).is_err());
    }
}
