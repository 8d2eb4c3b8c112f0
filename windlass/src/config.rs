//! What an operator can set: by option, by file, or left at its default.
//!
//! [`Settings`] is what was said, on the command line or in the file, which have the same names.
//! [`Config`] is what follows from it for each part.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::str::FromStr;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::Args;
use serde::Deserialize;
use windlass_enhancer::EnhancerConfig;
use windlass_enhancer::engine::{EngineChoice, NetworkChoice};
use windlass_enhancer::schedule::slots::TaskOrder;
use windlass_enhancer::schedule::{RegionConfig, TileConfig};
use windlass_media::{AnchorCodecId, AnchorPolicy, UnknownPolicy};
use windlass_sfu::{DetailKnobs, Limits, SfuConfig};
use windlass_signaling::SignalingConfig;

/// Part of the budget that is kept for pacing, network and browser, unless the budget is short.
const DELIVERY: Duration = Duration::from_millis(60);

/// What was said, on the command line or in the file. The doc comments are the help.
#[derive(Debug, Clone, Default, PartialEq, Args, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Settings {
    /// Address of the page, the signalling and the metrics [default: 127.0.0.1:7880]
    #[arg(long, value_name = "ADDR")]
    pub http: Option<SocketAddr>,

    /// Address of the one UDP port for all media [default: 127.0.0.1:7881]
    #[arg(long, value_name = "ADDR")]
    pub udp: Option<SocketAddr>,

    /// Address that browsers send media to, where it is not the UDP address itself; may be given
    /// more than once. Without a port it has the UDP address's own
    #[arg(long, value_name = "IP[:PORT]")]
    pub advertise: Option<Vec<Advertise>>,

    /// Latency budget in milliseconds, 50 to 2000: from a frame's arrival at the server to its
    /// anchor used in the browser. What comes later is dropped [default: 200]
    #[arg(long, value_name = "MS")]
    pub budget_ms: Option<u32>,

    /// Forward only, without enhancement
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true,
          default_missing_value = "true")]
    pub no_enhancer: Option<bool>,

    /// What runs the network: auto (a GPU where one works, else the processor), cpu, cuda [default: cpu]
    #[arg(long, value_name = "NAME")]
    pub engine: Option<Named<EngineChoice>>,

    /// The network: auto (for each publisher the best that the machine can sustain within the budget, of pictures
    /// twice as large), all (the same, four times as large where the camera's pictures are: better, and four times
    /// the work for browsers), xs (the cheapest), m (three and a half times its cost), or files of your own with
    /// commas between, of whatever factors, of which each publisher is given the best in the same way
    /// [default: auto]
    #[arg(long, value_name = "NAME|FILE,...")]
    pub network: Option<Named<NetworkChoice>>,

    /// Threads for super-resolution [default: half of the machine's]
    #[arg(long, value_name = "N")]
    pub enhancer_threads: Option<usize>,

    /// Share of those threads' time that super-resolution may take, 0 to 1 [default: 1]
    #[arg(long, value_name = "SHARE")]
    pub compute_cap: Option<f64>,

    /// Frames that are decoded and anchors that are coded at once; 0: as many as the machine has cores [default: 0]
    #[arg(long, value_name = "N")]
    pub cpu_tasks: Option<usize>,

    /// Which of them is next where more wait: edf (the nearest deadline; what cannot meet it comes last or is
    /// refused) or fifo (the first that came) [default: edf]
    #[arg(long, value_name = "ORDER")]
    pub cpu_order: Option<Named<TaskOrder>>,

    /// Milliseconds, 0 to 2000, by which an anchor may be expected to miss its deadline and still be coded, with
    /// edf [default: 0]
    #[arg(long, value_name = "MS")]
    pub lost_cause_threshold_ms: Option<u32>,

    /// How anchors are chosen: latency-sensitive (for calls: every 66 ms, within the budget), cost-effective (for streams
    /// that nobody answers: the best of 666 ms, 7.5 % of all frames, later by as much), quality-sla (the same quality
    /// for each, and for no more than it can be kept to), or, to compare with, per-frame, key-uniform or nemo. While the server runs: POST {"room": NAME, "policy": POLICY} to /admin/policy
    /// [default: latency-sensitive]
    #[arg(long, value_name = "POLICY")]
    pub policy: Option<AnchorPolicy>,

    /// dB, 0 to 20, that a publisher of the policy quality-sla may lose in the mean for want of an accelerator of its own: those to
    /// whom it cannot be kept are refused anchors [default: 0.5]
    #[arg(long, value_name = "DB")]
    pub quality_sla_db: Option<f64>,

    /// Rooms whose anchors are chosen otherwise
    #[arg(long, value_name = "ROOM=POLICY,…", value_delimiter = ',')]
    pub room_policy: Option<Vec<RoomPolicy>>,

    /// Most anchors per frame of a publisher, 0 to 1 [default: 0.033]
    #[arg(long, value_name = "SHARE")]
    pub anchor_fraction: Option<f64>,

    /// Quality of the coded anchors, 1 to 100 [default: 85]
    #[arg(long, value_name = "Q", value_parser = clap::value_parser!(u8).range(1..=100))]
    pub anchor_quality: Option<u8>,

    /// How anchors are coded: jpeg, htj2k or vp9. Participants whose browser cannot decode it get plain
    /// rungs [default: htj2k]
    #[arg(long, value_name = "CODEC")]
    pub anchor_codec: Option<Codec>,

    /// What must have changed in a tile (64x64 pixels of the low layer) since it was last sent for it
    /// to be sent again: residual in square grey levels by pixel; 0 sends whole frames [default: 1]
    #[arg(long, value_name = "ENERGY")]
    pub tile_threshold: Option<f64>,

    /// Seconds, 1 to 3600, after which a tile is sent again although nothing has changed in it, for
    /// those who missed it [default: 10]
    #[arg(long, value_name = "S")]
    pub tile_refresh_s: Option<u64>,

    /// Never make anchors of a publisher's own larger pictures, be they of its next larger layer or of
    /// a detail stream; by super-resolution alone
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true,
          default_missing_value = "true")]
    pub no_captured: Option<bool>,

    /// Never learn from a publisher's own larger pictures how to make its enhanced anchors, once these pictures have
    /// ended; by the networks as they are
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true,
          default_missing_value = "true")]
    pub no_learn: Option<bool>,

    /// How publishers whose users agree send full-size detail where they send no larger layer: as a stream of whole
    /// frames (faces, motion), or as regions that the server asks for once a second (still screens)
    /// [default: stream]
    #[arg(long, value_name = "stream|regions")]
    pub detail_as: Option<DetailAs>,

    /// Adapt what publishers send (bit and frame rate of the low layer, and what the detail stream gets) to their
    /// uplinks and pictures, where their users have agreed to a detail stream
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true,
          default_missing_value = "true")]
    pub adapt: Option<bool>,

    /// Bit rate in kbit/s, 10 to 1000, of the detail that a publisher is asked for where it sends no larger
    /// layer and its user has agreed; 0 asks for none [default: 50]
    #[arg(long, value_name = "KBPS")]
    pub detail_kbps: Option<u32>,

    /// Full-size frames per second of a detail stream, 1 to 5 [default: 1]
    #[arg(long, value_name = "N")]
    pub detail_fps: Option<u32>,

    /// Publishers that are enhanced at a time [default: 64]
    #[arg(long, value_name = "N")]
    pub max_enhanced: Option<usize>,

    /// Participants in one room [default: 32]
    #[arg(long, value_name = "N")]
    pub max_participants: Option<usize>,

    /// Participants in all rooms together [default: 1000]
    #[arg(long, value_name = "N")]
    pub max_total_participants: Option<usize>,

    /// Rooms at a time [default: 200]
    #[arg(long, value_name = "N")]
    pub max_rooms: Option<usize>,

    /// Give every subscriber the best that it asks for, whatever its bandwidth estimate says: for
    /// tests and for networks known to be wide
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true,
          default_missing_value = "true")]
    pub no_congestion_control: Option<bool>,

    /// What to log: off, error, warn, info, debug, trace, or by part (info,windlass_sfu=debug)
    /// [default: info]
    #[arg(long, value_name = "FILTER", env = "WINDLASS_LOG")]
    pub log: Option<String>,

    /// Log one JSON object a line
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true,
          default_missing_value = "true")]
    pub log_json: Option<bool>,
}

