//! One publisher: joins, offers its layers as the SDK does, and sends the recording at its rate until it is told to
//! stop.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use windlass_netem::Profile;
use windlass_protocol::{Offer, Publish, ServerMessage, TrackKind};
use windlass_types::Layer;

use super::access::Access;
use super::args::{Peer, Stack};
use super::janus::Janus;
use super::link::{Link, LinkEvent, Outgoing};
use super::packets::Packetizer;
use super::recording::{Picture, Playhead, Recording};
use super::signal::{ServerUrl, Signal, refusal};
use super::signalling::Signalling;
use super::stamp::{now_ns, stamp};
use super::tally::Tally;
use super::visits::{Parting, Stop, told};

/// Maximum time until media must flow.
const CONNECT: Duration = Duration::from_secs(20);
/// Maximum lag of a publisher. Beyond it the publisher leaves pictures out, as a camera does, instead of sending them
/// all at once.
const LATE: Duration = Duration::from_millis(500);

/// Time from one addition of repairs to the totals to the next.
const TELL: Duration = Duration::from_secs(1);

/// A simulated publisher.
#[derive(Clone)]
pub(super) struct Publisher {
    /// Address of the server.
    pub server: ServerUrl,
    /// The server's software.
    pub peer: Peer,
    /// The WebRTC stack of the client.
    pub stack: Stack,
    /// Name of the room.
    pub room: String,
    /// Number of publishers in a room.
    pub per_room: usize,
    /// Whether packets carry the time at which they were sent.
    pub stamps: bool,
    /// Number of the publisher; it decides where in the recording the publisher begins.
    pub number: usize,
    /// Number of publishers.
    pub of: usize,
    /// The recording to send.
    pub recording: Arc<Recording>,
    /// Totals of all clients.
    pub tally: Tally,
    /// Profile and seed of the emulated link, if there is one.
    pub access: Option<(Profile, u64)>,
    /// Resolves when the client is to leave.
    pub stop: Stop,
}

/// The packets of one layer, and their numbers.
struct Sending {
    layer: Layer,
    packetizer: Packetizer,
    seq: u64,
    base: u32,
}

impl Publisher {
    /// Publishes until the end, or until something fails.
    pub(super) async fn run(mut self) -> Result<()> {
        let name = format!("publisher {}", self.number);
        let access =
            self.access.map(|(profile, seed)| Access::of_publisher(profile, seed, Instant::now()));
        let mut link = Link::new(self.stack, self.recording.codec, &self.server, access).await?;
        let mut signal = match self.peer {
            Peer::Windlass => {
                let (mut signal, _) = Signal::join(&self.server, &self.room, &name).await?;
                self.offer(&mut signal, &mut link).await?;
                Signalling::Windlass(signal)
            }
            Peer::Janus => {
                let mut janus = Janus::attach(&self.server).await?;
                self.offer_janus(&mut janus, &mut link).await?;
                Signalling::Janus(janus)
            }
        };
        let mut connected = false;
        let done = self.play(&mut signal, &mut link, &mut connected).await;
        let parting = *self.stop.borrow();
        {
            let mut totals = self.tally.lock();
            totals.clients.publishers -= usize::from(connected);
            totals.clients.vanished += u64::from(parting == Some(Parting::Vanish));
            link.close(&mut totals);
        }
        signal.part(parting).await;
        done
    }

    async fn offer(&self, signal: &mut Signal, link: &mut Link) -> Result<()> {
        let layers: Vec<Layer> = self.recording.layers().collect();
        let (sdp, mid) = link.offer_camera(&layers, true).await?;
        let publish = vec![Publish {
            mid,
            kind: TrackKind::Video,
            name: "camera".into(),
            max: None,
            encrypted: false,
            backup_of: None,
        }];
        let id = signal.offer(Offer { sdp, publish, subscribe: Vec::new() }).await?;
        let answer = signal.answer(id).await?;
        link.accept(&answer).await
    }

    /// Offers one encoding without a name.
    async fn offer_janus(&self, janus: &mut Janus, link: &mut Link) -> Result<()> {
        let room = self.room.parse()?;
        if self.number.is_multiple_of(self.per_room) {
            janus.create(room, self.per_room).await?;
        }
        let (sdp, _) = link.offer_camera(&[], false).await?;
        let answer = janus.publish(room, sdp).await?;
        link.accept(&answer).await
    }

