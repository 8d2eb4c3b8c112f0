//! The last rows of a layer's input, in a ring.

/// Number of rows that are kept: more than a window has, and a power of two.
const ROWS: usize = 4;

/// A ring of rows, which are found by their number. Rows outside the picture are zero.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ring {
    /// Width of a row in samples, and number of channels of each sample.
    shape: (usize, usize),
    /// Length of a row in numbers, with the samples of zeros around it.
    len: usize,
    rows: Vec<i16>,
    zero: Vec<i16>,
}

impl Ring {
    /// Makes the rows `width` samples long, with `channels` channels each.
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

    /// The rows above, at and below `y`, in a picture of `height` rows.
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
