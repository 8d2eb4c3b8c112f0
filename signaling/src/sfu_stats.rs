//! The SFU's statistics, for requests that anybody may make as often as they like.

use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};
use windlass_sfu::{SfuHandle, SfuStats};

/// Time for which statistics are given again. The media threads gather them, which takes time from calls.
const MAX_AGE: Duration = Duration::from_millis(100);
/// Time that the media threads have to answer. They handle commands between two bursts of datagrams.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(1);

/// Statistics that are asked of the media threads at most once at a time, and not more often than every [`MAX_AGE`].
#[derive(Debug, Default)]
pub(crate) struct SharedStats(Mutex<Option<(Instant, SfuStats)>>);

/// Why there are no statistics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoStats {
    /// The SFU has stopped.
    Stopped,
    /// A media thread did not answer in time.
    Silent,
}

impl SharedStats {
    /// The statistics of now, or of a moment ago.
    pub(crate) async fn get(&self, sfu: &SfuHandle) -> Result<SfuStats, NoStats> {
        let get = async {
            let mut last = self.0.lock().await;
            if let Some((at, stats)) = *last
                && at.elapsed() < MAX_AGE
            {
                return Ok(stats);
            }
            let stats = sfu.stats().await.map_err(|_| NoStats::Stopped)?;
            *last = Some((Instant::now(), stats));
            Ok(stats)
        };
        timeout(ANSWER_TIMEOUT, get).await.unwrap_or(Err(NoStats::Silent))
    }
}
