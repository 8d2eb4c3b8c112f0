//! Release builds inject no faults: see `fault_injection.rs`.

use std::time::Duration;

#[inline(always)]
pub fn panic(_: &str, _: &str) {}

#[inline(always)]
pub fn thread<'a>(_: impl Iterator<Item = &'a String>) {}

pub fn connect() -> Option<Duration> {
    None
}
