//! `windlass health`: whether a server answers, for a container's health check.

use std::net::ToSocketAddrs;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Args;

/// Maximum time for each step of the request.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Arguments of `windlass health`.
#[derive(Debug, Args)]
pub(crate) struct HealthArgs {
    /// Address of the server
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:7880")]
    server: String,
}

/// Succeeds if the server lives. A server of HTTPS is asked by plain HTTP as well: its answer says that it speaks
/// HTTPS, and so that it lives.
pub(crate) fn run(args: &HealthArgs) -> Result<()> {
    let url = &args.server;
    let answer = ask(url).with_context(|| format!("no answer from {url}"))?;
    if answer.contains(" 200 ") || answer.contains(" 400 ") {
        println!("ok");
        return Ok(());
    }
    bail!("the server is not healthy: {url}/healthz answers {answer}; see its log")
}

/// Status line of the server's answer.
fn ask(url: &str) -> Result<String> {
    let authority = url.strip_prefix("http://").context("the URL must begin with http://")?;
    let authority = authority.trim_end_matches('/');
    let addr = authority.to_socket_addrs()?.next().context("the name has no address")?;
    let answer = windlass_doctor::get(addr, authority, "/healthz", TIMEOUT)?;
    answer
        .lines()
        .next()
        .map(str::to_owned)
        .context("it closes the connection without an HTTP answer")
}
