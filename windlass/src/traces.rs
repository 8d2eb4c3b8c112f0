//! OpenTelemetry traces, where the program is built with them (feature `otlp`) and the environment names a collector.

use anyhow::Result;
use windlass_types::Anchor;

/// Traces of anchors, or none.
#[derive(Clone, Default)]
pub(crate) struct Traces {
    #[cfg(feature = "otlp")]
    sent: Option<windlass_traces::Traces>,
}

// Without the feature, there is nothing to do and nothing to fail.
#[cfg_attr(not(feature = "otlp"), allow(clippy::unnecessary_wraps, clippy::unused_self))]
impl Traces {
    /// Traces that go to the collector that the environment names.
    pub(crate) fn from_environment() -> Result<Traces> {
        #[cfg(feature = "otlp")]
        return Ok(Traces { sent: windlass_traces::Traces::from_environment()? });
        #[cfg(not(feature = "otlp"))]
        {
            if std::env::var_os("OTEL_EXPORTER_OTLP_ENDPOINT").is_some() {
                tracing::warn!(
                    "nothing is traced: this program was built without the feature `otlp`; build it with `--features otlp`"
                );
            }
            Ok(Traces::default())
        }
    }

    /// Whether there is somebody to send traces to.
    pub(crate) fn wanted(&self) -> bool {
        #[cfg(feature = "otlp")]
        return self.sent.is_some();
        #[cfg(not(feature = "otlp"))]
        false
    }

    /// Traces an anchor that the SFU has taken.
    pub(crate) fn anchor(&self, anchor: &Anchor) {
        #[cfg(feature = "otlp")]
        if let Some(sent) = &self.sent {
            sent.anchor(anchor);
        }
        #[cfg(not(feature = "otlp"))]
        let _ = anchor;
    }

    /// Sends what waits.
    pub(crate) fn stop(&self) {
        #[cfg(feature = "otlp")]
        if let Some(Err(error)) = self.sent.as_ref().map(windlass_traces::Traces::stop) {
            tracing::warn!(%error, "last traces not sent: the collector did not accept them; check the collector at OTEL_EXPORTER_OTLP_ENDPOINT");
        }
    }
}
