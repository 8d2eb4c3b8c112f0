//! Offers as browsers, encoders and players make them.

use std::time::Instant;

use serde_json::{Value, json};
use str0m::Rtc;
use str0m::media::{Direction, MediaKind};

/// The message `offer` with its id, publishing a camera.
pub(crate) fn camera(id: u32) -> Value {
    let (sdp, mids) = sdp(&[(MediaKind::Video, Direction::SendOnly)]);
    let publish = json!([{"mid": mids[0], "kind": "video", "name": "camera"}]);
    json!({"type": "offer", "id": id, "sdp": sdp, "publish": publish})
}

/// A session description with these sections, and their mids.
pub(crate) fn sdp(sections: &[(MediaKind, Direction)]) -> (String, Vec<String>) {
    str0m::crypto::from_feature_flags().install_process_default();
    let rtc = Rtc::builder().clear_codecs().enable_vp9(true).enable_opus(true, false);
    let mut rtc = rtc.build(Instant::now());
    let mut api = rtc.sdp_api();
    let mids = sections
        .iter()
        .map(|(kind, direction)| api.add_media(*kind, *direction, None, None, None).to_string());
    let mids = mids.collect();
    let (sdp, _) = api.apply().unwrap();
    (sdp.to_sdp_string(), mids)
}
