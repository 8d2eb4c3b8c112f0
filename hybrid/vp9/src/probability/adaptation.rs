//! Backward adaptation of probabilities by a frame's counts (specification §8.4.2 – §8.4.4).

use super::{Counts, FrameContext, trees};

impl FrameContext {
    /// Adapts the coefficient probabilities (§8.4.3). `self` is the context that the frame was decoded with, `before`
    /// the one that it began from. `factor` is 128 in the first inter frame after a key frame, else 112.
    pub(crate) fn adapt_coefficients(&mut self, before: &Self, counts: &Counts, factor: u32) {
        for tx in 0..4 {
            for plane in 0..2 {
                for inter in 0..2 {
                    let count = &counts.coefficients[tx][plane][inter];
                    let before = &before.coefficients[tx][plane][inter];
                    let now = &mut self.coefficients[tx][plane][inter];
                    for band in 0..6 {
                        for ctx in 0..if band == 0 { 3 } else { 6 } {
                            let [zero, one, more, end] = count.tokens[band][ctx];
                            let went_on = count.asked[band][ctx].saturating_sub(end);
                            let pre = before[band][ctx];
                            now[band][ctx] = [
                                merge(pre[0], end, went_on, 24, factor),
                                merge(pre[1], zero, one + more, 24, factor),
                                merge(pre[2], one, more, 24, factor),
                            ];
                        }
                    }
                }
            }
        }
    }

    /// Adapts all probabilities but those of coefficients (§8.4.4); for inter frames only.
    pub(crate) fn adapt_others(
        &mut self,
        before: &Self,
        counts: &Counts,
        switchable_filter: bool,
        tx_select: bool,
        high_precision: bool,
    ) {
        let bits = |now: &mut [u8], pre: &[u8], counts: &[[u32; 2]]| {
            for ((now, &pre), &c) in now.iter_mut().zip(pre).zip(counts) {
                *now = bit(pre, c);
            }
        };
        bits(&mut self.is_inter, &before.is_inter, &counts.is_inter);
        bits(&mut self.compound, &before.compound, &counts.compound);
        bits(&mut self.compound_reference, &before.compound_reference, &counts.compound_reference);
        bits(&mut self.skip, &before.skip, &counts.skip);
        for ctx in 0..5 {
            bits(
                &mut self.single_reference[ctx],
                &before.single_reference[ctx],
                &counts.single_reference[ctx],
            );
        }
        for ctx in 0..7 {
            let count = &counts.inter_mode[ctx];
            tree(&trees::INTER_MODE, &mut self.inter_mode[ctx], &before.inter_mode[ctx], count);
        }
        for ctx in 0..4 {
            let count = &counts.y_mode[ctx];
            tree(&trees::INTRA_MODE, &mut self.y_mode[ctx], &before.y_mode[ctx], count);
        }
        for ctx in 0..10 {
            let count = &counts.uv_mode[ctx];
            tree(&trees::INTRA_MODE, &mut self.uv_mode[ctx], &before.uv_mode[ctx], count);
        }
        for ctx in 0..16 {
            let count = &counts.partition[ctx];
            tree(&trees::PARTITION, &mut self.partition[ctx], &before.partition[ctx], count);
        }
        if switchable_filter {
            for ctx in 0..4 {
                tree(
                    &trees::INTERP_FILTER,
                    &mut self.interp_filter[ctx],
                    &before.interp_filter[ctx],
                    &counts.interp_filter[ctx],
                );
            }
        }
        if tx_select {
            for ctx in 0..2 {
                tree(
                    &trees::TX_8X8,
                    &mut self.tx_8x8[ctx],
                    &before.tx_8x8[ctx],
                    &counts.tx_8x8[ctx],
                );
                tree(
                    &trees::TX_16X16,
                    &mut self.tx_16x16[ctx],
                    &before.tx_16x16[ctx],
                    &counts.tx_16x16[ctx],
                );
                tree(
                    &trees::TX_32X32,
                    &mut self.tx_32x32[ctx],
                    &before.tx_32x32[ctx],
                    &counts.tx_32x32[ctx],
                );
            }
        }
        tree(
            &trees::MOTION_JOINT,
            &mut self.motion_joint,
            &before.motion_joint,
            &counts.motion_joint,
        );
        for component in 0..2 {
            let (now, pre) = (&mut self.motion[component], &before.motion[component]);
            let count = &counts.motion[component];
            now.sign = bit(pre.sign, count.sign);
            tree(&trees::MOTION_CLASS, &mut now.class, &pre.class, &count.class);
            now.class0 = bit(pre.class0, count.class0);
            bits(&mut now.bits, &pre.bits, &count.bits);
            for i in 0..2 {
                tree(
                    &trees::MOTION_FRACTION,
                    &mut now.class0_fraction[i],
                    &pre.class0_fraction[i],
                    &count.class0_fraction[i],
                );
            }
            tree(&trees::MOTION_FRACTION, &mut now.fraction, &pre.fraction, &count.fraction);
            if high_precision {
                now.class0_high = bit(pre.class0_high, count.class0_high);
                now.high = bit(pre.high, count.high);
            }
        }
    }
}

/// A probability after adaptation (`merge_prob`, §8.4.2): the old one drawn towards the observed one. It is drawn
/// more the greater the number of observations, which saturates at `saturation`.
fn merge(pre: u8, zeros: u32, ones: u32, saturation: u32, factor: u32) -> u8 {
    let total = zeros + ones;
    if total == 0 {
        return pre;
    }
    let observed =
        ((u64::from(zeros) * 256 + u64::from(total / 2)) / u64::from(total)).clamp(1, 255) as u32;
    let factor = factor * total.min(saturation) / saturation;
    ((u32::from(pre) * (256 - factor) + observed * factor + 128) >> 8) as u8
}

/// A bool's probability after adaptation, with the saturation of §8.4.2 for everything but coefficients.
fn bit(pre: u8, counts: [u32; 2]) -> u8 {
    merge(pre, counts[0], counts[1], 20, 128)
}

/// Adapts a tree's probabilities: each node by the counts of the symbols below its two branches (`merge_probs`).
fn tree(tree: &[i8], now: &mut [u8], pre: &[u8], counts: &[u32]) {
    fn node(tree: &[i8], i: usize, now: &mut [u8], pre: &[u8], counts: &[u32]) -> u32 {
        let mut side = |next: i8| match usize::try_from(next) {
            Ok(next) if next > 0 => node(tree, next, now, pre, counts),
            _ => counts[usize::from(next.unsigned_abs())],
        };
        let (zeros, ones) = (side(tree[i]), side(tree[i + 1]));
        now[i >> 1] = bit(pre[i >> 1], [zeros, ones]);
        zeros + ones
    }
    node(tree, 0, now, pre, counts);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_observation_leaves_a_probability_alone() {
        assert_eq!(merge(77, 0, 0, 20, 128), 77);
    }

    #[test]
    fn many_observations_draw_half_way() {
        assert_eq!(bit(128, [1000, 0]), ((128 * 128 + 255 * 128 + 128) >> 8) as u8);
        assert_eq!(bit(128, [0, 1000]), ((128 * 128 + 128 + 128) >> 8) as u8);
    }

    #[test]
    fn a_tree_adapts_each_node_by_its_branches() {
        let mut now = [128u8; 3];
        tree(&trees::PARTITION, &mut now, &[128; 3], &[10, 0, 0, 10]);
        assert_eq!(now, [128, bit(128, [0, 10]), bit(128, [0, 10])]);
    }
}
