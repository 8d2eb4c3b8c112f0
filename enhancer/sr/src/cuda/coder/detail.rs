//! Detail of a picture that was super-resolved on the GPU: sums for each tile, and the image that is encoded. See
//! `detail.cu`.
//!
//! The bus carries what subscribers see (8 bits for each HR sample), a few numbers for each tile, and encoded bytes.

use std::sync::Arc;

use windlass_htj2k::Format;
use windlass_hybrid::anchor::codec::Strength;
use windlass_hybrid::detail::ONE;
use windlass_hybrid::reconstruct::learned::Learned;
use windlass_types::tiles::{TILE, TileMap};
use windlass_vp9::{Plane, PlaneSize};

use super::kernels::{DETAIL_PARTS, DETAIL_SHARED, DETAIL_THREADS, Gather, Measure, Picture};
use super::memory::fill;
use super::{CoderError, CudaCoder, count, int};
use crate::cuda::CudaError;
use crate::cuda::driver::{DeviceBuffer, HostBuffer};
use crate::cuda::resident::{ResidentMemory, ResidentPicture};

/// Bytes of one 64-bit sum of a tile on the GPU.
const SUM_BYTES: usize = 8;
/// Bytes of a tile's place in the image on the GPU: three numbers of 32 bits.
const PLACE_BYTES: usize = 12;

/// Energy of a tile's detail.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TileDetail {
    /// Mean square difference between the tile's detail and what subscribers see, in square grey levels.
    pub new: f64,
    /// Mean square of all of the tile's detail, in square grey levels.
    pub all: f64,
}

impl CudaCoder {
    /// Measures the detail of each tile, row by row. `seen` is the HR luma that subscribers see.
    ///
    /// # Errors
    ///
    /// Fails if `seen` is not of the HR size of the held picture, or the GPU fails.
    pub fn measure(
        &mut self,
        resident: &ResidentPicture,
        seen: &Plane,
    ) -> Result<Vec<TileDetail>, CoderError> {
        let PlaneSize { width: wide, height: high } = resident.size();
        if seen.size() != resident.size() {
            return Err(CoderError::Pictures);
        }
        let (columns, rows) = (resident.width.div_ceil(TILE), resident.height.div_ceil(TILE));
        let parts = columns * rows * DETAIL_PARTS;
        self.stream.wait()?;
        self.seen.grow(&self.device, wide * high)?;
        self.sums.grow(&self.device, 2 * SUM_BYTES * parts)?;
        self.seen.host.bytes_mut()[..wide * high].copy_from_slice(seen.samples());
        self.stream.upload(&self.seen.host, &self.seen.device, 0, wide * high)?;
        let parameter = Measure {
            picture: picture(resident),
            seen: self.seen.device.address(),
            sums: self.sums.device.address(),
        };
        let grid = (count(columns * rows), count(DETAIL_PARTS), 1);
        let (kernel, shared) = (self.kernels.measure_tiles, count(DETAIL_SHARED));
        // SAFETY: `Measure` is what the kernel takes. A held picture has as many samples as its size says, `seen` and
        // `sums` have just been given room, and all of it lives until the stream has been waited for below.
        unsafe { self.stream.launch(kernel, grid, DETAIL_THREADS, shared, &parameter) }?;
        let Self { stream, sums, .. } = self;
        stream.download(&sums.device, 0, &mut sums.host, 2 * SUM_BYTES * parts)?;
        stream.wait()?;
        let numbers: Vec<u64> = numbers(&sums.host).take(2 * parts).collect();
        let tiles = numbers.chunks_exact(2 * DETAIL_PARTS).enumerate().map(|(tile, parts)| {
            let side = |at: usize, of: usize| resident.scale * TILE.min(of - TILE * at);
            let area = side(tile % columns, resident.width) * side(tile / columns, resident.height);
            let mean = |which: usize| {
                let sum: u64 = parts.iter().skip(which).step_by(2).sum();
                sum as f64 / (f64::from(ONE) * f64::from(ONE)) / area as f64
            };
            TileDetail { new: mean(0), all: mean(1) }
        });
        Ok(tiles.collect())
    }

