//! The anchor stream's encoder: detail in, payloads of codec 3 out.
//!
//! Source: issue 4, *Anchor codecs*; the payload is described in
//! [`windlass_hybrid::anchor::stream`]. Frames are error-resilient: each needs nothing but the
//! picture it refers to, so an encode can be taken back by restoring that picture, which rate
//! control does until the bytes fit. Tiles that an anchor does not give are filled with what the
//! reference shows there and, where libvpx can, not looked at, so that they cost next to nothing.
//!
//! In: [`Detail`] in 1/16 grey level, a tile map, bytes. Out: [`EncodedAnchor`].

use std::sync::Arc;

use windlass_hybrid::anchor::codec;
use windlass_hybrid::anchor::stream::{Gain, HEADER_BYTES, Prediction, StreamHeader};
use windlass_hybrid::anchor::tiles::{TILE, TileMap};
use windlass_hybrid::detail::Detail;
use windlass_hybrid::picture::{Picture, Plane};
use windlass_hybrid::vp9::ac_step;

use super::rate::{Model, Search, Step, Verdict};
use super::vpx::{Encoder, FrameUse, SequenceConfig, VpxError};

/// How a stream is coded.
#[derive(Debug, Clone, Copy)]
pub struct StreamConfig {
    /// Width of the HR pictures.
    pub width: usize,
    /// Height of the HR pictures.
    pub height: usize,
    /// libvpx's speed, 0 to 9.
    pub speed: u8,
    /// A shared screen.
    pub screen: bool,
    /// libvpx's quantiser (0 to 63) of anchors without a budget, at a gain of 4; at others the one that is as fine.
    pub quantiser: u8,
    /// How far detail is enlarged; `None` chooses at every key anchor, by what would be clipped.
    pub gain: Option<Gain>,
    /// An arbitrary number by which decoders tell this encoder from one before it.
    pub run: u16,
}

impl StreamConfig {
    /// The defaults for pictures of a size, as measured in `hybrid/docs/anchor-codecs.md`.
    pub fn new(width: usize, height: usize) -> Self {
        Self { width, height, speed: 7, screen: false, quantiser: 40, gain: None, run: 0 }
    }

    /// The same with the quantiser that is as fine as the still codecs' step of a quality, 1 to 100.
    #[must_use]
    pub fn with_quality(self, quality: u8) -> Self {
        let step = codec::step_of(quality) * EIGHTHS * FINE;
        Self { quantiser: quantiser_of(step).max(1), ..self }
    }
}

/// Parts of a grey level in which VP9 gives its steps.
const EIGHTHS: f32 = 8.0;
/// The gain at which quantisers are told.
const FINE: f32 = 4.0;

/// The step of one of libvpx's quantisers, which stand for every fourth index but the last two.
fn step_at(quantiser: u8) -> f32 {
    let index = match quantiser {
        0..=61 => 4 * quantiser,
        62 => 249,
        _ => 255,
    };
    f32::from(ac_step(index))
}

/// The coarsest of libvpx's quantisers whose step is at most this one; the finest where none is.
fn quantiser_of(step: f32) -> u8 {
    (0..=63).rev().find(|&quantiser| step_at(quantiser) <= step).unwrap_or_default()
}

/// Why an anchor was not coded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StreamEncodeError {
    /// libvpx's reason.
    #[error(transparent)]
    Vpx(#[from] VpxError),
    /// The tile map is for pictures of another size.
    #[error("the tile map is for pictures of another size")]
    Tiles,
    /// Not even an anchor that changes nothing is that small.
    #[error("no anchor fits in {0} bytes")]
    Budget(usize),
}

/// A coded anchor.
#[derive(Debug, Clone, PartialEq)]
pub struct EncodedAnchor {
    /// What the decoder takes.
    pub payload: Vec<u8>,
    /// Its number in the stream.
    pub sequence: u16,
    /// What it is predicted from; a key anchor where the one asked for is not there yet.
    pub prediction: Prediction,
    /// The step that was taken, on libvpx's scale of quantisers.
    pub quantiser: f64,
    /// How many encodes it took.
    pub encodes: u32,
}

/// Codes the anchors of one stream and epoch.
#[derive(Debug)]
pub struct StreamEncoder {
    config: StreamConfig,
    encoder: Encoder,
    sequence: u16,
    key: Option<Arc<Reference>>,
    last: Option<Arc<Reference>>,
    models: [Model; 3],
    picture: Picture,
    active: Vec<bool>,
}

