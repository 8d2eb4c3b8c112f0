//! Dense flow: six bytes (width, height, stride, iterations, and where and what of the picture changes), then samples
//! of the reference and of now, repeated as often as it takes. The scalar and the fastest kernels find the same
//! vectors, and a search that remembers the last one finds what a new one finds.

#![no_main]
#![allow(missing_docs)]

use libfuzzer_sys::fuzz_target;
use windlass_hybrid::flow::{FlowSearch, FlowSettings};
use windlass_vp9::Plane;
use windlass_vp9::simd::Isa;

fuzz_target!(|data: &[u8]| {
    let Some((head, samples)) = data.split_first_chunk::<6>() else { return };
    let [width, height, stride, iterations, changed, to] = *head;
    let (width, height) = (usize::from(width), usize::from(height));
    let (a, b) = samples.split_at(samples.len() / 2);
    let plane = |v: &[u8]| {
        let samples = v.iter().copied().cycle().take(width * height).collect();
        Plane::from_samples(width, height, samples)
    };
    let (Some(reference), Some(mut now)) = (plane(a), plane(b)) else { return };
    let settings = FlowSettings { stride: stride.into(), iterations: iterations.into() };
    let found = |isa: Isa, now: &Plane| {
        let mut search = FlowSearch::new(settings);
        search.set_reference((&reference).into())?;
        search.search(isa, now.into()).cloned()
    };
    let mut search = FlowSearch::new(settings);
    if search.set_reference((&reference).into()).is_err() {
        assert!(found(Isa::SCALAR, &now).is_err());
        return;
    }
    for _ in 0..2 {
        let defined = found(Isa::SCALAR, &now);
        assert_eq!(found(Isa::detect(), &now), defined);
        assert_eq!(search.search(Isa::detect(), (&now).into()).cloned(), defined);
        let first = usize::from(changed) * (width * height) / 256;
        now.samples_mut()[first..].iter_mut().take(width + 9).for_each(|s| *s = to);
    }
});