/// How detail comes from publishers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum DetailAs {
    /// Whole frames, as a second video stream.
    Stream,
    /// Tiles on request.
    Regions,
}

/// An address to advertise: `IP` or `IP:PORT`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Advertise(pub SocketAddr);

impl FromStr for Advertise {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let addr = text.parse().or_else(|_| text.parse().map(|ip: IpAddr| SocketAddr::new(ip, 0)));
        match addr {
            Ok(addr) if addr.ip().is_unspecified() => {
                Err(format!("`{text}` is no address that a browser can send to"))
            }
            Ok(addr) => Ok(Advertise(addr)),
            Err(_) => Err(format!("`{text}` is neither IP nor IP:PORT")),
        }
    }
}

impl TryFrom<String> for Advertise {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

/// A codec of anchors, by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Codec(pub AnchorCodecId);

impl FromStr for Codec {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let names = || AnchorCodecId::ENCODED.map(AnchorCodecId::name).join(", ");
        match AnchorCodecId::from_name(text) {
            Some(codec) if AnchorCodecId::ENCODED.contains(&codec) => Ok(Codec(codec)),
            Some(_) => Err(format!(
                "anchor-codec: `{text}` is what publishers' own pictures come in, not what anchors are coded by; use one of {}",
                names()
            )),
            None => Err(format!("anchor-codec: `{text}` is none of {}", names())),
        }
    }
}

