//! A network namespace beside ours, and a shaped link to it.
//!
//! It has no name: it belongs to a process that reads from us, and ends, interfaces and all, when that process or this
//! one does.

use std::ffi::OsStr;
use std::io;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long the other process may take to be in its own namespace.
const TIMEOUT: Duration = Duration::from_secs(5);
/// What a link may wait for at most; more is lost.
const QUEUE: &str = "300ms";
/// What goes out at once: a full packet.
const BURST: &str = "1600";

/// A network namespace of its own.
pub(crate) struct Namespace {
    holder: Child,
    interface: String,
    /// Our end's address.
    pub ours: String,
}

impl Namespace {
    /// A namespace at the end of a link of so many kbit/s towards it, and as fast as the machine from it; or what is
    /// missing for that.
    pub(crate) fn new(kbps: u32) -> Result<Namespace, String> {
        let mut unshare = Command::new("unshare");
        // `cat` ends when we do.
        unshare.args(["--net", "cat"]).stdin(Stdio::piped()).stdout(Stdio::null());
        let holder = unshare.stderr(Stdio::null()).spawn().map_err(|e| format!("unshare: {e}"))?;
        let pid = holder.id();
        let net = ((pid >> 6) & 0xff, (pid & 0x3f) << 2);
        let at = |host| format!("198.18.{}.{}", net.0, net.1 + host);
        let interface = format!("wl{pid}");
        let namespace = Namespace { holder, interface: interface.clone(), ours: at(1) };
        namespace.wait()?;
        let pid = pid.to_string();
        run("ip", &["link", "add", &interface, "type", "veth", "peer", "eth0", "netns", &pid])?;
        run("ip", &["addr", "add", &format!("{}/30", at(1)), "dev", &interface])?;
        run("ip", &["link", "set", &interface, "up"])?;
        for inside in [
            &["ip", "addr", "add", &format!("{}/30", at(2)), "dev", "eth0"][..],
            &["ip", "link", "set", "eth0", "up"],
            &["ip", "link", "set", "lo", "up"],
        ] {
            run("nsenter", &[&["--net", "--target", &pid], inside].concat())?;
        }
        namespace.shape("add", kbps)?;
        Ok(namespace)
    }

    /// Has the link carry so many kbit/s from now on.
    pub(crate) fn set(&self, kbps: u32) {
        self.shape("change", kbps).expect("another rate");
    }

    /// Runs a program inside.
    pub(crate) fn command(&self, program: &OsStr) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["--net", "--target", &self.holder.id().to_string()]).arg(program);
        command
    }

    fn shape(&self, change: &str, kbps: u32) -> Result<(), String> {
        let rate = format!("{kbps}kbit");
        let link = ["qdisc", change, "dev", &self.interface, "root", "tbf"];
        run("tc", &[&link[..], &["rate", &rate, "burst", BURST, "latency", QUEUE]].concat())
    }

    /// Until the process is in a namespace of its own.
    fn wait(&self) -> Result<(), String> {
        let of = |who: &str| std::fs::read_link(format!("/proc/{who}/ns/net"));
        let same = |ours: &io::Result<PathBuf>, theirs: &io::Result<PathBuf>| match (ours, theirs) {
            (Ok(ours), Ok(theirs)) => ours == theirs,
            _ => true,
        };
        let since = Instant::now();
        while same(&of("self"), &of(&self.holder.id().to_string())) {
            if since.elapsed() > TIMEOUT {
                return Err("no network namespace: that needs root".into());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}

/// What went wrong, if something did.
fn run(program: &str, args: &[&str]) -> Result<(), String> {
    let output =
        Command::new(program).args(args).output().map_err(|e| format!("{program}: {e}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    let told = || format!("`{program} {}`: {}", args.join(" "), said.trim());
    output.status.success().then_some(()).ok_or_else(told)
}
