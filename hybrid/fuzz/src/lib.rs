//! Inputs of the target `hybrid`, in the container of VP9's target: chunks are frames, messages of anchors, or
//! [`RESET`].

use windlass_types::message::VERSION;

/// The chunk that stands for a gap: the decoder is reset.
pub const RESET: &[u8] = b"R";

/// Whether a chunk is an anchor message: VP9 frames begin with other bits.
pub fn is_message(chunk: &[u8]) -> bool {
    chunk.first() == Some(&VERSION)
}

/// The scale that the options of an input ask for.
pub fn scale(options: u8) -> usize {
    2 + usize::from(options & 3) % 3
}
