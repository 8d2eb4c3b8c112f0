//! Datagrams of strangers, and from the addresses of participants whose connections are up or were never: no panic,
//! each counted once, and the call goes on.

#![no_main]
#![allow(missing_docs)]

use std::net::SocketAddr;
use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use windlass_sfu_fuzz::{Bytes, Call};

fuzz_target!(|data: &[u8]| {
    let mut bytes = Bytes(data);
    let Some(options) = bytes.byte() else { return };
    let mut call = if options & 1 == 0 { Call::new() } else { Call::connected() };
    while let (Some(from), Some(datagram)) = (bytes.byte(), bytes.piece()) {
        let stranger = SocketAddr::from(([198, 51, 100, from], 9));
        let source = call.clients.get(usize::from(from)).map_or(stranger, |c| c.address);
        call.core.datagram(call.now, source, datagram);
        call.deliver();
        if from & 0x80 != 0 {
            call.step(Duration::from_millis(u64::from(from & 0x7f)));
        }
    }
    let stats = call.core.stats();
    let c = stats.counters;
    let known = c.datagrams_taken
        + c.datagrams_costly
        + c.datagrams_malformed
        + c.datagrams_unknown
        + c.strangers_limited;
    assert_eq!(c.datagrams_in, known);
    if options & 1 != 0 {
        assert_eq!((stats.participants, stats.connected), (2, 2), "nobody was thrown out");
    }
});
