//! Other people's codecs, in this process.

pub(crate) mod openjpeg;
pub(crate) mod openjph;
