//! The searches for flow in the references that pictures are made from at present.

use super::plan::LAYERS;
use super::reference::Reference;
use crate::flow::{Flow, FlowSearch, FlowSettings};
use crate::resample::Samples;
use crate::simd::Isa;

/// As many as a picture needs; each remembers its last picture, which saves time.
#[derive(Debug)]
pub(crate) struct Searches([Seat; LAYERS]);

/// A search, and the frame of the reference in which it searches.
#[derive(Debug)]
struct Seat {
    id: Option<u64>,
    search: FlowSearch,
}

impl Default for Searches {
    fn default() -> Self {
        let seat = || Seat { id: None, search: FlowSearch::new(FlowSettings::default()) };
        Self([(); LAYERS].map(|()| seat()))
    }
}

impl Searches {
    /// The way from a picture to one of the references that it is made from; `None` where it is too small for that.
    pub fn search(
        &mut self,
        isa: Isa,
        low: Samples<'_>,
        reference: &Reference,
        all: &[Reference],
    ) -> Option<&Flow> {
        let needed = |id: Option<u64>| all.iter().any(|r| Some(r.id) == id);
        let id = Some(reference.id);
        let at = self.0.iter().position(|seat| seat.id == id);
        let at = at.or_else(|| self.0.iter().position(|seat| !needed(seat.id)))?;
        let seat = &mut self.0[at];
        if seat.id != id {
            let then = Samples::from(&reference.low.planes()[0]);
            seat.id = seat.search.set_reference(then).is_ok().then_some(reference.id);
        }
        seat.search.search(isa, low).ok()
    }
}
