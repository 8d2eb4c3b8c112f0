//! What comes: the stack's callbacks and tracks as one bounded queue of events.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use tokio::sync::mpsc;
use webrtc::data_channel::{DataChannel, DataChannelEvent};
use webrtc::media_stream::track_remote::{TrackRemote, TrackRemoteEvent};
use webrtc::peer_connection::{PeerConnectionEventHandler, RTCPeerConnectionState};

use crate::counters::{Counters, Counting};
use crate::numbers::Numbers;

/// Maximum number of events that wait; more are dropped and counted.
const WAITING: usize = 4096;

/// Something that happened to a connection.
#[derive(Debug)]
pub enum Event {
    /// Media can flow.
    Connected,
    /// The connection was lost.
    Lost,
    /// The server asks for a key frame of what is sent.
    KeyFrameWanted,
    /// A packet of video came, for the first time.
    Arrived(Arrival),
    /// A message came by a data channel of the server's.
    Message(Bytes),
}

/// A packet of video.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arrival {
    /// The section of the session description that the packet belongs to.
    pub mid: String,
    /// The packet's sequence number, without end.
    pub seq: u64,
    /// The RTP timestamp of its frame.
    pub timestamp: u32,
    /// The packet's payload; padding has none.
    pub payload: Bytes,
}

/// The end of the queue that events are put in at.
#[derive(Clone)]
pub(crate) struct Events {
    to: mpsc::Sender<Event>,
    counting: Arc<Counting>,
}

impl Events {
    /// A queue: both of its ends.
    pub(crate) fn new(counting: Arc<Counting>) -> (Events, mpsc::Receiver<Event>) {
        let (to, from) = mpsc::channel(WAITING);
        (Events { to, counting }, from)
    }

    /// Puts an event into the queue, unless that is full.
    pub(crate) fn say(&self, event: Event) {
        if self.to.try_send(event).is_err() {
            self.counting.add(Counters { overflowed: 1, ..Counters::default() });
        }
    }
}

/// A stream that comes, by the answers' SSRCs.
#[derive(Debug, Clone, Default)]
pub(crate) struct Streams(Arc<Mutex<HashMap<u32, String>>>);

impl Streams {
    /// Learns the SSRCs of an answer: each belongs to the section that it stands in.
    pub(crate) fn learn(&self, answer: &str) {
        let mut streams = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for section in answer.split("\r\nm=").skip(1) {
            let lines = || section.lines();
            let Some(mid) = lines().find_map(|line| line.strip_prefix("a=mid:")) else { continue };
            for ssrc in lines().filter_map(|line| line.strip_prefix("a=ssrc:")) {
                let number = ssrc.split(' ').next().and_then(|number| number.parse().ok());
                streams.extend(number.map(|number: u32| (number, mid.to_owned())));
            }
        }
    }

    fn mid(&self, ssrc: u32) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&ssrc).cloned()
    }
}

/// Takes the stack's callbacks.
pub(crate) struct Handler {
    pub events: Events,
    pub streams: Streams,
}

#[async_trait::async_trait]
impl PeerConnectionEventHandler for Handler {
    async fn on_connection_state_change(&self, state: RTCPeerConnectionState) {
        match state {
            RTCPeerConnectionState::Connected => self.events.say(Event::Connected),
            RTCPeerConnectionState::Disconnected | RTCPeerConnectionState::Failed => {
                self.events.say(Event::Lost);
            }
            _ => {}
        }
    }

    async fn on_data_channel(&self, channel: Arc<dyn DataChannel>) {
        let events = self.events.clone();
        tokio::spawn(async move {
            while let Some(event) = channel.poll().await {
                if let DataChannelEvent::OnMessage(message) = event {
                    events.say(Event::Message(message.data.freeze()));
                }
            }
        });
    }

    async fn on_track(&self, track: Arc<dyn TrackRemote>) {
        tokio::spawn(read(track, self.events.clone(), self.streams.clone()));
    }
}

/// Reads a track until it ends.
async fn read(track: Arc<dyn TrackRemote>, events: Events, streams: Streams) {
    let mut known: HashMap<u32, (String, Numbers)> = HashMap::new();
    while let Some(event) = track.poll().await {
        let TrackRemoteEvent::OnRtpPacket(packet) = event else { continue };
        let header = packet.header;
        let (mid, numbers) = match known.entry(header.ssrc) {
            Entry::Occupied(it) => it.into_mut(),
            Entry::Vacant(it) => {
                let Some(mid) = streams.mid(header.ssrc) else { continue };
                it.insert((mid, Numbers::new(header.sequence_number)))
            }
        };
        let Some(seq) = numbers.take(header.sequence_number) else { continue };
        let (mid, timestamp, payload) = (mid.clone(), header.timestamp, packet.payload);
        events.say(Event::Arrived(Arrival { mid, seq, timestamp, payload }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_belongs_to_the_section_that_names_it() {
        let streams = Streams::default();
        streams.learn(
            "v=0\r\nm=video 9 x\r\na=mid:0\r\na=ssrc:7 cname:a\r\na=ssrc:8 cname:a\r\nm=video 9 x\r\na=ssrc:9 cname:b\r\na=mid:1\r\n",
        );
        assert_eq!(
            [7, 8, 9].map(|ssrc| streams.mid(ssrc)),
            ["0", "0", "1"].map(|m| Some(m.into()))
        );
        assert_eq!(streams.mid(10), None);
    }
}
