//! Tag trees (ITU-T T.800, B.10.2): a grid of small numbers, encoded by the least of ever larger groups.

/// A grid of numbers that encoder and decoder build bit by bit.
#[derive(Debug)]
pub(crate) struct TagTree {
    /// Number of columns and index of the first node of each level, the leaves first.
    levels: Vec<(usize, usize)>,
    nodes: Vec<Node>,
}

#[derive(Debug, Clone, Copy)]
struct Node {
    /// The least value of the leaves below. In a decoder it is unknown until it has been read.
    value: u32,
    /// The lower bound of the value that is known so far.
    low: u32,
    /// Whether the value itself has been written.
    coded: bool,
}

impl TagTree {
    /// A tree whose values are unknown.
    pub(crate) fn new(columns: usize, rows: usize) -> Self {
        let (mut levels, mut total) = (Vec::new(), 0);
        let (mut across, mut down) = (columns.max(1), rows.max(1));
        loop {
            levels.push((across, total));
            total += across * down;
            if across * down == 1 {
                break;
            }
            (across, down) = (across.div_ceil(2), down.div_ceil(2));
        }
        let unknown = Node { value: u32::MAX, low: 0, coded: false };
        Self { levels, nodes: vec![unknown; total] }
    }

    /// A tree with the values of the leaves, row by row.
    pub(crate) fn of(columns: usize, rows: usize, leaf: impl Fn(usize, usize) -> u32) -> Self {
        let mut tree = Self::new(columns, rows);
        for y in 0..rows {
            for x in 0..columns {
                let value = leaf(x, y);
                for level in 0..tree.levels.len() {
                    let at = tree.node(x, y, level);
                    tree.nodes[at].value = tree.nodes[at].value.min(value);
                }
            }
        }
        tree
    }

    fn node(&self, x: usize, y: usize, level: usize) -> usize {
        let (across, first) = self.levels[level];
        first + (y >> level) * across + (x >> level)
    }

    /// Writes the bits that say whether a leaf is less than `threshold`.
    pub(crate) fn write(&mut self, x: usize, y: usize, threshold: u32, mut put: impl FnMut(bool)) {
        let mut low = 0;
        for level in (0..self.levels.len()).rev() {
            let at = self.node(x, y, level);
            let node = &mut self.nodes[at];
            node.low = node.low.max(low);
            while node.low < threshold && !node.coded {
                node.coded = node.low >= node.value;
                put(node.coded);
                node.low += u32::from(!node.coded);
            }
            low = node.low;
        }
    }

    /// Reads whether a leaf is less than `threshold`.
    pub(crate) fn read<E>(
        &mut self,
        x: usize,
        y: usize,
        threshold: u32,
        mut get: impl FnMut() -> Result<bool, E>,
    ) -> Result<bool, E> {
        let mut low = 0;
        for level in (0..self.levels.len()).rev() {
            let at = self.node(x, y, level);
            let node = &mut self.nodes[at];
            node.low = node.low.max(low);
            while node.low < threshold && node.value == u32::MAX {
                if get()? {
                    node.value = node.low;
                } else {
                    node.low += 1;
                }
            }
            low = node.low;
        }
        Ok(self.nodes[self.node(x, y, 0)].value < threshold)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn values_come_back(
            (columns, rows, values) in (1usize..12, 1usize..12).prop_flat_map(|(c, r)| {
                (Just(c), Just(r), proptest::collection::vec(0u32..9, c * r))
            }),
        ) {
            let mut bits = Vec::new();
            let mut writer = TagTree::of(columns, rows, |x, y| values[y * columns + x]);
            for (at, &value) in values.iter().enumerate() {
                let (x, y) = (at % columns, at / columns);
                writer.write(x, y, 3, |bit| bits.push(bit));
                writer.write(x, y, value + 1, |bit| bits.push(bit));
            }
            let mut bits = bits.into_iter();
            let mut next = || bits.next().ok_or(());
            let mut reader = TagTree::new(columns, rows);
            for (at, &value) in values.iter().enumerate() {
                let (x, y) = (at % columns, at / columns);
                prop_assert_eq!(reader.read(x, y, 3, &mut next), Ok(value < 3));
                let mut found = 0;
                while !reader.read(x, y, found + 1, &mut next).expect("as many as were written") {
                    found += 1;
                }
                prop_assert_eq!(found, value);
            }
            prop_assert!(next().is_err());
        }
    }
}
