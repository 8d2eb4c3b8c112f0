//! What the enhancer and workers give, on its way to the SFU.

use std::sync::Arc;

use windlass_sfu::SfuHandle;
use windlass_types::EnhancerOutput;

use crate::traces::Traces;

/// Takes an output of the enhancer. Never waits.
pub(crate) type Deliver = Arc<dyn Fn(EnhancerOutput) + Send + Sync>;

/// Returns the function that gives outputs to the SFU, and traces the anchors that it takes.
pub(crate) fn deliver(sfu: SfuHandle, traces: Traces) -> Deliver {
    Arc::new(move |output| {
        // A clone shares the payload.
        let anchor = match &output {
            EnhancerOutput::Anchor(anchor) if traces.wanted() => Some(anchor.clone()),
            _ => None,
        };
        // What the SFU's queue does not take is dropped and counted there.
        if let (true, Some(anchor)) = (sfu.push(output), anchor) {
            traces.anchor(&anchor);
        }
    })
}
