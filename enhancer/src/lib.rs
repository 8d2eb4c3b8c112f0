//! Decode, schedule, super-resolve and encode anchors for every tapped publisher.
