//! Which convolutions one launch runs, and on tiles of which size: by arithmetic, from the network and the device.
//!
//! Fusing more convolutions saves passes over memory, but recomputes samples at the tiles' edges. Two examples:
//!
//! - 8 blocks of 32 channels, one block per launch, read and write 64 bytes per pixel each way, 1.1 KB in all. At 720p
//!   that is 1 GB or 0.3 ms of an H100's memory, while 139 GMAC take 0.5 to 0.7 ms of its tensor cores. Two blocks per
//!   launch gain nothing: tiles in the same memory recompute a fifth more.
//! - Five convolutions of 16 channels would mostly read and write if each had its own launch, so that they share one.
//!
//! The estimate below is the same for all networks. It has the time of the tensor cores, with recomputation and idle
//! warps, and the time of the memory. The shorter of the two mostly overlaps with the longer one.
//!
//! Where warpgroups run what is between the first and the last convolution ([`super::strips`]), those two are launches
//! of their own.

use super::strips::Strips;
use super::variant::Variant;
use crate::{Architecture, Kind};

/// Multiplications of the tensor cores per byte of memory traffic, both at achievable rates.
const MACS_PER_BYTE: f64 = 64.0;
/// Share of the shorter of compute and memory time that the longer one does not hide.
const UNHIDDEN: f64 = 0.3;
/// Factor on the time of a block that is alone on its multiprocessor, because it waits at barriers.
const ALONE: f64 = 1.15;
/// Warps that keep the tensor cores of a multiprocessor busy.
const BUSY: f64 = 6.0;
/// Cost of a launch, in multiplications per pixel of a picture of 640×360.
const LAUNCH: f64 = 1_000.0;
/// Pixels before and after a buffer.
const GUARD: usize = 16;
/// Shared memory that the device reserves for each block, in bytes.
const RESERVED: usize = 1_024;
/// Maximum warps by the registers of a multiprocessor.
const WARPS: usize = 12;

/// Sizes for which the kernels are compiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Shape {
    /// Channels between convolutions, a multiple of 16.
    pub channels: usize,
    /// Channels of the first convolution's input; 0 if it takes the nine neighbours of a luma sample instead.
    pub head_channels: usize,
    /// Tiles of 8 channels of the last convolution's output.
    pub out_tiles: usize,
}

impl Shape {
    pub(super) fn of(architecture: &Architecture) -> Self {
        let inputs = architecture.input_channels();
        Shape {
            channels: architecture.channels.next_multiple_of(16),
            head_channels: if inputs == 1 { 0 } else { inputs.next_multiple_of(16) },
            out_tiles: architecture.output_channels().div_ceil(8),
        }
    }
}

/// The launches of a network.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Plan {
    pub shape: Shape,
    /// Columns of a tile.
    pub pitch: usize,
    /// Warps of a block.
    pub warps: usize,
    /// Blocks that a multiprocessor holds.
    pub resident: usize,
    /// How the convolutions between the first and the last run.
    pub variant: Variant,
    /// Strips in which warpgroups run these convolutions; `None` if they run in tiles.
    pub strips: Option<Strips>,
    pub groups: Vec<GroupPlan>,
}

/// The convolutions of one launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct GroupPlan {
    /// Whether the launch has the network's first convolution.
    pub head: bool,
    /// Whether the launch has the network's last convolution.
    pub tail: bool,
    /// Index of the first convolution between those, and their number.
    pub first: usize,
    pub count: usize,
    /// Whether the launch works in strips instead of tiles.
    pub strips: bool,
    /// Rows of a tile; 0 for strips, which are cut by the picture.
    pub rows: usize,
    /// Rows and columns on each side of a tile that belong to its neighbours.
    pub margin: usize,
    /// Bytes of shared memory of a block.
    pub shared: usize,
}

