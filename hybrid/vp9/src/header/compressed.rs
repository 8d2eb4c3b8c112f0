//! The compressed header (specification §6.3, §7.3): transform and reference modes, and changes
//! to the probabilities.

use super::{FrameHeader, ReferenceMode, TxMode};
use crate::DecodeError;
use crate::bool_decoder::BoolDecoder;
use crate::probability::FrameContext;

/// The table of remapped differences of probabilities (`inv_map_table`, §6.3.5).
static INVERSE_MAP: [u8; 255] = [
    7, 20, 33, 46, 59, 72, 85, 98, 111, 124, 137, 150, 163, 176, 189, 202, 215, 228, 241, 254, 1,
    2, 3, 4, 5, 6, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 21, 22, 23, 24, 25, 26, 27, 28,
    29, 30, 31, 32, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 47, 48, 49, 50, 51, 52, 53, 54,
    55, 56, 57, 58, 60, 61, 62, 63, 64, 65, 66, 67, 68, 69, 70, 71, 73, 74, 75, 76, 77, 78, 79, 80,
    81, 82, 83, 84, 86, 87, 88, 89, 90, 91, 92, 93, 94, 95, 96, 97, 99, 100, 101, 102, 103, 104,
    105, 106, 107, 108, 109, 110, 112, 113, 114, 115, 116, 117, 118, 119, 120, 121, 122, 123, 125,
    126, 127, 128, 129, 130, 131, 132, 133, 134, 135, 136, 138, 139, 140, 141, 142, 143, 144, 145,
    146, 147, 148, 149, 151, 152, 153, 154, 155, 156, 157, 158, 159, 160, 161, 162, 164, 165, 166,
    167, 168, 169, 170, 171, 172, 173, 174, 175, 177, 178, 179, 180, 181, 182, 183, 184, 185, 186,
    187, 188, 190, 191, 192, 193, 194, 195, 196, 197, 198, 199, 200, 201, 203, 204, 205, 206, 207,
    208, 209, 210, 211, 212, 213, 214, 216, 217, 218, 219, 220, 221, 222, 223, 224, 225, 226, 227,
    229, 230, 231, 232, 233, 234, 235, 236, 237, 238, 239, 240, 242, 243, 244, 245, 246, 247, 248,
    249, 250, 251, 252, 253, 253,
];

/// The fields of the compressed header besides probabilities.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CompressedHeader {
    pub(crate) tx_mode: TxMode,
    pub(crate) reference_mode: ReferenceMode,
    /// The fixed reference of compound blocks (`CompFixedRef`).
    pub(crate) fixed_reference: u8,
    /// The two variable references of compound blocks (`CompVarRef`).
    pub(crate) variable_references: [u8; 2],
}

impl CompressedHeader {
    /// Parses the compressed header and applies its changes to `context`.
    pub(crate) fn parse(
        data: &[u8],
        frame: &FrameHeader,
        context: &mut FrameContext,
    ) -> Result<Self, DecodeError> {
        let mut r = BoolDecoder::new(data).ok_or(DecodeError::CompressedHeader)?;
        let tx_mode = tx_mode(&mut r, frame.quantiser.lossless());
        if tx_mode == TxMode::Select {
            context.tx_8x8.iter_mut().flatten().for_each(|p| update(&mut r, p));
            context.tx_16x16.iter_mut().flatten().for_each(|p| update(&mut r, p));
            context.tx_32x32.iter_mut().flatten().for_each(|p| update(&mut r, p));
        }
        coefficients(&mut r, tx_mode, context);
        context.skip.iter_mut().for_each(|p| update(&mut r, p));
        let (fixed_reference, variable_references) = compound_references(frame.sign_bias);
        let mut header = Self {
            tx_mode,
            reference_mode: ReferenceMode::Single,
            fixed_reference,
            variable_references,
        };
        if !frame.is_intra() {
            header.reference_mode = inter(&mut r, frame, context);
        }
        if r.overrun() { Err(DecodeError::CompressedHeader) } else { Ok(header) }
    }
}

/// Reads the fields that inter frames add.
fn inter(
    r: &mut BoolDecoder<'_>,
    frame: &FrameHeader,
    context: &mut FrameContext,
) -> ReferenceMode {
    context.inter_mode.iter_mut().flatten().for_each(|p| update(r, p));
    if frame.filter.is_none() {
        context.interp_filter.iter_mut().flatten().for_each(|p| update(r, p));
    }
    context.is_inter.iter_mut().for_each(|p| update(r, p));
    let mode = reference_mode(r, frame.sign_bias);
    if mode == ReferenceMode::Select {
        context.compound.iter_mut().for_each(|p| update(r, p));
    }
    if mode != ReferenceMode::Compound {
        context.single_reference.iter_mut().flatten().for_each(|p| update(r, p));
    }
    if mode != ReferenceMode::Single {
        context.compound_reference.iter_mut().for_each(|p| update(r, p));
    }
    context.y_mode.iter_mut().flatten().for_each(|p| update(r, p));
    context.partition.iter_mut().flatten().for_each(|p| update(r, p));
    motion(r, frame.high_precision, context);
    mode
}

