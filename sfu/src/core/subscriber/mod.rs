//! What a subscriber receives: its downlink, its streams of packets, and its anchors.

pub(super) mod anchor_channel;
pub(super) mod anchor_pacer;
pub(super) mod anchor_reports;
pub(super) mod audio;
pub(super) mod downlink;
pub(super) mod recent;
pub(super) mod rewriter;
pub(super) mod slot;
pub(super) mod spatial;
pub(super) mod subscription;
pub(super) mod thinning;
pub(super) mod view;
pub(super) mod viewer_network;
pub(super) mod ways;
