//! Weights of viewers' frame networks: the newest of each track, and the data channel by which a subscriber receives them.
//!
//! Nothing waits in a queue. Each subscriber's slot notes which of a track's weights it was sent; five times a second what is
//! newer is sent, where there is room for it beneath video and anchors. So whoever comes late gets the newest alone.

use std::time::{Duration, Instant};

use str0m::Rtc;
use str0m::channel::{ChannelConfig, ChannelId, Reliability};
use windlass_types::weights::{CHANNEL, NetworkId, OwnWeights, WeightsMessage};
use windlass_types::{Bitrate, Epoch, Layer, Weights};

use super::link::Link;
use super::slot::Slot;
use crate::api::{Permissions, TrackId};
use crate::stats::Counters;

/// Rate of all weights of a subscriber at most.
const MAX_RATE: Bitrate = Bitrate::bps(16_000);
/// Networks of a track whose weights are kept at most: more are not built in.
const MAX_NETWORKS: usize = 4;

/// The newest weights of a track.
#[derive(Debug, Default)]
pub(super) struct TrackWeights {
    newest: Vec<Newest>,
    serial: u64,
}

/// The newest weights of one network.
#[derive(Debug)]
struct Newest {
    network: NetworkId,
    /// The tapped span that they were learned in, and its layer.
    span: (Epoch, Layer),
    serial: u64,
    own: Option<OwnWeights>,
}

impl TrackWeights {
    /// Takes an update for pictures of a layer.
    pub(super) fn take(&mut self, layer: Layer, weights: Weights) {
        let span = (weights.epoch, layer);
        self.serial += 1;
        self.newest.retain(|newest| newest.network != weights.network);
        if self.newest.len() < MAX_NETWORKS {
            let (network, own, serial) = (weights.network, weights.own, self.serial);
            self.newest.push(Newest { network, span, serial, own });
        }
    }

    /// Takes back all weights but those of the span that is tapped now: nothing is learned of others any more.
    pub(super) fn keep(&mut self, tapped: Option<Epoch>) {
        let gone = |newest: &&mut Newest| newest.own.is_some() && Some(newest.span.0) != tapped;
        for newest in self.newest.iter_mut().filter(gone) {
            self.serial += 1;
            (newest.serial, newest.own) = (self.serial, None);
        }
    }

    /// Whether there is anything to send.
    pub(super) fn is_empty(&self) -> bool {
        self.newest.is_empty()
    }
}

/// What a slot was sent of its track's weights: by network the serial number.
#[derive(Debug, Default)]
pub(super) struct SentWeights(Vec<(NetworkId, u64)>);

impl SentWeights {
    /// The number of what was sent of a network.
    fn of(&self, network: NetworkId) -> Option<u64> {
        self.0.iter().find(|(id, _)| *id == network).map(|(_, serial)| *serial)
    }

    fn note(&mut self, network: NetworkId, serial: u64) {
        self.0.retain(|(id, _)| *id != network);
        self.0.push((network, serial));
    }
}

/// The weights channel of one subscriber.
#[derive(Debug, Default)]
pub(super) struct WeightsChannel {
    /// The channel that the server has opened.
    pub(super) id: Option<ChannelId>,
    pub(super) open: bool,
    /// When the next message may be sent.
    next: Option<Instant>,
}

/// What a channel needs of its subscriber.
pub(super) struct Path<'a> {
    pub(super) link: &'a mut Link,
    pub(super) slots: &'a mut [Slot],
    pub(super) permissions: Permissions,
}

impl WeightsChannel {
    /// Opens the channel of a connection whose anchor channel is open.
    pub(super) fn begin(&mut self, link: &mut Link) {
        if self.id.is_some() {
            return;
        }
        let config = ChannelConfig {
            label: CHANNEL.into(),
            ordered: true,
            reliability: Reliability::Reliable,
            ..ChannelConfig::default()
        };
        self.id = link.call(|rtc: &mut Rtc| rtc.direct_api().create_data_channel(config));
        link.wake.touch();
    }

    /// Sends the next of a track's weights that a slot has not been sent, if one may be sent now. Own weights go where the slot
    /// holds the enhanced rung that they are for; what takes them back goes wherever they went.
    pub(super) fn send(
        &mut self,
        now: Instant,
        track: (TrackId, u32),
        weights: &TrackWeights,
        tapped: Option<Layer>,
        path: Path<'_>,
        counters: &mut Counters,
    ) {
        let Path { link, slots, permissions } = path;
        if !self.open || !permissions.enhance || self.next.is_some_and(|next| now < next) {
            return;
        }
        let due = slots.iter_mut().filter(|slot| slot.track == Some(track.0)).find_map(|slot| {
            let held = slot.effective_rung(tapped, true);
            let enhanced = held.filter(|(id, rung)| *id == track.0 && rung.enhanced());
            let layer = enhanced.map(|(_, rung)| rung.layer());
            let next = weights.newest.iter().find(|newest| {
                let sent = slot.weights.of(newest.network);
                match newest.own {
                    Some(_) => sent != Some(newest.serial) && layer == Some(newest.span.1),
                    None => sent.is_some_and(|sent| sent != newest.serial),
                }
            });
            next.map(|next| (slot, next))
        });
        let Some((slot, newest)) = due else { return };
        let message = WeightsMessage {
            stream: track.1,
            epoch: slot.video.epoch().0,
            network: newest.network,
            own: newest.own.clone(),
        };
        let message = message.to_bytes();
        let Some(id) = self.id else { return };
        let written = link.call(|rtc: &mut Rtc| {
            let mut channel = rtc.channel(id)?;
            // What is not acknowledged yet shows that there is no room.
            let free = channel.buffered_amount() == 0;
            (free && channel.write(true, &message).ok()?).then_some(())
        });
        if written.flatten().is_none() {
            return;
        }
        link.wake.touch();
        slot.weights.note(newest.network, newest.serial);
        let bits = 8 * message.len() as u64;
        self.next = Some(now + Duration::from_secs_f64(bits as f64 / MAX_RATE.as_bps() as f64));
        counters.weights_out += 1;
        counters.weights_out_bytes += message.len() as u64;
        counters.weights_out_taken_back += u64::from(newest.own.is_none());
    }
}
