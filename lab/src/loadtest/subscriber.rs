//! One subscriber: joins a room, takes every track in it with its anchors, and counts what comes.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use windlass_netem::Profile;
use windlass_protocol::{ClientMessage, Offer, Report, ServerMessage, Subscribe, Track, TrackKind};
use windlass_types::message::AnchorHeader;
use windlass_types::{Rung, VideoCodec};

use super::access::Access;
use super::args::{Peer, Stack};
use super::janus::Janus;
use super::link::{Arrival, Link, LinkEvent};
use super::signal::{ServerUrl, Signal, refusal};
use super::signalling::Signalling;
use super::stamp::{now_ns, stamped};
use super::tally::{Tally, Totals};
use super::visits::{Parting, Stop, told};
use super::watching::Watching;

/// Maximum time from the first offer until media must flow.
const CONNECT: Duration = Duration::from_secs(20);
/// Time from one report to the next.
const REPORT: Duration = Duration::from_secs(1);

/// A simulated subscriber.
#[derive(Clone)]
pub(super) struct Subscriber {
    /// Address of the server.
    pub server: ServerUrl,
    /// The server's software.
    pub peer: Peer,
    /// The WebRTC stack of the client.
    pub stack: Stack,
    /// The codec of all video.
    pub codec: VideoCodec,
    /// Name of the room.
    pub room: String,
    /// Number of publishers in the room.
    pub publishers: usize,
    /// Whether the subscriber takes no tracks.
    pub idle: bool,
    /// Number of the subscriber in the run.
    pub number: usize,
    /// Highest rung that the subscriber requests.
    pub rung: Rung,
    /// Latency budget of anchors, in milliseconds.
    pub budget_ms: f64,
    /// Totals of all clients.
    pub tally: Tally,
    /// Profile and seed of the emulated link, if there is one.
    pub access: Option<(Profile, u64)>,
    /// Resolves when the client is to leave.
    pub stop: Stop,
}

/// A track that the subscriber takes.
struct Taken {
    mid: String,
    track: String,
    stream: Option<u32>,
    watching: Watching,
    /// Numbers of frames and anchors at the last report.
    told: (u64, u64),
}

/// A subscriber in its room.
struct Session<'a> {
    config: &'a Subscriber,
    signal: &'a mut Signalling,
    link: &'a mut Link,
    taken: Vec<Taken>,
    /// Tracks to take with the next offer.
    wanted: Vec<Track>,
    offered: Option<Instant>,
}

impl Subscriber {
    /// Subscribes until the end, or until something fails.
    pub(super) async fn run(self) -> Result<()> {
        let name = format!("subscriber {}", self.number);
        let access =
            self.access.map(|(profile, seed)| Access::of_subscriber(profile, seed, Instant::now()));
        let mut link = Link::new(self.stack, self.codec, &self.server, access).await?;
        let (mut signal, wanted, taken) = match self.peer {
            Peer::Windlass => {
                let (signal, welcome) = Signal::join(&self.server, &self.room, &name).await?;
                (Signalling::Windlass(signal), welcome.tracks, Vec::new())
            }
            Peer::Janus => {
                let mut janus = Janus::attach(&self.server).await?;
                let taken = self.accept_janus(&mut janus, &mut link).await?;
                (Signalling::Janus(janus), Vec::new(), taken)
            }
        };
        let mut session = Session {
            config: &self,
            signal: &mut signal,
            link: &mut link,
            offered: (!taken.is_empty()).then(Instant::now),
            taken,
            wanted,
        };
        if self.idle {
            session.offer().await?;
        }
        let done = session.run(self.stop.clone()).await;
        let (connected, mut taken) = (session.link.connected(), session.taken);
        let parting = *self.stop.borrow();
        {
            let mut totals = self.tally.lock();
            totals.clients.subscribers -= usize::from(connected);
            totals.subscriptions.all -= taken.len();
            for taken in &mut taken {
                taken.watching.end(&mut totals);
            }
            totals.clients.vanished += u64::from(parting == Some(Parting::Vanish));
            link.close(&mut totals);
        }
        signal.part(parting).await;
        done
    }