/// What the decoder has after an anchor.
#[derive(Debug)]
struct Reference {
    sequence: u16,
    gain: Gain,
    luma: Plane,
}

impl StreamEncoder {
    /// Opens a stream; the error says what libvpx refused.
    pub fn new(config: StreamConfig) -> Result<Self, StreamEncodeError> {
        let (width, height) = (config.width, config.height);
        let encoder = Encoder::sequence(SequenceConfig {
            width,
            height,
            cpu_used: config.speed.min(9),
            screen: config.screen,
            error_resilient: true,
        })?;
        Ok(Self {
            config,
            encoder,
            sequence: 0,
            key: None,
            last: None,
            models: [Model::default(); 3],
            picture: Picture::grey(width, height),
            active: vec![true; width.div_ceil(16) * height.div_ceil(16)],
        })
    }

    /// Codes the chosen tiles of an HR picture's detail. With a `budget` the payload takes at most
    /// that many bytes, and at least 95 % of them where the content can use them.
    pub fn encode(
        &mut self,
        detail: &Detail,
        tiles: &TileMap,
        scale: usize,
        budget: Option<usize>,
        prediction: Prediction,
    ) -> Result<EncodedAnchor, StreamEncodeError> {
        let side = TILE * scale.max(1);
        let (width, height) = (self.config.width, self.config.height);
        if (detail.width(), detail.height()) != (width, height)
            || (tiles.columns(), tiles.rows()) != (width.div_ceil(side), height.div_ceil(side))
        {
            return Err(StreamEncodeError::Tiles);
        }
        let reference = match prediction {
            Prediction::Key => None,
            Prediction::FromKey => self.key.clone(),
            Prediction::FromLast => self.last.clone(),
        };
        let prediction = if reference.is_some() { prediction } else { Prediction::Key };
        let gain = reference.as_ref().map_or_else(|| self.gain_for(detail), |r| r.gain);
        let limit_tiles = prediction == Prediction::FromLast && !tiles.is_full();
        if limit_tiles {
            for (i, active) in self.active.iter_mut().enumerate() {
                let columns = width.div_ceil(16);
                *active = tiles.contains(i % columns * 16 / side, i / columns * 16 / side);
            }
            self.encoder.set_active(Some(&self.active))?;
        }
        let job = Job { detail, tiles, side, gain, reference: reference.as_deref(), prediction };
        if prediction == Prediction::FromKey {
            self.encoder.set_speed(self.config.speed.min(FASTEST_FROM_KEY))?;
        }
        let result = self.search(&job, budget);
        if prediction == Prediction::FromKey {
            self.encoder.set_speed(self.config.speed)?;
        }
        if limit_tiles {
            self.encoder.set_active(None)?;
        }
        let (frame, quantiser, encodes) = result?;
        let luma = self.encoder.coded_luma()?;
        let sequence = self.sequence;
        self.sequence = sequence.wrapping_add(1);
        let header = StreamHeader {
            prediction,
            gain,
            sequence,
            refers_to: reference.as_ref().map_or(sequence, |r| r.sequence),
            run: self.config.run,
        };
        let now = Arc::new(Reference { sequence, gain, luma });
        if prediction == Prediction::Key {
            self.key = Some(now.clone());
        }
        self.last = Some(now);
        let mut payload = header.to_bytes().to_vec();
        payload.extend(frame);
        Ok(EncodedAnchor { payload, sequence, prediction, quantiser: quantiser.0, encodes })
    }

    fn search(
        &mut self,
        job: &Job<'_>,
        budget: Option<usize>,
    ) -> Result<(Vec<u8>, Step, u32), StreamEncodeError> {
        let gain = f32::from(1u8 << job.gain.shift());
        let usual = quantiser_of(step_at(self.config.quantiser) * gain / FINE);
        let usual = Step(usual.into());
        let Some(budget) = budget else {
            let frame = self.once(job, usual)?;
            return Ok((frame, usual, 1));
        };
        let room = budget.checked_sub(HEADER_BYTES).ok_or(StreamEncodeError::Budget(budget))?;
        let kind = job.prediction as usize;
        let mut search = Search::new(room, &self.models[kind], usual);
        let mut step = search.first();
        for encodes in 1.. {
            let frame = self.once(job, step)?;
            match search.tell(frame.len()) {
                Verdict::Take if frame.len() <= room => {
                    self.models[kind].learn(&search);
                    return Ok((frame, step, encodes));
                }
                Verdict::Take => {
                    self.undo(job.prediction)?;
                    break;
                }
                Verdict::Try(next) => {
                    self.undo(job.prediction)?;
                    step = next;
                }
            }
        }
        Err(StreamEncodeError::Budget(budget))
    }

