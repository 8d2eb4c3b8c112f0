//! Anchors encoded on the GPU, beside the CPU encoder of the same codestreams.

use std::time::Instant;

use anyhow::{Context, Result, ensure};
use windlass_hybrid::Detail;
use windlass_hybrid::anchor::codec::Htj2k;
use windlass_sr::cuda::coder::CudaCoder;

use super::args::{Coding, GpuArgs};
use super::report::CodingRow;
use crate::eval::frames::Size;
use crate::latencies::Latencies;

/// Minimum number of batches whose times are taken.
const MIN_TIMES: usize = 20;
/// Minimum number of pictures that the CPU encodes.
const MIN_ON_CPU: usize = 5;

/// Sizes for which every byte must be that of the CPU encoder.
const CHECKED: [Size; 5] = [
    Size::new(1, 1),
    Size::new(64, 64),
    Size::new(65, 63),
    Size::new(200, 150),
    Size::new(641, 359),
];
/// Qualities for which every byte must be that of the CPU encoder.
const QUALITIES: [u8; 5] = [1, 40, 75, 95, 100];

/// Encodes pictures of tiny, odd and larger sizes on both. Returns the number of codestreams if all of them are
/// equal.
pub(super) fn check() -> Result<usize> {
    let mut coder = CudaCoder::new()?;
    for size in CHECKED {
        let details: Vec<Detail> =
            (0..3).map(|n| detail(size, n)).collect::<Option<_>>().context("a size")?;
        let samples: Vec<&[i16]> = details.iter().map(Detail::samples).collect();
        coder.transform(&samples, Htj2k::format(&details[0])?, Htj2k::LEVELS)?;
        for quality in QUALITIES {
            let jobs: Vec<_> = (0..details.len()).map(|n| (n, Htj2k::step(quality))).collect();
            for (coded, detail) in coder.encode(&jobs)?.iter().zip(&details) {
                let Size { width, height } = size;
                let equal = *coded == Htj2k::encode(detail, quality)?;
                ensure!(
                    equal,
                    "encoding {width}x{height} at {quality}: the bytes are not the CPU encoder's"
                );
            }
        }
    }
    Ok(3 * CHECKED.len() * QUALITIES.len())
}

/// Pictures of the size that was measured last: drawing them takes longer than encoding them.
#[derive(Default)]
pub(super) struct Drawn {
    size: Option<Size>,
    details: Vec<Detail>,
}

impl Drawn {
    fn take(&mut self, size: Size, count: usize) -> Result<&[Detail]> {
        if self.size != Some(size) {
            *self = Drawn { size: Some(size), details: Vec::new() };
        }
        while self.details.len() < count {
            self.details.push(detail(size, self.details.len()).context("a size")?);
        }
        Ok(&self.details[..count])
    }
}

/// Measures a batch of pictures of one size, encoded as by the server at its default quality.
pub(super) fn row(
    coding: &Coding,
    drawn: &mut Drawn,
    args: &GpuArgs,
    quality: u8,
) -> Result<CodingRow> {
    let &Coding { size, batch } = coding;
    let details = drawn.take(size, batch)?;
    let samples: Vec<&[i16]> = details.iter().map(Detail::samples).collect();
    let jobs: Vec<(usize, f32)> = (0..batch).map(|n| (n, Htj2k::step(quality))).collect();
    let format = Htj2k::format(&details[0])?;
    let mut coder = CudaCoder::new()?;
    let mut code = || {
        coder.transform(&samples, format, Htj2k::LEVELS)?;
        coder.encode(&jobs)
    };
    let coded = code()?;
    let (mut times, began) = (Vec::new(), Instant::now());
    while times.len() < MIN_TIMES || began.elapsed().as_secs_f64() < args.seconds {
        let began = Instant::now();
        code()?;
        times.push(1e3 * began.elapsed().as_secs_f64());
    }
    let frame_ms = times.iter().sum::<f64>() / (times.len() * batch) as f64;
    let (mut equal, mut done, began) = (true, 0, Instant::now());
    while done < MIN_ON_CPU.max(batch) || began.elapsed().as_secs_f64() < args.seconds {
        equal &= Htj2k::encode(&details[done % batch], quality)? == coded[done % batch];
        done += 1;
    }
    let cpu_ms = 1e3 * began.elapsed().as_secs_f64() / done as f64;
    let latencies: Latencies = times.iter().collect();
    Ok(CodingRow {
        size: size.to_string(),
        batch,
        quality,
        frame_ms,
        p50_ms: latencies.percentile_or_zero(50.0),
        p99_ms: latencies.percentile_or_zero(99.0),
        bytes: coded.iter().map(Vec::len).sum::<usize>() / batch,
        cpu_ms,
        equal,
    })
}

/// Detail like that of super-resolution: edges, and patches of texture on a flat ground; another one for each `n`.
fn detail(Size { width, height }: Size, n: usize) -> Option<Detail> {
    let mut state = n as u32 + 1;
    let samples = (0..width * height).map(|i| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let (x, y) = ((i % width + 13 * n) as f64, (i / width) as f64);
        let texture = if (x / 41.0).sin() * (y / 53.0).cos() > 0.5 { 60.0 } else { 3.0 };
        let edge = (-((x * 0.8 + y * 0.6) % 97.0 - 48.0).powi(2) / 6.0).exp() * 160.0;
        (texture * (f64::from(state >> 16) / 32_768.0 - 1.0) + edge) as i16
    });
    Detail::from_samples(width, height, samples.collect())
}
