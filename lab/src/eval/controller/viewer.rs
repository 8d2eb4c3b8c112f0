//! A subscriber, and the server's tap beside it: the picture at each camera frame, and the measurements.
//!
//! The full layer is shown as it is; smaller ones are rebuilt by the hybrid decoder's filters. For a frame that was
//! not sent, the picture before it is shown. In: the publisher's frames. Out: pictures in full size, and the meter's
//! sums.

use anyhow::{Context, Result};
use windlass_enhancer::control::{Meter, divisor};
use windlass_hybrid::{HybridConfig, HybridDecoder};
use windlass_types::Layer;
use windlass_vp9::{Decoder, Picture};

use crate::eval::cpu_clock::CpuClock;

/// Decodes and shows one track.
#[derive(Default)]
pub(super) struct Viewer {
    low: Option<(Layer, Low)>,
    shown: Picture,
    /// The meter, with which the server measures.
    pub meter: Meter,
    /// CPU time of measuring.
    pub metering: CpuClock,
}

/// The decoder of a low layer, and what enlarges its pictures to the camera's size.
struct Low {
    decoder: Decoder,
    hybrid: Option<Box<HybridDecoder>>,
}

impl Viewer {
    /// The picture that is shown at camera frame `n`, of which `sent` came on `layer`.
    pub(super) fn frame(
        &mut self,
        n: usize,
        layer: Layer,
        sent: Option<&[u8]>,
    ) -> Result<&Picture> {
        if self.low.as_ref().is_none_or(|(of, _)| *of != layer) {
            self.low = Some((layer, Low::new(layer)));
        }
        let Some(((_, low), data)) = self.low.as_mut().zip(sent) else { return Ok(&self.shown) };
        let frames = low.decoder.decode(data).with_context(|| format!("decoding frame {n}"))?;
        let frame = frames.iter().rfind(|frame| frame.info.shown);
        let frame = frame.with_context(|| format!("frame {n} shows no picture"))?;
        self.metering.measure(|| self.meter.low(layer, &frame.info, &frame.picture));
        match &mut low.hybrid {
            None => frame.picture.copy_to(&mut self.shown),
            Some(hybrid) => {
                hybrid
                    .push_frame(n as u32, data)
                    .with_context(|| format!("rebuilding frame {n}"))?;
                let high = hybrid.hr().with_context(|| format!("frame {n} shows no picture"))?;
                self.shown.clone_from(high);
            }
        }
        Ok(&self.shown)
    }
}

impl Low {
    fn new(layer: Layer) -> Low {
        let rebuilt = |scale| HybridDecoder::new(HybridConfig { scale, ..HybridConfig::default() });
        let scale = Some(divisor(layer)).filter(|&scale| scale > 1);
        Low { decoder: Decoder::new(), hybrid: scale.map(|scale| Box::new(rebuilt(scale))) }
    }
}