    async fn play(
        &mut self,
        signal: &mut Signalling,
        link: &mut Link,
        connected: &mut bool,
    ) -> Result<()> {
        let fps = self.recording.fps;
        let mut head = Playhead::new(&self.recording, self.number as f64 / self.of as f64);
        let mut sending: Vec<Sending> = self
            .recording
            .layers()
            .enumerate()
            .map(|(n, layer)| {
                // Any first numbers are allowed. Different ones show mix-ups, high ones wrap around soon.
                let salt = (self.number * 3 + n + 1) as u32;
                let base = salt.wrapping_mul(0x9e37_79b9);
                let seq = u64::from(salt.wrapping_mul(40_503) & 0x7fff);
                Sending { layer, packetizer: Packetizer::new(self.recording.codec), seq, base }
            })
            .collect();
        let begun = Instant::now();
        let mut origin: Option<Instant> = None;
        let mut due: Option<Instant> = None;
        let mut events = Vec::new();
        let mut told_at = begun;
        loop {
            let wake = due.map_or(link.due(), |due| due.min(link.due()));
            tokio::select! {
                () = link.readable() => {}
                () = tokio::time::sleep_until(wake.into()) => {}
                message = signal.receive() => {
                    if let ServerMessage::Error(error) = message? {
                        if error.fatal {
                            return Err(refusal(&error));
                        }
                        tracing::debug!(message = error.message, "the server complains");
                    }
                }
                _ = told(&mut self.stop) => return Ok(()),
            }
            link.run(&mut events)?;
            for event in events.drain(..) {
                if matches!(event, LinkEvent::KeyFrameWanted) {
                    head.want_key();
                    self.tally.lock().sent.key_requests += 1;
                }
            }
            if link.lost() {
                bail!("the media connection to the server was lost");
            }
            if !link.connected() {
                if begun.elapsed() > CONNECT {
                    bail!("media cannot reach the server; does a firewall stop its UDP port?");
                }
                continue;
            }
            if told_at.elapsed() > TELL {
                told_at = Instant::now();
                link.tell(told_at, &mut self.tally.lock());
            }
            if !*connected {
                *connected = true;
                self.tally.lock().clients.publishers += 1;
            }
            let now = Instant::now();
            let start = *origin.get_or_insert(now);
            loop {
                let at = *due.get_or_insert(start);
                if at > now {
                    break;
                }
                let picture = head.advance(&self.recording);
                let next = picture.number + 1;
                due = Some(start + Duration::from_secs_f64(next as f64 / fps));
                if now.saturating_duration_since(at) > LATE {
                    // The pictures that follow reference those that are left out.
                    head.want_key();
                    self.tally.lock().sent.pictures_skipped += 1;
                    continue;
                }
                self.send(link, picture, at, &mut sending).await?;
            }
            link.run(&mut events)?;
        }
    }

    /// Sends all layers of a picture that was taken at `at`.
    async fn send(
        &self,
        link: &mut Link,
        picture: Picture,
        at: Instant,
        sending: &mut [Sending],
    ) -> Result<()> {
        let (mut count, mut bytes) = (0, 0);
        for (layer, frame) in self.recording.frames(picture.at) {
            let Some(to) = sending.iter_mut().find(|s| s.layer == layer) else { continue };
            let mut payloads = to.packetizer.packets(frame, picture.number)?;
            if self.stamps {
                for payload in &mut payloads {
                    stamp(payload, now_ns());
                }
            }
            bytes += payloads.iter().map(|payload| payload.len() as u64).sum::<u64>();
            let (number, first) = (payloads.len() as u64, to.seq);
            count += number;
            to.seq += number;
            let timestamp = picture.timestamp(to.base, self.recording.fps);
            let named = (self.peer == Peer::Windlass).then_some(layer);
            link.send(named, Outgoing { at, timestamp, first, payloads }).await?;
        }
        let mut totals = self.tally.lock();
        totals.sent.pictures += 1;
        totals.sent.frames += sending.len() as u64;
        totals.sent.packets += count;
        totals.sent.bytes += bytes;
        Ok(())
    }
}
