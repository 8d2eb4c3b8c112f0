//! Contexts that depend on the references of the two neighbours (specification §9.3.3: `is_inter`,
//! `comp_mode`, `comp_ref`, `single_ref_p1`, `single_ref_p2`, `interp_filter`).

/// A neighbour's fields from which contexts are made.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Neighbour {
    /// First and second reference: 0 intra or none, 1 last, 2 golden, 3 altref.
    pub(crate) references: [u8; 2],
    pub(crate) filter: u8,
    pub(crate) transform: u8,
    pub(crate) skip: bool,
}

impl Neighbour {
    fn intra(self) -> bool {
        self.references[0] == 0
    }

    fn single(self) -> bool {
        self.references[1] == 0
    }

    fn has(self, reference: u8) -> bool {
        self.references[0] == reference || (self.references[1] == reference)
    }
}

/// The neighbours above and to the left of a block, where there are any.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Neighbours {
    pub(crate) above: Option<Neighbour>,
    pub(crate) left: Option<Neighbour>,
}

/// Value of `ref_frame` (`read_ref_frames`, §6.4.17): the last reference.
const LAST: u8 = 1;
/// Value of `ref_frame`: the golden reference.
const GOLDEN: u8 = 2;
/// Value of `ref_frame`: the alternate reference.
const ALTREF: u8 = 3;

impl Neighbours {
    /// The neighbours that exist, the first one first: none, one or both.
    fn known(&self) -> (Option<Neighbour>, Option<Neighbour>) {
        match (self.above, self.left) {
            (None, left) => (left, None),
            both => both,
        }
    }

    pub(crate) fn skip(&self) -> usize {
        let skip = |n: Option<Neighbour>| usize::from(n.is_some_and(|n| n.skip));
        skip(self.above) + skip(self.left)
    }

    /// Context of `tx_size`, for blocks whose largest transform is `largest`.
    pub(crate) fn transform(&self, largest: u8) -> usize {
        let size = |n: Option<Neighbour>| n.map(|n| if n.skip { largest } else { n.transform });
        let (above, left) = match (size(self.above), size(self.left)) {
            (Some(a), Some(l)) => (a, l),
            (Some(one), None) | (None, Some(one)) => (one, one),
            (None, None) => (largest, largest),
        };
        usize::from(above + left > largest)
    }

    pub(crate) fn is_inter(&self) -> usize {
        match self.known() {
            (Some(a), Some(l)) => match (a.intra(), l.intra()) {
                (true, true) => 3,
                (false, false) => 0,
                _ => 1,
            },
            (Some(one), None) => 2 * usize::from(one.intra()),
            _ => 0,
        }
    }

    pub(crate) fn filter(&self) -> usize {
        let filter = |n: Option<Neighbour>| n.filter(|n| !n.intra()).map(|n| usize::from(n.filter));
        match (filter(self.left), filter(self.above)) {
            (Some(left), Some(above)) if left == above => left,
            (Some(one), None) | (None, Some(one)) => one,
            _ => 3,
        }
    }

    /// Context of `comp_mode`.
    pub(crate) fn compound(&self, fixed: u8) -> usize {
        match self.known() {
            (Some(a), Some(l)) => match (a.single(), l.single()) {
                (true, true) => {
                    usize::from((a.references[0] == fixed) ^ (l.references[0] == fixed))
                }
                (true, false) => 2 + usize::from(a.references[0] == fixed || a.intra()),
                (false, true) => 2 + usize::from(l.references[0] == fixed || l.intra()),
                (false, false) => 4,
            },
            (Some(one), None) if one.single() => usize::from(one.references[0] == fixed),
            (Some(_), None) => 3,
            _ => 1,
        }
    }

    /// Context of `comp_ref`. `place` is the index of the variable reference of a compound block.
    pub(crate) fn compound_reference(&self, fixed: u8, variable: [u8; 2], place: usize) -> usize {
        let var = |n: &Neighbour| if n.single() { n.references[0] } else { n.references[place] };
        match self.known() {
            (Some(a), Some(l)) => {
                if a.intra() && l.intra() {
                    return 2;
                }
                if a.intra() || l.intra() {
                    let edge = if a.intra() { l } else { a };
                    return 1 + 2 * usize::from(var(&edge) != variable[1]);
                }
                let (va, vl) = (var(&a), var(&l));
                if va == vl && variable[1] == va {
                    0
                } else if a.single() && l.single() {
                    if (va == fixed && vl == variable[0]) || (vl == fixed && va == variable[0]) {
                        4
                    } else if va == vl {
                        3
                    } else {
                        1
                    }
                } else if a.single() || l.single() {
                    let (single, compound) = if a.single() { (va, vl) } else { (vl, va) };
                    if compound == variable[1] && single != variable[1] {
                        1
                    } else if single == variable[1] && compound != variable[1] {
                        2
                    } else {
                        4
                    }
                } else if va == vl {
                    4
                } else {
                    2
                }
            }
            (Some(one), None) => {
                if one.intra() {
                    2
                } else if one.single() {
                    3 * usize::from(one.references[0] != variable[1])
                } else {
                    4 * usize::from(one.references[place] != variable[1])
                }
            }
            _ => 2,
        }
    }

