//! A global allocator that counts for each thread by itself, so that tests may run side by side.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static COUNTERS: Cell<Counters> = const { Cell::new(Counters { calls: 0, live: 0, peak: 0 }) };
}

/// What a thread has allocated.
#[derive(Clone, Copy)]
struct Counters {
    /// Allocations and growths.
    calls: u64,
    /// Bytes allocated and not given back.
    live: i64,
    /// The most that `live` has been.
    peak: i64,
}

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Notes a change of the bytes in use; a thread that is ending is not counted.
fn note(calls: u64, bytes: i64) {
    let _ = COUNTERS.try_with(|counters| {
        let mut c = counters.get();
        c.calls += calls;
        c.live += bytes;
        c.peak = c.peak.max(c.live);
        counters.set(c);
    });
}

// SAFETY: every method hands its arguments to the system's allocator and returns its result; the
// counters are plain cells that allocate nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note(1, layout.size() as i64);
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        note(1, layout.size() as i64);
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, p: *mut u8, layout: Layout) {
        note(0, -(layout.size() as i64));
        unsafe { System.dealloc(p, layout) }
    }

    unsafe fn realloc(&self, p: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        note(1, size as i64 - layout.size() as i64);
        unsafe { System.realloc(p, layout, size) }
    }
}

/// Allocations of this thread while `work` ran.
pub(crate) fn allocations(work: impl FnOnce()) -> u64 {
    let before = COUNTERS.get().calls;
    work();
    COUNTERS.get().calls - before
}

/// The most bytes that `work` held at once beyond what was held before it.
pub(crate) fn peak(work: impl FnOnce()) -> i64 {
    let before = COUNTERS.get();
    COUNTERS.set(Counters { peak: before.live, ..before });
    work();
    COUNTERS.get().peak - before.live
}
