//! Pictures of detail encoded on an NVIDIA GPU: the codestreams of [`windlass_htj2k::Encoder`], byte for byte.
//!
//! In: pictures of 16-bit samples, all of one format, from the host's memory or already on the GPU. Out: HTJ2K
//! codestreams at any steps. [`CudaCoder::transform`] leaves the coefficients on the GPU; [`CudaCoder::encode`]
//! quantises and encodes them as often as a rate control needs. Over the bus go samples, lengths of blocks and encoded
//! bytes; the host writes headers and packets ([`Layout::assemble`]), which is less than a byte for each block.
//!
//! `transform.cu` has the transform, `blocks.cu` the block coder, and says what of it is serial and why; [`kernels`]
//! has what they are given, [`memory`] the buffers, which grow to the largest pictures so far: nothing is allocated
//! after that but the codestreams themselves. [`shared`] is what workers use: one coder for all of them, after its
//! [`trial`].

mod detail;
mod error;
mod kernels;
mod memory;
mod shared;
mod trial;
mod work;

use std::sync::Arc;

use thiserror::Error;
use windlass_htj2k::{Format, Layout, MAX_LEVELS, encoder_codes};

use super::CudaError;
use super::driver::{Device, DeviceBuffer, Stream};
use super::gpu::Gpu;
use kernels::{
    BLOCK_SHARED, BLOCK_WARPS, Coding, Kernels, Level, TILE, TRANSFORM_SHARED, TRANSFORM_THREADS,
};
use memory::{Twofold, fill, grow};

pub use detail::TileDetail;
pub use error::AnchorError;
#[doc(hidden)]
pub use kernels::compile_coder_for;
pub use shared::{CoderWork, SharedCoder};
pub use work::{Coded, Encoding};

/// Maximum codestreams per batch.
const MAX_JOBS: usize = 64;
/// Upper bound of a block's bytes: 4096 samples of 26 bits, stuffed, and 4095 bytes of codes.
const MAX_BLOCK_BYTES: u32 = 20_000;
/// Bytes of a block's place in the plane, on the GPU.
const BLOCK_BYTES: usize = 24;
/// Bytes of a quantiser, on the GPU.
const QUANTISER_BYTES: usize = 8;
/// Bytes of a block's lengths, on the GPU.
const LENGTH_BYTES: usize = 8;
/// Bytes that say where a block's bytes belong, on the GPU.
const PLACE_BYTES: usize = 8;

/// Why pictures were not encoded.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CoderError {
    /// No pictures, another number of samples than their format says, no level, or a picture that was not transformed.
    #[error(
        "the batch cannot be encoded: it has no pictures or no wavelet levels, or a picture has the wrong size or was not transformed"
    )]
    Pictures,
    /// The device failed.
    #[error(transparent)]
    Device(#[from] CudaError),
}

/// Format of the pictures that are on the GPU.
#[derive(Debug)]
struct Shape {
    layout: Layout,
    /// Number of pictures that are transformed.
    pictures: usize,
}

/// Encodes pictures on the GPU. One thread uses it.
#[derive(Debug)]
pub struct CudaCoder {
    // In the order of dropping: the stream waits for its work.
    stream: Stream,
    shape: Option<Shape>,
    samples: Twofold,
    blocks: Twofold,
    /// Low bands between levels: the one that a level reads, and the one that it writes.
    low: [DeviceBuffer; 2],
    planes: DeviceBuffer,
    quantisers: Twofold,
    /// The picture of each job.
    pictures: Twofold,
    lengths: Twofold,
    places: Twofold,
    bytes: Twofold,
    codes: Twofold,
    /// HR luma that subscribers see, sums by part of a tile, and places of tiles.
    seen: Twofold,
    sums: Twofold,
    tiles: Twofold,
    /// Learned filters on the GPU, by scale.
    filters: [Option<DeviceBuffer>; 5],
    kernels: Kernels,
    device: Arc<Device>,
}

impl CudaCoder {
    /// Creates a coder on the GPU that has the fewest engines.
    ///
    /// # Errors
    ///
    /// Fails if there is no GPU that can be used, or its kernels cannot be compiled.
    pub fn new() -> Result<Self, CudaError> {
        Self::on(&Gpu::freest()?.device)
    }

    /// Compiles the kernels for this GPU, or finds them compiled.
    pub(crate) fn on(device: &Arc<Device>) -> Result<Self, CudaError> {
        let kernels = Kernels::new(device)?;
        let twofold = || Twofold::new(device);
        let none = || DeviceBuffer::new(device, 0);
        let mut coder = CudaCoder {
            stream: Stream::new(device)?,
            shape: None,
            samples: twofold()?,
            blocks: twofold()?,
            low: [none()?, none()?],
            planes: none()?,
            quantisers: twofold()?,
            pictures: twofold()?,
            lengths: twofold()?,
            places: twofold()?,
            bytes: twofold()?,
            codes: twofold()?,
            seen: twofold()?,
            sums: twofold()?,
            tiles: twofold()?,
            filters: Default::default(),
            kernels,
            device: device.clone(),
        };
        let codes = encoder_codes().into_iter().flatten().map(|code| code.to_ne_bytes());
        let bytes = 2 * encoder_codes().iter().map(|table| table.len()).sum::<usize>();
        coder.codes.grow(device, bytes)?;
        fill(coder.codes.host.bytes_mut(), codes);
        coder.stream.upload(&coder.codes.host, &coder.codes.device, 0, bytes)?;
        coder.stream.wait()?;
        Ok(coder)
    }