    /// Context of `single_ref_p1`, which tells the last reference from the others.
    pub(crate) fn single_first(&self) -> usize {
        match self.known() {
            (Some(a), Some(l)) => {
                if a.intra() && l.intra() {
                    return 2;
                }
                if a.intra() || l.intra() {
                    let edge = if a.intra() { l } else { a };
                    return if edge.single() {
                        4 * usize::from(edge.references[0] == LAST)
                    } else {
                        1 + usize::from(edge.has(LAST))
                    };
                }
                match (a.single(), l.single()) {
                    (false, false) => 1 + usize::from(a.has(LAST) || l.has(LAST)),
                    (true, true) => {
                        2 * usize::from(a.references[0] == LAST)
                            + 2 * usize::from(l.references[0] == LAST)
                    }
                    (a_single, _) => {
                        let (single, compound) = if a_single { (a, l) } else { (l, a) };
                        let in_compound = usize::from(compound.has(LAST));
                        if single.references[0] == LAST { 3 + in_compound } else { in_compound }
                    }
                }
            }
            (Some(one), None) => {
                if one.intra() {
                    2
                } else if one.single() {
                    4 * usize::from(one.references[0] == LAST)
                } else {
                    1 + usize::from(one.has(LAST))
                }
            }
            _ => 2,
        }
    }

    /// Context of `single_ref_p2`, which tells the golden reference from the alternate one.
    pub(crate) fn single_second(&self) -> usize {
        match self.known() {
            (Some(a), Some(l)) => {
                if a.intra() && l.intra() {
                    return 2;
                }
                if a.intra() || l.intra() {
                    let edge = if a.intra() { l } else { a };
                    return if !edge.single() {
                        1 + 2 * usize::from(edge.has(GOLDEN))
                    } else if edge.references[0] == LAST {
                        3
                    } else {
                        4 * usize::from(edge.references[0] == GOLDEN)
                    };
                }
                let (a0, l0) = (a.references[0], l.references[0]);
                match (a.single(), l.single()) {
                    (false, false) => {
                        if a.references == l.references {
                            3 * usize::from(a.has(GOLDEN))
                        } else {
                            2
                        }
                    }
                    (true, true) => {
                        if a0 == LAST && l0 == LAST {
                            3
                        } else if a0 == LAST || l0 == LAST {
                            4 * usize::from(if a0 == LAST { l0 } else { a0 } == GOLDEN)
                        } else {
                            2 * usize::from(a0 == GOLDEN) + 2 * usize::from(l0 == GOLDEN)
                        }
                    }
                    (a_single, _) => {
                        let (single, compound) = if a_single { (a, l) } else { (l, a) };
                        let in_compound = usize::from(compound.has(GOLDEN));
                        match single.references[0] {
                            GOLDEN => 3 + in_compound,
                            ALTREF => in_compound,
                            _ => 1 + 2 * in_compound,
                        }
                    }
                }
            }
            (Some(one), None) => {
                if one.intra() || (one.references[0] == LAST && one.single()) {
                    2
                } else if one.single() {
                    4 * usize::from(one.references[0] == GOLDEN)
                } else {
                    3 * usize::from(one.has(GOLDEN))
                }
            }
            _ => 2,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[allow(clippy::unnecessary_wraps)] // what the fields hold
    fn neighbour(first: u8, second: u8) -> Option<Neighbour> {
        Some(Neighbour { references: [first, second], ..Neighbour::default() })
    }

    #[test]
    fn no_neighbour_gives_the_middle_contexts() {
        let n = Neighbours::default();
        assert_eq!((n.skip(), n.is_inter(), n.filter()), (0, 0, 3));
        assert_eq!((n.compound(3), n.compound_reference(3, [1, 2], 0)), (1, 2));
        assert_eq!((n.single_first(), n.single_second()), (2, 2));
        assert_eq!(n.transform(3), 1);
    }

    #[test]
    fn the_same_neighbour_above_or_to_the_left_gives_the_same_contexts() {
        for one in [neighbour(0, 0), neighbour(1, 0), neighbour(2, 0), neighbour(1, 3)] {
            let above = Neighbours { above: one, left: None };
            let left = Neighbours { above: None, left: one };
            assert_eq!(above.single_first(), left.single_first());
            assert_eq!(above.single_second(), left.single_second());
            assert_eq!(above.compound(3), left.compound(3));
            assert_eq!(above.is_inter(), left.is_inter());
        }
    }

    #[test]
    fn two_last_neighbours_make_last_likely() {
        let n = Neighbours { above: neighbour(1, 0), left: neighbour(1, 0) };
        assert_eq!((n.single_first(), n.single_second()), (4, 3));
    }
}
