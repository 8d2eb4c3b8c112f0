//! The command line of `windlass-lab loadtest`.

use std::net::IpAddr;
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;

use anyhow::Result;
use clap::{Args, ValueEnum};
use windlass_netem::Profile;
use windlass_signaling::access::TokenKey;
use windlass_types::{Layer, Rung, VideoCodec};

use super::children::Part;
use super::signal::ServerUrl;
use crate::output::Output;

/// The server whose signalling clients speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Peer {
    /// Ours.
    Windlass,
    /// Janus, its VideoRoom plugin over WebSocket.
    Janus,
}

/// The WebRTC stack of the clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Stack {
    /// The server's own.
    Str0m,
    /// Another one, so that the server is not judged by itself.
    WebrtcRs,
}

/// Who is behind emulated links.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LinksOf {
    /// Everybody.
    All,
    /// Subscribers.
    Subscribers,
}

/// Arguments of `windlass-lab loadtest`.
#[derive(Debug, Clone, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct LoadtestArgs {
    /// The rooms, and the clients in each.
    #[command(flatten, next_help_heading = "Clients")]
    pub rooms: RoomArgs,

    /// The server under load, and how clients come to it.
    #[command(flatten, next_help_heading = "Server")]
    pub server: ServerArgs,

    /// When clients come and go, and when they are measured.
    #[command(flatten, next_help_heading = "Time")]
    pub times: TimeArgs,

    /// The access links of the clients.
    #[command(flatten, next_help_heading = "Links")]
    pub links: LinkArgs,

    /// The video that publishers send.
    #[command(flatten, next_help_heading = "What is sent")]
    pub sent: SentArgs,

    /// The video and the anchors that subscribers ask for.
    #[command(flatten, next_help_heading = "What is watched")]
    pub watched: WatchedArgs,

    /// The threads and processes that clients take here.
    #[command(flatten, next_help_heading = "This machine")]
    pub load: LoadArgs,

    /// What is measured against, printed and written.
    #[command(flatten, next_help_heading = "Report")]
    pub report: ReportArgs,
}

/// The rooms, and the clients in each.
#[derive(Debug, Clone, Args)]
pub(crate) struct RoomArgs {
    /// Publishers, each with one camera.
    #[arg(long, default_value = "10", value_name = "N")]
    pub publishers: NonZeroUsize,

    /// Publishers in each room.
    #[arg(long, default_value = "1", value_name = "K")]
    pub per_room: NonZeroUsize,

    /// Subscribers in each room, who publish nothing.
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub subscribers: usize,
}

/// The server under load, and how clients come to it.
#[derive(Debug, Clone, Args)]
pub(crate) struct ServerArgs {
    /// The server: its own HTTP port, not a proxy's HTTPS.
    #[arg(
        long = "server",
        default_value = "http://localhost:7880",
        value_name = "URL",
        conflicts_with = "own"
    )]
    pub url: String,

    /// Start a server for the test, on free ports of this machine, and stop it in the end. What follows `--` are
    /// options of `windlass serve`.
    #[arg(long)]
    pub own: bool,

    /// Options of the server that --own starts.
    #[arg(last = true, requires = "own", value_name = "OPTION")]
    pub serve: Vec<String>,

    /// The server's process, if it runs on this machine: its CPU time and memory are reported. --own knows it.
    #[arg(long, value_name = "PID", conflicts_with = "own")]
    pub pid: Option<u32>,

    /// Do not ask the server for its own figures: it is asked once a second, and its answer of some 20 kB would be a
    /// good part of what a narrow link to it carries.
    #[arg(long, conflicts_with = "stay")]
    pub no_metrics: bool,

    /// The kind of server. For `janus`, --server is its WebSocket (`http://HOST:8188`), --own starts the one that is
    /// installed, one layer is sent, and there are no anchors.
    #[arg(long, default_value = "windlass", value_enum)]
    pub peer: Peer,

    /// A key of the server's, as `windlass token` takes it: each client makes a token of its own.
    #[arg(long, value_name = "ID=SECRET", env = "WINDLASS_TOKEN_KEY", hide_env_values = true)]
    pub token_key: Option<TokenKey>,

    /// All clients say that a proxy passed them on from this address: a server that trusts them (`--trusted-proxies`)
    /// counts them as one office's.
    #[arg(long, value_name = "ADDRESS")]
    pub forwarded_for: Option<IpAddr>,
}

