//! The renderer of a server (feature `renderer`), and its metrics.

use windlass_renditions::{Counts, Load, Renderer};
use windlass_sfu::{RendererSink, RenditionLimits, SfuConfig, SfuHandle};
use windlass_signaling::Metric;

/// The renderer; none without an enhancer.
pub(crate) struct ServerRenderer(Option<Renderer>);

impl ServerRenderer {
    /// Opens a renderer for half of the machine's cores, and tells the SFU how much it may ask of it.
    pub(crate) fn open(sfu: &mut SfuConfig, enhances: bool) -> ServerRenderer {
        if !enhances {
            return ServerRenderer(None);
        }
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let load = Load::of_cores(cores);
        let pixels = Renderer::max_pixels(load);
        sfu.renditions = RenditionLimits { max: load.renditions, pixels };
        ServerRenderer(Some(Renderer::new(load, sfu.scale)))
    }

    /// The function that takes what the SFU gives.
    pub(crate) fn sink(&self) -> Option<RendererSink> {
        self.0.as_ref().map(Renderer::sink)
    }

    /// Gives the SFU the packets of renditions.
    pub(crate) fn start(&self, sfu: SfuHandle) {
        if let Some(renderer) = &self.0 {
            renderer.start(Box::new(move |rendered| sfu.push_rendered(rendered)));
        }
    }

    /// Metrics of the renderer.
    pub(crate) fn metrics(&self) -> Vec<Metric> {
        let Some(renderer) = &self.0 else { return Vec::new() };
        let Counts { renditions, pictures, late, failed, faults, dropped } = renderer.counts();
        vec![
            Metric::new("windlass_renditions", renditions),
            Metric::new("windlass_rendition_pictures_total", pictures),
            Metric::new("windlass_rendition_late_total", late),
            Metric::new("windlass_rendition_failed_total", failed),
            Metric::new("windlass_rendition_faults_total", faults),
            Metric::new("windlass_rendition_dropped_total", dropped),
        ]
    }
}
