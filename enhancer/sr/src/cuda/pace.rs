//! Measures how long variants of a network take on a GPU.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::CudaError;
use super::loaded::Loaded;
use super::stream::{GpuStream, Picture, Shape, Staging};
use crate::Model;

/// Minimum launch time that is measured well. Shorter launches are repeated with larger pictures.
const MIN_MEASURED: Duration = Duration::from_millis(2);
/// Maximum rows of the measured pictures, which are 16:9.
const MAX_ROWS: usize = 360;
/// Launches per measurement; the quickest counts.
const LAUNCHES: usize = 8;

/// Time of a launch of one picture with the given rows, copies included.
fn launch_time(network: &Arc<Loaded>, rows: usize) -> Result<Duration, CudaError> {
    let shape = Shape { network: network.clone(), width: rows * 16 / 9, height: rows };
    let model = Arc::new(Model::random(network.architecture, 7).map_err(|_| CudaError::NoPlan)?);
    let (weights, mut staging) = (network.weights(&model)?, Staging::new(&network.device, &shape)?);
    staging.low.bytes_mut().fill(90);
    staging.twin.bytes_mut().fill(90);
    let mut stream = GpuStream::of_one(&network.device)?;
    let mut quickest = Duration::MAX;
    for _ in 0..LAUNCHES {
        let mut pictures = [Picture { staging: &mut staging, weights: &weights, keep: None }];
        let began = Instant::now();
        stream.run(&shape, &mut pictures)?;
        quickest = quickest.min(began.elapsed());
        if quickest > 8 * MIN_MEASURED {
            break;
        }
    }
    Ok(quickest)
}

/// Times of the variants of one network for a picture. The picture has the same size for all, as large as the
/// measurement needs.
pub(super) fn pace(variants: &[Arc<Loaded>]) -> Result<Vec<Duration>, CudaError> {
    let mut rows = 45;
    loop {
        let times: Result<Vec<_>, _> =
            variants.iter().map(|network| launch_time(network, rows)).collect();
        let times = times?;
        if rows >= MAX_ROWS || times.iter().min().is_none_or(|min| *min >= MIN_MEASURED) {
            return Ok(times);
        }
        rows *= 2;
    }
}
