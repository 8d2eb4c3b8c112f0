//! The server's process: its CPU time and memory, and a server started for the test.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::timeout;

use super::janus;
use crate::interrupt;

/// Maximum time for a server to start; it benchmarks its networks first.
const START: Duration = Duration::from_mins(1);
/// Maximum time for a server to stop.
const STOP: Duration = Duration::from_secs(10);
/// Beginning of the line that a server prints when it is ready.
const GREETING: &str = "Windlass is running: ";

/// The CPU time that a process has used so far, and the resources that it holds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Usage {
    /// When the usage was read.
    pub at: Instant,
    /// CPU time, in seconds.
    pub cpu_s: f64,
    /// Resident memory, in bytes.
    pub resident: u64,
    /// Number of open file descriptors.
    pub descriptors: u64,
    /// Number of threads.
    pub threads: u64,
}

impl Usage {
    /// Usage of a process of this machine; `None` where the system does not report it.
    pub(super) fn of(pid: u32) -> Option<Usage> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let ticks = rustix::param::clock_ticks_per_second() as f64;
        Some(Usage {
            at: Instant::now(),
            cpu_s: cpu_ticks(&stat)? as f64 / ticks,
            resident: resident(&status)?,
            descriptors: std::fs::read_dir(format!("/proc/{pid}/fd")).ok()?.count() as u64,
            threads: field(&status, "Threads:")?,
        })
    }
}

/// User and system time in ticks, from fields 14 and 15. Field 2, the name, may hold any characters.
fn cpu_ticks(stat: &str) -> Option<u64> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    Some(fields.next()?.parse::<u64>().ok()? + fields.next()?.parse::<u64>().ok()?)
}

fn resident(status: &str) -> Option<u64> {
    Some(field(status, "VmRSS:")? * 1024)
}

fn field(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

/// A server that was started for the test.
pub(super) struct Own {
    child: Child,
    /// The server's URL.
    pub url: String,
    // The reader is kept, as the server's standard output would be closed otherwise.
    _said: Option<BufReader<ChildStdout>>,
    _folder: Option<tempfile::TempDir>,
}

impl Own {
    /// Starts a server on free ports.
    pub(super) async fn start(options: &[String]) -> Result<Own> {
        let mut child = Command::new(server_program()?)
            .args(["serve", "--http", "127.0.0.1:0", "--udp", "127.0.0.1:0"])
            .args(options)
            .envs(quiet())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            // A terminal's Ctrl-C is for the load test: the server is asked for its figures afterwards.
            .process_group(0)
            .spawn()
            .context("starting a server")?;
        interrupt::end_with_us(child.id());
        let mut said = BufReader::new(child.stdout.take().context("a server's output")?);
        let mut line = String::new();
        let read = timeout(START, said.read_line(&mut line)).await;
        let url = line.trim().strip_prefix(GREETING);
        let (Ok(Ok(_)), Some(url)) = (read, url) else {
            bail!(
                "the server of --own did not start; see above, and try its options with `windlass serve`"
            );
        };
        Ok(Own { url: url.to_owned(), child, _said: Some(said), _folder: None })
    }

    /// Starts the Janus that is installed.
    pub(super) async fn janus() -> Result<Own> {
        let folder = tempfile::tempdir().context("a folder for Janus' configuration")?;
        let (child, url) = janus::start_own(folder.path()).await?;
        Ok(Own { child, url, _said: None, _folder: Some(folder) })
    }

    /// Process id of the server.
    pub(super) fn pid(&self) -> Option<u32> {
        self.child.id()
    }

    /// Asks the server to end, and waits.
    pub(super) async fn stop(mut self) {
        if let Some(pid) = self.pid().and_then(|pid| rustix::process::Pid::from_raw(pid as i32)) {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::INT);
        }
        if timeout(STOP, self.child.wait()).await.is_err() {
            tracing::warn!("the server did not end and is killed");
            let _ = self.child.kill().await;
        }
    }
}

/// The path of the server's program: the one that `WINDLASS_BIN` names, or the one beside this program.
fn server_program() -> Result<PathBuf> {
    if let Some(named) = std::env::var_os("WINDLASS_BIN") {
        return Ok(named.into());
    }
    let beside =
        std::env::current_exe().context("where this program is")?.with_file_name("windlass");
    ensure!(
        beside.exists(),
        "--own finds no server: {} is missing; build it (`cargo build -p windlass`), or name one with WINDLASS_BIN",
        beside.display()
    );
    Ok(beside)
}

/// Log filter of the server: warnings alone, unless `WINDLASS_LOG` is set.
fn quiet() -> Option<(&'static str, &'static str)> {
    std::env::var_os("WINDLASS_LOG").is_none().then_some(("WINDLASS_LOG", "warn"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_read_whatever_its_name() {
        let stat = "42 (a) b (c) S 1 2 3 4 5 6 7 8 9 10 250 150 0 0 20";
        assert_eq!(cpu_ticks(stat), Some(400));
        assert_eq!(resident("Name:\tx\nVmRSS:\t  2048 kB\n"), Some(2 << 20));
        assert_eq!((cpu_ticks("42 (x"), resident("")), (None, None));
    }

    #[test]
    fn our_own_process_has_memory() {
        let usage = Usage::of(std::process::id()).unwrap();
        assert!(usage.resident > 1 << 20 && usage.cpu_s >= 0.0);
        assert!(usage.threads >= 1 && usage.descriptors >= 3);
    }
}