impl TryFrom<String> for Codec {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

/// How anchors are chosen in a room: `ROOM=POLICY`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct RoomPolicy {
    room: String,
    policy: AnchorPolicy,
}

impl FromStr for RoomPolicy {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // A room's name may have the sign in it, a policy's has not.
        let (room, policy) = text.rsplit_once('=').ok_or("it must be ROOM=POLICY")?;
        let policy = policy.parse().map_err(|e: UnknownPolicy| e.to_string())?;
        if room.is_empty() {
            return Err("the room has no name".to_owned());
        }
        Ok(RoomPolicy { room: room.to_owned(), policy })
    }
}

impl TryFrom<String> for RoomPolicy {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

/// A choice of the enhancer's, by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String", bound = "T: FromStr<Err = String>")]
pub struct Named<T>(pub T);

impl<T: FromStr<Err = String>> FromStr for Named<T> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        text.parse().map(Named)
    }
}

impl<T: FromStr<Err = String>> TryFrom<String> for Named<T> {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl Settings {
    /// Reads a TOML file. A key that is no setting is an error, not a surprise later.
    pub fn read(path: &Path) -> Result<Settings> {
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("cannot read the configuration file {}", path.display()))?;
        Self::parse(&text)
            .with_context(|| format!("cannot use the configuration file {}", path.display()))
    }

    fn parse(text: &str) -> Result<Settings> {
        Ok(toml::from_str(text)?)
    }

    /// These settings, and where they say nothing, `others`.
    #[must_use]
    pub fn over(self, others: Settings) -> Settings {
        Settings {
            http: self.http.or(others.http),
            udp: self.udp.or(others.udp),
            advertise: self.advertise.or(others.advertise),
            budget_ms: self.budget_ms.or(others.budget_ms),
            no_enhancer: self.no_enhancer.or(others.no_enhancer),
            engine: self.engine.or(others.engine),
            network: self.network.or(others.network),
            enhancer_threads: self.enhancer_threads.or(others.enhancer_threads),
            compute_cap: self.compute_cap.or(others.compute_cap),
            cpu_tasks: self.cpu_tasks.or(others.cpu_tasks),
            cpu_order: self.cpu_order.or(others.cpu_order),
            lost_cause_threshold_ms: self
                .lost_cause_threshold_ms
                .or(others.lost_cause_threshold_ms),
            policy: self.policy.or(others.policy),
            room_policy: self.room_policy.or(others.room_policy),
            quality_sla_db: self.quality_sla_db.or(others.quality_sla_db),
            anchor_fraction: self.anchor_fraction.or(others.anchor_fraction),
            anchor_quality: self.anchor_quality.or(others.anchor_quality),
            anchor_codec: self.anchor_codec.or(others.anchor_codec),
            tile_threshold: self.tile_threshold.or(others.tile_threshold),
            tile_refresh_s: self.tile_refresh_s.or(others.tile_refresh_s),
            no_captured: self.no_captured.or(others.no_captured),
            no_learn: self.no_learn.or(others.no_learn),
            detail_as: self.detail_as.or(others.detail_as),
            adapt: self.adapt.or(others.adapt),
            detail_kbps: self.detail_kbps.or(others.detail_kbps),
            detail_fps: self.detail_fps.or(others.detail_fps),
            max_enhanced: self.max_enhanced.or(others.max_enhanced),
            max_participants: self.max_participants.or(others.max_participants),
            max_total_participants: self.max_total_participants.or(others.max_total_participants),
            max_rooms: self.max_rooms.or(others.max_rooms),
            no_congestion_control: self.no_congestion_control.or(others.no_congestion_control),
            log: self.log.or(others.log),
            log_json: self.log_json.or(others.log_json),
        }
    }
}

