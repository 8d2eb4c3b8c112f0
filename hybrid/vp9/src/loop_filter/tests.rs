//! The masks against the specification's conditions sample by sample, and all forms against it.

use super::*;
use crate::kernels::loop_filter::oracle;
use crate::random::Random;

/// A block with its place in the picture.
#[derive(Clone, Copy)]
struct Placed {
    block: FilteredBlock,
    mi_row: usize,
    mi_col: usize,
}

fn size_of(log2: usize) -> TransformSize {
    TransformSize::ALL[log2]
}

/// Splits a square of `side` units as VP9 partitions do; blocks outside the picture do not exist.
fn partition(random: &mut Random, out: &mut Vec<Placed>, at: Position, side: usize) {
    let Position { mi_row: row, mi_col: col, mi_rows, mi_cols } = at;
    if row >= mi_rows || col >= mi_cols {
        return;
    }
    let half = side / 2;
    let over = row + half >= mi_rows || col + half >= mi_cols;
    let parts: &[(usize, usize, usize, usize)] = match random.below(if side == 8 { 5 } else { 4 }) {
        _ if side == 1 => &[(0, 0, 1, 1)],
        0 if !over || side == 1 => &[(0, 0, side, side)],
        1 => &[(0, 0, half, side), (half, 0, half, side)],
        2 => &[(0, 0, side, half), (0, half, side, half)],
        _ => {
            for (r, c) in [(0, 0), (0, half), (half, 0), (half, half)] {
                let at = Position { mi_row: row + r, mi_col: col + c, ..at };
                partition(random, out, at, half);
            }
            return;
        }
    };
    for &(r, c, height, width) in parts {
        let (mi_row, mi_col) = (row + r, col + c);
        if mi_row >= mi_rows || mi_col >= mi_cols {
            continue;
        }
        let most = height.min(width).ilog2() as usize + 1;
        let transform = random.below(most.min(3) + 1);
        let block = FilteredBlock {
            row: mi_row % 8,
            col: mi_col % 8,
            width,
            height,
            transform: size_of(transform),
            chroma_transform: size_of(transform.min(most - 1)),
            skip_inter: random.below(3) == 0,
            level: [0, 63, 1, 20, 32, 8][random.below(6)].min(random.below(64)) as u8,
        };
        out.push(Placed { block, mi_row, mi_col });
    }
}

#[derive(Clone, PartialEq, Debug)]
struct Frame {
    planes: [Vec<u8>; 3],
    strides: [usize; 3],
}

impl Frame {
    /// Smooth areas, steps at multiples of 4, noise.
    fn random(random: &mut Random, mi_rows: usize, mi_cols: usize) -> Self {
        let mut frame = Self { planes: Default::default(), strides: [0; 3] };
        for plane in 0..3 {
            let sub = usize::from(plane > 0);
            let rows = mi_rows.div_ceil(8) * (64 >> sub);
            let stride = mi_cols.div_ceil(8) * (64 >> sub);
            let cells: Vec<u8> = (0..256).map(|_| random.below(24) as u8 + 100).collect();
            let noise = [1, 2, 4, 40, 255][random.below(5)];
            let samples = (0..rows * stride).map(|i| {
                let (y, x) = (i / stride / 4, i % stride / 4);
                let cell = cells[(y / 3 * 7 + x / 5 * 3) % 256];
                let rough = (x / 16 + y / 16) % 3 == 0;
                cell.wrapping_add(random.below(if rough { noise } else { 2 }) as u8)
            });
            frame.planes[plane] = samples.collect();
            frame.strides[plane] = stride;
        }
        frame
    }

    fn visible(&self, mi_rows: usize, mi_cols: usize) -> Vec<&[u8]> {
        let mut rows = Vec::new();
        for (plane, (samples, stride)) in self.planes.iter().zip(self.strides).enumerate() {
            let sub = usize::from(plane > 0);
            let lines = samples.chunks_exact(stride).take((mi_rows * 8) >> sub);
            rows.extend(lines.map(|line| &line[..(mi_cols * 8) >> sub]));
        }
        rows
    }

    fn filter(
        &mut self,
        isa: Isa,
        blocks: &[Placed],
        limits: &Limits,
        mi_rows: usize,
        mi_cols: usize,
    ) {
        let mut edges = SuperblockEdges::default();
        let strides = self.strides;
        let [y, u, v] = &mut self.planes;
        for mi_row in (0..mi_rows).step_by(8) {
            for mi_col in (0..mi_cols).step_by(8) {
                edges.clear();
                for placed in blocks {
                    if placed.mi_row / 8 == mi_row / 8 && placed.mi_col / 8 == mi_col / 8 {
                        edges.add_block(&placed.block);
                    }
                }
                let mut planes = [
                    PlaneMut { samples: &mut *y, stride: strides[0] },
                    PlaneMut { samples: &mut *u, stride: strides[1] },
                    PlaneMut { samples: &mut *v, stride: strides[2] },
                ];
                let at = Position { mi_row, mi_col, mi_rows, mi_cols };
                filter_superblock(isa, &edges, limits, &mut planes, at);
            }
        }
    }
}

