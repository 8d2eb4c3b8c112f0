//! Running other programs, with errors that say which one failed and what to do.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::root;

/// When the first step began.
static BEGUN: OnceLock<Instant> = OnceLock::new();

/// Prints what happens next and how long all steps before it took. It goes to standard error, so that output can be
/// piped.
pub(crate) fn step(sentence: &str) {
    let seconds = BEGUN.get_or_init(Instant::now).elapsed().as_secs();
    eprintln!("\n==> {:02}:{:02} {sentence}.", seconds / 60, seconds % 60);
}

/// One program with its arguments, run in the project's root unless told otherwise.
pub(crate) struct Cmd {
    program: OsString,
    command: Command,
}

impl Cmd {
    /// A program by name or path.
    pub(crate) fn new(program: impl AsRef<OsStr>) -> Self {
        let mut command = Command::new(program.as_ref());
        command.current_dir(root()).stdin(Stdio::null());
        Cmd { program: program.as_ref().to_owned(), command }
    }

    /// The cargo that runs this program.
    pub(crate) fn cargo<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Self {
        Cmd::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())).args(args)
    }

    /// Adds an argument.
    pub(crate) fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.command.arg(arg);
        self
    }

    /// Adds arguments.
    pub(crate) fn args<S: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        self.command.args(args);
        self
    }

    /// Sets an environment variable.
    pub(crate) fn env(mut self, key: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(key, value);
        self
    }

    /// Runs in a folder below the root.
    pub(crate) fn dir(mut self, dir: impl AsRef<Path>) -> Self {
        self.command.current_dir(root().join(dir));
        self
    }

    /// Removes an environment variable.
    pub(crate) fn env_remove(mut self, key: &str) -> Self {
        self.command.env_remove(key);
        self
    }

    /// Runs the program; anything but success is an error.
    pub(crate) fn run(mut self) -> Result<()> {
        let mut name = Path::new(&self.program).display().to_string();
        let status = self.command.status().with_context(|| {
            format!("`{name}` could not be started; is it installed and on PATH?")
        })?;
        if !status.success() {
            for arg in self.command.get_args() {
                name.push(' ');
                name.push_str(&arg.to_string_lossy());
            }
            bail!("`{name}` failed ({status}); its output above says why");
        }
        Ok(())
    }

    /// Runs the program and returns whether it succeeded; its output is thrown away.
    pub(crate) fn succeeds(mut self) -> bool {
        self.command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|s| s.success())
    }

    /// Runs the program and returns whether it succeeded, with all that it printed.
    pub(crate) fn captured(mut self) -> Result<(bool, String)> {
        let name = Path::new(&self.program).display().to_string();
        let out =
            self.command.output().with_context(|| format!("`{name}` could not be started"))?;
        let said = [out.stdout, out.stderr].concat();
        Ok((out.status.success(), String::from_utf8_lossy(&said).into_owned()))
    }

    /// Runs the program as a check: prints how it ended, and shows its output if it failed. Then it returns `again`,
    /// the command to run once more.
    pub(crate) fn check(self, name: &str, again: String) -> Option<String> {
        let begun = Instant::now();
        let (passed, said) = self.captured().unwrap_or_else(|error| (false, format!("{error:#}")));
        let seconds = begun.elapsed().as_secs_f64();
        if passed {
            eprintln!("{name} passed ({seconds:.1} s)");
            return None;
        }
        eprintln!("{said}\n{name} FAILED ({seconds:.1} s)");
        Some(again)
    }

    /// Runs the program and returns its standard output, or `None` if it failed.
    pub(crate) fn output(mut self) -> Option<String> {
        let out = self.command.stderr(Stdio::null()).output().ok()?;
        out.status.success().then(|| String::from_utf8_lossy(&out.stdout).trim().to_owned())
    }

    /// Replaces this process by the program, so that it gets this terminal and its signals. Returns only on failure.
    pub(crate) fn exec(mut self) -> Result<()> {
        use std::os::unix::process::CommandExt;
        self.command.stdin(Stdio::inherit());
        let error = self.command.exec();
        Err(error)
            .with_context(|| format!("could not start {}", Path::new(&self.program).display()))
    }
}

/// The error that this machine lacks what a check needs, with how to get it.
#[derive(Debug)]
pub(crate) struct Missing(pub String);

impl std::fmt::Display for Missing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "this machine lacks {}", self.0)
    }
}

impl std::error::Error for Missing {}

/// The path of a program on PATH, if it is there.
pub(crate) fn which(name: &str) -> Option<PathBuf> {
    std::env::split_paths(&std::env::var_os("PATH")?).map(|d| d.join(name)).find(|p| p.is_file())
}
