//! A `windlass-lab loadtest` that goes on until it is told to end.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::{Server, lab};

/// A load test under way.
pub(crate) struct Load(Option<Child>);

impl Load {
    /// Starts one on the server, with these options, and waits until `clients` are connected, but no longer than
    /// `limit`.
    pub(crate) fn begin(server: &Server, args: &[&str], clients: f64, limit: Duration) -> Load {
        let mut load = lab();
        load.args(["loadtest", "--server", &format!("http://{}", server.addr), "--json"])
            .args(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut load = Load(Some(load.spawn().expect("a call")));
        let since = Instant::now();
        while server.metric("windlass_sfu_connected") < clients {
            assert!(load.goes_on(), "the call has ended: {}", server.log());
            assert!(since.elapsed() < limit, "the call does not begin: {}", server.log());
            std::thread::sleep(Duration::from_millis(20));
        }
        load
    }

    fn goes_on(&mut self) -> bool {
        self.0.as_mut().is_some_and(|child| child.try_wait().expect("the call").is_none())
    }

    /// Tells it to end, and returns the row of its report.
    pub(crate) fn ended(mut self) -> Value {
        assert!(self.goes_on(), "the call has ended before its test");
        let child = self.0.take().expect("a call");
        let told = Command::new("kill").args(["-s", "INT", &child.id().to_string()]).status();
        assert!(told.expect("kill").success());
        let output = child.wait_with_output().expect("the call's end");
        let log = String::from_utf8_lossy(&output.stderr);
        // As programs end that were interrupted.
        assert_eq!(output.status.code(), Some(130), "{log}");
        let report: Value = serde_json::from_slice(&output.stdout).expect("one JSON object");
        report["rows"][0].clone()
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
