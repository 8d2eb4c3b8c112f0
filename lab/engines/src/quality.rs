//! Measures how far an engine's residual is from that of plain code in single precision.

use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use serde::Serialize;
use windlass_sr::{CpuEngine, Engine, Luma, Model, Residual, Simd};

use crate::args::Size;
use crate::engines::Worker;

/// How far two residuals differ, in grey levels as a viewer sees them.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Quality {
    /// Greatest difference of a sample, in grey levels.
    pub(crate) greatest: f32,
    /// PSNR of one to the other in dB; `None` where they are equal.
    pub(crate) psnr_db: Option<f64>,
}

/// The residual that plain code computes.
pub(crate) fn reference(model: &Arc<Model>, size: Size, picture: &[u8]) -> Result<Vec<f32>> {
    let engine = CpuEngine::with_simd(model.clone(), Simd::Scalar);
    let mut out = Residual::default();
    let luma = Luma::packed(picture, size.width, size.height)?;
    engine.context("every CPU has plain code")?.infer(luma, &mut out)?;
    Ok(out.data)
}

impl Quality {
    /// How far an engine's residual of a picture is from the expected one.
    pub(crate) fn of(worker: &mut dyn Worker, picture: &[u8], expected: &[f32]) -> Result<Quality> {
        let mut got = Vec::new();
        worker.infer(picture, &mut |residual| got = residual.to_vec())?;
        let (had, needed) = (got.len(), expected.len());
        ensure!(had == needed, "the residual has {had} samples, not {needed}");
        ensure!(got.iter().all(|value| value.is_finite()), "a sample is not a number");
        Ok(Quality::between(&got, expected))
    }

    fn between(got: &[f32], expected: &[f32]) -> Quality {
        let differences = || got.iter().zip(expected).map(|(a, b)| a - b);
        let squares: f64 = differences().map(|difference| f64::from(difference).powi(2)).sum();
        let psnr_db = 10.0 * (255.0 * 255.0 * got.len() as f64 / squares).log10();
        Quality {
            greatest: differences().map(f32::abs).fold(0.0, f32::max),
            psnr_db: psnr_db.is_finite().then_some(psnr_db),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_in_grey_levels() {
        assert_eq!(Quality::between(&[1.0], &[1.0]), Quality { greatest: 0.0, psnr_db: None });
        let Quality { greatest, psnr_db } = Quality::between(&[1.0, -2.0], &[1.0, 0.0]);
        assert!((greatest - 2.0).abs() < 1e-6);
        // A mean square of 2.
        assert!((psnr_db.unwrap() - 45.12).abs() < 0.01);
    }
}
