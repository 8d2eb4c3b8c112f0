//! Between the SFU and the enhancer: two threads, and a bounded queue that the SFU never waits on.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, bounded};
use windlass_enhancer::Enhancer;
use windlass_sfu::{SfuHandle, TapSink};
use windlass_types::TapInput;

/// Tapped frames that may wait for the enhancer; beyond, the SFU drops and counts them, and each of their streams needs a key frame. Half
/// a second of 250 streams: so long a busy processor may keep the bridge from running, and so long each decoder's own queue is.
const FRAMES: usize = 4096;
/// How long a thread may take to see that it shall stop.
const PATIENCE: Duration = Duration::from_millis(50);

/// The queue into a bridge that is not built yet: the SFU needs it before there is a handle to it.
pub(crate) struct Intake(Receiver<TapInput>);

/// The sink for [`windlass_sfu::Sfu::start`], and the queue behind it.
pub(crate) fn tap() -> (TapSink, Intake) {
    let (sender, queue) = bounded(FRAMES);
    (Arc::new(move |input| sender.try_send(input).is_ok()), Intake(queue))
}

/// Carries frames to the enhancer and its anchors to the SFU until it is dropped.
pub(crate) struct Bridge {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Bridge {
    /// Starts both threads.
    pub(crate) fn start(
        intake: Intake,
        enhancer: &Enhancer,
        sfu: SfuHandle,
    ) -> std::io::Result<Bridge> {
        let mut bridge = Bridge { stop: Arc::default(), threads: Vec::new() };
        let input = enhancer.input();
        bridge.carry("tap-bridge", intake.0, move |frame| input.push(frame))?;
        // What the SFU's queue does not take is dropped and counted there.
        bridge.carry("anchor-bridge", enhancer.output(), move |output| {
            sfu.push(output);
        })?;
        Ok(bridge)
    }

    fn carry<T: Send + 'static>(
        &mut self,
        name: &str,
        from: Receiver<T>,
        mut to: impl FnMut(T) + Send + 'static,
    ) -> std::io::Result<()> {
        let stop = self.stop.clone();
        let run = move || {
            while !stop.load(Ordering::Relaxed) {
                match from.recv_timeout(PATIENCE) {
                    Ok(item) => to(item),
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => break,
                }
            }
        };
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
