//! Release builds inject no faults: see `fault_injection.rs`.

use std::time::Duration;

#[inline(always)]
pub(super) fn panic(_: &str, _: &str) {}

#[inline(always)]
pub(super) fn thread<'a>(_: impl Iterator<Item = &'a String>) {}

pub(super) fn connect() -> Option<Duration> {
    None
}