fn tx_mode(r: &mut BoolDecoder<'_>, lossless: bool) -> TxMode {
    if lossless {
        return TxMode::Largest(0);
    }
    match r.read_literal(2) as u8 {
        3 if r.read_bit() => TxMode::Select,
        largest => TxMode::Largest(largest),
    }
}

/// Reads the changes of the coefficient probabilities (`read_coef_probs`, §6.3.7).
fn coefficients(r: &mut BoolDecoder<'_>, tx_mode: TxMode, context: &mut FrameContext) {
    let largest = match tx_mode {
        TxMode::Largest(size) => usize::from(size),
        TxMode::Select => 3,
    };
    for by_plane in &mut context.coefficients[..=largest] {
        if !r.read_bit() {
            continue;
        }
        for bands in by_plane.iter_mut().flatten() {
            for (band, contexts) in bands.iter_mut().enumerate() {
                let used = if band == 0 { 3 } else { 6 };
                contexts[..used].iter_mut().flatten().for_each(|p| update(r, p));
            }
        }
    }
}

/// Reads the reference mode (`frame_reference_mode`, §6.3.12).
fn reference_mode(r: &mut BoolDecoder<'_>, sign_bias: [bool; 4]) -> ReferenceMode {
    let allowed = sign_bias[2] != sign_bias[1] || sign_bias[3] != sign_bias[1];
    if !allowed || !r.read_bit() {
        ReferenceMode::Single
    } else if r.read_bit() {
        ReferenceMode::Select
    } else {
        ReferenceMode::Compound
    }
}

/// The fixed reference and the variable ones, from the sign biases (`setup_compound_reference_mode`, §6.3.18).
fn compound_references(sign_bias: [bool; 4]) -> (u8, [u8; 2]) {
    if sign_bias[1] == sign_bias[2] {
        (3, [1, 2])
    } else if sign_bias[1] == sign_bias[3] {
        (2, [1, 3])
    } else {
        (1, [2, 3])
    }
}

/// Reads the changes of the vector probabilities (`mv_probs`, §6.3.16).
fn motion(r: &mut BoolDecoder<'_>, high_precision: bool, context: &mut FrameContext) {
    let mut set = |p: &mut u8| {
        if r.read_bool(252) {
            *p = (r.read_literal(7) << 1 | 1) as u8;
        }
    };
    context.motion_joint.iter_mut().for_each(&mut set);
    for m in &mut context.motion {
        set(&mut m.sign);
        m.class.iter_mut().for_each(&mut set);
        set(&mut m.class0);
        m.bits.iter_mut().for_each(&mut set);
    }
    for m in &mut context.motion {
        m.class0_fraction.iter_mut().flatten().for_each(&mut set);
        m.fraction.iter_mut().for_each(&mut set);
    }
    if high_precision {
        for m in &mut context.motion {
            set(&mut m.class0_high);
            set(&mut m.high);
        }
    }
}

/// Reads the change of one probability, if there is one (`diff_update_prob`, §6.3.3).
fn update(r: &mut BoolDecoder<'_>, probability: &mut u8) {
    if r.read_bool(252) {
        let delta = term_subexp(r);
        *probability = inverse_remap(delta, *probability);
    }
}

/// Reads a number by the terminated sub-exponential code (`decode_term_subexp`, §6.3.4).
fn term_subexp(r: &mut BoolDecoder<'_>) -> u32 {
    if !r.read_bit() {
        return r.read_literal(4);
    }
    if !r.read_bit() {
        return r.read_literal(4) + 16;
    }
    if !r.read_bit() {
        return r.read_literal(5) + 32;
    }
    let v = r.read_literal(7);
    if v < 65 { v + 64 } else { (v << 1) - 1 + u32::from(r.read_bit()) }
}

/// The probability that a remapped difference leads to (`inv_remap_prob`, §6.3.5).
fn inverse_remap(delta: u32, probability: u8) -> u8 {
    // `term_subexp` gives at most 254: 2 * 127 - 1 + 1.
    let v = u32::from(INVERSE_MAP[(delta as usize).min(INVERSE_MAP.len() - 1)]);
    let m = u32::from(probability) - 1;
    let recentred = |m: u32| {
        if v > 2 * m {
            v
        } else if v & 1 == 1 {
            m - v.div_ceil(2)
        } else {
            m + (v >> 1)
        }
    };
    if m << 1 <= 255 { (1 + recentred(m)) as u8 } else { (255 - recentred(254 - m)) as u8 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remapped_probabilities_stay_between_1_and_255() {
        for probability in 1..=255 {
            for delta in 0..255 {
                assert_ne!(inverse_remap(delta, probability), 0, "{delta} {probability}");
            }
        }
    }

    #[test]
    fn two_references_of_one_side_leave_the_third_fixed() {
        assert_eq!(compound_references([false, false, false, true]), (3, [1, 2]));
        assert_eq!(compound_references([false, false, true, false]), (2, [1, 3]));
        assert_eq!(compound_references([false, true, false, false]), (1, [2, 3]));
    }
}
