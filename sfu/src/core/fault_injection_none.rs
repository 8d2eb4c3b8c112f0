//! Release builds inject no faults: see `fault_injection.rs`.

use std::time::Duration;

#[inline(always)]
pub(crate) fn panic(_: &str, _: &str) {}

#[inline(always)]
pub(crate) fn thread<'a>(_: impl Iterator<Item = &'a String>) {}

pub(crate) fn connect() -> Option<Duration> {
    None
}
