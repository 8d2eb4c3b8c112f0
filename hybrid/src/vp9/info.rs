//! What a VP9 frame says about itself besides its picture.

/// How a frame is coded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameKind {
    /// A key frame: everything begins anew.
    Key,
    /// A hidden frame without references that leaves other slots alone.
    IntraOnly,
    /// A frame predicted from others.
    Inter,
    /// No new picture: a reference slot is shown.
    ShowExisting {
        /// The slot, 0 to 7.
        slot: u8,
    },
}

/// One of the three references an inter frame may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reference {
    /// `LAST_FRAME`.
    Last,
    /// `GOLDEN_FRAME`.
    Golden,
    /// `ALTREF_FRAME`.
    Altref,
}

impl Reference {
    /// Place in [`FrameInfo::reference_slots`].
    pub fn index(self) -> usize {
        self as usize
    }

    pub(super) fn from_vp9(value: u8) -> Option<Self> {
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
    /// To the right.
    pub x: i16,
    /// Downwards.
    pub y: i16,
}

/// A rectangle with one prediction. Blocks of a frame do not overlap and cover it; those at the
/// right and lower edge may reach beyond it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block {
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
    /// Whether the block has no coded residual.
    pub skip: bool,
    /// Interpolation filter: 0 regular, 1 smooth, 2 sharp, 3 bilinear (0 in intra blocks).
    pub filter: u8,
}

impl Block {
    /// Whether the block is predicted from its own frame.
    pub fn is_intra(&self) -> bool {
        self.predictions[0].is_none()
    }
}

/// What the bitstream says about a frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrameInfo {
    /// How it is coded.
    pub kind: FrameKind,
    /// Whether it is to be displayed.
    pub shown: bool,
    /// Luma width.
    pub width: u32,
    /// Luma height.
    pub height: u32,
    /// Bit `i` set: slot `i` holds this frame from now on.
    pub refresh_mask: u8,
    /// Slots behind `Last`, `Golden`, `Altref`; meaningful for inter frames only.
    pub reference_slots: [u8; 3],
    /// `base_q_idx`, 0 to 255.
    pub quantiser: u8,
    /// Size of the coded frame in bytes: the accumulated residual of seed 000 §4.1 counts these.
    pub encoded_bytes: usize,
    /// Every block of the frame in raster order of its origin; empty where nothing is new.
    pub blocks: Vec<Block>,
}

impl FrameInfo {
    /// Whether no other frame is needed to decode it.
    pub fn is_intra(&self) -> bool {
        matches!(self.kind, FrameKind::Key | FrameKind::IntraOnly)
    }
}
