//! Checks that must hold for every decoded frame, whatever the bytes were.

use windlass_vp9::{Block, DecodedFrame, FrameBuffer, FrameInfo, FrameKind, PictureRows, Visitor};

/// Checks that a frame's blocks lie inside it and cover it once.
pub fn info(info: &FrameInfo) {
    if matches!(info.kind, FrameKind::ShowExisting { .. }) {
        assert!(info.blocks.is_empty());
        return;
    }
    let (width, height) = (info.width as usize, info.height as usize);
    let (columns, rows) = (width.div_ceil(8), height.div_ceil(8));
    let mut covered = vec![false; columns * rows];
    for block in &info.blocks {
        for (x, y) in units(block).filter(|&(x, y)| x < columns && y < rows) {
            assert!(!covered[y * columns + x], "two blocks at {x}, {y}");
            covered[y * columns + x] = true;
        }
        self::block(block, info);
    }
    assert!(covered.iter().all(|&c| c), "a hole between blocks");
}

/// The units of 8×8 samples that a block covers.
fn units(block: &Block) -> impl Iterator<Item = (usize, usize)> {
    let (x, y) = (usize::from(block.x) / 8, usize::from(block.y) / 8);
    let (width, height) = (usize::from(block.width) / 8, usize::from(block.height) / 8);
    (y..y + height).flat_map(move |y| (x..x + width).map(move |x| (x, y)))
}

fn block(block: &Block, info: &FrameInfo) {
    assert!(u32::from(block.x) < info.width && u32::from(block.y) < info.height);
    assert!([8, 16, 32, 64].contains(&block.width) && [8, 16, 32, 64].contains(&block.height));
    assert!(block.segment < 8 && block.filter_level < 64 && block.filter < 4);
    assert!(block.is_intra() || !info.is_intra(), "an inter block in an intra frame");
    let area = u32::from(block.width) * u32::from(block.height);
    let parts = block.parts().map(|p| u32::from(p.width) * u32::from(p.height));
    assert_eq!(parts.sum::<u32>(), area, "parts cover their block");
    for quarter in 0..4 {
        let predictions = block.predictions(quarter);
        assert_eq!(block.is_intra(), predictions == [None; 2]);
        assert_eq!(block.is_compound(), predictions[1].is_some());
        for (_, vector) in predictions.into_iter().flatten() {
            // `is_mv_valid` (§6.4.19).
            assert!(vector.x.unsigned_abs() < 1 << 14 && vector.y.unsigned_abs() < 1 << 14);
        }
    }
}

/// Checks that two decoders' frames are the same: their infos, and every sample of the pictures.
pub fn same(a: &DecodedFrame, b: &DecodedFrame) {
    assert!(a.info == b.info, "infos differ");
    let size = |p: &FrameBuffer| (p.width(), p.height());
    assert_eq!(size(&a.picture), size(&b.picture));
    assert_eq!(size(&a.picture), (a.info.width as usize, a.info.height as usize));
    for (plane, (p, q)) in a.picture.planes().iter().zip(b.picture.planes()).enumerate() {
        for y in 0..p.height() {
            if let Some(x) = p.row(y).iter().zip(q.row(y)).position(|(p, q)| p != q) {
                panic!("plane {plane} differs at {x}, {y} of {:?}", size(&a.picture));
            }
        }
    }
}

/// A visitor that hashes all blocks and residuals.
#[derive(Debug, Default)]
pub struct Listener {
    /// The hash of residuals and blocks in their order.
    pub hash: u64,
}

impl Listener {
    fn add(&mut self, value: u64) {
        self.hash = (self.hash.rotate_left(5) ^ value).wrapping_mul(0x51_7c_c1_b7_27_22_0a_95);
    }
}

impl Visitor for Listener {
    const RESIDUAL: bool = true;

    fn residual(&mut self, plane: usize, x: usize, y: usize, side: usize, residual: &[i16]) {
        assert_eq!(residual.len(), side * side);
        self.add((plane << 60 | x << 30 | y) as u64);
        for &value in residual {
            self.add(u64::from(value.cast_unsigned()));
        }
    }

    fn block(&mut self, block: &Block, picture: &PictureRows<'_>) {
        self.add(u64::from(block.x) << 32 | u64::from(block.y));
        self.add(picture.planes()[0].stride() as u64);
    }
}
