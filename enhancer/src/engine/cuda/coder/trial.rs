//! The coder on trial, before subscribers are sent what it makes: its codestreams must be the processor's.

use windlass_hybrid::Detail;
use windlass_hybrid::anchor::codec::{AnchorCodec, Htj2k};

use super::CudaCoder;
use super::shared::AnchorError;
use crate::engine::cuda::CudaError;

/// Two blocks of coefficients side by side, and odd bands.
const SIZE: (usize, usize) = (75, 41);
const QUALITIES: [u8; 2] = [30, 95];

/// Codes a picture coarsely and finely on the coder's device.
pub fn trial(coder: &mut CudaCoder) -> Result<(), CudaError> {
    let detail = picture();
    let wanted = QUALITIES.map(|quality| Htj2k.encode(&detail, quality).ok());
    match code(coder, &detail) {
        Ok(coded) if coded.iter().eq(wanted.iter().flatten()) => Ok(()),
        Ok(_) | Err(AnchorError::Codec(_)) => Err(CudaError::Wrong),
        Err(AnchorError::Device(why)) => Err(why),
    }
}

fn code(coder: &mut CudaCoder, detail: &Detail) -> Result<Vec<Vec<u8>>, AnchorError> {
    let format = Htj2k::format(detail)?;
    coder.transform(&[detail.samples()], format, Htj2k::LEVELS)?;
    let steps = QUALITIES.map(|quality| (0, Htj2k::step(quality)));
    Ok(coder.encode(&steps)?)
}

/// Waves, and noise in a part of them.
fn picture() -> Detail {
    let mut detail = Detail::zero(SIZE.0, SIZE.1);
    for y in 0..SIZE.1 {
        for (x, sample) in detail.row_mut(y).iter_mut().enumerate() {
            let wave = (x as f32 * 0.7).sin() * (y as f32 * 0.3).cos() * 150.0;
            let noise = if x / 20 % 2 == 0 { (x * 7_919 + y * 104_729) % 257 } else { 128 };
            *sample = wave as i16 + noise as i16 - 128;
        }
    }
    detail
}