/// When clients come and go, and when they are measured.
#[derive(Debug, Clone, Args)]
pub(crate) struct TimeArgs {
    /// How long to run after the last publisher has come.
    #[arg(long, default_value_t = 30.0, value_name = "S", value_parser = seconds)]
    pub seconds: f64,

    /// Over how long publishers come, one after the other.
    #[arg(long, default_value_t = 5.0, value_name = "S", value_parser = seconds)]
    pub ramp: f64,

    /// From the last publisher's coming to the beginning of what is measured: connections and rungs settle.
    #[arg(long, default_value_t = 3.0, value_name = "S", value_parser = seconds)]
    pub settle: f64,

    /// How long each client stays in the mean; others come in the place of those that go, of whom every fourth says
    /// nothing. After the run the server must have nobody and nothing left, and what it counted must add up [default:
    /// all stay until the end].
    #[arg(long, value_name = "S", value_parser = seconds, conflicts_with_all = ["client_processes", "idle"])]
    pub stay: Option<f64>,
}

/// The access links of the clients.
#[derive(Debug, Clone, Args)]
pub(crate) struct LinkArgs {
    /// Emulated access links, one drawn for each client each time it comes: 3g, lte, wifi-lossy, dsl, step-down,
    /// step-up, bursty, or a rate in kbit/s (300k). Publishers have the rate of the way down, since they do not adapt
    /// what they send.
    #[arg(long = "links", value_delimiter = ',', value_name = "LINK,…")]
    pub profiles: Vec<Profile>,

    /// Who has the links of --links.
    #[arg(long, default_value = "all", value_enum, requires = "profiles")]
    pub links_of: LinksOf,

    /// Decides all that is drawn for --stay and --links.
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub seed: u64,
}

/// The video that publishers send.
#[derive(Debug, Clone, Args)]
pub(crate) struct SentArgs {
    /// The layers to send.
    #[arg(long, value_delimiter = ',', default_values = ["q"], value_name = "q,h,f", value_parser = layer)]
    pub layers: Vec<Layer>,

    /// The codec: vp9, vp8, h264 or av1. Others than vp9 are encoded by ffmpeg, and have no anchors.
    #[arg(long, default_value = "vp9", value_name = "CODEC", value_parser = codec)]
    pub codec: VideoCodec,

    /// A folder with q.ivf, h.ivf and f.ivf: VP9, profile 0, key frames at the same pictures. Layers without a file are
    /// not sent.
    #[arg(long, value_name = "DIR", conflicts_with = "clip")]
    pub media: Option<PathBuf>,

    /// A video to code the layers of, as Chromium does, by ffmpeg and libvpx. Without --media and --clip a moving scene
    /// is drawn.
    #[arg(long, value_name = "FILE")]
    pub clip: Option<PathBuf>,

    /// Seconds of the clip or the scene that are coded, and sent again and again.
    #[arg(long, default_value_t = 10.0, value_name = "S", value_parser = seconds)]
    pub clip_seconds: f64,

    /// Seconds between key frames of what is coded here. A publisher that is asked for one goes on from the next one of
    /// the recording, at once.
    #[arg(long, default_value_t = 2.0, value_name = "S", value_parser = seconds)]
    pub key_every: f64,

    /// The ffmpeg that reads the clip, and encodes for --codec.
    #[arg(long, env = "WINDLASS_FFMPEG", value_name = "PATH")]
    pub ffmpeg: Option<PathBuf>,
}