    /// Transforms pictures over a number of levels, at most [`MAX_LEVELS`]. Samples beyond the format's range are
    /// clamped.
    ///
    /// # Errors
    ///
    /// Fails if there is no picture, a picture has another number of samples than its format says, or the GPU fails.
    pub fn transform(
        &mut self,
        pictures: &[&[i16]],
        format: Format,
        levels: u8,
    ) -> Result<(), CoderError> {
        let area = format.area();
        if pictures.iter().any(|picture| picture.len() != area) {
            return Err(CoderError::Pictures);
        }
        self.begin(pictures.len(), format, levels)?;
        let bytes = 2 * area * pictures.len();
        self.samples.grow(&self.device, bytes)?;
        let samples = pictures.iter().copied().flatten().map(|s| s.to_ne_bytes());
        fill(self.samples.host.bytes_mut(), samples);
        self.stream.upload(&self.samples.host, &self.samples.device, 0, bytes)?;
        let at = self.samples.device.address();
        self.transform_at(at, pictures.len(), format, levels)
    }

    /// Encodes transformed pictures, given by number, each at a quantiser step in sample units. A step that cannot be
    /// written becomes the nearest that can.
    ///
    /// # Errors
    ///
    /// Fails if a number is not one of a transformed picture, or the GPU fails.
    pub fn encode(&mut self, jobs: &[(usize, f32)]) -> Result<Vec<Vec<u8>>, CoderError> {
        let shape = self.shape.take().ok_or(CoderError::Pictures)?;
        let mut coded = Vec::with_capacity(jobs.len());
        for batch in jobs.chunks(MAX_JOBS) {
            if batch.iter().any(|&(picture, _)| picture >= shape.pictures) {
                self.shape = Some(shape);
                return Err(CoderError::Pictures);
            }
            // After an error nothing is known of what is on the GPU.
            self.code(&shape.layout, batch, &mut coded)?;
        }
        self.shape = Some(shape);
        Ok(coded)
    }

    /// Waits for work under way, and lays out the blocks of `pictures` pictures.
    fn begin(&mut self, pictures: usize, format: Format, levels: u8) -> Result<(), CoderError> {
        self.stream.wait()?;
        let levels = levels.min(MAX_LEVELS);
        if pictures == 0 || levels == 0 {
            return Err(CoderError::Pictures);
        }
        let known = self
            .shape
            .take()
            .filter(|shape| (shape.layout.format(), shape.layout.levels()) == (format, levels));
        let layout = if let Some(Shape { layout, .. }) = known {
            layout
        } else {
            let layout = Layout::new(format, levels).map_err(|_| CoderError::Pictures)?;
            let bytes = BLOCK_BYTES * layout.blocks().len();
            self.blocks.grow(&self.device, bytes)?;
            let numbers = layout.blocks().iter().flat_map(|block| {
                [block.x, block.y, block.row_step, block.width, block.height, block.band]
            });
            fill(self.blocks.host.bytes_mut(), numbers.map(|n| int(n).to_ne_bytes()));
            self.stream.upload(&self.blocks.host, &self.blocks.device, 0, bytes)?;
            layout
        };
        self.shape = Some(Shape { layout, pictures: 0 });
        Ok(())
    }

    /// Transforms the samples of `pictures` pictures at an address of the device.
    fn transform_at(
        &mut self,
        samples: u64,
        pictures: usize,
        format: Format,
        levels: u8,
    ) -> Result<(), CoderError> {
        let (width, height) = (format.width as usize, format.height as usize);
        let side = |length: usize, level: u8| length.div_ceil(1 << level);
        let bytes = |level| 4 * pictures * side(width, level) * side(height, level);
        grow(&mut self.planes, &self.device, bytes(0))?;
        grow(&mut self.low[0], &self.device, bytes(1))?;
        grow(&mut self.low[1], &self.device, bytes(2))?;
        let levels = levels.min(MAX_LEVELS);
        let ((min, max), middle) = (format.range(), format.level());
        for level in 0..levels {
            let (columns, rows) = (side(width, level), side(height, level));
            let next = usize::from(level % 2);
            let is_last = level + 1 == levels || (columns.div_ceil(2), rows.div_ceil(2)) == (1, 1);
            let parameter = Level {
                samples: if level == 0 { samples } else { 0 },
                input: self.low[1 - next].address(),
                low: if is_last { 0 } else { self.low[next].address() },
                planes: self.planes.address(),
                width: int(width),
                height: int(height),
                columns: int(columns),
                rows: int(rows),
                depth: i32::from(level),
                min,
                max,
                middle,
            };
            let grid = (columns.div_ceil(TILE.0), rows.div_ceil(TILE.1), pictures);
            let grid = (count(grid.0), count(grid.1), count(grid.2));
            let (kernel, shared) = (self.kernels.transform, count(TRANSFORM_SHARED));
            // SAFETY: `Level` is what the kernel takes. Samples are as many as the caller says, low bands and planes
            // have just been given room; all of them live until the stream has been waited for.
            unsafe { self.stream.launch(kernel, grid, TRANSFORM_THREADS, shared, &parameter) }?;
            if is_last {
                break;
            }
        }
        if let Some(shape) = &mut self.shape {
            shape.pictures = pictures;
        }
        Ok(())
    }

