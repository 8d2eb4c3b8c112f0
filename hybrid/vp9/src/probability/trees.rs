//! Trees of the syntax elements (specification §9.3.1): positive entries are indices, others
//! negated symbols.

/// The tree of `partition`; symbols are the values of `partition`.
pub(crate) static PARTITION: [i8; 6] = [0, 2, -1, 4, -2, -3];
/// The tree of `segment_id`; symbols are segments.
pub(crate) static SEGMENT: [i8; 14] = [2, 4, 6, 8, 10, 12, 0, -1, -2, -3, -4, -5, -6, -7];
/// The tree of intra modes; symbols are the numbers of the modes.
pub(crate) static INTRA_MODE: [i8; 18] =
    [0, 2, -9, 4, -1, 6, 8, 12, -2, 10, -4, -5, -3, 14, -8, 16, -6, -7];
/// The tree of `tx_size` where 32×32 transforms fit; symbols are sizes.
pub(crate) static TX_32X32: [i8; 6] = [0, 2, -1, 4, -2, -3];
/// The tree of `tx_size` where at most 16×16 transforms fit; symbols are sizes.
pub(crate) static TX_16X16: [i8; 4] = [0, 2, -1, -2];
/// The tree of `tx_size` where at most 8×8 transforms fit; symbols are sizes.
pub(crate) static TX_8X8: [i8; 2] = [0, -1];
/// The tree of inter modes; symbols: 0 nearest, 1 near, 2 zero, 3 new.
pub(crate) static INTER_MODE: [i8; 6] = [-2, 2, 0, 4, -1, -3];
/// The tree of interpolation filters; symbols: 0 regular, 1 smooth, 2 sharp.
pub(crate) static INTERP_FILTER: [i8; 4] = [0, 2, -1, -2];
/// The tree of `mv_joint`: which components of a vector's difference are not zero.
pub(crate) static MOTION_JOINT: [i8; 6] = [0, 2, -1, 4, -2, -3];
/// The tree of `mv_class`; symbols are classes of magnitude.
pub(crate) static MOTION_CLASS: [i8; 20] =
    [0, 2, -1, 4, 6, 8, -2, -3, 10, 12, -4, -5, -6, 14, 16, 18, -7, -8, -9, -10];
/// The tree of `mv_fr`; symbols are the quarters of a sample.
pub(crate) static MOTION_FRACTION: [i8; 6] = [0, 2, -1, 4, -2, -3];
