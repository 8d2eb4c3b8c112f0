//! Links by name.
//!
//! Rates, delays and losses are those that people report of such access networks; none is a recording. `3g`: HSPA at a
//! cell's edge. `lte`: a rate that walks, and a deep buffer. `wifi-lossy`: losses that come in bursts, and air time
//! that others take. `dsl`: steady, with a modem's buffer. `step-down`, `step-up`: what a second user of the same line
//! does. `bursty`: another's downloads, every few seconds.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use thiserror::Error;
use windlass_types::Bitrate;

use crate::course::{Conditions, Course};

/// A duration from milliseconds.
const MS: fn(u64) -> Duration = Duration::from_millis;
/// Length of a course whose rate walks, in seconds, before it begins anew.
const WALK_S: u64 = 120;

/// A named link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Profile {
    /// 900 kbit/s, 60 ms one way, jitter of 15 ms, 0.3 % lost.
    ThreeG,
    /// 1.5 to 8 Mbit/s, another rate each second, 30 ms, jitter of 8 ms.
    Lte,
    /// 5 Mbit/s, 8 ms, 3 % lost, three at a time.
    WifiLossy,
    /// 3 Mbit/s, 18 ms, steady.
    Dsl,
    /// 2.5 Mbit/s, and 800 kbit/s from the 20th second to the 40th.
    StepDown,
    /// 600 kbit/s, and 2.5 Mbit/s from the 20th second on.
    StepUp,
    /// 2.5 Mbit/s, of which another takes 60 % for 3 of each 10 seconds.
    Bursty,
    /// A steady rate, 30 ms, and a queue of 400 ms; the name is the rate in kbit/s: `300k`.
    Steady(Bitrate),
}

/// The error that no link has that name.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{0}` is no link; there are {names}, and rates in kbit/s (300k)", names = Profile::ALL.map(|p| p.to_string()).join(", "))]
pub struct UnknownProfile(String);

impl Profile {
    /// All profiles with names of their own.
    pub const ALL: [Profile; 7] = [
        Profile::ThreeG,
        Profile::Lte,
        Profile::WifiLossy,
        Profile::Dsl,
        Profile::StepDown,
        Profile::StepUp,
        Profile::Bursty,
    ];

    /// The course towards the participant. Where the rate walks, `seed` decides how.
    pub fn down(self, seed: u64) -> Course {
        let base = self.base();
        let rate = |bps| Conditions { rate: Bitrate::bps(bps), ..base };
        match self {
            Profile::ThreeG | Profile::WifiLossy | Profile::Dsl | Profile::Steady(_) => {
                Course::steady(base)
            }
            Profile::Lte => walk(base, 1_500_000, 8_000_000, seed),
            Profile::StepDown => {
                Course::changing(base, [(MS(20_000), rate(800_000)), (MS(40_000), rate(2_500_000))])
            }
            Profile::StepUp => Course::changing(base, [(MS(20_000), rate(2_500_000))]),
            Profile::Bursty => {
                Course::changing(base, [(MS(7_000), rate(1_000_000))]).repeated(MS(10_000))
            }
        }
    }

    /// The course from the participant: the same delay, jitter and loss, and a quarter of the first rate, but at
    /// least 300 kbit/s.
    pub fn up(self) -> Course {
        let base = self.base();
        let rate = Bitrate::bps(base.rate.as_bps() / 4).max(Bitrate::bps(300_000));
        Course::steady(Conditions { rate, ..base })
    }

