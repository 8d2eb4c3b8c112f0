//! Own weights of a publisher's stream, in place of those of a built-in network.
//!
//! The server learns them from the publisher's own pixels and sends them as [`WeightsMessage`]s. They count while
//! pictures look like those that they were proved on ([`Scene`]). The first picture that does not ends them: after a
//! scene cut the built-in network runs at once, until newer weights come. They make no picture that anchors have a part
//! in. Nothing else depends on them.
//!
//! Foreign bytes: a message takes the time of a few thousand numbers. At most one last convolution of each built-in
//! network is kept. A wrong message takes back all weights, as its sender is not to be trusted.

use std::sync::Arc;

use windlass_network::difference::{DifferenceError, read};
use windlass_network::{Network, Scene, Tier};
use windlass_types::weights::{NetworkId, WeightsMessage, WeightsMessageError};
use windlass_vp9::Samples;

/// The outcome of a weights message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WeightsOutcome {
    /// The weights count from the next picture on, while pictures look like those that they are for.
    Taken,
    /// The built-in weights count again.
    TakenBack,
    /// It belongs to an epoch before that of the last message; nothing has changed.
    FormerEpoch,
    /// It is wrong. The built-in weights of all networks count again.
    Refused(WeightsRefusal),
}

/// Why weights are refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WeightsRefusal {
    /// The message cannot be read, or the difference in it.
    Malformed,
    /// It is of another version.
    Version,
    /// No such network is built in.
    Network,
    /// The weights are too large.
    Bounds,
    /// They are not those that the server has proved.
    Hash,
}

/// A stream's own network.
struct Own {
    id: NetworkId,
    network: Arc<Network>,
    scene: Scene,
    /// Width and height of the low pictures that it is for.
    size: (usize, usize),
    /// Whether a picture was made by it.
    holds: bool,
}

/// The networks of a stream's own: at most one for each that is built in.
#[derive(Default)]
pub(super) struct OwnNetworks {
    networks: Vec<Own>,
    epoch: Option<u16>,
}

impl OwnNetworks {
    /// Takes a message.
    pub(super) fn take(&mut self, message: &[u8]) -> WeightsOutcome {
        let taken = self.try_take(message);
        taken.unwrap_or_else(|refusal| {
            self.networks.clear();
            WeightsOutcome::Refused(refusal)
        })
    }

    fn try_take(&mut self, message: &[u8]) -> Result<WeightsOutcome, WeightsRefusal> {
        let message = WeightsMessage::parse(message).map_err(|error| match error {
            WeightsMessageError::Version(_) => WeightsRefusal::Version,
            WeightsMessageError::Malformed => WeightsRefusal::Malformed,
        })?;
        let built_in = built_in(message.network).ok_or(WeightsRefusal::Network)?;
        if self.epoch.is_some_and(|last| (message.epoch.wrapping_sub(last) as i16) < 0) {
            return Ok(WeightsOutcome::FormerEpoch);
        }
        let Some(own) = message.own else {
            self.epoch = Some(message.epoch);
            self.networks.retain(|own| own.id != message.network);
            return Ok(WeightsOutcome::TakenBack);
        };
        let network = read(built_in, &own.difference).map_err(|error| match error {
            DifferenceError::Malformed => WeightsRefusal::Malformed,
            DifferenceError::LastLayer(_) => WeightsRefusal::Bounds,
        })?;
        if network.last_layer().hash() != own.hash {
            return Err(WeightsRefusal::Hash);
        }
        self.epoch = Some(message.epoch);
        self.networks.retain(|own| own.id != message.network);
        self.networks.push(Own {
            id: message.network,
            network: Arc::new(network),
            scene: Scene(own.scene),
            size: (own.size.width.into(), own.size.height.into()),
            holds: false,
        });
        Ok(WeightsOutcome::Taken)
    }

    /// Forgets all weights.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// The stream's own network for a tier, a scale and a low picture; `None` if it has none. One for other pictures is
    /// forgotten.
    pub(super) fn of(
        &mut self,
        tier: Tier,
        scale: usize,
        low: Samples<'_>,
    ) -> Option<Arc<Network>> {
        let is =
            |own: &Own| tier_of(own.id.tier) == Some(tier) && usize::from(own.id.scale) == scale;
        let at = self.networks.iter().position(is)?;
        let own = &mut self.networks[at];
        let size = (low.width, low.height);
        if own.size != size || !own.scene.holds(&Scene::of(low), own.holds) {
            self.networks.remove(at);
            return None;
        }
        own.holds = true;
        Some(own.network.clone())
    }
}

fn tier_of(number: u8) -> Option<Tier> {
    Tier::ALL.get(usize::from(number)).copied()
}

fn built_in(id: NetworkId) -> Option<&'static Arc<Network>> {
    tier_of(id.tier)?.networks().iter().find(|network| network.scale() == usize::from(id.scale))
}
