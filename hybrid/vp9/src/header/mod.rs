//! Frame headers (specification §6.2, §7.2): the parameters of a frame, before its tiles.

mod compressed;
mod superframe;
mod uncompressed;

pub(crate) use compressed::CompressedHeader;
pub(crate) use superframe::Superframe;
pub(crate) use uncompressed::{FrameHeader, Header, parse};

/// The type of a frame, by `frame_type` and `intra_only`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum FrameType {
    #[default]
    Key,
    IntraOnly,
    Inter,
}

/// The parameters of the loop filter (`loop_filter_params`, §7.2.8).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LoopFilterParams {
    pub(crate) level: u8,
    pub(crate) sharpness: u8,
    pub(crate) delta_enabled: bool,
    /// Change of the filter's level by reference: intra, last, golden, altref.
    pub(crate) ref_deltas: [i8; 4],
    /// Change of the filter's level by prediction mode: for zero vectors, and for all other inter modes.
    pub(crate) mode_deltas: [i8; 2],
}

impl Default for LoopFilterParams {
    fn default() -> Self {
        Self {
            level: 0,
            sharpness: 0,
            delta_enabled: true,
            ref_deltas: [1, 0, -1, -1],
            mode_deltas: [0, 0],
        }
    }
}

/// The parameters of the quantiser (`quantization_params`, §7.2.9).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct QuantiserParams {
    pub(crate) base: u8,
    pub(crate) delta_y_dc: i8,
    pub(crate) delta_uv_dc: i8,
    pub(crate) delta_uv_ac: i8,
}

impl QuantiserParams {
    /// Whether blocks are encoded without loss (`Lossless`).
    pub(crate) fn lossless(self) -> bool {
        self == Self::default()
    }
}

/// The features of a segment (§7.2.10); `None` where the feature is off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct SegmentFeatures {
    pub(crate) quantiser: Option<i16>,
    pub(crate) loop_filter: Option<i8>,
    pub(crate) reference: Option<u8>,
    pub(crate) skip: bool,
}

/// The parameters of segmentation (`segmentation_params`, §7.2.10).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Segmentation {
    pub(crate) enabled: bool,
    pub(crate) update_map: bool,
    pub(crate) temporal_update: bool,
    pub(crate) absolute: bool,
    pub(crate) tree: [u8; 7],
    pub(crate) predicted: [u8; 3],
    pub(crate) features: [SegmentFeatures; 8],
}

impl Default for Segmentation {
    fn default() -> Self {
        Self {
            enabled: false,
            update_map: false,
            temporal_update: false,
            absolute: false,
            tree: [255; 7],
            predicted: [255; 3],
            features: [SegmentFeatures::default(); 8],
        }
    }
}

/// How blocks choose their transform (`tx_mode`, §7.3.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TxMode {
    /// Every block takes the largest transform up to this one (0: 4×4 … 3: 32×32).
    Largest(u8),
    /// Every block says which transform it takes.
    Select,
}

/// How many references blocks have (`reference_mode`, §7.3.6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReferenceMode {
    Single,
    Compound,
    Select,
}

/// The state that persists from one header to the next (§7.2).
#[derive(Debug, Clone, Default)]
pub(crate) struct Persistent {
    pub(crate) loop_filter: LoopFilterParams,
    pub(crate) segmentation: Segmentation,
    /// Size of the frame in each reference slot.
    pub(crate) slot_sizes: [Option<(u32, u32)>; 8],
}