impl GroupPlan {
    /// The kernel's name.
    pub(super) fn kernel(&self) -> &'static str {
        match (self.head, self.tail) {
            _ if self.strips => "body_group",
            (true, true) => "only_group",
            (true, false) => "first_group",
            (false, true) => "last_group",
            (false, false) => "middle_group",
        }
    }

    /// Number of blocks for a picture: one for each tile.
    pub(super) fn tiles(&self, pitch: usize, width: usize, height: usize) -> Blocks {
        let own = (pitch - 2 * self.margin, self.rows - 2 * self.margin);
        Blocks { across: width.div_ceil(own.0), down: height.div_ceil(own.1) }
    }
}

/// Number of blocks of a launch for each picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Blocks {
    /// Blocks side by side.
    pub across: usize,
    /// Blocks below each other.
    pub down: usize,
}

/// Shared memory of a device in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SharedMemory {
    /// Maximum shared memory of a block.
    pub block: usize,
    /// Shared memory of a multiprocessor.
    pub multiprocessor: usize,
}

impl Plan {
    /// Finds the best plan; `None` if not even the smallest tiles fit the device, or the network does not have the
    /// variant.
    pub(super) fn new(
        architecture: &Architecture,
        variant: Variant,
        memory: SharedMemory,
    ) -> Option<Plan> {
        if variant == Variant::Mma {
            return Plan::best(architecture, &splits(architecture), memory);
        }
        let strips = Strips::new(architecture, variant, memory)?;
        // Only the first convolution, and only the last.
        let mut plan = Plan::best(architecture, &[vec![0, 0]], memory)?;
        let between = architecture.convs - 2;
        let tail = plan.groups.pop()?;
        plan.groups.extend((1..=between).step_by(strips.convs).map(|first| GroupPlan {
            head: false,
            tail: false,
            first,
            count: strips.convs,
            strips: true,
            rows: 0,
            margin: strips.convs,
            shared: strips.shared,
        }));
        plan.groups.push(GroupPlan { first: between + 1, ..tail });
        Some(Plan { variant, strips: Some(strips), ..plan })
    }

    /// Finds the best tiles among some divisions into launches.
    fn best(
        architecture: &Architecture,
        splits: &[Vec<usize>],
        memory: SharedMemory,
    ) -> Option<Plan> {
        let shape = Shape::of(architecture);
        let mut best: Option<(f64, Plan)> = None;
        for split in splits {
            for pitch in [32, 48, 64] {
                for rows in (6..=48).step_by(2) {
                    let Some(groups) = groups(architecture, &shape, split, pitch, rows) else {
                        continue;
                    };
                    let shared = groups.iter().map(|group| group.shared).max().unwrap_or(0);
                    if shared > memory.block {
                        continue;
                    }
                    let fit = (memory.multiprocessor / (shared + RESERVED)).clamp(1, 2);
                    let (variant, strips) = (Variant::Mma, None);
                    let (warps, resident) = (WARPS / fit, fit);
                    let plan = Plan { shape, pitch, warps, resident, variant, strips, groups };
                    let cost = plan.cost();
                    if best.as_ref().is_none_or(|(min, _)| cost < *min) {
                        best = Some((cost, plan));
                    }
                }
            }
        }
        best.map(|(_, plan)| plan)
    }

    /// Time per pixel, in multiplications.
    fn cost(&self) -> f64 {
        let alone = if self.resident == 1 { ALONE } else { 1.0 };
        let groups = self.groups.iter().map(|group| {
            let own = (self.pitch - 2 * group.margin) * (group.rows - 2 * group.margin);
            let macs = alone * self.group_time(group) / own as f64;
            let bytes = self.group_bytes(group) / own as f64 * MACS_PER_BYTE;
            macs.max(bytes) + UNHIDDEN * macs.min(bytes) + LAUNCH
        });
        groups.sum()
    }

    /// Multiplications per pixel, with padding and what is computed twice at edges.
    pub(super) fn macs(&self) -> f64 {
        self.by_pixel(Self::group_macs, Strips::macs)
    }

    /// Bytes of memory traffic per pixel.
    pub(super) fn bytes(&self) -> f64 {
        self.by_pixel(Self::group_bytes, Strips::bytes)
    }