/// What each part is started with.
#[derive(Debug, Clone)]
pub struct Config {
    /// Address of page, signalling and metrics.
    pub http: SocketAddr,
    /// The SFU.
    pub sfu: SfuConfig,
    /// Signalling.
    pub signaling: SignalingConfig,
    /// The enhancer; `None` forwards only.
    pub enhancer: Option<EnhancerConfig>,
    /// Log filter.
    pub log: String,
    /// Whether log lines are JSON.
    pub log_json: bool,
}

impl Config {
    /// Fills in the defaults and checks what was said.
    pub fn resolve(said: Settings) -> Result<Config> {
        let budget = said.budget_ms.unwrap_or(200);
        ensure!((50..=2000).contains(&budget), "budget-ms must be from 50 to 2000, not {budget}");
        let budget = Duration::from_millis(budget.into());
        for (name, count) in [
            ("max-participants", said.max_participants),
            ("max-total-participants", said.max_total_participants),
            ("max-rooms", said.max_rooms),
        ] {
            ensure!(count != Some(0), "{name} must be at least 1");
        }
        let limits = Limits::default();
        let limits = Limits {
            rooms: said.max_rooms.unwrap_or(limits.rooms),
            participants: said.max_total_participants.unwrap_or(limits.participants),
            participants_per_room: said.max_participants.unwrap_or(limits.participants_per_room),
            ..limits
        };
        let enhancer = match said.no_enhancer {
            Some(true) => None,
            _ => Some(enhancer(&said, budget)?),
        };
        let mut signaling = SignalingConfig::default();
        signaling.session.budget = budget;
        signaling.sockets = limits.participants.saturating_mul(2);
        let captured = !said.no_captured.unwrap_or(false);
        let detail = detail(&said)?.filter(|_| captured);
        let by_regions = said.detail_as == Some(DetailAs::Regions);
        let sfu = SfuConfig {
            captured,
            adapt: said.adapt.unwrap_or(false),
            regions: detail.is_some() && by_regions,
            detail: detail.filter(|_| !by_regions),
            udp: said.udp.unwrap_or(SocketAddr::from(([127, 0, 0, 1], 7881))),
            advertise: said.advertise.unwrap_or_default().into_iter().map(|a| a.0).collect(),
            budget,
            anchor_codec: said
                .anchor_codec
                .map_or(EnhancerConfig::default().anchor_codec, |codec| codec.0),
            policy: said.policy.unwrap_or_default(),
            room_policies: room_policies(said.room_policy.unwrap_or_default())?,
            limits,
            congestion_control: !said.no_congestion_control.unwrap_or(false),
            ..SfuConfig::default()
        };
        Ok(Config {
            http: said.http.unwrap_or(SocketAddr::from(([127, 0, 0, 1], 7880))),
            sfu,
            signaling,
            enhancer,
            log: said.log.unwrap_or_else(|| "info".to_owned()),
            log_json: said.log_json.unwrap_or(false),
        })
    }
}

/// The rooms' policies; a room that is named twice is an error.
fn room_policies(said: Vec<RoomPolicy>) -> Result<BTreeMap<String, AnchorPolicy>> {
    let mut policies = BTreeMap::new();
    for RoomPolicy { room, policy } in said {
        let former = policies.insert(room.clone(), policy);
        ensure!(former.is_none(), "room-policy names the room {room:?} twice");
    }
    Ok(policies)
}

/// What publishers are asked to send as detail stream.
fn detail(said: &Settings) -> Result<Option<DetailKnobs>> {
    let kbps = said.detail_kbps.unwrap_or(50);
    ensure!(
        kbps == 0 || (10..=1000).contains(&kbps),
        "detail-kbps must be 0 or from 10 to 1000, not {kbps}"
    );
    let fps = said.detail_fps.unwrap_or(1);
    ensure!((1..=5).contains(&fps), "detail-fps must be from 1 to 5, not {fps}");
    Ok((kbps > 0).then_some(DetailKnobs { kbps: kbps.into(), fps: fps.into() }))
}