    /// [`transform`](Self::transform)s what is to be encoded of the tiles of held pictures. An image is a whole picture
    /// or a mosaic of tiles, less what subscribers predict themselves ([`windlass_hybrid::anchor::prior`]). All images
    /// have one format. Returns how much detail each has.
    ///
    /// # Errors
    ///
    /// Fails if there is no picture, a tile map is empty or not one of its picture, an image is not of the format, or
    /// the GPU fails.
    pub fn transform_tiles(
        &mut self,
        pictures: &[(&ResidentPicture, &TileMap)],
        format: Format,
        levels: u8,
    ) -> Result<Vec<Strength>, CoderError> {
        let (area, image_width) = (format.area(), format.width as usize);
        let fits = |&(resident, tiles): &(&ResidentPicture, &TileMap)| {
            let size = resident.image_size(tiles);
            let columns = (resident.width.div_ceil(TILE), resident.height.div_ceil(TILE));
            size == PlaneSize::new(image_width, format.height as usize)
                && columns == (tiles.columns(), tiles.rows())
                && tiles.count() > 0
        };
        if !pictures.iter().all(fits) {
            return Err(CoderError::Pictures);
        }
        self.begin(pictures.len(), format, levels)?;
        self.samples.grow(&self.device, 2 * area * pictures.len())?;
        let places: Vec<Vec<[i32; 3]>> =
            pictures.iter().map(|(resident, tiles)| places(tiles, resident.scale)).collect();
        let all = places.iter().map(Vec::len).sum::<usize>();
        self.tiles.grow(&self.device, PLACE_BYTES * all)?;
        let flat = places.iter().flatten().flatten().map(|number| number.to_ne_bytes());
        fill(self.tiles.host.bytes_mut(), flat);
        self.stream.upload(&self.tiles.host, &self.tiles.device, 0, PLACE_BYTES * all)?;
        let sums = SUM_BYTES * DETAIL_PARTS;
        self.sums.grow(&self.device, sums * all)?;
        let mut before = 0;
        for (n, (&(resident, tiles), places)) in pictures.iter().zip(&places).enumerate() {
            let parameter = Gather {
                picture: picture(resident),
                filters: self.filters(resident.scale)?,
                tiles: self.tiles.device.address() + (PLACE_BYTES * before) as u64,
                image: self.samples.device.address() + (2 * area * n) as u64,
                sums: self.sums.device.address() + (sums * before) as u64,
                image_width: int(image_width),
                whole: i32::from(tiles.is_full()),
            };
            before += places.len();
            let grid = (count(places.len()), count(DETAIL_PARTS), 1);
            let (kernel, shared) = (self.kernels.gather_tiles, count(DETAIL_SHARED));
            // SAFETY: `Gather` is what the kernel takes. A held picture has as many samples as its size says; `places`
            // is within an image of this format, which `fits` has checked; `samples`, `tiles` and `sums` have just been
            // given room; all of it lives until the stream has been waited for.
            unsafe { self.stream.launch(kernel, grid, DETAIL_THREADS, shared, &parameter) }?;
        }
        let at = self.samples.device.address();
        self.transform_at(at, pictures.len(), format, levels)?;
        self.stream.download(&self.sums.device, 0, &mut self.sums.host, sums * all)?;
        // Whose memory the pictures are in may let go of it.
        self.stream.wait()?;
        let mut sums = numbers(&self.sums.host);
        let strengths = places.iter().map(|places| {
            let magnitudes = sums.by_ref().take(DETAIL_PARTS * places.len()).sum();
            Strength { samples: area, magnitudes }
        });
        Ok(strengths.collect())
    }

