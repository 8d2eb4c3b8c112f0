//! A small generator for tests, so that cases repeat.

pub(crate) struct Random(pub u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 ^ (self.0 >> 29)
    }

    pub(crate) fn below(&mut self, n: usize) -> usize {
        (self.next() >> 33) as usize % n
    }

    /// Samples of several kinds: noise, only black and white, flat extremes.
    pub(crate) fn samples(&mut self, count: usize) -> Vec<u8> {
        let kind = self.below(4);
        (0..count)
            .map(|_| match kind {
                0 | 1 => self.below(256) as u8,
                2 => self.below(2) as u8 * 255,
                _ => u8::from(self.below(9) > 0) * 255,
            })
            .collect()
    }
}
