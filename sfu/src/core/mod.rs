//! The SFU without I/O: datagrams, commands and time go in, datagrams, events and tap frames come out.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use windlass_media::{EnhancerOutput, Rung, StreamId, TapInput};

use crate::api::{
    Answer, JoinError, JoinOptions, Offer, OfferError, ParticipantId, SfuEvent, TrackId, TrackInfo,
};
use crate::config::SfuConfig;
use crate::stats::{Counters, SfuStats};

/// What the core wants done.
#[derive(Debug)]
pub enum Output {
    /// Send a datagram.
    Transmit {
        /// To whom.
        to: SocketAddr,
        /// What.
        data: Vec<u8>,
    },
    /// Tell a participant.
    Event(ParticipantId, SfuEvent),
    /// Tell the enhancer.
    Tap(TapInput),
}

/// All rooms, participants and tracks.
#[derive(Debug)]
pub struct Core {
    /// What has been counted; the shell adds its own.
    pub counters: Counters,
    outputs: VecDeque<Output>,
    now: Instant,
}

impl Core {
    /// An SFU without rooms; `bound` is the address of its socket.
    pub fn new(_config: SfuConfig, _bound: SocketAddr, now: Instant) -> Core {
        Core { counters: Counters::default(), outputs: VecDeque::new(), now }
    }

    /// Lets a participant in.
    pub fn join(
        &mut self,
        _now: Instant,
        _room: &str,
        _id: ParticipantId,
        _options: JoinOptions,
    ) -> Result<(Vec<ParticipantId>, Vec<TrackInfo>), JoinError> {
        Err(JoinError::Closed)
    }

    /// Answers an offer.
    pub fn offer(
        &mut self,
        _now: Instant,
        _id: ParticipantId,
        _offer: &Offer,
    ) -> Result<Answer, OfferError> {
        Err(OfferError::Closed)
    }

    /// Sets the best rung that a subscriber wants.
    pub fn set_max_rung(&mut self, _now: Instant, _id: ParticipantId, _track: TrackId, _max: Rung) {
    }

    /// Mutes or unmutes a track.
    pub fn set_muted(&mut self, _now: Instant, _id: ParticipantId, _track: TrackId, _muted: bool) {}

    /// Removes a participant.
    pub fn leave(&mut self, _now: Instant, _id: ParticipantId) {}

    /// Takes what the enhancer made.
    pub fn enhancer(&mut self, _now: Instant, _output: EnhancerOutput) {}

    /// The enhancer's queue did not take something of this stream.
    pub fn tap_refused(&mut self, _now: Instant, _stream: StreamId) {}

    /// Takes a datagram.
    pub fn datagram(&mut self, _arrival: Instant, _source: SocketAddr, _data: &[u8]) {}

    /// Does what is due.
    pub fn advance(&mut self, now: Instant) {
        self.now = now;
    }

    /// When [`Core::advance`] is due at the latest.
    pub fn timeout(&self) -> Instant {
        self.now + Duration::from_secs(1)
    }

    /// The next thing to do outside.
    pub fn poll(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// A snapshot.
    pub fn stats(&self) -> SfuStats {
        SfuStats { counters: self.counters, ..SfuStats::default() }
    }
}
