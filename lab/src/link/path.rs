//! One client's path through the link, in both directions.

use std::fmt;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use tokio::net::UdpSocket;
use tokio::sync::mpsc;
use windlass_netem::{Conditions, Course, Link, LinkStats};

use super::{DATAGRAM, LinkArgs};

/// Counters of datagrams.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct PathStats {
    down: LinkStats,
    up: LinkStats,
    /// Datagrams of clients beyond the maximum.
    pub refused: u64,
    /// Datagrams that came faster than they could be taken in.
    pub overwhelmed: u64,
}

impl PathStats {
    /// Adds the counters of another path.
    pub(super) fn add(&mut self, other: &PathStats) {
        for (sum, more) in [(&mut self.down, &other.down), (&mut self.up, &other.up)] {
            sum.sent += more.sent;
            sum.overflowed += more.overflowed;
            sum.lost += more.lost;
            sum.arrived += more.arrived;
            sum.carried_bytes += more.carried_bytes;
        }
    }
}

impl fmt::Display for PathStats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (way, s) in [("down", self.down), ("up", self.up)] {
            let (sent, full, lost) = (s.sent, s.overflowed, s.lost);
            writeln!(f, "{way}: {sent} datagrams, {full} found the queue full, {lost} lost")?;
        }
        write!(f, "{} refused, {} not taken in", self.refused, self.overwhelmed)
    }
}

/// The emulated links between one client and the server.
pub(super) struct Path {
    down: Link<Vec<u8>>,
    up: Link<Vec<u8>>,
}

impl Path {
    /// The path of a client, which begins at `now`.
    pub(super) fn new(args: &LinkArgs, seed: u64, now: Instant) -> Path {
        let wide = Course::steady(Conditions::default());
        let up = if args.down_only { wide } else { args.profile.up() };
        let down = args.profile.down(args.seed).delayed(Duration::from_secs(args.after));
        Path { down: Link::new(down, seed, now), up: Link::new(up, seed + 1, now) }
    }

    /// Carries datagrams in both directions until the client has been silent for `idle`, or the proxy hands in no
    /// more.
    pub(super) async fn run(
        mut self,
        front: &UdpSocket,
        client: SocketAddr,
        back: &UdpSocket,
        mut taken: mpsc::Receiver<(Instant, Vec<u8>)>,
        idle: Duration,
    ) -> PathStats {
        let mut buffer = vec![0; DATAGRAM];
        let (mut heard, mut gone) = (Instant::now(), false);
        loop {
            let now = Instant::now();
            while let Some((data, _)) = self.down.poll(now) {
                // A full socket loses datagrams, as a network does.
                let _ = front.try_send_to(&data, client);
            }
            while let Some((data, _)) = self.up.poll(now) {
                let _ = back.try_send(&data);
            }
            if gone || now.saturating_duration_since(heard) > idle {
                let (down, up) = (self.down.stats(), self.up.stats());
                return PathStats { down, up, ..PathStats::default() };
            }
            let due = [self.down.timeout(), self.up.timeout()].into_iter().flatten().min();
            let due = due.unwrap_or(now + idle).max(now + Duration::from_micros(100));
            tokio::select! {
                sent = taken.recv() => match sent {
                    Some((at, data)) => {
                        heard = at;
                        self.up.push(at, data.len(), data);
                    }
                    None => gone = true,
                },
                Ok(bytes) = back.recv(&mut buffer) => {
                    self.down.push(Instant::now(), bytes, buffer[..bytes].to_vec());
                }
                () = tokio::time::sleep_until(due.into()) => {}
            }
        }
    }
}
