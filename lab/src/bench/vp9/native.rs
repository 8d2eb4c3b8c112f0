//! The decoders of this process: checked against each other, then timed in turn.
//!
//! Times are CPU time of the process, which decodes in one thread and does nothing else;
//! threads that a decoder might start would count.

use std::hint::black_box;
use std::num::NonZeroU32;

use anyhow::{Context, Result, ensure};
use rustix::time::{ClockId, clock_gettime};
use windlass_vp9::{Block, Decoder, FrameBuffer, FrameKind, PictureRows, Visitor};

use super::best::Best;
use super::streams::Stream;

/// A decoder that is timed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Variant {
    /// libvpx's decoder.
    Libvpx,
    /// Our decoder: pictures.
    Decode,
    /// Our decoder with a visitor that is shown every block and every residual.
    DecodeInfo,
}

/// Decodes one chunk.
type Decode = Box<dyn FnMut(&[u8]) -> Result<()>>;

impl Variant {
    const ALL: [Variant; 3] = [Variant::Libvpx, Variant::Decode, Variant::DecodeInfo];

    /// The decoder's name in reports.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Variant::Libvpx => "libvpx",
            Variant::Decode => "decode",
            Variant::DecodeInfo => "decode+info",
        }
    }

    /// A new decoder.
    fn open(self) -> Result<Decode> {
        Ok(match self {
            Variant::Libvpx => {
                let mut decoder = windlass_vpx::Decoder::new()?;
                Box::new(move |chunk| {
                    decoder.decode(chunk, |_| ())?;
                    Ok(())
                })
            }
            Variant::Decode => {
                let mut decoder = Decoder::new();
                Box::new(move |chunk| {
                    black_box(decoder.decode(chunk)?);
                    Ok(())
                })
            }
            Variant::DecodeInfo => {
                let mut decoder = Decoder::new();
                Box::new(move |chunk| {
                    black_box(decoder.decode_with(chunk, None, &mut Onlooker)?);
                    Ok(())
                })
            }
        })
    }
}

/// A visitor that sees everything and does nothing with it.
struct Onlooker;

impl Visitor for Onlooker {
    const RESIDUAL: bool = true;

    fn residual(&mut self, plane: usize, x: usize, y: usize, side: usize, residual: &[i16]) {
        black_box((plane, x, y, side, residual));
    }

    fn block(&mut self, block: &Block, picture: &PictureRows<'_>) {
        black_box((block, picture));
    }
}

/// A stream's properties, as decoding showed them.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Facts {
    /// Size of the stream's first picture.
    pub size: (usize, usize),
    /// Whether each chunk begins with a key frame.
    pub keys: Vec<bool>,
}

/// Decodes the stream once with libvpx and with all variants of our decoder. The figures of a decoder that makes
/// other pictures would mean nothing.
pub(crate) fn check(stream: &Stream) -> Result<Facts> {
    let mut peer = windlass_vpx::Decoder::new()?;
    let (mut ours, mut watched) = (Decoder::new(), Decoder::new());
    let mut facts = Facts { size: (0, 0), keys: Vec::with_capacity(stream.chunks.len()) };
    for (n, chunk) in stream.chunks.iter().enumerate() {
        let named = || format!("frame {n}");
        let decode = |decoder: &mut Decoder, watch: bool| -> Result<_> {
            let frames = if watch {
                decoder.decode_with(chunk, None, &mut Onlooker)?
            } else {
                decoder.decode(chunk)?
            };
            let key = frames.first().is_some_and(|frame| frame.info.kind == FrameKind::Key);
            let shown = frames.iter().rfind(|frame| frame.info.shown);
            Ok((key, shown.map(|frame| frame.picture.clone())))
        };
        let (key, picture) = decode(&mut ours, false).with_context(named)?;
        let (_, watched) = decode(&mut watched, true).with_context(named)?;
        let pictures = [picture, watched];
        facts.keys.push(key);
        let mut same = true;
        let count = peer.decode(chunk, |theirs| {
            same = pictures.iter().all(|ours| ours.as_ref().is_some_and(|o| equal(o, theirs)));
        })?;
        ensure!(
            same && (count > 0) == pictures[0].is_some(),
            "frame {n} differs from libvpx's: a bug of our decoder, so there are no figures"
        );
        if let (Some(picture), (0, 0)) = (&pictures[0], facts.size) {
            facts.size = (picture.width(), picture.height());
        }
    }
    Ok(facts)
}

fn equal(ours: &FrameBuffer, theirs: &windlass_vpx::Shown<'_>) -> bool {
    (ours.width(), ours.height()) == theirs.size()
        && ours
            .planes()
            .iter()
            .enumerate()
            .all(|(i, plane)| (0..plane.height()).map(|y| plane.row(y)).eq(theirs.rows(i)))
}

/// The times of all decoders, from [`measure`].
#[derive(Debug, Clone, Default)]
pub(crate) struct Times([Best; 3]);

impl Times {
    /// The times of one variant.
    pub(crate) fn of(&self, variant: Variant) -> &Best {
        &self.0[variant as usize]
    }
}

/// Times all variants, which take turns pass by pass; another one begins in each round.
pub(crate) fn measure(stream: &Stream, passes: NonZeroU32) -> Result<Times> {
    let mut times = Times::default();
    let count = Variant::ALL.len();
    for pass in 0..passes.get() as usize {
        for turn in 0..count {
            let variant = Variant::ALL[(pass + turn) % count];
            let mut decode = variant.open()?;
            for (n, chunk) in stream.chunks.iter().enumerate() {
                let start = now_ms();
                decode(chunk).with_context(|| format!("frame {n} by {}", variant.name()))?;
                times.0[variant as usize].record(n, now_ms() - start);
            }
        }
    }
    Ok(times)
}

/// CPU time of the process, in ms.
pub(crate) fn now_ms() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 * 1e3 + time.tv_nsec as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::vp9::streams::tests::drawn;

    #[test]
    fn every_variant_is_timed_for_every_frame() {
        let stream = drawn(6);
        let facts = check(&stream).unwrap();
        assert_eq!(facts.size, (96, 64));
        assert_eq!(facts.keys, [true, false, false, false, false, false]);
        let times = measure(&stream, NonZeroU32::MIN).unwrap();
        for variant in Variant::ALL {
            assert!(times.of(variant).mean().is_some_and(|ms| ms > 0.0 && ms < 1e4));
            assert!(times.of(variant).first().is_some());
        }
    }

    #[test]
    fn a_stream_that_does_not_decode_is_named_by_its_frame() {
        let mut stream = drawn(3);
        stream.chunks[1].truncate(4);
        assert!(format!("{:#}", check(&stream).unwrap_err()).contains("frame 1"));
    }
}
