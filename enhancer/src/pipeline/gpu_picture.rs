//! Anchors whose picture stays on the GPU from inference until it is encoded.
//!
//! The low picture and what subscribers see (8 bits a sample) go up to the GPU. A few numbers for each tile and the
//! code come down, so that no super-resolved picture crosses the bus. One of eight comes down beside its encoded form,
//! to measure what encoding loses.

use std::sync::Arc;
use std::time::{Duration, Instant};

use windlass_hybrid::Detail;
use windlass_hybrid::anchor::mosaic::scatter;
use windlass_sr::cuda::ResidentPicture;
use windlass_sr::cuda::coder::{AnchorError, Coded, Encoding, SharedCoder, TileDetail};
use windlass_sr::{EnergyOfTile, Engine, InferError, Input, Inputs, Luma};
use windlass_types::Size;
use windlass_types::tiles::TileMap;
use windlass_vp9::{Plane, PlaneSize, Samples};

use super::anchors::EncodeError;

/// Time for which pictures come back to the CPU after the GPU could not keep or encode one.
const REST: Duration = Duration::from_secs(10);

/// A super-resolved picture that stays on its GPU until its anchor is encoded.
pub(super) struct GpuPicture {
    resident: ResidentPicture,
    tiles: Vec<TileDetail>,
    columns: usize,
    scale: usize,
}

impl GpuPicture {
    /// Super-resolves a picture on the GPU and measures what it adds to what subscribers see. `Ok(None)` if the picture
    /// has to come back to the CPU; an error if that is the GPU's fault.
    pub(super) fn infer(
        coder: &SharedCoder,
        engine: &mut dyn Engine,
        low: Samples<'_>,
        seen: &Arc<Plane>,
    ) -> Result<Option<GpuPicture>, Unfit> {
        let is_fused = engine.architecture().inputs == Inputs::LumaAndTwin;
        let twin = is_fused.then(|| Luma::packed(seen.samples(), seen.width(), seen.height()));
        let low_luma = Luma::new(low.data, low.width, low.height, low.stride);
        // What cannot be a picture is refused on the way by the CPU, which says so.
        let (Ok(low_luma), Ok(twin)) = (low_luma, twin.transpose()) else { return Ok(None) };
        let resident = match engine.hold(Input { low: low_luma, twin }) {
            Ok(Some(resident)) => resident,
            Err(InferError::Device(_) | InferError::DeviceFull(_)) => return Err(Unfit),
            Ok(None) | Err(_) => return Ok(None),
        };
        let tiles = match coder.measure(&resident, seen) {
            Ok(tiles) => tiles,
            Err(AnchorError::Codec(_)) => return Ok(None),
            Err(AnchorError::Device(why)) => {
                tracing::debug!(%why, "picture leaves the GPU");
                return Err(Unfit);
            }
        };
        let columns = TileMap::empty(Size::saturating(low.width, low.height)).columns();
        Ok(Some(GpuPicture { resident, tiles, columns, scale: engine.scale() }))
    }

    /// Energy of some tiles, by one of the measures of [`TileDetail`].
    pub(super) fn by_tile(
        &self,
        tiles: &TileMap,
        measure: fn(&TileDetail) -> f64,
    ) -> Vec<EnergyOfTile> {
        let of = |(column, row)| {
            let energy = self.tiles.get(row * self.columns + column).map(measure)?;
            Some(EnergyOfTile { column, row, energy })
        };
        tiles.iter().filter_map(of).collect()
    }

    /// Width and height in HR samples.
    pub(super) fn size(&self) -> PlaneSize {
        self.resident.size()
    }

    /// Encodes what some tiles add, with the given quality or maximum bytes. Also returns the encoded detail, zero
    /// outside the tiles, if it is wanted. `None` if this GPU cannot encode it.
    pub(super) fn code(
        &self,
        coder: &SharedCoder,
        tiles: &TileMap,
        coding: Encoding,
        wants_detail: bool,
    ) -> Option<Result<Coded, EncodeError>> {
        match coder.code_resident(&self.resident, tiles, coding, wants_detail) {
            Ok((code, None)) => Some(Ok((code, None))),
            Ok((code, Some(image))) if tiles.is_full() => Some(Ok((code, Some(image)))),
            Ok((code, Some(mosaic))) => {
                let PlaneSize { width, height } = self.size();
                let mut detail = Detail::zero(width, height);
                let fits = scatter(tiles, &mosaic, self.scale, &mut detail);
                Some(Ok((code, fits.then_some(detail))))
            }
            Err(AnchorError::Codec(_)) => Some(Err(EncodeError::Failed)),
            Err(AnchorError::Device(why)) => {
                tracing::debug!(%why, "picture leaves the GPU to be encoded");
                None
            }
        }
    }
}

/// The GPU cannot keep pictures now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the GPU cannot keep pictures now")]
pub(super) struct Unfit;

/// Whether pictures stay on the GPU. They do not for [`REST`] after it could not encode one.
#[derive(Debug, Default)]
pub(super) struct Stay {
    rests: Option<Instant>,
}

impl Stay {
    pub(super) fn is_tried(&self) -> bool {
        self.rests.is_none_or(|until| until <= Instant::now())
    }

    pub(super) fn failed(&mut self) {
        self.rests = Some(Instant::now() + REST);
    }
}
