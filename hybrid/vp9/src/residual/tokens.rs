//! The tokens of one transform block (specification §6.4.24, §9.3.4), dequantised as they are read.

use super::scan::Step;
use crate::bool_decoder::BoolDecoder;
use crate::probability::{CoefficientCounts, PARETO};

/// Maximum number of coefficients of a transform block: 32 × 32.
const MAX_COEFFICIENTS: usize = 1024;

/// Probabilities of the extra bit of category 1 (`cat_probs`, §10.3).
static CATEGORY_1: [u8; 1] = [159];
/// Probabilities of the extra bits of category 2.
static CATEGORY_2: [u8; 2] = [165, 145];
/// Probabilities of the extra bits of category 3.
static CATEGORY_3: [u8; 3] = [173, 148, 140];
/// Probabilities of the extra bits of category 4.
static CATEGORY_4: [u8; 4] = [176, 155, 140, 135];
/// Probabilities of the extra bits of category 5.
static CATEGORY_5: [u8; 5] = [180, 157, 141, 134, 130];
/// Probabilities of the extra bits of category 6, which has 14 bits.
static CATEGORY_6: [u8; 14] =
    [254, 254, 254, 252, 249, 243, 230, 196, 177, 153, 140, 133, 130, 129];

/// Room for one block's coefficients and the classes of its tokens.
#[derive(Debug)]
pub(crate) struct Coefficients {
    /// The dequantised coefficients, row-major; all zero between blocks.
    pub(crate) values: Box<[i16; MAX_COEFFICIENTS]>,
    classes: Box<[u8; MAX_COEFFICIENTS]>,
}

impl Default for Coefficients {
    fn default() -> Self {
        Self { values: Box::new([0; MAX_COEFFICIENTS]), classes: Box::new([0; MAX_COEFFICIENTS]) }
    }
}

/// The extent of the tokens of a block.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Extent {
    /// Number of tokens before the end; 0: the block is empty.
    pub(crate) count: usize,
    /// Number of the first columns that hold all non-zero coefficients.
    pub(crate) cols: usize,
    /// Number of the first rows that hold all non-zero coefficients.
    pub(crate) rows: usize,
    /// Sum of the squares of the dequantised coefficients.
    pub(crate) energy: u64,
}

/// The parameters that stay the same for one transform block.
pub(crate) struct TokenReader<'a> {
    pub(crate) probabilities: &'a [[[u8; 3]; 6]; 6],
    pub(crate) counts: &'a mut CoefficientCounts,
    pub(crate) scan: &'static [Step],
    /// Dequantisation factors of DC and AC.
    pub(crate) dequantiser: [i32; 2],
    /// Whether products are halved, as in blocks of 32×32.
    pub(crate) halve: bool,
    /// Binary logarithm of the block's side.
    pub(crate) side_log2: u32,
}

impl TokenReader<'_> {
    /// Reads the block's tokens; `context` (0 to 2) is that of the first token. The dequantised values are left in
    /// `room.values`.
    #[inline(always)]
    pub(crate) fn read(
        &mut self,
        reader: &mut BoolDecoder<'_>,
        context: usize,
        room: &mut Coefficients,
    ) -> Extent {
        // A copy lives in registers.
        let mut r = reader.clone();
        let extent = self.read_with(&mut r, context, room);
        *reader = r;
        extent
    }

    #[inline(always)]
    fn read_with(
        &mut self,
        r: &mut BoolDecoder<'_>,
        mut context: usize,
        room: &mut Coefficients,
    ) -> Extent {
        let (values, classes) = (&mut *room.values, &mut *room.classes);
        let mut extent = Extent::default();
        let column_mask = (1u16 << self.side_log2) - 1;
        let (mut last, mut right) = (0u16, 0u16);
        let mut factor = self.dequantiser[0];
        let mut ask = true;
        let mut i = 0;
        while i < self.scan.len() {
            let step = &self.scan[i];
            if i > 0 {
                let [a, b] = step.neighbours.map(|n| classes[usize::from(n) % MAX_COEFFICIENTS]);
                context = (1 + usize::from(a) + usize::from(b)) >> 1;
            }
            let band = usize::from(step.band) % 6;
            let context = context.min(5);
            let p = &self.probabilities[band][context];
            let counts = &mut self.counts.tokens[band][context];
            if ask {
                self.counts.asked[band][context] += 1;
                if !r.read_bool(p[0]) {
                    counts[3] += 1;
                    break;
                }
            }
            let place = usize::from(step.position) % MAX_COEFFICIENTS;
            i += 1;
            if !r.read_bool(p[1]) {
                counts[0] += 1;
                classes[place] = 0;
                factor = self.dequantiser[1];
                ask = false;
                continue;
            }
            ask = true;
            let (magnitude, class) = if r.read_bool(p[2]) {
                counts[2] += 1;
                large(r, p[2])
            } else {
                counts[1] += 1;
                (1, 1)
            };
            classes[place] = class;
            let value = (magnitude * factor) >> u32::from(self.halve);
            let value = value.min(i32::from(i16::MAX));
            let negative = r.read_bit();
            values[place] = if negative { -value } else { value } as i16;
            last = last.max(step.position);
            right = right.max(step.position & column_mask);
            extent.energy += (value * value) as u64;
            factor = self.dequantiser[1];
        }
        extent.count = i;
        extent.cols = usize::from(right) + 1;
        extent.rows = usize::from(last >> self.side_log2) + 1;
        extent
    }
}

/// Reads a token greater than one: its magnitude and its class for contexts (`energy_class`).
#[inline(always)]
fn large(r: &mut BoolDecoder<'_>, node: u8) -> (i32, u8) {
    let p = &PARETO[usize::from(node.max(1)) - 1];
    if !r.read_bool(p[0]) {
        return if r.read_bool(p[1]) { (3 + i32::from(r.read_bool(p[2])), 3) } else { (2, 2) };
    }
    if !r.read_bool(p[3]) {
        return if r.read_bool(p[4]) {
            (7 + extra(r, &CATEGORY_2), 4)
        } else {
            (5 + extra(r, &CATEGORY_1), 4)
        };
    }
    let magnitude = if !r.read_bool(p[5]) {
        if r.read_bool(p[6]) { 19 + extra(r, &CATEGORY_4) } else { 11 + extra(r, &CATEGORY_3) }
    } else if !r.read_bool(p[7]) {
        35 + extra(r, &CATEGORY_5)
    } else {
        67 + extra(r, &CATEGORY_6)
    };
    (magnitude, 5)
}

#[inline(always)]
fn extra(r: &mut BoolDecoder<'_>, probabilities: &[u8]) -> i32 {
    probabilities.iter().fold(0, |v, &p| v << 1 | i32::from(r.read_bool(p)))
}
