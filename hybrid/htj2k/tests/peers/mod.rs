//! Other people's codecs, in this process.

pub mod openjpeg;
pub mod openjph;
