//! The searches for flow in the references that pictures are made from at present.

use windlass_vp9::Samples;
use windlass_vp9::simd::Isa;

use super::cells::LAYERS;
use super::effort::Effort;
use super::reference::Reference;
use crate::flow::{Flow, FlowSearch};

/// One search for each reference of a picture. A search remembers its last picture, which saves time.
#[derive(Debug, Default)]
pub(crate) struct Searches {
    effort: Effort,
    seats: [Seat; LAYERS],
}

/// A search, and the frame of the reference in which it searches.
#[derive(Debug, Default)]
struct Seat {
    id: Option<u64>,
    search: FlowSearch,
}

impl Searches {
    pub(crate) fn effort(&self) -> Effort {
        self.effort
    }

    /// Sets how thoroughly to search from now on.
    pub(crate) fn set_effort(&mut self, effort: Effort) {
        self.effort = effort;
    }

    /// The flow from a picture to one of the references that it is made from; `None` where the picture is too small.
    pub(crate) fn search(
        &mut self,
        isa: Isa,
        low: Samples<'_>,
        reference: &Reference,
        all: &[Reference],
    ) -> Option<&Flow> {
        let needed = |id: Option<u64>| all.iter().any(|r| Some(r.id) == id);
        let id = Some(reference.id);
        let at = self.seats.iter().position(|seat| seat.id == id);
        let at = at.or_else(|| self.seats.iter().position(|seat| !needed(seat.id)))?;
        let seat = &mut self.seats[at];
        seat.search.set(self.effort.flow(all.last().is_some_and(|r| r.id == reference.id)));
        if seat.id != id {
            let then = Samples::from(&reference.low.planes()[0]);
            seat.id = seat.search.set_reference(then).is_ok().then_some(reference.id);
        }
        seat.search.search(isa, low).ok()
    }
}
