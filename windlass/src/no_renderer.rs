//! A server that is built without the renderer (feature `renderer`).

#![allow(clippy::unused_self)]

use windlass_sfu::{RendererSink, SfuConfig, SfuHandle};
use windlass_signaling::Metric;

/// No renderer.
pub(crate) struct ServerRenderer;

impl ServerRenderer {
    /// Opens none.
    pub(crate) fn open(_: &mut SfuConfig, _: bool) -> ServerRenderer {
        ServerRenderer
    }

    /// Nothing takes what the SFU gives.
    pub(crate) fn sink(&self) -> Option<RendererSink> {
        None
    }

    /// Starts nothing.
    pub(crate) fn start(&self, _: SfuHandle) {}

    /// There are no metrics.
    pub(crate) fn metrics(&self) -> Vec<Metric> {
        Vec::new()
    }
}
