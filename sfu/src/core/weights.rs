//! Own weights of streams for their viewers' frame networks: the newest of each track, and the data channel by which a
//! subscriber receives them.
//!
//! Nothing waits in a queue. Each slot notes which weights it was sent. At each allocation newer ones are sent, if
//! there is room beneath video and anchors. So those who come late receive the newest alone.

use std::time::{Duration, Instant};

use str0m::Rtc;
use str0m::channel::{ChannelConfig, ChannelId, Reliability};
use windlass_types::weights::{CHANNEL, WeightsMessage};
use windlass_types::{Bitrate, Layer, Weights};

use super::link::Link;
use super::slot::Slot;
use crate::api::{Permissions, TrackId};
use crate::stats::Counters;

/// Maximum rate of all weights of a subscriber.
const MAX_RATE: Bitrate = Bitrate::bps(16_000);

/// The newest weights of a track.
#[derive(Debug, Default)]
pub(super) struct TrackWeights {
    newest: Option<Weights>,
    /// Counts the updates.
    serial: u64,
}

impl TrackWeights {
    /// Takes an update.
    pub(super) fn take(&mut self, weights: Weights) {
        self.serial += 1;
        self.newest = Some(weights);
    }

    /// Whether there is anything to send.
    pub(super) fn is_empty(&self) -> bool {
        self.newest.is_none()
    }
}

/// The serial number of the last update that a slot was sent.
#[derive(Debug, Default)]
pub(super) struct SentWeights(Option<u64>);

/// The weights channel of one subscriber.
#[derive(Debug, Default)]
pub(super) struct WeightsChannel {
    /// The channel that the server has opened.
    pub(super) id: Option<ChannelId>,
    pub(super) open: bool,
    /// When the next message may be sent.
    next: Option<Instant>,
}

/// The parts of a subscriber that its weights channel needs.
pub(super) struct Path<'a> {
    pub(super) link: &'a mut Link,
    pub(super) slots: &'a mut [Slot],
    pub(super) permissions: Permissions,
}

impl WeightsChannel {
    /// Opens the channel of a connection that can receive anchors.
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

    /// Sends a slot the newest weights of its track, if it lacks them and a message may be sent now. Own weights go to
    /// those who are taught. An update that takes weights back goes to all who have some.
    pub(super) fn send(
        &mut self,
        now: Instant,
        track: TrackId,
        weights: &TrackWeights,
        tapped: Option<Layer>,
        path: Path<'_>,
        counters: &mut Counters,
    ) {
        let Path { link, slots, permissions } = path;
        let Some((newest, id)) = weights.newest.as_ref().zip(self.id) else { return };
        if !self.open || !permissions.enhance || self.next.is_some_and(|next| now < next) {
            return;
        }
        let mut slots = slots.iter_mut().filter(|slot| slot.track == Some(track));
        let slot = slots.find(|slot| match slot.weights.0 {
            Some(sent) if sent == weights.serial => false,
            Some(_) if newest.own.is_none() => true,
            _ => newest.own.is_some() && slot.is_taught(now, tapped, true),
        });
        let Some(slot) = slot else { return };
        let message = WeightsMessage {
            stream: newest.stream.0,
            epoch: slot.video.epoch().0,
            network: newest.network,
            own: newest.own.clone(),
        };
        let message = message.to_bytes();
        let written = link.call(|rtc: &mut Rtc| {
            let mut channel = rtc.channel(id)?;
            // Bytes that are not acknowledged yet show that there is no room.
            let free = channel.buffered_amount() == 0;
            (free && channel.write(true, &message).ok()?).then_some(())
        });
        if written.flatten().is_none() {
            return;
        }
        link.wake.touch();
        slot.weights.0 = Some(weights.serial);
        let bits = 8 * message.len() as u64;
        self.next = Some(now + Duration::from_secs_f64(bits as f64 / MAX_RATE.as_bps() as f64));
        counters.weights_out += 1;
        counters.weights_out_bytes += message.len() as u64;
        counters.weights_out_taken_back += u64::from(newest.own.is_none());
    }
}
