//! The parsers of the WebRTC stack that a packet meets before ours: STUN, RTP and its extensions, RTCP, descriptions,
//! and the whole receive path of a connection.

#![no_main]
#![allow(missing_docs)]

use libfuzzer_sys::fuzz_target;
use str0m::_internal_test_exports::fuzz;

fuzz_target!(|data: &[u8]| {
    let Some((&which, data)) = data.split_first() else { return };
    match which % 8 {
        0 => drop(fuzz::stun(data)),
        1 => drop(fuzz::rtp_header(data)),
        2 => drop(fuzz::rtp_packet(data)),
        3 => drop(fuzz::rtcp(data)),
        4 => drop(fuzz::sdp_offer(data)),
        5 => drop(fuzz::receive(data)),
        6 => drop(fuzz::receive_register(data)),
        _ => fuzz::rtx_buffer(data),
    }
});
