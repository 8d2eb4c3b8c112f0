//! Clients that come and go: each stays for a while, leaves with or without a word, and another one comes in its place.

use std::time::Duration;

use anyhow::Result;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tokio::sync::watch;
use windlass_netem::Profile;

use super::tally::Tally;

/// The shortest and the longest stay, as multiples of the mean stay.
const BOUNDS: (f64, f64) = (0.03, 4.0);
/// Maximum time from one stay to the next, as a multiple of the mean stay.
const PAUSE: f64 = 0.25;
/// One of this many clients vanishes.
const VANISH: u32 = 4;

/// How a client leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Parting {
    /// The client says goodbye.
    Goodbye,
    /// The client vanishes as when its power fails: it says nothing more, and closes nothing for a while.
    Vanish,
}

/// Receives how to leave when a client is to leave.
pub(super) type Stop = watch::Receiver<Option<Parting>>;

/// Waits until a client is to go.
pub(super) async fn told(stop: &mut Stop) -> Parting {
    // The sender of the message has ended.
    stop.wait_for(Option::is_some).await.ok().and_then(|told| *told).unwrap_or(Parting::Goodbye)
}

/// One visit of a client.
pub(super) struct Visit {
    /// Profile and seed of the emulated link, if there is one.
    pub access: Option<(Profile, u64)>,
    /// Resolves when the client is to leave.
    pub stop: Stop,
}

/// How clients come and go.
#[derive(Debug, Clone)]
pub(super) struct Visits {
    /// How long clients stay in the mean; `None`: until the end.
    pub stay: Option<Duration>,
    /// The links, of which one is drawn for each visit; empty: the machine's own network.
    pub links: Vec<Profile>,
    /// Seed of all that is drawn.
    pub seed: u64,
}

impl Visits {
    /// Lets `client` come, stay and go until the end. Failures are counted, and the first is printed.
    pub(super) async fn run<F: Future<Output = Result<()>>>(
        self,
        tally: Tally,
        mut end: Stop,
        client: impl Fn(Visit) -> F,
    ) {
        let mut dice = StdRng::seed_from_u64(self.seed);
        loop {
            let link = (!self.links.is_empty())
                .then(|| self.links[dice.random_range(0..self.links.len())]);
            let access = link.map(|profile| (profile, dice.random()));
            let (go, stop) = watch::channel(None);
            let visit = std::pin::pin!(client(Visit { access, stop }));
            let stay = self.stay.map(|mean| stay(mean, dice.random()));
            let vanishes = dice.random_range(0..VANISH) == 0;
            let done = at_home(visit, stay, vanishes, &go, &mut end).await;
            tally.lock().clients.visits += 1;
            if let Err(error) = done {
                tally.fail(&error);
            }
            let Some(mean) = self.stay else { return };
            let pause = mean.mul_f64(PAUSE * dice.random::<f64>());
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                _ = told(&mut end) => return,
            }
        }
    }
}

/// Lets a visit last until its time is over, and ends it.
async fn at_home(
    mut visit: std::pin::Pin<&mut impl Future<Output = Result<()>>>,
    stay: Option<Duration>,
    vanishes: bool,
    go: &watch::Sender<Option<Parting>>,
    end: &mut Stop,
) -> Result<()> {
    let over = async {
        match stay {
            Some(stay) => tokio::time::sleep(stay).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        done = &mut visit => return done,
        () = over => {
            let _ = go.send(Some(if vanishes { Parting::Vanish } else { Parting::Goodbye }));
        }
        parting = told(end) => {
            let _ = go.send(Some(parting));
        }
    }
    visit.await
}

/// The length of a stay: exponential, within bounds.
fn stay(mean: Duration, share: f64) -> Duration {
    let times = -(1.0 - share).max(f64::EPSILON).ln();
    mean.mul_f64(times.clamp(BOUNDS.0, BOUNDS.1))
}

#[cfg(test)]
mod tests {
    use anyhow::bail;
    use tokio::sync::mpsc;

    use super::*;

    #[test]
    fn stays_are_spread_around_their_mean() {
        let mean = Duration::from_mins(1);
        let stays: Vec<_> = (0..1000).map(|n| stay(mean, f64::from(n) / 1000.0)).collect();
        let sum: Duration = stays.iter().sum();
        assert!((50..=62).contains(&(sum / 1000).as_secs()), "{sum:?}");
        assert!(stays.iter().all(|s| (mean / 40..=mean * 4).contains(s)));
    }

    #[tokio::test]
    async fn others_come_when_one_has_gone_and_all_go_in_the_end() {
        let (end, ended) = watch::channel(None);
        let (parted, mut parting) = mpsc::unbounded_channel();
        let links = vec![Profile::Dsl];
        let visits = Visits { stay: Some(Duration::from_millis(4)), links, seed: 3 };
        let tally = Tally::default();
        let run = visits.run(tally.clone(), ended, |mut visit| {
            let parted = parted.clone();
            async move {
                assert_eq!(visit.access.map(|(profile, _)| profile), Some(Profile::Dsl));
                parted.send(told(&mut visit.stop).await).expect("the test reads them");
                bail!("as some do")
            }
        });
        let mut partings = Vec::new();
        let hundred = async {
            while partings.len() < 100 {
                partings.extend(parting.recv().await);
            }
            let _ = end.send(Some(Parting::Goodbye));
        };
        tokio::join!(run, hundred);
        while let Ok(last) = parting.try_recv() {
            partings.push(last);
        }
        let vanished = partings.iter().filter(|p| **p == Parting::Vanish).count();
        assert!((5..40).contains(&vanished), "{vanished}");
        let totals = tally.lock();
        assert_eq!(
            (totals.clients.visits, totals.clients.failed),
            (partings.len() as u64, partings.len() as u64)
        );
        assert_eq!(totals.clients.failure.as_deref(), Some("as some do"));
    }
}