/// The video and the anchors that subscribers ask for.
#[derive(Debug, Clone, Args)]
pub(crate) struct WatchedArgs {
    /// The best rung that subscribers ask for [default: the enhanced one of the best layer below f that is sent].
    #[arg(long, value_name = "q|q+|h|h+|f", value_parser = rung)]
    pub max_rung: Option<Rung>,

    /// Ask for plain layers only: the best one that is sent. Packets then carry the time at which they were sent, and
    /// how long they took is reported.
    #[arg(long, conflicts_with = "max_rung")]
    pub no_anchors: bool,

    /// Subscribers join and connect, and take nothing: what a peer costs that does nothing.
    #[arg(long)]
    pub idle: bool,
}

/// The threads and processes that clients take here.
#[derive(Debug, Clone, Args)]
pub(crate) struct LoadArgs {
    /// The WebRTC stack of the clients. On `webrtc-rs`, clients stay until the end, and the report has what was
    /// retransmitted.
    #[arg(long, default_value = "str0m", value_enum)]
    pub client: Stack,

    /// Processes that subscribers are spread over, beside this one, which keeps the publishers; 0: all in this one.
    #[arg(long, default_value_t = 0, value_name = "N", value_parser = clap::value_parser!(u16).range(0..=64))]
    pub client_processes: u16,

    /// What a process of --client-processes is told by the first one.
    #[arg(long, hide = true)]
    pub part: Option<Part>,

    /// Threads of the clients.
    #[arg(long, default_value = "1", value_name = "N")]
    pub threads: NonZeroUsize,
}

/// What is measured against, printed and written.
#[derive(Debug, Clone, Args)]
pub(crate) struct ReportArgs {
    /// The budget that anchors are measured against.
    #[arg(long, default_value = "200", value_name = "MS")]
    pub budget_ms: NonZeroU32,

    /// Say on standard error what subscribers got in each tenth of a second: a line of JSON with `at_s` (since the
    /// beginning of the run), `kbps`, `frames`, `shown`, `freezes`, `lost`, `anchors`, `anchor_max_ms`,
    /// `transit_p95_ms`, `paused` and `rungs` (tracks by rung).
    #[arg(long, conflicts_with = "client_processes")]
    pub trace: bool,

    /// What is printed and written.
    #[command(flatten)]
    pub output: Output,
}

/// Text at the end of the command's long help.
const EXAMPLES: &str = "\
Examples:
  windlass-lab loadtest --publishers 20                      against `windlass serve` on this machine
  windlass-lab loadtest --own --publishers 4 -- --enhancer-threads 1 --compute-cap 0.5
  windlass-lab loadtest --server http://192.0.2.1:7880 --publishers 200 --ramp 30 --seconds 120 --json
  windlass-lab loadtest --layers q,h,f --clip face.mp4       anchors of the publisher's own pixels
  windlass-lab loadtest --own --publishers 1 --subscribers 200 --layers h --no-anchors --client-processes 2 -- --max-participants 201
  windlass-lab loadtest --own --publishers 8 --per-room 2 --subscribers 3 --layers q,h --stay 60 --seconds 3600 --links 3g,lte,wifi-lossy,dsl,bursty
  windlass-lab loadtest --own --publishers 3 --layers q,h,f --no-anchors --links step-down --links-of subscribers --seconds 60
  windlass-lab loadtest --own --peer janus --publishers 1 --subscribers 200 --layers h --client-processes 2

Server and clients share this machine's CPUs unless told otherwise (`taskset`, `nice`): say so with the figures.";

