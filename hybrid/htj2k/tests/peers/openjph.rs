//! OpenJPH's encoder and decoder, by `openjph-core`, their port to Rust.

use openjph_core::codestream::Codestream;
use openjph_core::file::{MemInfile, MemOutfile};
use openjph_core::{Point, Size};
use windlass_htj2k::{Format, Picture};

/// How a stream is written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Parameters {
    /// The quantiser's step as a share of the samples' range; the 5/3 transform without one.
    pub step: Option<f32>,
    pub levels: u32,
    /// Width and height of a block.
    pub block: (u32, u32),
    pub progression: &'static str,
}

impl Parameters {
    /// What OpenJPH writes unless told otherwise.
    pub(crate) const USUAL: Self =
        Self { step: None, levels: 5, block: (64, 64), progression: "RPCL" };
}

pub(crate) fn encode(samples: &[i16], format: Format, way: Parameters) -> Vec<u8> {
    let mut stream = Codestream::new();
    let size = stream.access_siz_mut();
    size.set_image_extent(Point::new(format.width, format.height));
    size.set_tile_size(Size::new(format.width, format.height));
    size.set_num_components(1);
    size.set_comp_info(0, Point::new(1, 1), format.bits.into(), format.signed);
    let style = stream.access_cod_mut();
    style.set_num_decomposition(way.levels);
    style.set_block_dims(way.block.0, way.block.1);
    style.set_reversible(way.step.is_none());
    style.set_color_transform(false);
    style.set_progression_order(way.progression).expect("a progression of the standard");
    if let Some(step) = way.step {
        stream.access_qcd_mut().set_delta(step);
    }
    stream.set_planar(0);
    let mut file = MemOutfile::new();
    stream.write_headers(&mut file, &[]).expect("OpenJPH begins it");
    for row in samples.chunks_exact(format.width as usize) {
        let row: Vec<i32> = row.iter().map(|&s| s.into()).collect();
        stream.exchange(&row, 0).expect("OpenJPH takes a row");
    }
    stream.flush(&mut file).expect("OpenJPH ends it");
    file.get_data().to_vec()
}

/// What OpenJPH makes of a codestream of one component.
pub(crate) fn decode(coded: &[u8]) -> Picture {
    let mut file = MemInfile::new(coded);
    let mut stream = Codestream::new();
    stream.read_headers(&mut file).expect("OpenJPH reads its headers");
    stream.create(&mut file).expect("OpenJPH decodes it");
    let size = stream.access_siz();
    let format = Format {
        width: size.get_width(0),
        height: size.get_height(0),
        bits: size.get_bit_depth(0) as u8,
        signed: size.is_signed(0),
    };
    let rows = std::iter::from_fn(|| stream.pull(0));
    // The port leaves samples beyond their range as they are.
    let (least, greatest) = format.range();
    let sample = |s: i32| s.clamp(least, greatest) as i16;
    Picture { format, samples: rows.flatten().map(sample).collect() }
}