    /// Encodes once; the frame becomes `LAST`.
    fn once(&mut self, job: &Job<'_>, step: Step) -> Result<Vec<u8>, StreamEncodeError> {
        let (quantiser, share) = step.split();
        job.paint(share, &mut self.picture.y);
        self.encoder.set_quantiser(quantiser)?;
        let used = match job.prediction {
            Prediction::Key => FrameUse::Key,
            Prediction::FromKey => FrameUse::FromGolden,
            Prediction::FromLast => FrameUse::FromLast,
        };
        Ok(self.encoder.encode_as(&self.picture, used)?)
    }

    /// Takes back the frame just encoded.
    fn undo(&mut self, prediction: Prediction) -> Result<(), StreamEncodeError> {
        if prediction == Prediction::Key {
            // It has replaced every reference: until a key anchor is taken there is none.
            self.key = None;
            self.last = None;
        } else if let Some(last) = &self.last {
            self.picture.y.samples_mut().copy_from_slice(last.luma.samples());
            // Chroma is flat but for coding noise, which no luma depends on.
            self.encoder.set_last(&self.picture)?;
        }
        Ok(())
    }

    /// The greatest gain that clips next to nothing.
    fn gain_for(&self, detail: &Detail) -> Gain {
        if let Some(gain) = self.config.gain {
            return gain;
        }
        let allowed = detail.samples().len() / MOST_CLIPPED;
        let clipped = |gain: Gain| {
            let outside = |&&d: &&i16| !(0..256).contains(&((gain.sample_q4(d) + 8) >> 4));
            detail.samples().iter().filter(outside).count()
        };
        let gains = [Gain::FOUR, Gain::TWO];
        gains.into_iter().find(|&gain| clipped(gain) <= allowed).unwrap_or(Gain::ONE)
    }
}

/// From 5 on libvpx hardly looks at any reference but `LAST`, and would code everything anew.
const FASTEST_FROM_KEY: u8 = 4;

/// One sample in so many may be clipped.
const MOST_CLIPPED: usize = 2000;

/// What all encodes of one anchor share.
struct Job<'a> {
    detail: &'a Detail,
    tiles: &'a TileMap,
    /// Side of a tile in HR samples.
    side: usize,
    gain: Gain,
    reference: Option<&'a Reference>,
    prediction: Prediction,
}

