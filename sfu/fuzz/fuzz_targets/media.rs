//! What a participant may say over a connection that is up: packets of any payload, number and time in any layer, and
//! messages on data channels. No panic, and the subscriber's connection lives.

#![no_main]
#![allow(missing_docs)]

use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use str0m::media::{KeyframeRequestKind, Rid};
use str0m::rtp::RtpWrite;
use windlass_sfu_fuzz::{Bytes, Call};

fuzz_target!(|data: &[u8]| {
    let mut bytes = Bytes(data);
    let mut call = Call::connected();
    let mut seq = 1000u64;
    let mut timestamp = 0u32;
    while let Some(what) = bytes.byte() {
        match what % 8 {
            6 => {
                let Some(message) = bytes.piece() else { break };
                let client = &mut call.clients[usize::from(what >> 7)];
                let id = client.channels[0];
                if let Some(mut channel) = client.rtc.channel(id) {
                    let _ = channel.write(what & 0x10 == 0, message);
                }
            }
            7 => {
                let mid = call.clients[1].mid;
                let mut api = call.clients[1].rtc.direct_api();
                if let Some(stream) = api.stream_rx_by_mid(mid, None) {
                    stream.request_keyframe(KeyframeRequestKind::Pli);
                }
            }
            layer => {
                let (Some(step), Some(payload)) = (bytes.byte(), bytes.piece()) else { break };
                // Mostly the next one; now and then far ahead or behind.
                seq = match step >> 5 {
                    0 => seq.saturating_sub(u64::from(step)),
                    1 => seq + u64::from(step) * 100,
                    _ => seq + 1,
                };
                timestamp = timestamp.wrapping_add(u32::from(step) << (step & 0x1f));
                let client = &mut call.clients[0];
                let pt = client.rtc.codec_config().find(|p| p.spec().format.profile_id == Some(0));
                let Some(pt) = pt.map(str0m::format::PayloadParams::pt) else { break };
                let rid = Rid::from(["q", "h", "f"][usize::from(layer % 3)]);
                let mut api = client.rtc.direct_api();
                if let Some(stream) = api.stream_tx_by_mid(client.mid, Some(rid)) {
                    let write =
                        RtpWrite::new(pt, seq.into(), timestamp, call.now, payload.to_vec());
                    stream.write_rtp(write.marker(what & 0x40 != 0));
                }
            }
        }
        call.step(Duration::from_millis(u64::from(what >> 3)));
    }
    call.step(Duration::from_millis(20));
    assert_eq!(call.core.stats().connected, 2, "nobody was thrown out");
});
