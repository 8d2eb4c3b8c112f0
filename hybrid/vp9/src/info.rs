//! The data of a VP9 frame besides its picture: headers and blocks.

use crate::header::{FrameHeader, FrameType};
use crate::kernels::inverse_transform::TransformSize;

/// The kind of a frame, by how it is encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameKind {
    /// A key frame: it resets the whole state of the decoder.
    Key,
    /// A hidden frame without references that leaves other slots alone.
    IntraOnly,
    /// A frame predicted from others.
    Inter,
    /// No new picture: a reference slot is shown.
    ShowExisting {
        /// The slot's number, 0 to 7.
        slot: u8,
    },
}

/// One of the three references an inter frame may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reference {
    /// The last frame (`LAST_FRAME`).
    Last,
    /// The golden frame (`GOLDEN_FRAME`).
    Golden,
    /// The alternate reference frame (`ALTREF_FRAME`).
    Altref,
}

impl Reference {
    /// The reference's index in [`FrameInfo::reference_slots`].
    pub fn index(self) -> usize {
        self as usize
    }

    pub(crate) fn from_vp9(value: u8) -> Option<Self> {
        match value {
            1 => Some(Self::Last),
            2 => Some(Self::Golden),
            3 => Some(Self::Altref),
            _ => None,
        }
    }
}

/// A motion vector in 1/8 luma sample, towards the reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MotionVector {
    /// Part to the right; negative: to the left.
    pub x: i16,
    /// Part downwards; negative: upwards.
    pub y: i16,
}

/// How a block is predicted (specification §10.2: `y_mode`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u8)]
#[allow(missing_docs)] // the names are the specification's
pub enum PredictionMode {
    #[default]
    Dc,
    V,
    H,
    D45,
    D135,
    D117,
    D153,
    D207,
    D63,
    Tm,
    NearestMv,
    NearMv,
    ZeroMv,
    NewMv,
}

impl PredictionMode {
    pub(crate) const ALL: [Self; 14] = [
        Self::Dc,
        Self::V,
        Self::H,
        Self::D45,
        Self::D135,
        Self::D117,
        Self::D153,
        Self::D207,
        Self::D63,
        Self::Tm,
        Self::NearestMv,
        Self::NearMv,
        Self::ZeroMv,
        Self::NewMv,
    ];
}

/// A rectangle of the bitstream with one set of modes. The blocks of a frame do not overlap and cover it; those at
/// the right and lower edge may reach beyond it. An 8×8 square whose parts have modes or vectors of their own is one
/// block; [`Block::parts`] gives its parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Block {
    /// Left edge in luma samples.
    pub x: u16,
    /// Upper edge in luma samples.
    pub y: u16,
    /// Width in luma samples: 8 to 64.
    pub width: u8,
    /// Height in luma samples: 8 to 64.
    pub height: u8,
    /// Width of the block's parts in luma samples: less than `width` only in a divided 8×8 square.
    pub part_width: u8,
    /// Height of the block's parts in luma samples: less than `height` only in a divided 8×8 square.
    pub part_height: u8,
    /// Mode of the block, or of the last of its parts.
    pub mode: PredictionMode,
    /// Luma modes of the four quarters where the block is intra; all `Dc` where it is not.
    pub quarter_modes: [PredictionMode; 4],
    /// Chroma mode where the block is intra.
    pub chroma_mode: PredictionMode,
    /// First and second reference as numbers: 0 none (intra), 1 last, 2 golden, 3 altref.
    pub(crate) references: [u8; 2],
    /// Motion vectors by quarter of the block, then by reference.
    pub(crate) vectors: [[MotionVector; 2]; 4],
    /// Interpolation filter: 0 regular, 1 smooth, 2 sharp, 3 bilinear (0 in intra blocks).
    pub filter: u8,
    /// Whether the block has no encoded residual.
    pub skip: bool,
    /// Size of the luma transforms.
    pub transform: TransformSize,
    /// Size of the chroma transforms.
    pub chroma_transform: TransformSize,
    /// The block's segment, 0 to 7.
    pub segment: u8,
    /// Quantiser index, 0 to 255, with the segment's change.
    pub quantiser: u8,
    /// Level of the loop filter, 0 to 63, with all deltas.
    pub filter_level: u8,
    /// Energy of the luma residual: the sum of its squares in grey levels. It is computed from the coefficients, as
    /// the transforms keep energy but for rounding.
    pub residual_energy: u32,
}

/// A part of a block with one prediction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// Left edge in luma samples.
    pub x: u16,
    /// Upper edge in luma samples.
    pub y: u16,
    /// Width in luma samples: 4 to 64.
    pub width: u8,
    /// Height in luma samples: 4 to 64.
    pub height: u8,
    /// The references with their vectors: none for an intra block, two for a compound one.
    pub predictions: [Option<(Reference, MotionVector)>; 2],
}