    fn base(self) -> Conditions {
        let path = |bps, delay, jitter, queue| Conditions {
            rate: Bitrate::bps(bps),
            queue: MS(queue),
            delay: MS(delay),
            jitter: MS(jitter),
            ..Conditions::default()
        };
        match self {
            Profile::ThreeG => Conditions { loss: 0.003, ..path(900_000, 60, 15, 600) },
            Profile::Lte => path(4_000_000, 30, 8, 500),
            Profile::WifiLossy => {
                Conditions { loss: 0.03, burst: 3.0, ..path(5_000_000, 8, 4, 200) }
            }
            Profile::Dsl => path(3_000_000, 18, 1, 300),
            Profile::StepDown | Profile::Bursty => path(2_500_000, 20, 2, 300),
            Profile::StepUp => path(600_000, 20, 2, 300),
            Profile::Steady(rate) => path(rate.as_bps(), 30, 0, 400),
        }
    }
}

/// A course with another rate each second: up to a quarter more or less than the last, within bounds.
fn walk(base: Conditions, least: u64, most: u64, seed: u64) -> Course {
    let mut dice = StdRng::seed_from_u64(seed);
    let mut rate = base.rate.as_bps();
    let later = (1..WALK_S).map(|second| {
        let factor = dice.random_range(0.75..1.3333);
        rate = ((rate as f64 * factor) as u64).clamp(least, most);
        (Duration::from_secs(second), Conditions { rate: Bitrate::bps(rate), ..base })
    });
    Course::changing(base, later.collect::<Vec<_>>()).repeated(Duration::from_secs(WALK_S))
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Profile::ThreeG => "3g",
            Profile::Lte => "lte",
            Profile::WifiLossy => "wifi-lossy",
            Profile::Dsl => "dsl",
            Profile::StepDown => "step-down",
            Profile::StepUp => "step-up",
            Profile::Bursty => "bursty",
            Profile::Steady(rate) => return write!(f, "{}k", rate.as_kbps()),
        })
    }
}

impl FromStr for Profile {
    type Err = UnknownProfile;

    fn from_str(name: &str) -> Result<Profile, UnknownProfile> {
        let named = Profile::ALL.into_iter().find(|profile| profile.to_string() == name);
        let kbps = || name.strip_suffix('k')?.parse::<u32>().ok().filter(|kbps| *kbps > 0);
        let rate = || kbps().map(|kbps| Bitrate::kbps(kbps.into()));
        let found = named.or_else(|| rate().map(Profile::Steady));
        found.ok_or_else(|| UnknownProfile(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_a_name_that_leads_back_to_it() {
        for profile in Profile::ALL.into_iter().chain([Profile::Steady(Bitrate::kbps(300.0))]) {
            assert_eq!(profile.to_string().parse(), Ok(profile));
        }
        assert_eq!("300k".parse(), Ok(Profile::Steady(Bitrate::bps(300_000))));
        let rate = Profile::Steady(Bitrate::bps(300_000)).down(1).at(MS(9)).rate;
        assert_eq!(rate, Bitrate::bps(300_000));
        for none in ["0k", "k", "-3k", "300", "5000000000k"] {
            assert!(none.parse::<Profile>().is_err(), "{none}");
        }
        let error = "4g".parse::<Profile>().expect_err("none");
        assert!(error.to_string().contains("3g, lte"), "{error}");
    }

    #[test]
    fn a_walk_keeps_to_its_bounds_and_its_seed() {
        let course = Profile::Lte.down(5);
        assert_eq!(course, Profile::Lte.down(5));
        assert_ne!(course, Profile::Lte.down(6));
        for second in 0..300 {
            let rate = course.at(Duration::from_secs(second)).rate.as_bps();
            assert!((1_500_000..=8_000_000).contains(&rate));
        }
    }

    #[test]
    fn steps_are_where_they_are_said_to_be() {
        let steps = |p: Profile| p.down(1).rate_steps(Duration::from_secs(60));
        assert_eq!(steps(Profile::StepUp), [(MS(20_000), Bitrate::bps(2_500_000))]);
        assert_eq!(
            steps(Profile::StepDown),
            [(MS(20_000), Bitrate::bps(800_000)), (MS(40_000), Bitrate::bps(2_500_000))]
        );
        assert_eq!(steps(Profile::Bursty).len(), 11);
    }
}
