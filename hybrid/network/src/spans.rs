//! The samples of each row that must be made.

use std::ops::Range;

/// For each row of a picture, the range of samples that must be made: from the first to behind the last. It is empty
/// where there are none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Spans {
    width: usize,
    rows: Vec<Range<usize>>,
}

impl Spans {
    /// Sets the spans for a picture of this size. `row` gives the span of each row, which may reach beyond the
    /// picture.
    pub(crate) fn fill(
        &mut self,
        width: usize,
        height: usize,
        row: impl Fn(usize) -> Range<usize>,
    ) {
        self.width = width;
        self.rows.clear();
        self.rows.extend((0..height).map(|y| {
            let Range { start, end } = row(y);
            start.min(width)..end.min(width)
        }));
    }

    /// Sets the spans to those of `other`, enlarged by `by` samples in each direction.
    pub(crate) fn widen(&mut self, other: &Self, by: usize) {
        let height = other.rows.len();
        let around = |y: usize| {
            let near = &other.rows[y.saturating_sub(by)..(y + by + 1).min(height)];
            let near = near.iter().filter(|span| !span.is_empty());
            let span = near.cloned().reduce(|a, b| a.start.min(b.start)..a.end.max(b.end));
            span.map_or(0..0, |span| span.start.saturating_sub(by)..span.end + by)
        };
        self.fill(other.width, height, around);
    }

    /// The span of a row.
    pub(crate) fn row(&self, y: usize) -> Range<usize> {
        self.rows[y].clone()
    }

    /// Whether no sample is to be made.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.iter().all(Range::is_empty)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widening_takes_rows_and_samples_around() {
        let mut spans = Spans::default();
        spans.fill(10, 5, |y| if y == 1 { 4..6 } else { 0..0 });
        let mut wide = Spans::default();
        wide.widen(&spans, 2);
        let rows: Vec<_> = (0..5).map(|y| wide.row(y)).collect();
        assert_eq!(rows, [2..8, 2..8, 2..8, 2..8, 0..0]);
        wide.widen(&wide.clone(), 4);
        assert_eq!(wide.row(4), 0..10);
        assert!(!wide.is_empty());
    }
}