    /// Encodes some jobs at once.
    fn code(
        &mut self,
        layout: &Layout,
        jobs: &[(usize, f32)],
        coded: &mut Vec<Vec<u8>>,
    ) -> Result<(), CudaError> {
        let quantisers: Vec<_> = jobs.iter().map(|&(_, step)| layout.quantisers(step)).collect();
        let bands = quantisers.first().map_or(0, Vec::len);
        let blocks = layout.blocks().len();
        let all = jobs.len() * blocks;
        self.stream.wait()?;
        self.quantisers.grow(&self.device, QUANTISER_BYTES * jobs.len() * bands)?;
        self.pictures.grow(&self.device, 4 * jobs.len())?;
        self.lengths.grow(&self.device, LENGTH_BYTES * all)?;
        self.places.grow(&self.device, PLACE_BYTES * all)?;
        let numbers = quantisers.iter().flatten();
        let numbers = numbers.flat_map(|q| [q.inverse.to_ne_bytes(), q.max.to_ne_bytes()]);
        fill(self.quantisers.host.bytes_mut(), numbers);
        let pictures = jobs.iter().map(|&(picture, _)| int(picture).to_ne_bytes());
        fill(self.pictures.host.bytes_mut(), pictures);
        let Twofold { device, host, .. } = &self.quantisers;
        self.stream.upload(host, device, 0, QUANTISER_BYTES * jobs.len() * bands)?;
        self.stream.upload(&self.pictures.host, &self.pictures.device, 0, 4 * jobs.len())?;
        let format = layout.format();
        let mut parameter = Coding {
            planes: self.planes.address(),
            blocks: self.blocks.device.address(),
            pictures: self.pictures.device.address(),
            quantisers: self.quantisers.device.address(),
            codes: self.codes.device.address(),
            lengths: self.lengths.device.address(),
            places: self.places.device.address(),
            bytes: 0,
            area: u64::from(format.width) * u64::from(format.height),
            width: int(format.width as usize),
            count: int(blocks),
            bands: int(bands),
        };
        let grid = (count(blocks.div_ceil(BLOCK_WARPS)), count(jobs.len()), 1);
        let (threads, shared) = (count(32 * BLOCK_WARPS), count(BLOCK_SHARED));
        let kernels = (self.kernels.measure, self.kernels.write);
        // SAFETY: `Coding` is what the kernels take; planes, blocks and pictures are what `begin` and `transform_at`
        // made, the rest has just been given room, and all of it lives until the stream has been waited for.
        unsafe { self.stream.launch(kernels.0, grid, threads, shared, &parameter) }?;
        self.stream.download(
            &self.lengths.device,
            0,
            &mut self.lengths.host,
            LENGTH_BYTES * all,
        )?;
        self.stream.wait()?;

        let mut ends = Vec::with_capacity(all);
        let mut total = 0;
        for length in &self.lengths.host.bytes().as_chunks::<LENGTH_BYTES>().0[..all] {
            let [_, _, _, _, a, b, c, d] = *length;
            let bytes = u32::from_ne_bytes([a, b, c, d]);
            if bytes > MAX_BLOCK_BYTES {
                return Err(CudaError::Driver("it measured a block that cannot be".to_owned()));
            }
            total += bytes as usize;
            ends.push(total);
        }
        let start = |block: usize| block.checked_sub(1).map_or(0, |before| ends[before]);
        if total > 0 {
            self.bytes.grow(&self.device, total.next_power_of_two())?;
            let places = (0..all).map(|block| (start(block) as u64).to_ne_bytes());
            fill(self.places.host.bytes_mut(), places);
            self.stream.upload(&self.places.host, &self.places.device, 0, PLACE_BYTES * all)?;
            parameter.bytes = self.bytes.device.address();
            // SAFETY: as above; each block has as many bytes at its place as the first pass measured, in a buffer of
            // `total`.
            unsafe { self.stream.launch(kernels.1, grid, threads, shared, &parameter) }?;
            self.stream.download(&self.bytes.device, 0, &mut self.bytes.host, total)?;
            self.stream.wait()?;
        }
        let bytes = self.bytes.host.bytes();
        coded.extend(jobs.iter().enumerate().map(|(job, &(_, step))| {
            let block = |n: usize| &bytes[start(job * blocks + n)..ends[job * blocks + n]];
            layout.assemble(step, block)
        }));
        Ok(())
    }
}

/// A number of 32 bits, as kernels take it.
fn int(number: usize) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

/// A number of blocks or threads of a launch.
fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
