//! The messages of a program that works beside us.

use std::io::Read;
use std::process::ChildStderr;
use std::thread::{self, JoinHandle};

/// Reads a program's standard error until its end. A program whose messages nobody reads waits for that, while we
/// wait for the program.
#[derive(Debug)]
pub(crate) struct Messages(JoinHandle<String>);

impl Messages {
    /// Begins to read.
    pub(crate) fn read(mut stderr: ChildStderr) -> Messages {
        Messages(thread::spawn(move || {
            let mut text = Vec::new();
            // What was read before an error is still worth showing.
            let _ = stderr.read_to_end(&mut text);
            String::from_utf8_lossy(&text).into_owned()
        }))
    }

    /// Waits for the program's end, and returns the last line that says something: why the program has failed.
    pub(crate) fn last_line(self) -> String {
        let text = self.0.join().unwrap_or_default();
        let line = text.lines().rev().find(|line| !line.trim().is_empty());
        line.unwrap_or("it gave no reason").trim().to_owned()
    }
}