impl Block {
    /// Whether the block is predicted from its own frame.
    pub fn is_intra(&self) -> bool {
        self.references[0] == 0
    }

    /// Whether the block is predicted from two references.
    pub fn is_compound(&self) -> bool {
        self.references[1] != 0
    }

    /// The references and vectors of a quarter (0 to 3); all quarters have the same where the block is not divided.
    pub fn predictions(&self, quarter: usize) -> [Option<(Reference, MotionVector)>; 2] {
        [0, 1].map(|list| {
            Reference::from_vp9(self.references[list]).map(|r| (r, self.vectors[quarter & 3][list]))
        })
    }

    /// The parts in raster order: one, or the two or four of a divided square.
    pub fn parts(&self) -> impl Iterator<Item = Part> + '_ {
        let columns = self.width / self.part_width.max(1);
        let rows = self.height / self.part_height.max(1);
        (0..rows).flat_map(move |r| (0..columns).map(move |c| (r, c))).map(move |(r, c)| Part {
            x: self.x + u16::from(c * self.part_width),
            y: self.y + u16::from(r * self.part_height),
            width: self.part_width,
            height: self.part_height,
            predictions: self.predictions(usize::from(2 * r + c)),
        })
    }
}

/// The headers and blocks of a frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrameInfo {
    /// Whether the frame is a key, intra-only or inter frame, or shows a slot.
    pub kind: FrameKind,
    /// Whether the frame is to be displayed.
    pub shown: bool,
    /// Luma width, in samples.
    pub width: u32,
    /// Luma height, in samples.
    pub height: u32,
    /// The slots that hold this frame from now on: bit `i` stands for slot `i`.
    pub refresh_mask: u8,
    /// The slots of `Last`, `Golden`, `Altref`; meaningful for inter frames only.
    pub reference_slots: [u8; 3],
    /// The frame's quantiser index (`base_q_idx`), 0 to 255.
    pub quantiser: u8,
    /// Level of the loop filter, 0 to 63, before segments and deltas.
    pub filter_level: u8,
    /// Sharpness of the loop filter, 0 to 7.
    pub filter_sharpness: u8,
    /// Changes of the loop filter's level by reference: intra, last, golden, altref.
    pub filter_ref_deltas: [i8; 4],
    /// Changes of the loop filter's level with zero vectors, and with others.
    pub filter_mode_deltas: [i8; 2],
    /// Length of the encoded frame in bytes: the accumulated residual of NeuroScaler §5.1 counts these.
    pub encoded_bytes: usize,
    /// Temporal layer, as the caller gave it: VP9 frames do not hold it.
    pub temporal_layer: Option<u8>,
    /// Every block of the frame in decoding order; empty where no new frame was decoded.
    pub blocks: Vec<Block>,
    /// Index in `blocks` of the block that covers each 8×8 unit, row by row.
    pub(crate) grid: Vec<u32>,
    /// Number of 8×8 units in a row of `grid`.
    pub(crate) grid_stride: usize,
}

impl Default for FrameInfo {
    fn default() -> Self {
        Self {
            kind: FrameKind::Key,
            shown: false,
            width: 0,
            height: 0,
            refresh_mask: 0,
            reference_slots: [0; 3],
            quantiser: 0,
            filter_level: 0,
            filter_sharpness: 0,
            filter_ref_deltas: [0; 4],
            filter_mode_deltas: [0; 2],
            encoded_bytes: 0,
            temporal_layer: None,
            blocks: Vec::new(),
            grid: Vec::new(),
            grid_stride: 0,
        }
    }
}

impl FrameInfo {
    /// Whether the frame can be decoded without any other.
    pub fn is_intra(&self) -> bool {
        matches!(self.kind, FrameKind::Key | FrameKind::IntraOnly)
    }

    /// Takes over the header's fields and makes room for the blocks. Nothing is allocated when the frame is not
    /// larger than those before.
    pub(crate) fn begin(&mut self, header: &FrameHeader, encoded_bytes: usize) {
        self.kind = match header.frame_type {
            FrameType::Key => FrameKind::Key,
            FrameType::IntraOnly => FrameKind::IntraOnly,
            FrameType::Inter => FrameKind::Inter,
        };
        self.shown = header.show;
        (self.width, self.height) = (header.width, header.height);
        self.refresh_mask = header.refresh_mask;
        self.reference_slots = header.reference_slots;
        self.quantiser = header.quantiser.base;
        self.filter_level = header.loop_filter.level;
        self.filter_sharpness = header.loop_filter.sharpness;
        self.filter_ref_deltas = header.loop_filter.ref_deltas;
        self.filter_mode_deltas = header.loop_filter.mode_deltas;
        self.encoded_bytes = encoded_bytes;
        let units = header.mi_cols() * header.mi_rows();
        self.grid_stride = header.mi_cols();
        self.blocks.clear();
        self.blocks.reserve(units);
        self.grid.clear();
        self.grid.resize(units, u32::MAX);
    }
}
