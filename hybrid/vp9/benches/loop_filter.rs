//! Time of the loop filter over one 640x360 picture: `cargo bench -p windlass-vp9 --bench loop_filter`.

#![allow(missing_docs)] // criterion's macros make public functions

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use windlass_vp9::kernels::inverse_transform::TransformSize;
use windlass_vp9::loop_filter::{
    FilteredBlock, Limits, PlaneMut, Position, SuperblockEdges, filter_superblock,
};
use windlass_vp9::simd::Isa;

/// Width of the picture, in luma samples.
const WIDTH: usize = 640;
/// Height of the picture's memory, in luma samples: whole superblocks above the 360 rows that are shown.
const HEIGHT: usize = 384;
/// Width of the picture in units of 8 samples.
const MI_COLS: usize = 80;
/// Height of the picture in units of 8 samples.
const MI_ROWS: usize = 45;

/// A case to measure: how the samples look, and how large the blocks are.
struct Case {
    name: &'static str,
    /// Sides of the blocks of successive superblocks, in units of 8 samples.
    sides: &'static [usize],
    skip: usize,
    level: u8,
    noise: u32,
}

/// The cases that are measured.
const CASES: [Case; 4] = [
    Case { name: "calm, large blocks", sides: &[8, 4, 8, 2], skip: 2, level: 12, noise: 2 },
    Case { name: "moving, mixed blocks", sides: &[4, 2, 1, 8, 2], skip: 3, level: 20, noise: 6 },
    Case {
        name: "key frame, small blocks",
        sides: &[1, 2, 1],
        skip: usize::MAX,
        level: 24,
        noise: 8,
    },
    Case { name: "smooth, wide filters", sides: &[2], skip: usize::MAX, level: 32, noise: 2 },
];

fn planes(noise: u32) -> [Vec<u8>; 3] {
    let mut state = 7u32;
    let mut plane = |stride: usize, rows: usize| -> Vec<u8> {
        (0..stride * rows)
            .map(|i| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                let (y, x) = (i / stride, i % stride);
                let step = (x / 8 * 7 + y / 8 * 5) % 11 / 3;
                (60 + (x + y) / 24 + step) as u8 + ((state >> 16) % noise) as u8
            })
            .collect()
    };
    [plane(WIDTH, HEIGHT), plane(WIDTH / 2, HEIGHT / 2), plane(WIDTH / 2, HEIGHT / 2)]
}

fn superblocks(case: &Case) -> Vec<(Position, SuperblockEdges)> {
    let mut out = Vec::new();
    let mut count = 0;
    for mi_row in (0..MI_ROWS).step_by(8) {
        for mi_col in (0..MI_COLS).step_by(8) {
            let mut edges = SuperblockEdges::default();
            let side = case.sides[out.len() % case.sides.len()];
            for row in (0..8.min(MI_ROWS - mi_row)).step_by(side) {
                for col in (0..8.min(MI_COLS - mi_col)).step_by(side) {
                    count += 1;
                    let size = side.ilog2() as usize + usize::from(count % 3 > 0);
                    edges.add_block(&FilteredBlock {
                        row,
                        col,
                        width: side,
                        height: side,
                        transform: TransformSize::ALL[size.min(3)],
                        chroma_transform: TransformSize::ALL[size.min(side.ilog2() as usize)],
                        skip_inter: count % case.skip == 1,
                        level: case.level + (count % 2) as u8,
                    });
                }
            }
            out.push((Position { mi_row, mi_col, mi_rows: MI_ROWS, mi_cols: MI_COLS }, edges));
        }
    }
    out
}

fn filter(
    isa: Isa,
    planes: &mut [Vec<u8>; 3],
    superblocks: &[(Position, SuperblockEdges)],
    limits: &Limits,
) {
    let [y, u, v] = planes;
    for (at, edges) in superblocks {
        let mut planes = [
            PlaneMut { samples: y, stride: WIDTH },
            PlaneMut { samples: u, stride: WIDTH / 2 },
            PlaneMut { samples: v, stride: WIDTH / 2 },
        ];
        filter_superblock(isa, edges, limits, &mut planes, *at);
    }
}

fn loop_filter(c: &mut Criterion) {
    let limits = Limits::new(0);
    for case in &CASES {
        let superblocks = superblocks(case);
        let start = planes(case.noise);
        for &isa in Isa::available() {
            c.bench_function(&format!("loop_filter/{} {isa:?}", case.name), |b| {
                b.iter_batched_ref(
                    || start.clone(),
                    |planes| filter(isa, planes, &superblocks, &limits),
                    BatchSize::SmallInput,
                );
            });
        }
        c.bench_function(&format!("loop_filter/{} masks", case.name), |b| {
            b.iter(|| self::superblocks(case));
        });
    }
}

criterion_group!(benches, loop_filter);
criterion_main!(benches);