fn enhancer(said: &Settings, budget: Duration) -> Result<EnhancerConfig> {
    let share = |name: &str, value: Option<f64>, default: f64| {
        let value = value.unwrap_or(default);
        ensure!((0.0..=1.0).contains(&value), "{name} must be from 0 to 1, not {value}");
        Ok(value)
    };
    let default = EnhancerConfig::default();
    let threads = said.enhancer_threads.unwrap_or(default.threads);
    ensure!((1..=256).contains(&threads), "enhancer-threads must be from 1 to 256, not {threads}");
    let lost = said.lost_cause_threshold_ms.unwrap_or(0);
    ensure!(lost <= 2000, "lost-cause-threshold-ms must be from 0 to 2000, not {lost}");
    let quality = said.anchor_quality.unwrap_or(default.anchor_quality);
    ensure!((1..=100).contains(&quality), "anchor-quality must be from 1 to 100, not {quality}");
    let threshold = said.tile_threshold.unwrap_or(default.tiles.threshold);
    ensure!(
        threshold.is_finite() && threshold >= 0.0,
        "tile-threshold must be 0 or more, not {threshold}"
    );
    let refresh = said.tile_refresh_s.map_or(default.tiles.refresh, Duration::from_secs);
    ensure!(
        (1..=3600).contains(&refresh.as_secs()),
        "tile-refresh-s must be from 1 to 3600, not {}",
        refresh.as_secs()
    );
    Ok(EnhancerConfig {
        budget,
        delivery_allowance: DELIVERY.min(budget * 3 / 10),
        engine: said.engine.map_or(default.engine, |engine| engine.0),
        network: said.network.clone().map_or(default.network, |network| network.0),
        threads,
        cpu_tasks: said.cpu_tasks.unwrap_or(default.cpu_tasks),
        cpu_order: said.cpu_order.map_or(default.cpu_order, |order| order.0),
        lost_cause_threshold: Duration::from_millis(lost.into()),
        compute_cap: share("compute-cap", said.compute_cap, default.compute_cap)?,
        promise_db: {
            let db = said.quality_sla_db.unwrap_or(default.promise_db);
            ensure!((0.0..=20.0).contains(&db), "quality-sla-db must be from 0 to 20, not {db}");
            db
        },
        anchor_fraction: share("anchor-fraction", said.anchor_fraction, default.anchor_fraction)?,
        anchor_codec: said.anchor_codec.map_or(default.anchor_codec, |codec| codec.0),
        anchor_quality: quality,
        tiles: TileConfig { threshold, refresh, ..TileConfig::default() },
        regions: RegionConfig {
            // One request a second.
            bytes: detail(said)?.map_or(0, |d| (d.kbps * 125.0) as usize),
            ..default.regions
        },
        max_streams: said.max_enhanced.unwrap_or(default.max_streams),
        learn: !said.no_learn.unwrap_or(!default.learn),
        ..default
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_the_names_of_the_options() {
        let text = r#"
            http = "0.0.0.0:80"
            udp = "0.0.0.0:7881"
            advertise = ["192.0.2.1:7881", "2001:db8::1"]
            budget-ms = 150
            no-enhancer = true
            engine = "cpu"
            network = "auto"
            enhancer-threads = 4
            compute-cap = 0.5
            cpu-tasks = 3
            cpu-order = "fifo"
            lost-cause-threshold-ms = 20
            policy = "latency-sensitive"
            quality-sla-db = 1.5
            room-policy = ["lectures=cost-effective", "a=b=per-frame"]
            anchor-fraction = 0.1
            anchor-quality = 70
            anchor-codec = "htj2k"
            tile-threshold = 0.5
            tile-refresh-s = 20
            no-captured = false
            no-learn = true
            detail-as = "stream"
            adapt = true
            detail-kbps = 40
            detail-fps = 2
            max-enhanced = 8
            max-participants = 10
            max-total-participants = 100
            max-rooms = 20
            no-congestion-control = true
            log = "debug"
            log-json = true
        "#;
        let settings = Settings::parse(text).unwrap();
        // Every field is set, so that a new one is not forgotten here or in `over`.
        let debug = format!("{:?}", Settings::default().over(settings.clone()));
        assert!(!debug.contains("None"), "{debug}");
        assert_eq!(settings.clone().over(Settings::default()), settings);
    }

    #[test]
    fn a_key_that_is_no_setting_is_named_with_those_that_are() {
        let error = format!("{:#}", Settings::parse("budget = 150").unwrap_err());
        assert!(error.contains("budget") && error.contains("budget-ms"), "{error}");
        let error = format!("{:#}", Settings::parse("http = 80").unwrap_err());
        assert!(error.contains("line 1"), "{error}");
    }

    #[test]
    fn values_out_of_range_are_refused_by_name() {
        for (text, name) in [
            ("budget-ms = 10", "budget-ms"),
            ("max-participants = 0", "max-participants"),
            ("max-rooms = 0", "max-rooms"),
            ("compute-cap = 1.5", "compute-cap"),
            ("anchor-fraction = -0.1", "anchor-fraction"),
            ("anchor-fraction = nan", "anchor-fraction"),
            ("anchor-quality = 0", "anchor-quality"),
            ("anchor-codec = \"png\"", "jpeg, htj2k"),
            ("engine = \"gpu\"", "auto, cpu, cuda"),
            ("network = \"l\"", "auto, all, xs, m"),
            ("tile-threshold = -1.0", "tile-threshold"),
            ("tile-threshold = inf", "tile-threshold"),
            ("tile-refresh-s = 0", "tile-refresh-s"),
            ("cpu-order = \"sjf\"", "edf nor fifo"),
            ("lost-cause-threshold-ms = 3000", "lost-cause-threshold-ms"),
            ("enhancer-threads = 0", "enhancer-threads"),
            ("advertise = [\"0.0.0.0\"]", "0.0.0.0"),
            ("advertise = [\"example\"]", "example"),
        ] {
            let error = match Settings::parse(text).and_then(Config::resolve) {
                Ok(_) => panic!("{text} was taken"),
                Err(error) => format!("{error:#}"),
            };
            assert!(error.contains(name), "{text}: {error}");
        }
    }

    #[test]
    fn the_codec_of_a_name_is_the_codecs_own() {
        use windlass_hybrid::anchor::codec::{self, AnchorCodec};
        use windlass_hybrid::anchor::pictures::VP9_PICTURES;
        use windlass_hybrid::anchor::stream::VP9_STREAM;
        assert_eq!(AnchorCodecId::Vp9Pictures.id(), VP9_PICTURES);
        for said in AnchorCodecId::ENCODED {
            let own = match said {
                AnchorCodecId::Vp9 => Some(VP9_STREAM),
                still => codec::by_name(still.name()).map(AnchorCodec::id),
            };
            assert_eq!(own, Some(said.id()));
            let text = format!("anchor-codec = \"{}\"", said.name());
            let config = Config::resolve(Settings::parse(&text).unwrap()).unwrap();
            assert_eq!(config.sfu.anchor_codec, said);
            assert_eq!(config.enhancer.unwrap().anchor_codec, said);
        }
    }

    #[test]
    fn anchors_cannot_be_coded_as_the_publishers_pictures() {
        let error = Codec::from_str("vp9-pictures").unwrap_err();
        assert!(error.contains("publishers' own") && error.contains("jpeg, htj2k, vp9"), "{error}");
    }

    #[test]
    fn networks_learn_unless_they_are_told_not_to() {
        let learn = |text: &str| {
            let config = Config::resolve(Settings::parse(text).unwrap()).unwrap();
            config.enhancer.unwrap().learn
        };
        assert!(learn("") && learn("no-learn = false") && !learn("no-learn = true"));
    }

    #[test]
    fn a_short_budget_leaves_time_for_inference() {
        let config = Config::resolve(Settings::parse("budget-ms = 50").unwrap()).unwrap();
        let enhancer = config.enhancer.unwrap();
        assert!(enhancer.delivery_allowance < enhancer.budget / 2);
    }

    #[test]
    fn rooms_have_policies_of_their_own() {
        let config = |text: &str| Config::resolve(Settings::parse(text).unwrap());
        let said =
            "policy = 'key-uniform'\nroom-policy = ['lectures=cost-effective', 'a=b=per-frame']";
        let sfu = config(said).unwrap().sfu;
        assert_eq!(sfu.policy, AnchorPolicy::KeyUniform);
        assert_eq!(sfu.room_policies["lectures"], AnchorPolicy::CostEffective);
        assert_eq!(sfu.room_policies["a=b"], AnchorPolicy::PerFrame);
        let twice = config("room-policy = ['tea=per-frame', 'tea=key-uniform']").unwrap_err();
        assert!(twice.to_string().contains("\"tea\" twice"), "{twice}");
        for wrong in ["room-policy = ['tea']", "room-policy = ['=per-frame']", "policy = 'fair'"] {
            assert!(Settings::parse(wrong).is_err(), "{wrong}");
        }
    }
}
