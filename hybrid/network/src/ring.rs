//! The last rows of a layer's input.

/// Rows that are kept: more than a window has, and a power of two.
const ROWS: usize = 4;

/// Rows by their number; those outside the picture are zero.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ring {
    /// Samples of a row, and the channels of each.
    shape: (usize, usize),
    /// Numbers of a row, with the samples of zeros around it.
    len: usize,
    rows: Vec<i16>,
    zero: Vec<i16>,
}

impl Ring {
    /// Rows of so many samples of so many channels.
    pub(crate) fn resize(&mut self, width: usize, channels: usize) {
        if (width, channels) != self.shape {
            self.shape = (width, channels);
            self.len = (width + 2) * channels;
            // The samples before and behind a row are never written.
            for (numbers, count) in [(&mut self.rows, ROWS * self.len), (&mut self.zero, self.len)]
            {
                numbers.clear();
                numbers.resize(count, 0);
            }
        }
    }

    /// The rows above, at and below `y`, of a picture of so many rows.
    pub(crate) fn around(&self, y: usize, height: usize) -> [&[i16]; 3] {
        let row = |y: usize| &self.rows[y % ROWS * self.len..][..self.len];
        let above = if y == 0 { &self.zero[..] } else { row(y - 1) };
        let below = if y + 1 < height { row(y + 1) } else { &self.zero[..] };
        [above, row(y), below]
    }

    /// Row `y`, to be written between its first and last sample.
    pub(crate) fn row_mut(&mut self, y: usize) -> &mut [i16] {
        &mut self.rows[y % ROWS * self.len..][..self.len]
    }
}
