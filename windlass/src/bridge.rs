//! Connects the SFU and the enhancer by two threads and bounded queues; the SFU never waits.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, bounded, select};
use windlass_enhancer::Enhancer;
use windlass_sfu::EnhancerSinks;
use windlass_types::{EnhancerRequest, StreamId, TapInput};

use crate::deliver::Deliver;

/// Maximum tapped frames that wait for the enhancer. Beyond it, the SFU drops and counts them, and each of their
/// streams needs a key frame. It is half a second of 250 streams. A busy CPU may keep the bridge from running for as
/// long, and each decoder's own queue has the same length.
const FRAMES: usize = 4096;
/// Maximum requests and reports that wait for the enhancer. Beyond it, the SFU drops and counts them. It is the number
/// that the viewers of a full server report in the time that [`FRAMES`] may wait.
const REQUESTS: usize = 4096;
/// Maximum time until a thread sees that it is to stop.
const STOP_INTERVAL: Duration = Duration::from_millis(50);

/// Queues into a bridge that does not exist yet. The SFU needs them before there is a handle to it.
pub(crate) struct Intake {
    inputs: Receiver<TapInput>,
    requests: Receiver<(StreamId, EnhancerRequest)>,
}

/// Creates the sinks for [`windlass_sfu::Sfu::start`], and the queues behind them.
pub(crate) fn intake() -> (EnhancerSinks, Intake) {
    let (to_inputs, inputs) = bounded(FRAMES);
    let (to_requests, requests) = bounded(REQUESTS);
    let sinks = EnhancerSinks {
        tap: Arc::new(move |input| to_inputs.try_send(input).is_ok()),
        requests: Arc::new(move |stream, request| to_requests.try_send((stream, request)).is_ok()),
    };
    (sinks, Intake { inputs, requests })
}

/// The next thing that the enhancer is given.
#[derive(Debug)]
enum Next {
    Input(TapInput),
    /// A request, after the given inputs.
    Request(Vec<TapInput>, StreamId, EnhancerRequest),
    /// Nothing came within [`STOP_INTERVAL`].
    Wait,
    /// The SFU has ended.
    End,
}

impl Intake {
    /// Returns what the enhancer is given next; waits for at most [`STOP_INTERVAL`].
    ///
    /// A request overtakes no input that was sent before it. So a stream that was stopped and is tapped again keeps new
    /// requests, and a still finds its frame. All of these inputs are in the queue when the request has come out of its
    /// own. A few later inputs may also come before the request. That does no harm: a request to a stream that has
    /// stopped has no effect.
    fn next(&self) -> Next {
        select! {
            recv(self.inputs) -> input => input.map_or(Next::End, Next::Input),
            recv(self.requests) -> request => request.map_or(Next::End, |(stream, request)| {
                let before = self.inputs.try_iter().take(self.inputs.len()).collect();
                Next::Request(before, stream, request)
            }),
            default(STOP_INTERVAL) => Next::Wait,
        }
    }
}

/// Carries frames to the enhancer, and anchors to the SFU, until it is dropped.
pub(crate) struct Bridge {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Bridge {
    /// Starts both threads.
    pub(crate) fn start(
        intake: Intake,
        enhancer: &Enhancer,
        to_sfu: Deliver,
    ) -> std::io::Result<Bridge> {
        let mut bridge = Bridge { stop: Arc::default(), threads: Vec::new() };
        let (input, output) = (enhancer.input(), enhancer.output());
        bridge.carry("tap-bridge", move || {
            match intake.next() {
                Next::Input(frame) => input.push(frame),
                Next::Request(before, stream, request) => {
                    for frame in before {
                        input.push(frame);
                    }
                    input.request(stream, request);
                }
                Next::Wait => {}
                Next::End => return false,
            }
            true
        })?;
        bridge.carry("anchor-bridge", move || {
            match output.recv_timeout(STOP_INTERVAL) {
                Ok(output) => to_sfu(output),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return false,
            }
            true
        })?;
        Ok(bridge)
    }

    /// Starts a thread that repeats a step until there is nothing more or the bridge is dropped.
    fn carry(
        &mut self,
        name: &str,
        mut step: impl FnMut() -> bool + Send + 'static,
    ) -> std::io::Result<()> {
        let stop = self.stop.clone();
        let run = move || while !stop.load(Ordering::Relaxed) && step() {};
        self.threads.push(std::thread::Builder::new().name(name.to_owned()).spawn(run)?);
        Ok(())
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: StreamId = StreamId(1);

    #[test]
    fn a_request_overtakes_no_input_that_was_sent_before_it() {
        // Which queue is looked at first is left to chance.
        for _ in 0..50 {
            let (sinks, intake) = intake();
            assert!((sinks.tap)(TapInput::Stop { stream: STREAM }));
            assert!((sinks.requests)(STREAM, EnhancerRequest::Regions(true)));
            let mut stopped = false;
            loop {
                match intake.next() {
                    Next::Input(input) => stopped |= matches!(input, TapInput::Stop { .. }),
                    Next::Request(before, ..) => {
                        assert!(stopped || matches!(before[..], [TapInput::Stop { .. }]));
                        break;
                    }
                    other => panic!("{other:?}"),
                }
            }
        }
    }

    #[test]
    fn requests_find_room_where_frames_do_not() {
        let (sinks, _intake) = intake();
        while (sinks.tap)(TapInput::Gap { stream: STREAM }) {}
        assert!((sinks.requests)(STREAM, EnhancerRequest::KeyAnchor));
    }
}
