//! OpenJPEG's decoder, by `jpeg2k`, which builds it from its source. It writes blocks of Part 1 alone, which we leave
//! out.

use jpeg2k::{DecodeParameters, Image};
use windlass_htj2k::{Format, Picture};

/// Most bits of samples for which its 9/7 transform is within 1: its gain of high bands is 0.003 % off (`two_invK` in
/// `dwt.c`), and its authors know.
#[allow(dead_code)] // where all samples have fewer
pub(crate) const EXACT_BITS: u8 = 13;

/// What OpenJPEG makes of a codestream of one component; `None` if it refuses it.
pub(crate) fn decode(coded: &[u8]) -> Option<Picture> {
    // Strict, as it else takes zeros for what a stream lacks.
    let parameters = DecodeParameters::new().strict(true);
    let image = Image::from_bytes_with(coded, parameters).ok()?;
    let [component] = image.components() else { panic!("one component") };
    let format = Format {
        width: component.width(),
        height: component.height(),
        bits: component.precision() as u8,
        signed: component.is_signed(),
    };
    let sample = |&s: &i32| i16::try_from(s).expect("samples of the format");
    Some(Picture { format, samples: component.data().iter().map(sample).collect() })
}