    /// Takes the tracks of the room's publishers that Janus offers.
    async fn accept_janus(&self, janus: &mut Janus, link: &mut Link) -> Result<Vec<Taken>> {
        let offer = janus.subscribe(self.room.parse()?, self.publishers).await?;
        let answer = link.answer(&offer).await?;
        janus.start(answer).await?;
        let mids = offer.lines().filter_map(|line| line.strip_prefix("a=mid:"));
        let taken: Vec<Taken> = mids.map(|mid| Taken::new(mid.to_owned(), "", None)).collect();
        self.tally.lock().subscriptions.all += taken.len();
        Ok(taken)
    }
}

impl Taken {
    fn new(mid: String, track: &str, stream: Option<u32>) -> Taken {
        let watching = Watching::default();
        Taken { mid, track: track.to_owned(), stream, watching, told: (0, 0) }
    }
}

impl Session<'_> {
    async fn run(&mut self, mut stop: Stop) -> Result<()> {
        let mut events = Vec::new();
        let mut report = Instant::now() + REPORT;
        loop {
            if let Signalling::Windlass(signal) = self.signal {
                for message in signal.take_early() {
                    self.hear(message)?;
                }
            }
            if !self.wanted.is_empty() && !self.config.idle {
                self.offer().await?;
                continue;
            }
            let wake = report.min(self.link.due());
            let wake = if self.offered.is_none() { report } else { wake };
            tokio::select! {
                () = self.link.readable() => {}
                () = tokio::time::sleep_until(wake.into()) => {}
                message = self.signal.receive() => self.hear(message?)?,
                _ = told(&mut stop) => return Ok(()),
            }
            let before = self.link.connected();
            self.link.run(&mut events)?;
            if self.link.connected() && !before {
                self.config.tally.lock().clients.subscribers += 1;
            }
            for event in events.drain(..) {
                match event {
                    LinkEvent::Arrived(packet) => self.packet(&packet),
                    LinkEvent::Message(message) => self.message(&message),
                    LinkEvent::KeyFrameWanted => {}
                }
            }
            if self.link.lost() {
                bail!("the media connection to the server was lost");
            }
            let waits = self.offered.is_some_and(|at| at.elapsed() > CONNECT);
            if waits && !self.link.connected() {
                bail!("media of the server does not come; does a firewall stop its UDP port?");
            }
            let now = Instant::now();
            self.repair(now).await;
            if now >= report {
                report = now + REPORT;
                self.link.tell(now, &mut self.config.tally.lock());
                self.report().await?;
            }
        }
    }

    fn hear(&mut self, message: ServerMessage) -> Result<()> {
        match message {
            ServerMessage::TrackAdded { track } => self.wanted.push(track),
            ServerMessage::TrackRemoved { track } => self.lose(&track),
            ServerMessage::Rung { track, rung, .. } => {
                self.change(&track, |watching, totals| watching.announce(rung, totals));
            }
            ServerMessage::Stats { tracks } => {
                for stats in tracks {
                    let refused = stats.refused.is_some();
                    self.change(&stats.track, |watching, totals| watching.refuse(refused, totals));
                }
            }
            ServerMessage::Paused { track, paused } => {
                self.change(&track, |watching, totals| watching.pause(paused, totals));
            }
            ServerMessage::Error(error) if error.fatal => return Err(refusal(&error)),
            ServerMessage::Error(error) => {
                tracing::debug!(message = error.message, "the server complains");
            }
            _ => {}
        }
        Ok(())
    }

    /// Ends a track that the server has removed.
    fn lose(&mut self, track: &str) {
        self.wanted.retain(|t| t.id != track);
        let Some(at) = self.taken.iter().position(|t| t.track == track) else { return };
        let mut taken = self.taken.remove(at);
        let mut totals = self.config.tally.lock();
        totals.subscriptions.all -= 1;
        taken.watching.end(&mut totals);
    }

    /// Applies what the server says about a track.
    fn change(&mut self, track: &str, change: impl FnOnce(&mut Watching, &mut Totals)) {
        let Some(taken) = self.taken.iter_mut().find(|t| t.track == track) else { return };
        change(&mut taken.watching, &mut self.config.tally.lock());
    }

    /// Takes the tracks that are wanted.
    async fn offer(&mut self) -> Result<()> {
        let Signalling::Windlass(signal) = self.signal else { return Ok(()) };
        let wanted = std::mem::take(&mut self.wanted);
        let wanted = if self.config.idle { Vec::new() } else { wanted };
        let wanted: Vec<_> = wanted.into_iter().filter(|t| t.kind == TrackKind::Video).collect();
        if wanted.is_empty() && !self.config.idle {
            return Ok(());
        }
        let channel = self.offered.is_none();
        let (sdp, mids) = self.link.offer_to_receive(wanted.len(), channel).await?;
        for (track, mid) in wanted.into_iter().zip(mids) {
            self.taken.push(Taken::new(mid, &track.id, track.stream));
            self.config.tally.lock().subscriptions.all += 1;
        }
        let subscribe = self.taken.iter().map(|taken| Subscribe {
            mid: taken.mid.clone(),
            track: taken.track.clone(),
            max: Some(self.config.rung),
        });
        let offer = Offer { sdp, publish: Vec::new(), subscribe: subscribe.collect() };
        let id = signal.offer(offer).await?;
        let answer = signal.answer(id).await?;
        self.link.accept(&answer).await?;
        self.offered.get_or_insert_with(Instant::now);
        Ok(())
    }

    fn packet(&mut self, packet: &Arrival) {
        let Some(taken) = self.taken.iter_mut().find(|t| t.mid == packet.mid) else { return };
        if let Some(sent) = stamped(&packet.payload) {
            let took = now_ns().saturating_sub(sent);
            self.config.tally.lock().transit.record(took as f64 / 1e6);
        }
        taken.watching.packet(Instant::now(), packet, &mut self.config.tally.lock());
    }

    fn message(&mut self, message: &[u8]) {
        let mut totals = self.config.tally.lock();
        let Ok((header, _)) = AnchorHeader::parse(message) else {
            totals.anchors.broken += 1;
            return;
        };
        let taken = self.taken.iter_mut().find(|t| t.stream == Some(header.stream));
        let Some(taken) = taken else { return };
        let budget = self.config.budget_ms;
        taken.watching.message(Instant::now(), message, budget, &mut totals);
    }

    /// Asks for key frames where something is missing for good, as a browser's decoder would.
    async fn repair(&mut self, now: Instant) {
        for taken in &mut self.taken {
            if taken.watching.wants_key(now) && self.link.ask_for_key_frame(&taken.mid).await {
                self.config.tally.lock().received.key_requests += 1;
            }
        }
    }

    /// Reports for each enhanced track what came since the last report.
    async fn report(&mut self) -> Result<()> {
        let mut reports = HashMap::new();
        for taken in &mut self.taken {
            let now = (taken.watching.video.complete, taken.watching.anchors());
            let (frames, anchors) = (now.0 - taken.told.0, now.1 - taken.told.1);
            taken.told = now;
            if taken.watching.enhanced() {
                reports.insert(taken.track.clone(), (frames, anchors));
            }
        }
        for (track, (frames, anchors)) in reports {
            let fps = frames as f64 / REPORT.as_secs_f64();
            let report = Report {
                track,
                shown_fps: fps,
                enhanced_fps: fps,
                anchors_used: u32::try_from(anchors).unwrap_or(u32::MAX),
                ..Report::default()
            };
            if let Signalling::Windlass(signal) = self.signal {
                signal.send(ClientMessage::Report(report)).await?;
            }
        }
        Ok(())
    }
}
