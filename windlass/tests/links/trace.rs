//! `windlass-lab loadtest --trace`: what its viewer got, tenth by tenth.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::Value;

/// A tenth of a second of one viewer of one track.
#[derive(Debug, Clone)]
pub(crate) struct Tenth {
    /// When it was over.
    pub at: Instant,
    /// What it is given then: a rung, `paused` or nothing yet.
    pub rung: String,
    pub kbps: f64,
    pub shown: u64,
    pub anchors: u64,
    pub anchor_max_ms: Option<f64>,
    pub transit_p95_ms: Option<f64>,
}

impl Tenth {
    fn parse(line: &str) -> Option<Tenth> {
        let line: Value = serde_json::from_str(line).ok()?;
        let rung = line["rungs"].as_object()?.keys().next().cloned().unwrap_or_default();
        Some(Tenth {
            at: Instant::now(),
            rung: if line["paused"].as_u64()? > 0 { "paused".into() } else { rung },
            kbps: line["kbps"].as_f64()?,
            shown: line["shown"].as_u64()?,
            anchors: line["anchors"].as_u64()?,
            anchor_max_ms: line["anchor_max_ms"].as_f64(),
            transit_p95_ms: line["transit_p95_ms"].as_f64(),
        })
    }
}

/// A load test that runs.
pub(crate) struct Running {
    child: Child,
    tenths: Arc<Mutex<Vec<Tenth>>>,
    log: Arc<Mutex<String>>,
}

impl Running {
    /// Starts `command`, to which `loadtest --trace --json` and `args` are added.
    pub(crate) fn start(mut command: Command, args: &[&str]) -> Running {
        let mut child = command
            .args(["loadtest", "--trace", "--json"])
            .args(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("a load test");
        let (tenths, log) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Mutex::new(String::new())));
        let (lines, into) =
            (BufReader::new(child.stderr.take().expect("its log")).lines(), tenths.clone());
        let other = log.clone();
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                match Tenth::parse(&line) {
                    Some(tenth) => into.lock().expect("tenths").push(tenth),
                    None => *other.lock().expect("log") += &(line + "\n"),
                }
            }
        });
        Running { child, tenths, log }
    }

    /// What has come so far.
    pub(crate) fn tenths(&self) -> Vec<Tenth> {
        self.tenths.lock().expect("tenths").clone()
    }

    /// Waits until `enough` of what has come so far; whether it was within `patience`.
    pub(crate) fn wait(&self, patience: Duration, enough: impl Fn(&[Tenth]) -> bool) -> bool {
        let since = Instant::now();
        while !enough(&self.tenths()) {
            if since.elapsed() > patience {
                return false;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        true
    }

    /// Waits for its end: its only row, and all tenths.
    pub(crate) fn ended(mut self) -> (Value, Vec<Tenth>) {
        let mut said = String::new();
        let mut out = self.child.stdout.take().expect("its report");
        out.read_to_string(&mut said).expect("its report");
        let status = self.child.wait().expect("its end");
        assert!(status.success(), "{}", self.log.lock().expect("log"));
        let report: Value = serde_json::from_str(&said).expect("one JSON object");
        (report["rows"][0].clone(), self.tenths())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Where a test fails before its end.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
