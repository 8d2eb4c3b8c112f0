//! An offer as a browser would make it: a camera, published.

use std::time::Instant;

use serde_json::{Value, json};
use str0m::Rtc;
use str0m::media::{Direction, MediaKind};

/// The message `offer` with its id, publishing a camera.
pub fn camera(id: u32) -> Value {
    str0m::crypto::from_feature_flags().install_process_default();
    let mut rtc = Rtc::builder().clear_codecs().enable_vp9(true).build(Instant::now());
    let mut api = rtc.sdp_api();
    let mid = api.add_media(MediaKind::Video, Direction::SendOnly, None, None, None);
    let (sdp, _) = api.apply().unwrap();
    let publish = json!([{"mid": mid.to_string(), "kind": "video", "name": "camera"}]);
    json!({"type": "offer", "id": id, "sdp": sdp.to_sdp_string(), "publish": publish})
}