/// Specification 8.8.2 as it is written: every edge of every superblock, sample by sample.
fn filter_literally(
    frame: &mut Frame,
    blocks: &[Placed],
    limits: &Limits,
    mi_rows: usize,
    mi_cols: usize,
) {
    let mut grid = vec![None; mi_rows * mi_cols];
    for placed in blocks {
        for r in 0..placed.block.height.min(mi_rows - placed.mi_row) {
            for c in 0..placed.block.width.min(mi_cols - placed.mi_col) {
                grid[(placed.mi_row + r) * mi_cols + placed.mi_col + c] = Some(placed.block);
            }
        }
    }
    for row in (0..mi_rows).step_by(8) {
        for col in (0..mi_cols).step_by(8) {
            for plane in 0..3 {
                for pass in 0..2 {
                    let sub = usize::from(plane > 0);
                    for edge in 0..16 >> sub {
                        for i in 0..64 >> sub {
                            let (x, y) = if pass == 0 {
                                (col * 8 + edge * (4 << sub), row * 8 + (i << sub))
                            } else {
                                (col * 8 + (i << sub), row * 8 + edge * (4 << sub))
                            };
                            let on_screen = x < 8 * mi_cols
                                && y < 8 * mi_rows
                                && (pass == 1 || x > 0)
                                && (pass == 0 || y > 0);
                            if !on_screen {
                                continue;
                            }
                            let loop_col = ((x >> 3) >> sub) << sub;
                            let loop_row = ((y >> 3) >> sub) << sub;
                            let block = grid[loop_row * mi_cols + loop_col].expect("a block");
                            let transform =
                                if sub == 1 { block.chroma_transform } else { block.transform };
                            let transform = transform as usize;
                            // A chroma block is at least the one of 16x16 luma samples.
                            let least =
                                if sub == 1 && block.width.max(block.height) <= 2 { 2 } else { 1 };
                            let is_block_edge = if pass == 0 {
                                x % (8 * block.width.max(least)) == 0
                            } else {
                                y % (8 * block.height.max(least)) == 0
                            };
                            let odd_end = pass == 1
                                && sub == 1
                                && mi_cols % 2 == 1
                                && edge % 2 == 1
                                && x + 8 >= mi_cols * 8;
                            let is_transform_edge = !odd_end && edge % (1 << transform) == 0;
                            let is_32_edge = edge % 8 == 0;
                            let filters = is_block_edge || (is_transform_edge && !block.skip_inter);
                            if !filters || block.level == 0 {
                                continue;
                            }
                            let base =
                                if transform == 0 && is_32_edge { 1 } else { transform.min(2) };
                            let at_end = if pass == 0 {
                                x >> 3 == mi_cols - 1
                            } else {
                                y >> 3 == mi_rows - 1
                            };
                            let size = if base == 2 && sub == 1 && at_end { 1 } else { base };
                            let stride = frame.strides[plane];
                            let at = (y >> sub) * stride + (x >> sub);
                            let step = if pass == 0 { 1 } else { stride };
                            oracle(&mut frame.planes[plane], at, step, size, limits, block.level);
                        }
                    }
                }
            }
        }
    }
}

fn layout(random: &mut Random, mi_rows: usize, mi_cols: usize) -> Vec<Placed> {
    let mut blocks = Vec::new();
    for row in (0..mi_rows).step_by(8) {
        for col in (0..mi_cols).step_by(8) {
            let at = Position { mi_row: row, mi_col: col, mi_rows, mi_cols };
            partition(random, &mut blocks, at, 8);
        }
    }
    blocks
}

#[test]
fn masks_filter_what_the_specification_filters_at_every_size() {
    let mut random = Random(8);
    let mut changed = 0;
    for mi_rows in 1..=17 {
        for mi_cols in 1..=17 {
            let blocks = layout(&mut random, mi_rows, mi_cols);
            let before = Frame::random(&mut random, mi_rows, mi_cols);
            let limits = Limits::new(random.below(8) as u8);
            let mut expected = before.clone();
            filter_literally(&mut expected, &blocks, &limits, mi_rows, mi_cols);
            changed += usize::from(expected != before);
            for &isa in Isa::available() {
                let mut got = before.clone();
                got.filter(isa, &blocks, &limits, mi_rows, mi_cols);
                assert!(
                    got.visible(mi_rows, mi_cols) == expected.visible(mi_rows, mi_cols),
                    "{isa:?}, {mi_cols} by {mi_rows}"
                );
            }
        }
    }
    assert!(changed > 250, "only {changed} pictures have edges to filter");
}

#[test]
fn level_zero_and_borders_leave_the_picture_alone() {
    let mut random = Random(1);
    let before = Frame::random(&mut random, 8, 8);
    for (level, width) in [(0, 1), (63, 8)] {
        let mut blocks = Vec::new();
        for mi_row in (0..8).step_by(width) {
            for mi_col in (0..8).step_by(width) {
                let block = FilteredBlock {
                    row: mi_row,
                    col: mi_col,
                    width,
                    height: width,
                    transform: TransformSize::Size4,
                    chroma_transform: TransformSize::Size4,
                    skip_inter: true,
                    level,
                };
                blocks.push(Placed { block, mi_row, mi_col });
            }
        }
        for &isa in Isa::available() {
            let mut after = before.clone();
            after.filter(isa, &blocks, &Limits::new(0), 8, 8);
            assert_eq!(after, before, "{isa:?} level {level}");
        }
    }
}
