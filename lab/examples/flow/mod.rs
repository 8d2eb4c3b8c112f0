//! Where the detail of each part of a frame comes from, counted in the frames that are written.
//!
//! Source: the decoder's own way until decision 028. A cell of 8 × 8 low samples follows VP9's vectors back to the last
//! written frame on its way, and their sum is kept. `models/recurrent.py` carries a network's own detail with it.

use std::io::{Result, Write};

use windlass_vp9::{DecodeError, Decoder, FrameInfo, MotionVector};

/// Side of a cell, in low samples.
const CELL: usize = 8;
/// Written frames that a cell may lie behind: as many anchors as the decoder kept.
const MAX: usize = 4;

/// A written frame by its number from 1 on, 0 for none, and the way there in 1/8 low sample.
type Cell = (usize, MotionVector);

/// The cells of a stream's last frame and of its references.
pub(crate) struct Flow {
    decoder: Decoder,
    size: (usize, usize),
    slots: [Vec<Cell>; 8],
    cells: Vec<Cell>,
    /// Slots that hold the last frame.
    held: u8,
    written: usize,
}

impl Flow {
    /// Creates the flow of a stream with pictures of the given size, in samples.
    pub(crate) fn new(width: usize, height: usize) -> Self {
        let cells = vec![Cell::default(); width.div_ceil(CELL) * height.div_ceil(CELL)];
        let slots = std::array::from_fn(|_| cells.clone());
        Self { decoder: Decoder::new(), size: (width, height), slots, cells, held: 0, written: 0 }
    }

    /// Takes the next frame.
    pub(crate) fn push(&mut self, data: &[u8]) -> std::result::Result<(), DecodeError> {
        let frames = self.decoder.decode(data)?;
        let infos: Vec<_> = frames.iter().map(|frame| frame.info.clone()).collect();
        for info in infos.iter().filter(|info| !info.blocks.is_empty()) {
            self.trace(info);
            self.held = info.refresh_mask;
            self.keep();
        }
        Ok(())
    }

    /// Writes the last frame's cells, row by row: how many written frames ago (0: there is none), then the vector, as
    /// three little-endian words. Later frames may then refer to this one.
    pub(crate) fn write(&mut self, to: &mut impl Write) -> Result<()> {
        self.written += 1;
        for &(source, vector) in &self.cells {
            let ago = self.written - source;
            let ago = if source == 0 || ago > MAX { 0 } else { ago as i16 };
            for word in [ago, vector.x, vector.y] {
                to.write_all(&word.to_le_bytes())?;
            }
        }
        self.cells.fill((self.written, MotionVector::default()));
        self.keep();
        Ok(())
    }

    fn keep(&mut self) {
        for (i, slot) in self.slots.iter_mut().enumerate() {
            if self.held >> i & 1 == 1 {
                slot.clone_from(&self.cells);
            }
        }
    }

    fn trace(&mut self, info: &FrameInfo) {
        let columns = self.size.0.div_ceil(CELL);
        for block in &info.blocks {
            let (left, top) = (usize::from(block.x), usize::from(block.y));
            let right = (left + usize::from(block.width)).min(self.size.0);
            let bottom = (top + usize::from(block.height)).min(self.size.1);
            for y in (top..bottom).step_by(CELL) {
                for x in (left..right).step_by(CELL) {
                    // Of a divided square the last quarter speaks for all.
                    let mut found =
                        block.predictions(3).into_iter().flatten().map(|(reference, v)| {
                            let slot = usize::from(info.reference_slots[reference.index()]);
                            self.follow(&self.slots[slot], x, y, v)
                        });
                    let found = found.find(|cell| cell.0 != 0);
                    self.cells[y / CELL * columns + x / CELL] = found.unwrap_or_default();
                }
            }
        }
    }

    /// The cell that the centre of the one at (x, y) came from, with the vector added.
    fn follow(&self, from: &[Cell], x: usize, y: usize, vector: MotionVector) -> Cell {
        let place = |at: usize, v: i16, side: usize| {
            let centre = (at + CELL / 2) as i32 + ((i32::from(v) + 4) >> 3);
            centre.clamp(0, side as i32 - 1) as usize / CELL
        };
        let (column, row) = (place(x, vector.x, self.size.0), place(y, vector.y, self.size.1));
        let (source, way) = from[row * self.size.0.div_ceil(CELL) + column];
        match (way.x.checked_add(vector.x), way.y.checked_add(vector.y)) {
            (Some(x), Some(y)) if source != 0 => (source, MotionVector { x, y }),
            _ => Cell::default(),
        }
    }
}