impl Job<'_> {
    /// The picture to encode: of what changes against the reference, the share (of 256) asked for.
    fn paint(&self, share: i32, luma: &mut Plane) {
        let width = luma.width();
        let flat = vec![128; width];
        for (y, out) in luma.samples_mut().chunks_exact_mut(width.max(1)).enumerate() {
            let before = self.reference.map_or(flat.as_slice(), |r| r.luma.row(y));
            out.copy_from_slice(before);
            let wanted = self.detail.row(y);
            for column in
                (0..self.tiles.columns()).filter(|&c| self.tiles.contains(c, y / self.side))
            {
                let span = column * self.side..width.min((column + 1) * self.side);
                for (o, &d) in out[span.clone()].iter_mut().zip(&wanted[span]) {
                    let change = self.gain.sample_q4(d) - (i32::from(*o) << 4);
                    // Halves go to what was there: otherwise the least damping would flip them all, and
                    // bytes would jump.
                    let steps = (change.abs() * share + (1 << 11) - 1) >> 12;
                    let change = change.signum() * steps;
                    *o = (i32::from(*o) + change).clamp(0, 255) as u8;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use windlass_hybrid::anchor::stream::{StreamDecoder, StreamError};

    use super::*;

    const SIZE: (usize, usize) = (192, 128);

    /// A texture of which the left part moves.
    fn detail(n: usize) -> Detail {
        let samples = (0..SIZE.0 * SIZE.1).map(|i| {
            let (x, y) = (i % SIZE.0, i / SIZE.0);
            let x = if x < 96 { x + 3 * n } else { x };
            let wave = (x as f64 * 0.7).sin() * (y as f64 * 0.45 + (x / 17) as f64).cos();
            (wave * 130.0) as i16 + ((x * 7919 + y * 104_729) % 61) as i16 - 30
        });
        Detail::from_samples(SIZE.0, SIZE.1, samples.collect()).expect("the count is right")
    }

    fn stream() -> StreamEncoder {
        StreamEncoder::new(StreamConfig::new(SIZE.0, SIZE.1)).expect("libvpx is there")
    }

    fn decoder() -> StreamDecoder {
        StreamDecoder::new(SIZE.0 as u16, SIZE.1 as u16)
    }

    fn full() -> TileMap {
        TileMap::full(SIZE.0 / 2, SIZE.1 / 2)
    }

    fn code(
        e: &mut StreamEncoder,
        n: usize,
        budget: Option<usize>,
        p: Prediction,
    ) -> EncodedAnchor {
        e.encode(&detail(n), &full(), 2, budget, p).expect("it can be coded")
    }

    fn mse(a: &Detail, b: &Detail) -> f64 {
        let pairs = a.samples().iter().zip(b.samples());
        let sum: f64 = pairs.map(|(&a, &b)| f64::from(i32::from(a) - i32::from(b)).powi(2)).sum();
        sum / a.samples().len() as f64 / 256.0
    }

    #[test]
    fn qualities_are_as_fine_as_those_of_the_still_codecs() {
        for quality in 1..=98 {
            let step = codec::step_of(quality) * EIGHTHS * FINE;
            let quantiser = StreamConfig::new(8, 8).with_quality(quality).quantiser;
            let coarser = step_at((quantiser + 1).min(63));
            assert!(step_at(quantiser) <= step && (step < coarser || quantiser == 63), "{quality}");
        }
        assert_eq!(StreamConfig::new(8, 8).with_quality(85).quantiser, 30);
    }

    #[test]
    fn the_decoder_gets_the_detail_back() {
        let (mut encoder, mut decoder) = (stream(), decoder());
        for n in 0..4 {
            let anchor = code(&mut encoder, n, None, Prediction::FromLast);
            let back = decoder.decode(&anchor.payload).expect("our own bytes");
            assert!(mse(back, &detail(n)) < 8.0, "{}", mse(back, &detail(n)));
            assert_eq!(anchor.prediction == Prediction::Key, n == 0);
            assert_eq!(usize::from(anchor.sequence), n);
        }
    }

    #[test]
    fn what_stands_still_costs_next_to_nothing() {
        let mut encoder = stream();
        let key = code(&mut encoder, 0, None, Prediction::Key);
        let still = code(&mut encoder, 0, None, Prediction::FromLast);
        assert!(still.payload.len() * 5 < key.payload.len());
    }

    #[test]
    fn anchors_after_searches_for_a_budget_decode_as_well_as_the_first() {
        let (mut encoder, mut decoder) = (stream(), decoder());
        let mut encodes = 0;
        for n in 0..8 {
            let prediction = if n == 5 { Prediction::FromKey } else { Prediction::FromLast };
            let anchor = code(&mut encoder, n, Some(1800), prediction);
            let bytes = anchor.payload.len();
            // Of so small a picture, at so fine a step, bytes jump from one step to the next.
            assert!((1440..=1800).contains(&bytes), "anchor {n} takes {bytes}");
            let back = decoder.decode(&anchor.payload).expect("our own bytes");
            assert!(mse(back, &detail(n)) < 40.0, "{n}: {}", mse(back, &detail(n)));
            encodes += anchor.encodes;
        }
        assert!(encodes <= 8 * 9, "{encodes}");
    }

    #[test]
    fn a_loss_is_mended_by_an_anchor_from_the_key_anchor() {
        let (mut encoder, mut decoder) = (stream(), decoder());
        let mut all = Vec::new();
        for n in 0..4 {
            let prediction = if n == 3 { Prediction::FromKey } else { Prediction::FromLast };
            all.push(code(&mut encoder, n, None, prediction).payload);
        }
        assert!(decoder.decode(&all[0]).is_ok());
        assert_eq!(decoder.decode(&all[2]), Err(StreamError::NeedsKey));
        let back = decoder.decode(&all[3]).expect("the key anchor is there");
        assert!(mse(back, &detail(3)) < 8.0);
    }

    #[test]
    fn tiles_that_are_not_given_stay_as_they_were_and_cost_nothing() {
        for prediction in [Prediction::FromLast, Prediction::FromKey] {
            let (mut encoder, mut decoder) = (stream(), decoder());
            let key = code(&mut encoder, 0, None, Prediction::Key);
            let before = decoder.decode(&key.payload).expect("our own bytes").clone();
            let mut tiles = TileMap::empty(SIZE.0 / 2, SIZE.1 / 2);
            tiles.set(1, 0);
            let still = encoder.encode(&detail(9), &tiles, 2, None, prediction).expect("coded");
            let (cost, whole) = (still.payload.len(), key.payload.len());
            assert!(cost * 5 < whole, "{cost} of {whole} by {prediction:?}");
            let still = decoder.decode(&still.payload).expect("our own bytes").clone();
            let before = if prediction == Prediction::FromKey { before } else { still };
            let mut tiles = TileMap::empty(SIZE.0 / 2, SIZE.1 / 2);
            tiles.set(0, 0);
            let anchor = encoder.encode(&detail(9), &tiles, 2, None, prediction).expect("coded");
            let after = decoder.decode(&anchor.payload).expect("our own bytes");
            for y in 0..SIZE.1 {
                // Filters reach eight samples over the border.
                let mut pairs = before.row(y)[136..].iter().zip(&after.row(y)[136..]);
                assert!(pairs.all(|(a, b)| (a - b).abs() <= 8), "row {y}");
            }
            assert_ne!(before.row(40)[..90], after.row(40)[..90]);
        }
    }

    #[test]
    fn a_key_anchor_with_few_tiles_leaves_the_others_flat() {
        let (mut encoder, mut decoder) = (stream(), decoder());
        let mut tiles = TileMap::empty(SIZE.0 / 2, SIZE.1 / 2);
        tiles.set(0, 0);
        let key = encoder.encode(&detail(0), &tiles, 2, None, Prediction::Key).expect("coded");
        let back = decoder.decode(&key.payload).expect("our own bytes");
        assert!(back.row(60)[140..].iter().all(|d| d.abs() <= 16));
        assert!(back.row(60)[..120].iter().any(|d| d.abs() > 64));
    }

    #[test]
    fn detail_is_enlarged_as_far_as_its_range_allows() {
        let mut encoder = stream();
        let gain = |e: &StreamEncoder| e.last.as_ref().map(|r| r.gain);
        code(&mut encoder, 0, None, Prediction::Key);
        assert_eq!(gain(&encoder), Some(Gain::FOUR));
        let mut strong = detail(0);
        strong.samples_mut().iter_mut().for_each(|d| *d *= 8);
        encoder.encode(&strong, &full(), 2, None, Prediction::Key).expect("coded");
        assert_eq!(gain(&encoder), Some(Gain::ONE));
    }

    #[test]
    fn another_size_and_an_impossible_budget_are_errors_after_which_it_goes_on() {
        let (mut encoder, mut decoder) = (stream(), decoder());
        let wrong = encoder.encode(&Detail::zero(8, 8), &full(), 2, None, Prediction::Key);
        assert_eq!(wrong.unwrap_err(), StreamEncodeError::Tiles);
        for p in [Prediction::Key, Prediction::Key, Prediction::FromLast] {
            let tight = encoder.encode(&detail(0), &full(), 2, Some(10), p);
            assert_eq!(tight.unwrap_err(), StreamEncodeError::Budget(10));
            let anchor = code(&mut encoder, 1, None, p);
            assert!(decoder.decode(&anchor.payload).is_ok());
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(12))]
        #[test]
        fn budgets_are_kept(budget in 700usize..6000, start in 0usize..50) {
            let (mut encoder, mut decoder) = (stream(), decoder());
            for n in 0..3 {
                let anchor = code(&mut encoder, start + 2 * n, Some(budget), Prediction::FromLast);
                prop_assert!(anchor.payload.len() <= budget);
                prop_assert!(decoder.decode(&anchor.payload).is_ok());
            }
        }
    }
}
