//! Whether another machine takes connections.

use std::net::{SocketAddr, TcpStream, ToSocketAddrs};

use crate::TIMEOUT;
use crate::finding::Finding;

/// The addresses of a host.
pub(crate) fn resolve(host: &str, port: u16) -> Result<Vec<SocketAddr>, String> {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let found: Vec<_> = (host, port)
        .to_socket_addrs()
        .map_err(|error| format!("the name {host} is not known: {error}"))?
        .collect();
    if found.is_empty() { Err(format!("the name {host} has no address")) } else { Ok(found) }
}

/// Connects to one of the host's addresses.
pub(crate) fn tcp(host: &str, port: u16) -> Result<TcpStream, String> {
    let mut last = String::new();
    for addr in resolve(host, port)? {
        match TcpStream::connect_timeout(&addr, TIMEOUT) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = format!("{addr} does not answer: {error}"),
        }
    }
    Err(last)
}

/// Looks whether a machine takes connections at `host` and `port`. `what`: its name for people; `option`: what names it.
pub fn connect(check: &'static str, what: &str, host: &str, port: u16, option: &str) -> Finding {
    match tcp(host, port) {
        Ok(_) => Finding::ok(check, format!("{what} takes connections")),
        Err(error) => Finding::fault(
            check,
            format!("{what} cannot be reached: {error}"),
            format!("start it, open its port, or correct {option}"),
        ),
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;
    use crate::finding::Level;

    #[test]
    fn a_machine_that_does_not_answer_is_told_with_its_option() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let look = || connect("workers", "the worker", "127.0.0.1", port, "--workers");
        assert_eq!(look().level, Level::Ok);
        drop(listener);
        let found = look();
        assert_eq!(found.level, Level::Fault);
        assert!(found.mend.unwrap().contains("--workers"));
    }

    #[test]
    fn a_name_without_address_is_told_as_that() {
        let found = connect("nats", "NATS", "no-such-host.invalid", 4222, "--nats");
        assert!(found.found.contains("no-such-host.invalid is not known"), "{found:?}");
    }
}
