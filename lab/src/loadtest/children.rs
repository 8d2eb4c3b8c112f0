//! Subscribers in processes of their own. Each process runs this program with a part of the clients, and prints their
//! counters as a line of JSON on standard output. A process ends when its standard input does.

use std::io::Read;
use std::process::Stdio;
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::process::Usage;
use super::tally::{Tally, Totals};
use super::visits::Parting;

/// Time between two reports of a process on its clients' counters.
const EVERY: Duration = Duration::from_millis(500);
/// Maximum time for a process to end.
const LEAVE: Duration = Duration::from_secs(8);

/// The part of the subscribers that a process runs, and the run that they belong to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Part {
    /// The process' number, from 0.
    pub number: usize,
    /// The number of processes.
    pub of: usize,
    /// The run's name, by which rooms are named.
    pub run: String,
}

impl FromStr for Part {
    type Err = String;

    fn from_str(text: &str) -> Result<Part, String> {
        let parts = text.split_once('/').and_then(|(number, rest)| {
            let (of, run) = rest.split_once(':')?;
            Some(Part { number: number.parse().ok()?, of: of.parse().ok()?, run: run.to_owned() })
        });
        parts.filter(|p| p.number < p.of).ok_or_else(|| "give NUMBER/OF:RUN".into())
    }
}

impl std::fmt::Display for Part {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}:{}", self.number, self.of, self.run)
    }
}

/// The child processes, and what their clients have counted so far.
pub(super) struct Children {
    children: Vec<Child>,
    totals: Arc<Mutex<Vec<Totals>>>,
}

impl Children {
    /// Starts `of` processes of this program, with its own arguments, on the server at `url`.
    pub(super) fn start(of: usize, run: &str, url: &str) -> Result<Children> {
        let program = std::env::current_exe().context("where this program is")?;
        let totals = Arc::new(Mutex::new(vec![Totals::default(); of]));
        let mut children = Vec::with_capacity(of);
        for number in 0..of {
            let part = Part { number, of, run: run.to_owned() };
            let mut child = Command::new(&program)
                .args(own_arguments(std::env::args().skip(1)))
                .args(["--server", url, "--part", &part.to_string()])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .kill_on_drop(true)
                .process_group(0)
                .spawn()
                .context("starting a process for clients")?;
            let mut lines = BufReader::new(child.stdout.take().context("its output")?).lines();
            let totals = totals.clone();
            tokio::spawn(async move {
                while let Ok(Some(line)) = lines.next_line().await {
                    if let Ok(said) = serde_json::from_str(&line) {
                        totals.lock().unwrap_or_else(PoisonError::into_inner)[number] = said;
                    }
                }
            });
            children.push(child);
        }
        Ok(Children { children, totals })
    }

    /// Adds what the processes' clients have counted.
    pub(super) fn add_to(&self, totals: &mut Totals) {
        let said = self.totals.lock().unwrap_or_else(PoisonError::into_inner);
        said.iter().for_each(|part| totals.add(part));
    }

    /// The CPU time and memory of the processes.
    pub(super) fn usage(&self) -> Vec<Usage> {
        self.children.iter().filter_map(|child| Usage::of(child.id()?)).collect()
    }

    /// Ends the processes.
    pub(super) async fn stop(mut self) {
        for child in &mut self.children {
            drop(child.stdin.take());
        }
        for mut child in self.children {
            if timeout(LEAVE, child.wait()).await.is_err() {
                tracing::warn!("a process of clients did not end and is killed");
                let _ = child.kill().await;
            }
        }
    }
}

/// The arguments of this program that child processes get too.
fn own_arguments(all: impl Iterator<Item = String>) -> Vec<String> {
    let mut kept = Vec::new();
    let mut all = all.take_while(|a| a != "--");
    while let Some(argument) = all.next() {
        match argument.as_str() {
            "--own" | "--json" => {}
            "--server" | "--pid" | "--html" => drop(all.next()),
            a if a.starts_with("--server=") || a.starts_with("--pid=") => {}
            _ => kept.push(argument),
        }
    }
    kept
}

/// In a child process: prints what its clients count until its standard input ends.
pub(super) async fn tell(
    mut clients: JoinSet<()>,
    tally: &Tally,
    stop: watch::Sender<Option<Parting>>,
) -> Result<()> {
    let (over, mut ended) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        let _ = over.send(());
    });
    let mut often = tokio::time::interval(EVERY);
    loop {
        tokio::select! {
            _ = &mut ended => break,
            _ = often.tick() => {
                let totals = tally.lock().clone();
                println!("{}", serde_json::to_string(&totals)?);
            }
        }
    }
    let _ = stop.send(Some(Parting::Goodbye));
    let _ = timeout(LEAVE / 2, async { while clients.join_next().await.is_some() {} }).await;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_read_back_as_it_was_written() {
        let part = Part { number: 1, of: 3, run: "18c-7".into() };
        assert_eq!(part.to_string().parse(), Ok(part));
        for wrong in ["", "1/1:x", "1/2", "a/2:x"] {
            assert!(wrong.parse::<Part>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn processes_of_clients_get_what_is_theirs() {
        let all =
            ["loadtest", "--own", "--layers", "h", "--pid", "7", "--json", "--", "--http", "x"];
        assert_eq!(own_arguments(all.map(String::from).into_iter()), ["loadtest", "--layers", "h"]);
    }
}
