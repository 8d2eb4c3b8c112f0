//! The Windlass server.
fn main() {}
