//! Options of enhancement.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use anyhow::Result;
use windlass_enhancer::EnhancerConfig;
use windlass_enhancer::tiles::RegionConfig;
use windlass_sr::EngineChoice;
use windlass_sr::cuda::devices::DeviceName;
use windlass_types::{AnchorPolicy, Bitrate};

use super::Settings;
use super::values::parts;

/// Part of the budget that is kept for pacing, network and browser, unless the budget is short.
const DELIVERY: Duration = Duration::from_millis(60);
/// Maximum number of CPU threads of enhancement.
pub(crate) const MAX_THREADS: usize = 256;
/// Bitrate of the stills that publishers are asked for: a fraction of the low layer's, so that it hardly loads the
/// uplink.
const STILLS: Bitrate = Bitrate::bps(50_000);

/// Devices that run the networks: `off`, an engine's name, or GPUs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Device {
    /// Nothing runs networks: media is only forwarded.
    Off,
    /// The CPU, or all GPUs that CUDA shows.
    Engine(EngineChoice),
    /// The named GPUs, or one slice of a GPU.
    Gpus(Vec<DeviceName>),
}

impl Device {
    /// Engine of the device; `None` if nothing is enhanced.
    fn engine(&self) -> Option<EngineChoice> {
        match self {
            Device::Off => None,
            Device::Engine(engine) => Some(*engine),
            Device::Gpus(_) => Some(EngineChoice::Cuda),
        }
    }

    /// Names of the chosen GPUs; empty for all that CUDA shows.
    pub(super) fn gpus(self) -> Vec<DeviceName> {
        match self {
            Device::Gpus(gpus) => gpus,
            Device::Off | Device::Engine(_) => Vec::new(),
        }
    }
}

impl Default for Device {
    fn default() -> Self {
        Device::Engine(EngineChoice::default())
    }
}

impl FromStr for Device {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "off" {
            return Ok(Device::Off);
        }
        if let Ok(engine) = text.parse() {
            return Ok(Device::Engine(engine));
        }
        let gpus: Result<Vec<DeviceName>, String> = parts(text).map(str::parse).collect();
        gpus.map(Device::Gpus).map_err(|e| format!("{e}; or off, auto, cpu, cuda"))
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Device::Off => f.write_str("off"),
            Device::Engine(engine) => engine.fmt(f),
            Device::Gpus(gpus) => {
                let names: Vec<String> = gpus.iter().map(ToString::to_string).collect();
                f.write_str(&names.join(","))
            }
        }
    }
}

/// Policies that choose anchors: `POLICY,ROOM=POLICY,…`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Policies {
    /// Policy of the rooms that are not named.
    pub usual: AnchorPolicy,
    /// Policies of named rooms.
    pub rooms: BTreeMap<String, AnchorPolicy>,
    /// Mean loss of quality that `quality-sla` allows, in hundredths of a dB, if it was given.
    pub promise: Option<u16>,
}

impl FromStr for Policies {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (mut usual, mut rooms, mut promise) = (None, BTreeMap::new(), None);
        for part in parts(text) {
            // A room's name may have the sign in it, a policy's has not.
            let (room, policy) =
                part.rsplit_once('=').map_or((None, part), |(room, policy)| (Some(room), policy));
            let (policy, loss) = policy
                .split_once(':')
                .map_or((policy, None), |(policy, loss)| (policy, Some(loss)));
            let policy = policy.parse::<AnchorPolicy>().map_err(|e| e.to_string())?;
            if let Some(loss) = loss {
                let loss = hundredths(loss).filter(|_| policy == AnchorPolicy::QualitySla);
                let loss =
                    loss.ok_or_else(|| format!("`{part}`: write quality-sla:DB, DB from 0 to 20"))?;
                if promise.replace(loss).is_some_and(|former| former != loss) {
                    return Err(format!("`{text}` has two losses that quality-sla allows"));
                }
            }
            let former = match room {
                None => usual.replace(policy),
                Some("") => return Err(format!("`{part}` names no room: write ROOM=POLICY")),
                Some(room) => rooms.insert(room.to_owned(), policy),
            };
            if former.is_some() {
                return Err(match room {
                    Some(room) => format!("the room {room:?} has two policies"),
                    None => format!("`{text}` has two policies for all rooms"),
                });
            }
        }
        Ok(Policies { usual: usual.unwrap_or_default(), rooms, promise })
    }
}

