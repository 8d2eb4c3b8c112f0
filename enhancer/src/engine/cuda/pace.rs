//! How long variants of a network take on a card.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::CudaError;
use super::lane::{Lane, Picture, Shape, Staging};
use super::loaded::Loaded;
use crate::engine::Model;

/// Longest that a launch takes before pictures grow no more.
const ENOUGH: Duration = Duration::from_millis(2);
/// The largest of those pictures, as wide as sixteen ninths of that.
const MOST_ROWS: usize = 360;
/// Launches of which the quickest counts.
const LAUNCHES: usize = 8;

/// What a launch of one picture takes, of the given rows; copies included.
fn launch_time(network: &Arc<Loaded>, rows: usize) -> Result<Duration, CudaError> {
    let shape = Shape { network: network.clone(), width: rows * 16 / 9, height: rows };
    let model = Arc::new(Model::random(network.architecture, 7).map_err(|_| CudaError::NoPlan)?);
    let (weights, mut staging) = (network.weights(&model)?, Staging::new(&network.device, &shape)?);
    staging.low.bytes_mut().fill(90);
    staging.twin.bytes_mut().fill(90);
    let mut lane = Lane::of_one(&network.device)?;
    let mut quickest = Duration::MAX;
    for _ in 0..LAUNCHES {
        let mut pictures = [Picture { staging: &mut staging, weights: &weights, keep: None }];
        let began = Instant::now();
        lane.run(&shape, &mut pictures)?;
        quickest = quickest.min(began.elapsed());
        if quickest > 8 * ENOUGH {
            break;
        }
    }
    Ok(quickest)
}

/// How long variants of one network take for a picture, of the same size for all: as large as is needed to be measured.
pub fn pace(variants: &[Arc<Loaded>]) -> Result<Vec<Duration>, CudaError> {
    let mut rows = 45;
    loop {
        let times: Result<Vec<_>, _> =
            variants.iter().map(|network| launch_time(network, rows)).collect();
        let times = times?;
        if rows >= MOST_ROWS || times.iter().min().is_none_or(|least| *least >= ENOUGH) {
            return Ok(times);
        }
        rows *= 2;
    }
}
