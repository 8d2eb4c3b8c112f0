//! The last packets of each layer, for subscribers that switch to a key frame whose first packet came late.

use std::collections::VecDeque;
use std::sync::Arc;

use windlass_types::Layer;

use super::rewriter::PacketIn;

/// Number of packets that are kept of each layer.
const MAX_PACKETS: usize = 64;

/// The last packets of one track.
#[derive(Default)]
pub(crate) struct Recent([VecDeque<(PacketIn, Arc<[u8]>)>; 3]);

impl Recent {
    /// Keeps a packet. Returns whether it is stale: [`MAX_PACKETS`] newer ones came before it.
    pub(crate) fn push(&mut self, layer: Layer, packet: PacketIn, payload: &Arc<[u8]>) -> bool {
        let kept = &mut self.0[layer as usize];
        let place = kept.partition_point(|(p, _)| p.seq < packet.seq);
        let stale = place == 0 && kept.len() == MAX_PACKETS;
        if !stale && kept.get(place).is_none_or(|(p, _)| p.seq != packet.seq) {
            if kept.len() == MAX_PACKETS {
                kept.pop_front();
                kept.insert(place - 1, (packet, payload.clone()));
            } else {
                kept.insert(place, (packet, payload.clone()));
            }
        }
        stale
    }

    /// The kept packets with sequence numbers after `seq`, in order.
    pub(crate) fn after(
        &self,
        layer: Layer,
        seq: u64,
    ) -> impl Iterator<Item = &(PacketIn, Arc<[u8]>)> {
        let kept = &self.0[layer as usize];
        kept.range(kept.partition_point(|(p, _)| p.seq <= seq)..)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    fn packet(seq: u64) -> PacketIn {
        PacketIn::alone(seq, Instant::now())
    }

    #[test]
    fn what_overtook_a_packet_is_found_in_order() {
        let mut recent = Recent::default();
        let payload: Arc<[u8]> = vec![0].into();
        for seq in [10, 13, 12, 11, 12] {
            assert!(!recent.push(Layer::H, packet(seq), &payload));
        }
        let after: Vec<_> = recent.after(Layer::H, 11).map(|(p, _)| p.seq).collect();
        assert_eq!(after, [12, 13]);
        assert_eq!(recent.after(Layer::Q, 0).count(), 0);
    }

    #[test]
    fn only_the_last_are_kept_and_older_ones_are_stale() {
        let mut recent = Recent::default();
        let payload: Arc<[u8]> = vec![0].into();
        for seq in 100..300 {
            assert!(!recent.push(Layer::F, packet(seq), &payload));
        }
        assert!(recent.push(Layer::F, packet(5), &payload));
        assert_eq!(recent.after(Layer::F, 0).count(), MAX_PACKETS);
        assert_eq!(
            recent.after(Layer::F, 0).next().map(|(p, _)| p.seq),
            Some(300 - MAX_PACKETS as u64)
        );
    }
}
