//! Tests the encoder before subscribers get its anchors: every result must equal that of the CPU.

use windlass_hybrid::Detail;
use windlass_hybrid::anchor::codec::{Htj2k, Strength, detail_of};
use windlass_hybrid::anchor::payload;
use windlass_hybrid::anchor::prior::Prior;
use windlass_hybrid::detail::ONE;
use windlass_types::Size;
use windlass_types::tiles::TileMap;
use windlass_vp9::simd::Isa;
use windlass_vp9::{Plane, PlaneSize};

use super::error::AnchorError;
use super::{CudaCoder, TileDetail};
use crate::cuda::CudaError;
use crate::energy_by_tile;

/// Size of the picture that is encoded: two blocks of coefficients side by side, and odd bands.
const SIZE: PlaneSize = PlaneSize::new(75, 41);
/// Qualities at which the trial encodes: coarse and fine.
const QUALITIES: [u8; 2] = [30, 95];
/// Size of the low picture: two tiles, the second of which is cut off.
const LOW: PlaneSize = PlaneSize::new(75, 21);

/// Encodes a picture coarsely and finely. Then does all work on pictures that stay on the device, at every scale.
pub(super) fn trial(coder: &mut CudaCoder) -> Result<(), CudaError> {
    let is_right = codes(coder).and_then(|right| {
        (2..=4).try_fold(right, |right, scale| Ok(right && keeps_pictures(coder, scale)?))
    });
    match is_right {
        Ok(true) => Ok(()),
        Ok(false) | Err(AnchorError::Codec(_)) => Err(CudaError::Wrong),
        Err(AnchorError::Device(why)) => Err(why),
    }
}

fn codes(coder: &mut CudaCoder) -> Result<bool, AnchorError> {
    let mut detail = Detail::zero(SIZE.width, SIZE.height);
    for y in 0..SIZE.height {
        for (x, sample) in detail.row_mut(y).iter_mut().enumerate() {
            let wave = (x as f32 * 0.7).sin() * (y as f32 * 0.3).cos() * 150.0;
            *sample = wave as i16 + if x / 20 % 2 == 0 { noise(x, y) } else { 0 };
        }
    }
    let format = Htj2k::format(&detail)?;
    coder.transform(&[detail.samples()], format, Htj2k::LEVELS)?;
    let coded = coder.encode(&QUALITIES.map(|quality| (0, Htj2k::step(quality))))?;
    let wanted = QUALITIES.map(|quality| Htj2k::encode(&detail, quality).ok());
    Ok(coded.iter().eq(wanted.iter().flatten()))
}

fn keeps_pictures(coder: &mut CudaCoder, scale: usize) -> Result<bool, AnchorError> {
    let PlaneSize { width, height } = LOW.scaled(scale);
    let low_size = Size::saturating(LOW.width, LOW.height);
    // Edges in all directions, and of all strengths.
    let mut low = Plane::filled(LOW.width, LOW.height, 0);
    for (i, sample) in low.samples_mut().iter_mut().enumerate() {
        let (x, y) = (i % LOW.width, i / LOW.width);
        let edge = if (x + y * (x / 16)) / 7 % 2 == 0 { 60 } else { 62 + 12 * (x / 5) };
        *sample = (edge + usize::from(noise(x, y) > 100)).min(255) as u8;
    }
    let mut seen = Plane::filled(width, height, 0);
    let mut residual = Vec::with_capacity(width * height);
    for (i, sample) in seen.samples_mut().iter_mut().enumerate() {
        let (x, y) = (i % width, i / width);
        *sample = low.row(y / scale)[x / scale].saturating_add((x % 5) as u8);
        residual.push(if i == 7 { i16::MIN } else { noise(x, y) * (y % 30) as i16 });
    }
    let resident = coder.hold_picture(&residual, &low, scale)?;
    let (detail, whole) = (by_cpu(&residual, width, height), TileMap::full(low_size));
    let known = detail_of(&seen, &low, scale)?;
    let differs = detail.samples().iter().zip(known.samples()).map(|(a, b)| a.saturating_sub(*b));
    let Some(differs) = Detail::from_samples(width, height, differs.collect()) else {
        return Ok(false);
    };
    let energies =
        energy_by_tile(&differs, &whole, scale).zip(energy_by_tile(&detail, &whole, scale));
    let wanted = energies.map(|(new, all)| TileDetail { new: new.energy, all: all.energy });
    if !coder.measure(&resident, &seen)?.into_iter().eq(wanted) {
        return Ok(false);
    }
    let mut second = TileMap::empty(low_size);
    second.set(1, 0);
    let mut rest = detail;
    Prior::new(Isa::detect(), scale).take_out((&low).into(), &mut rest);
    for tiles in [whole, second] {
        let wanted = payload::image(rest.clone(), &tiles, scale);
        let format = Htj2k::format(&wanted)?;
        let strengths = coder.transform_tiles(&[(&resident, &tiles)], format, Htj2k::LEVELS)?;
        if strengths != [Strength::from(&wanted)] || coder.image(0, format)? != wanted.samples() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Detail that the CPU makes of a residual in the device's format.
fn by_cpu(residual: &[i16], width: usize, height: usize) -> Detail {
    let mut detail = Detail::zero(width, height);
    for (to, &from) in detail.samples_mut().iter_mut().zip(residual) {
        let levels = (f32::from(from) / 64.0).clamp(-255.0, 255.0);
        *to = (levels * f32::from(ONE)).round() as i16;
    }
    detail
}

/// A repeatable sample of a test picture, −128 to 128.
fn noise(x: usize, y: usize) -> i16 {
    ((x * 7_919 + y * 104_729 + x * y) % 257) as i16 - 128
}