    /// Samples of one of the images that were last transformed from held pictures.
    ///
    /// # Errors
    ///
    /// Fails if there is no image with that number, or the GPU fails.
    pub fn image(&mut self, number: usize, format: Format) -> Result<Vec<i16>, CoderError> {
        let (bytes, Self { stream, samples, .. }) = (2 * format.area(), &mut *self);
        if samples.device.len() < bytes * (number + 1) {
            return Err(CoderError::Pictures);
        }
        stream.wait()?;
        stream.download(&samples.device, bytes * number, &mut samples.host, bytes)?;
        stream.wait()?;
        Ok(samples.host.samples()[..format.area()].to_vec())
    }

    /// GPU address of the learned filters of a scale. They are uploaded when they are first needed.
    fn filters(&mut self, scale: usize) -> Result<u64, CudaError> {
        let place = self.filters.get_mut(scale).ok_or(CudaError::NoPlan)?;
        if let Some(there) = place {
            return Ok(there.address());
        }
        let table = Learned::with_prior(scale).export().ok_or(CudaError::NoPlan)?;
        let mut host = HostBuffer::new(&self.device, table.len())?;
        host.bytes_mut().copy_from_slice(&table);
        let filters = DeviceBuffer::new(&self.device, table.len())?;
        self.stream.upload(&host, &filters, 0, table.len())?;
        self.stream.wait()?;
        Ok(place.insert(filters).address())
    }

    /// Copies a picture to the GPU as if it had been super-resolved there: the residual in 1/64 grey level, and the low
    /// luma.
    ///
    /// # Errors
    ///
    /// Fails if the residual is not of the low picture's size times `scale`, or the GPU fails or has no memory left.
    pub fn hold_picture(
        &mut self,
        residual: &[i16],
        low: &Plane,
        scale: usize,
    ) -> Result<ResidentPicture, CoderError> {
        let (width, height) = (low.width(), low.height());
        if residual.len() != scale * width * scale * height {
            return Err(CoderError::Pictures);
        }
        let memory = ResidentMemory::new(&self.device, width * height, residual.len())?;
        let mut host = HostBuffer::new(&self.device, 2 * residual.len())?;
        fill(host.bytes_mut(), residual.iter().map(|sample| sample.to_ne_bytes()));
        self.stream.upload(&host, &memory.residual, 0, 2 * residual.len())?;
        self.stream.wait()?;
        host.bytes_mut()[..width * height].copy_from_slice(low.samples());
        self.stream.upload(&host, &memory.low, 0, width * height)?;
        self.stream.wait()?;
        let (memory, gpu) = (Arc::new(memory), self.device.ordinal);
        Ok(ResidentPicture { memory, gpu, width, height, scale })
    }
}

/// Reads the sums that the kernels wrote.
fn numbers(sums: &HostBuffer) -> impl Iterator<Item = u64> {
    sums.bytes().as_chunks::<SUM_BYTES>().0.iter().map(|bytes| u64::from_ne_bytes(*bytes))
}

fn picture(resident: &ResidentPicture) -> Picture {
    Picture {
        residual: resident.memory.residual.address(),
        low: resident.memory.low.address(),
        width: int(resident.width),
        height: int(resident.height),
        scale: int(resident.scale),
        columns: int(resident.width.div_ceil(TILE)),
    }
}

/// For each tile of the image: the picture's tile (-1 if the mosaic has none), and its column and row in the image.
fn places(tiles: &TileMap, scale: usize) -> Vec<[i32; 3]> {
    let side = TILE * scale;
    let number = |column: usize, row: usize| int(row * tiles.columns() + column);
    if tiles.is_full() {
        let place = |(column, row)| [number(column, row), int(side * column), int(side * row)];
        return tiles.iter().map(place).collect();
    }
    let across = tiles.count().min(tiles.columns()).max(1);
    let slots = tiles.count().next_multiple_of(across);
    let numbers = tiles.iter().map(|(column, row)| number(column, row));
    let all = numbers.chain(std::iter::repeat(-1)).take(slots).enumerate();
    all.map(|(n, tile)| [tile, int(n % across * side), int(n / across * side)]).collect()
}
