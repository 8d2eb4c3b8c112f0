//! What a search for flow allocates: nothing once there has been a picture of the size, and little before that.

#[path = "../vp9/tests/common/counting.rs"]
mod counting;

use counting::{allocations, peak};
use windlass_hybrid::flow::{FlowSearch, FlowSettings};
use windlass_vp9::Plane;
use windlass_vp9::simd::Isa;

fn plane(width: usize, height: usize, seed: usize) -> Plane {
    let samples = (0..width * height).map(|i| (i * 31 + i / width * seed) as u8).collect();
    Plane::from_samples(width, height, samples).expect("the count")
}

#[test]
fn searches_and_new_references_allocate_nothing() {
    let mut search = FlowSearch::new(FlowSettings::default());
    for n in 0..12 {
        let (reference, now) = (plane(161, 91, n / 3), plane(161, 91, n));
        let calls = allocations(|| {
            if n % 3 == 0 {
                search.set_reference((&reference).into()).expect("a legal size");
            }
            search.search(Isa::detect(), (&now).into()).expect("of one size");
        });
        // Two pyramids of now are used in turn.
        assert!(n < 2 || calls == 0, "search {n} allocates {calls} times");
    }
}

#[test]
fn a_search_holds_less_than_a_mebibyte_at_320_by_180() {
    let (reference, now) = (plane(320, 180, 1), plane(320, 180, 2));
    let bytes = peak(|| {
        let mut search = FlowSearch::new(FlowSettings::default());
        search.set_reference((&reference).into()).expect("a legal size");
        for _ in 0..3 {
            search.search(Isa::detect(), (&now).into()).expect("of one size");
        }
    });
    assert!(bytes < 1 << 20, "{bytes} bytes");
}
