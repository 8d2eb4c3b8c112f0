//! `windlass health`: whether a server answers, for a container's health check.

use std::net::ToSocketAddrs;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Args;

/// How long each step may take.
const PATIENCE: Duration = Duration::from_secs(2);

/// Arguments of `windlass health`.
#[derive(Debug, Args)]
pub(crate) struct HealthArgs {
    /// Address of the server
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:7880")]
    server: String,
}

/// Ends without an error if the server lives. One that speaks HTTPS is not asked in it: it answers plain HTTP with
/// what it speaks, and so lives.
pub(crate) fn run(args: &HealthArgs) -> Result<()> {
    let url = &args.server;
    let answer = ask(url).with_context(|| format!("no answer from {url}"))?;
    if answer.contains(" 200 ") || answer.contains(" 400 ") {
        println!("ok");
        return Ok(());
    }
    bail!("{url}/healthz answers {answer}")
}

/// The status line.
fn ask(url: &str) -> Result<String> {
    let authority = url.strip_prefix("http://").context("the URL must begin with http://")?;
    let authority = authority.trim_end_matches('/');
    let addr = authority.to_socket_addrs()?.next().context("the name has no address")?;
    let answer = windlass_doctor::get(addr, authority, "/healthz", PATIENCE)?;
    answer.lines().next().map(str::to_owned).context("it says nothing")
}