    fn by_pixel(
        &self,
        of_tile: fn(&Self, &GroupPlan) -> f64,
        of_strips: fn(&Strips, usize) -> f64,
    ) -> f64 {
        let own =
            |group: &GroupPlan| (self.pitch - 2 * group.margin) * (group.rows - 2 * group.margin);
        let groups = self.groups.iter().map(|group| match &self.strips {
            Some(strips) if group.strips => of_strips(strips, self.shape.channels),
            _ => of_tile(self, group) / own(group) as f64,
        });
        groups.sum()
    }

    /// Multiplications of a tile.
    fn group_macs(&self, group: &GroupPlan) -> f64 {
        self.convs(group).map(|(units, macs)| units * macs).sum()
    }

    /// Multiplications that could be done in the time of a tile. In a convolution's last round few warps may have work,
    /// and they alone do not keep a multiprocessor busy unless another block helps.
    fn group_time(&self, group: &GroupPlan) -> f64 {
        let (warps, busy) = (self.warps as f64, BUSY / self.resident as f64);
        let time = |units: f64| {
            let last = units % warps;
            units - last + if last > 0.0 { last.max(busy) } else { 0.0 }
        };
        self.convs(group).map(|(units, macs)| time(units) * macs).sum()
    }

    /// For each convolution of a tile: number of units of 4 rows of 16 pixels, and multiplications of a unit.
    fn convs(&self, group: &GroupPlan) -> impl Iterator<Item = (f64, f64)> {
        let Shape { channels, head_channels, out_tiles } = self.shape;
        let first = usize::from(group.head && head_channels > 0);
        let head = match (group.head, head_channels) {
            (false, _) => None,
            (true, 0) => Some((0, 16 * channels)),
            (true, inputs) => Some((1, 9 * inputs * channels)),
        };
        let body = (1..=group.count).map(move |n| (first + n, 9 * channels * channels));
        let tail = group.tail.then_some((first + group.count + 1, 9 * channels * 8 * out_tiles));
        let (rows, strips) = (group.rows, self.pitch / 16);
        head.into_iter().chain(body).chain(tail).map(move |(shrunk, macs)| {
            ((strips * (rows - 2 * shrunk)) as f64 / 4.0, (64 * macs) as f64)
        })
    }

    /// Bytes of memory traffic of a tile.
    fn group_bytes(&self, group: &GroupPlan) -> f64 {
        let pixel = 2 * self.shape.channels;
        let all = self.pitch * group.rows;
        let own = (self.pitch - 2 * group.margin) * (group.rows - 2 * group.margin);
        let read = if group.head { all } else { all * pixel };
        let written = if group.tail { own * 32 } else { own * pixel };
        (read + written) as f64
    }
}

/// Possible divisions of the convolutions between the first and the last into launches: numbers of convolutions.
fn splits(architecture: &Architecture) -> Vec<Vec<usize>> {
    let between = architecture.convs - 2;
    // The skip over all blocks reads around a tile what another launch must have written.
    let (unit, min) = match architecture.kind {
        Kind::Chain => (1, 1),
        Kind::Blocks => (2, 2),
    };
    let units = between / unit;
    let even = |launches: usize| {
        let from = |n: usize| units * n / launches;
        (0..launches).map(|n| unit * (from(n + 1) - from(n))).collect()
    };
    (min..=units.max(min)).map(even).collect()
}