impl fmt::Display for Policies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let loss = |policy| match self.promise.filter(|_| policy == AnchorPolicy::QualitySla) {
            Some(loss) => format!(":{}", f64::from(loss) / 100.0),
            None => String::new(),
        };
        write!(f, "{}{}", self.usual, loss(self.usual))?;
        let mut rooms = self.rooms.iter();
        rooms.try_for_each(|(room, &policy)| write!(f, ",{room}={policy}{}", loss(policy)))
    }
}

/// Reads a loss from 0 to 20 dB, in hundredths of a dB.
fn hundredths(text: &str) -> Option<u16> {
    let loss: f64 = text.parse().ok()?;
    (0.0..=20.0).contains(&loss).then_some((loss * 100.0).round() as u16)
}

/// A use of a publisher's own larger pictures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Use {
    /// Anchors are made of a larger layer.
    Layers,
    /// Publishers who agree are asked for stills.
    Stills,
    /// Networks learn from the publisher's pictures.
    Learn,
    /// Bitrate and frame rate of publishers who agree to stills are adapted.
    Adapt,
}

impl Use {
    /// All uses, with their names in the option.
    const ALL: [(Use, &'static str); 4] = [
        (Use::Layers, "layers"),
        (Use::Stills, "stills"),
        (Use::Learn, "learn"),
        (Use::Adapt, "adapt"),
    ];
}

/// Uses of publishers' own larger pictures: `off`, or a list of [`Use`]s with `layers` among them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Captured(BTreeSet<Use>);

impl Captured {
    /// Whether the pictures are used in the given way.
    pub(super) fn has(&self, used: Use) -> bool {
        self.0.contains(&used)
    }
}

impl Default for Captured {
    fn default() -> Self {
        Captured(BTreeSet::from([Use::Layers, Use::Stills, Use::Learn]))
    }
}

impl FromStr for Captured {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "off" {
            return Ok(Captured(BTreeSet::new()));
        }
        let of = |name: &str| {
            let found = Use::ALL.into_iter().find(|(_, known)| *known == name);
            found.map(|(used, _)| used).ok_or_else(|| {
                format!("`{name}` is none of layers, stills, learn, adapt, and not off")
            })
        };
        let uses: BTreeSet<Use> = parts(text).map(of).collect::<Result<_, _>>()?;
        if !uses.contains(&Use::Layers) {
            return Err(format!("`{text}` needs layers, on which all else builds: layers,{text}"));
        }
        Ok(Captured(uses))
    }
}

impl fmt::Display for Captured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = Use::ALL
            .into_iter()
            .filter(|(used, _)| self.has(*used))
            .map(|(_, name)| name)
            .collect();
        f.write_str(if names.is_empty() { "off" } else { "" })?;
        f.write_str(&names.join(","))
    }
}

/// Configuration of the enhancer; `None` if the device is `off`.
pub(super) fn enhancer(settings: &Settings, budget: Duration) -> Result<Option<EnhancerConfig>> {
    let Some(engine) = settings.device().0.engine() else { return Ok(None) };
    let (compute_cap, anchor_fraction) = (settings.compute_cap(), settings.anchor_fraction());
    for (name, share) in [("compute-cap", compute_cap), ("anchor-fraction", anchor_fraction)] {
        allow!((0.0..=1.0).contains(&share), name, "must be from 0 to 1, not {share}");
    }
    let default = EnhancerConfig::default();
    let promise = settings.policy().0.promise;
    let promise_db = promise.map_or(default.promise_db, |loss| f64::from(loss) / 100.0);
    let threads = settings.enhancer_threads.unwrap_or(default.threads);
    allow!(
        (1..=MAX_THREADS).contains(&threads),
        "enhancer-threads",
        "must be from 1 to {MAX_THREADS}, not {threads}"
    );
    let mib = settings
        .enhancer_memory_mb
        .unwrap_or_else(|| (windlass_enhancer::allowed_mib() / 2).max(64));
    allow!(mib >= 64, "enhancer-memory-mb", "must be 64 or more, not {mib}");
    let captured = settings.captured().0;
    let stills = if captured.has(Use::Stills) { STILLS } else { Bitrate::ZERO };
    Ok(Some(EnhancerConfig {
        budget,
        delivery_allowance: DELIVERY.min(budget * 3 / 10),
        engine,
        network: settings.network().0,
        threads,
        cpu_tasks: settings.enhancer_threads.unwrap_or(default.cpu_tasks),
        compute_cap,
        promise_db,
        anchor_fraction,
        regions: RegionConfig { bitrate: stills, ..default.regions },
        max_streams: settings.max_enhanced(),
        memory: mib << 20,
        learn: captured.has(Use::Learn),
        ..default
    }))
}
