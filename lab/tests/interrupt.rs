//! Ctrl-C on real processes: the first ends a measurement with what there is, the second at once.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

const TIMEOUT: Duration = Duration::from_mins(2);
/// The bit of SIGINT in the signal masks of `/proc`.
const SIGINT_BIT: u64 = 1 << 1;

/// A command that runs.
struct Lab {
    child: Child,
    said: Receiver<String>,
    folder: tempfile::TempDir,
}

impl Lab {
    /// Starts it with a page, JSON and what else is given, and waits until it takes Ctrl-C.
    fn start(words: &[&str], more: &[&str]) -> Lab {
        let folder = tempfile::tempdir().unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_windlass-lab"))
            .args(words)
            .args(["--json", "--html"])
            .arg(folder.path().join("page.html"))
            .args(more)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (say, said) = channel();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        std::thread::spawn(move || {
            lines.map_while(Result::ok).for_each(|line| drop(say.send(line)));
        });
        let lab = Lab { child, said, folder };
        let begun = Instant::now();
        while !lab.takes_ctrl_c() {
            assert!(begun.elapsed() < TIMEOUT, "it never listened to Ctrl-C");
            std::thread::sleep(Duration::from_millis(20));
        }
        lab
    }

    fn takes_ctrl_c(&self) -> bool {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()));
        let status = status.unwrap_or_default();
        let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
        let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
        mask.is_some_and(|mask| mask & SIGINT_BIT != 0)
    }

    /// Waits until a line on standard error is as wanted.
    fn until(&self, wanted: impl Fn(&str) -> bool) {
        let begun = Instant::now();
        while begun.elapsed() < TIMEOUT {
            if wanted(&self.said.recv_timeout(TIMEOUT).expect("a line that is wanted")) {
                return;
            }
        }
        panic!("no line was as wanted");
    }

    /// Processes that any of its threads started.
    fn children(&self) -> Vec<String> {
        let threads = std::fs::read_dir(format!("/proc/{}/task", self.child.id())).unwrap();
        let of = |thread: std::fs::DirEntry| {
            std::fs::read_to_string(thread.path().join("children")).unwrap_or_default()
        };
        let children: String = threads.map(|thread| of(thread.unwrap())).collect();
        children.split_whitespace().map(str::to_owned).collect()
    }

    fn ctrl_c(&self) {
        let pid = Pid::from_raw(self.child.id().cast_signed()).unwrap();
        kill_process(pid, Signal::INT).unwrap();
    }

    /// Waits for the end: status, JSON, and page.
    fn end(mut self) -> (Option<i32>, Value, String) {
        let mut printed = String::new();
        self.child.stdout.take().unwrap().read_to_string(&mut printed).unwrap();
        let status = self.child.wait().unwrap();
        let log: Vec<String> = self.said.iter().collect();
        let json = serde_json::from_str(&printed).unwrap_or_else(|_| panic!("{printed}{log:?}"));
        let page = std::fs::read_to_string(self.folder.path().join("page.html")).unwrap();
        (status.code(), json, page)
    }
}

/// That it stopped early, and that JSON and page say so.
fn interrupted((status, json, page): &(Option<i32>, Value, String), unit: &str) -> u64 {
    assert_eq!(*status, Some(130));
    let told = &json["interrupted"];
    let (after, of) = (told["after"].as_u64().unwrap(), told["of"].as_u64().unwrap());
    assert!(after < of && told["unit"] == unit, "{json}");
    let words = format!("interrupted after {after} of {of} {unit}");
    assert!(page.contains(&words), "{words}: {page}");
    after
}

#[test]
fn a_load_test_ends_with_what_was_measured() {
    let words = ["loadtest", "--own", "--publishers", "2", "--ramp", "0.5", "--settle", "0.5"];
    let short = ["--seconds", "600", "--clip-seconds", "1", "--key-every", "1", "--trace"];
    let lab = Lab::start(&[&words[..], &short].concat(), &["--", "--anchor-fraction", "0.1"]);
    lab.until(|line| {
        let line: Value = serde_json::from_str(line).unwrap_or_default();
        line["at_s"].as_f64() > Some(6.0) && line["frames"].as_u64() > Some(0)
    });
    lab.ctrl_c();
    let ended = lab.end();
    let after = interrupted(&ended, "s");
    let row = &ended.1["rows"][0];
    assert!(after >= 2 && row["frames"].as_u64() > Some(20), "{row}");
    let (page, curves) = (&ended.2, ["Latency", "CPU", "Anchors past the budget"]);
    assert!(curves.iter().all(|title| page.contains(title)), "{page}");
}

#[test]
fn a_bench_keeps_the_rows_that_it_has() {
    let links = "3g,lte,dsl,3g,lte,dsl,3g,lte,dsl,3g,lte,dsl";
    let lab = Lab::start(&["bench", "links", "--links", links, "--seconds", "20"], &[]);
    lab.ctrl_c();
    let ended = lab.end();
    let after = interrupted(&ended, "links");
    assert_eq!(ended.1["rows"].as_array().map(|rows| rows.len() as u64), Some(after));
}

#[test]
fn an_evaluation_keeps_the_rows_that_it_has() {
    let clip = windlass_files::clip("LivePortrait__s18.mp4");
    if !clip.exists() {
        windlass_skips::skip(format!("no {}; set WINDLASS_CLIPS", clip.display()));
        return;
    }
    let mut words = vec!["eval", clip.to_str().unwrap(), "--height", "180", "--seconds", "2"];
    words.extend(["--uplink", "60,80,100,120,140,160,180,200", "--methods", "bicubic,lanczos"]);
    let lab = Lab::start(&words, &[]);
    lab.until(|line| line.contains("frames of"));
    lab.ctrl_c();
    let ended = lab.end();
    let after = interrupted(&ended, "rows");
    assert_eq!(ended.1["rows"].as_array().map(|rows| rows.len() as u64), Some(after));
}

#[test]
fn a_second_ctrl_c_ends_at_once_and_leaves_no_server() {
    let words = ["loadtest", "--own", "--publishers", "1", "--seconds", "600", "--trace"];
    let mut lab = Lab::start(&[&words[..], &["--clip-seconds", "1"]].concat(), &[]);
    lab.until(|line| line.contains("at_s"));
    let servers = lab.children();
    assert!(!servers.is_empty(), "there is no server");
    lab.ctrl_c();
    lab.until(|line| line.contains("Ctrl-C again ends at once"));
    lab.ctrl_c();
    assert_eq!(lab.child.wait().unwrap().code(), Some(130));
    let begun = Instant::now();
    let lives = |server: &String| {
        let stat = std::fs::read_to_string(format!("/proc/{server}/stat")).unwrap_or_default();
        stat.contains("windlass") && !stat.contains(") Z ")
    };
    while servers.iter().any(lives) {
        assert!(begun.elapsed() < Duration::from_secs(10), "the server lives on");
        std::thread::sleep(Duration::from_millis(50));
    }
}
