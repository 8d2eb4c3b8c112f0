//! Selective forwarding of simulcast VP9 and Opus, with taps and anchor channels.