impl LoadtestArgs {
    /// The best rung that subscribers ask for. Without anchors it is the plain rung of the largest layer.
    pub(crate) fn rung(&self) -> Rung {
        let layers = || self.sent.layers.iter().copied();
        let plain = self.sent.codec != VideoCodec::Vp9 || self.server.peer == Peer::Janus;
        if self.watched.no_anchors || plain {
            let asked = self.watched.max_rung.filter(|rung| !rung.enhanced());
            return asked.unwrap_or_else(|| layers().max().map_or(Rung::F, Rung::plain));
        }
        let best = layers().filter(|&l| l < Layer::F).max();
        let usual = best.map_or(Rung::F, |layer| Rung::plus(layer).unwrap_or(Rung::F));
        self.watched.max_rung.unwrap_or(usual)
    }

    /// Whether packets carry the time at which they were sent: only where nobody decodes them.
    pub(crate) fn stamps(&self) -> bool {
        !self.rung().enhanced()
    }
}

impl RoomArgs {
    /// Number of rooms that the publishers take.
    pub(crate) fn count(&self) -> usize {
        self.publishers.get().div_ceil(self.per_room.get())
    }
}

impl ServerArgs {
    /// The server at `url`, with what clients show it.
    pub(super) fn at(&self, url: &str) -> Result<ServerUrl> {
        Ok(ServerUrl::parse(url)?.with(self.token_key.clone(), self.forwarded_for))
    }
}

impl LinkArgs {
    /// The links that publishers draw from: none where only subscribers have them.
    pub(super) fn of_publishers(&self) -> &[Profile] {
        match self.links_of {
            LinksOf::All => &self.profiles,
            LinksOf::Subscribers => &[],
        }
    }
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(s) if (0.0..=86_400.0).contains(&s) => Ok(s),
        _ => Err("give seconds from 0 to 86400".into()),
    }
}

fn layer(text: &str) -> Result<Layer, String> {
    Layer::from_rid(text).ok_or_else(|| "there are the layers q, h and f".into())
}

fn codec(text: &str) -> Result<VideoCodec, String> {
    let value = serde_json::Value::String(text.into());
    serde_json::from_value(value).map_err(|_| "there are the codecs vp9, vp8, h264 and av1".into())
}

fn rung(text: &str) -> Result<Rung, String> {
    let value = serde_json::Value::String(text.into());
    serde_json::from_value(value).map_err(|_| "there are the rungs q, q+, h, h+ and f".into())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        args: LoadtestArgs,
    }

    fn args(words: &[&str]) -> Result<LoadtestArgs, clap::Error> {
        Cli::try_parse_from([&["loadtest"], words].concat()).map(|cli| cli.args)
    }

    #[test]
    fn subscribers_ask_for_the_enhanced_rung_of_what_is_sent() {
        let rung = |words: &[&str]| args(words).unwrap().rung();
        assert_eq!(rung(&[]), Rung::QPlus);
        assert_eq!(rung(&["--layers", "q,h"]), Rung::HPlus);
        assert_eq!(rung(&["--layers", "q,h,f"]), Rung::HPlus);
        assert_eq!(rung(&["--layers", "f"]), Rung::F);
        assert_eq!(rung(&["--layers", "q,h", "--max-rung", "q"]), Rung::Q);
        assert_eq!(rung(&["--layers", "q,h", "--no-anchors"]), Rung::H);
        assert_eq!(rung(&["--layers", "h", "--peer", "janus"]), Rung::H);
    }

    #[test]
    fn a_last_room_may_be_smaller() {
        assert_eq!(args(&["--publishers", "7", "--per-room", "3"]).unwrap().rooms.count(), 3);
    }

    #[test]
    fn options_of_a_server_need_one_of_our_own() {
        assert!(args(&["--", "--compute-cap", "0.5"]).is_err());
        let own = args(&["--own", "--", "--compute-cap", "0.5"]).unwrap();
        assert_eq!(own.server.serve, ["--compute-cap", "0.5"]);
        assert!(args(&["--layers", "x"]).is_err());
        assert!(args(&["--seconds", "-1"]).is_err());
    }
}
