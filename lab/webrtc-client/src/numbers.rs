//! Sequence numbers of 16 bits as numbers without end, and which have come before.

/// Number of packets that are remembered, so that a repeated one is known.
const REMEMBERED: u64 = 1024;

/// The numbers of one stream.
#[derive(Debug)]
pub(crate) struct Numbers {
    newest: u64,
    /// Whether the packet came, by its number.
    came: Vec<bool>,
}

impl Numbers {
    /// The numbers of a stream whose first packet has this one.
    pub(crate) fn new(first: u16) -> Numbers {
        // A packet before the first one has a number too.
        let newest = u64::from(first) + (1 << 16);
        Numbers { newest, came: vec![false; REMEMBERED as usize] }
    }

    /// The number without end of a packet; `None` if it came before, or is too old to know.
    pub(crate) fn take(&mut self, number: u16) -> Option<u64> {
        let ahead = i64::from(number.wrapping_sub(self.newest as u16) as i16);
        let seq = self.newest.checked_add_signed(ahead)?;
        if seq > self.newest {
            let skipped = (self.newest + 1..=seq).rev().take(REMEMBERED as usize);
            skipped.for_each(|n| self.came[(n % REMEMBERED) as usize] = false);
            self.newest = seq;
        } else if self.newest - seq >= REMEMBERED {
            return None;
        }
        let came = &mut self.came[(seq % REMEMBERED) as usize];
        (!std::mem::replace(came, true)).then_some(seq)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_go_on_where_they_wrap_around() {
        let mut numbers = Numbers::new(65_534);
        let all: Vec<_> = [65_534, 65_535, 0, 1].into_iter().map(|n| numbers.take(n)).collect();
        let first = all[0].expect("the first");
        assert_eq!(all, (first..first + 4).map(Some).collect::<Vec<_>>());
    }

    #[test]
    fn a_late_packet_is_taken_once() {
        let mut numbers = Numbers::new(7);
        let first = numbers.take(7);
        assert_eq!(numbers.take(10), first.map(|n| n + 3));
        assert_eq!(numbers.take(8), first.map(|n| n + 1));
        assert_eq!((numbers.take(8), numbers.take(7)), (None, None));
        assert_eq!(numbers.take(6), first.map(|n| n - 1), "before the first");
    }

    #[test]
    fn what_is_too_old_is_not_taken() {
        let mut numbers = Numbers::new(0);
        assert!(numbers.take(0).is_some() && numbers.take(2000).is_some());
        assert_eq!(numbers.take(1), None);
        assert!(numbers.take(2000 - 1023).is_some());
    }
}