/// Launches of a division; `None` if its margins leave nothing of the tiles.
fn groups(
    architecture: &Architecture,
    shape: &Shape,
    split: &[usize],
    pitch: usize,
    rows: usize,
) -> Option<Vec<GroupPlan>> {
    let mut first = 1;
    let mut groups = Vec::with_capacity(split.len());
    for (n, &count) in split.iter().enumerate() {
        let (head, tail) = (n == 0, n + 1 == split.len());
        let margin = count + usize::from(tail) + usize::from(head && architecture.has_twin());
        if pitch < 2 * margin + 8 || rows < 2 * margin + 2 {
            return None;
        }
        let widest = shape.channels.max(shape.head_channels);
        let buffers = 2 * (pitch * rows + 2 * GUARD) * widest * 2;
        // All kernels are compiled together: room for the widest block's warps.
        let scratch = if tail { WARPS * 16 * (8 * shape.out_tiles + 1) * 4 } else { 0 };
        groups.push(GroupPlan {
            head,
            tail,
            first,
            count,
            strips: false,
            rows,
            margin,
            shared: buffers + scratch,
        });
        first += count;
    }
    Some(groups)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance::Case;

    const TURING: SharedMemory = SharedMemory { block: 65_536, multiprocessor: 65_536 };
    const AMPERE: SharedMemory = SharedMemory { block: 166_912, multiprocessor: 167_936 };
    const ADA: SharedMemory = SharedMemory { block: 101_376, multiprocessor: 102_400 };
    const HOPPER: SharedMemory = SharedMemory { block: 232_448, multiprocessor: 233_472 };

    #[test]
    fn plans_cover_every_network_once() {
        let more = [Architecture::chain(2, 16, 40), Architecture::blocks(4, 64, 19).with_twin()];
        for architecture in Case::all().iter().map(|case| case.architecture).chain(more) {
            for memory in [TURING, AMPERE, ADA, HOPPER] {
                // The largest networks do not fit the oldest devices.
                let Some(plan) = Plan::new(&architecture, Variant::Mma, memory) else {
                    assert!(memory == TURING && architecture.channels >= 48, "{architecture}");
                    continue;
                };
                let mut next = 1;
                for (n, group) in plan.groups.iter().enumerate() {
                    assert_eq!((group.head, group.first), (n == 0, next), "{architecture}");
                    assert_eq!(group.tail, n + 1 == plan.groups.len(), "{architecture}");
                    assert!(group.shared <= memory.block);
                    let all = plan.resident * (group.shared + RESERVED);
                    assert!(all <= memory.multiprocessor || plan.resident == 1);
                    assert!(group.rows.is_multiple_of(2) && plan.pitch.is_multiple_of(16));
                    next += group.count;
                }
                assert_eq!(next, architecture.convs - 1, "{architecture}");
                let blocks = architecture.kind == Kind::Blocks;
                assert!(!blocks || plan.groups.iter().all(|g| g.count % 2 == 0));
                assert!(!blocks || plan.groups.len() > 1, "the skip needs a launch before");
            }
        }
    }

    #[test]
    fn the_small_chain_is_one_launch_and_large_blocks_are_several() {
        let small =
            Plan::new(&Architecture::chain(2, 16, 5), Variant::Mma, HOPPER).expect("a plan");
        assert_eq!(small.groups.len(), 1);
        let large =
            Plan::new(&Architecture::blocks(3, 32, 8), Variant::Mma, HOPPER).expect("a plan");
        assert_eq!(large.groups.len(), 8, "{large:?}");
        assert!(large.groups.iter().all(|group| group.count == 2), "{large:?}");
    }

    #[test]
    fn strips_cover_what_is_between_the_first_and_the_last() {
        for architecture in Case::all().iter().map(|case| case.architecture) {
            let Some(plan) = Plan::new(&architecture, Variant::Wgmma, HOPPER) else {
                assert!(plan_is_not_for(&architecture), "{architecture}");
                continue;
            };
            let (head, tail) = (plan.groups[0], plan.groups[plan.groups.len() - 1]);
            assert!(head.head && !head.tail && head.count == 0 && !head.strips);
            assert!(tail.tail && !tail.head && tail.count == 0 && !tail.strips);
            assert_eq!(tail.first, architecture.convs - 1);
            let between = &plan.groups[1..plan.groups.len() - 1];
            assert!(between.iter().all(|group| group.strips && group.kernel() == "body_group"));
            assert_eq!(between.iter().map(|g| g.count).sum::<usize>(), architecture.convs - 2);
            assert!(plan.macs() > 0.0 && plan.bytes() > 0.0);
        }
    }

    fn plan_is_not_for(architecture: &Architecture) -> bool {
        let wide = architecture.kind == Kind::Blocks && architecture.channels > 48;
        architecture.channels <= 16 || wide || architecture.convs == 2
    }

    #[test]
    fn a_device_without_room_has_no_plan() {
        let memory = SharedMemory { block: 4_096, multiprocessor: 4_096 };
        assert_eq!(Plan::new(&Architecture::chain(2, 16, 5), Variant::Mma, memory), None);
    }
}
