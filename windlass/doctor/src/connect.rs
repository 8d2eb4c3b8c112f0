//! Checks whether another machine accepts connections.

use std::net::{SocketAddr, TcpStream, ToSocketAddrs};

use crate::TIMEOUT;
use crate::finding::Finding;

/// Resolves the addresses of a host.
pub(crate) fn resolve(host: &str, port: u16) -> Result<Vec<SocketAddr>, String> {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let found: Vec<_> = (host, port)
        .to_socket_addrs()
        .map_err(|error| format!("the name {host} is not known: {error}"))?
        .collect();
    if found.is_empty() { Err(format!("the name {host} has no address")) } else { Ok(found) }
}

/// Connects to one of the host's addresses by TCP.
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

/// Checks whether a machine accepts connections at `host` and `port`. `what` is its name for people, `option` the
/// option that names it.
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

/// Host and port of a URL: `http://HOST[:PORT]` or `https://…`.
pub fn address(url: &str) -> (&str, u16) {
    let (scheme, rest) = url.split_once("://").unwrap_or(("http", url));
    let place = rest.split('/').next().unwrap_or_default();
    let with_port =
        place.rsplit_once(':').and_then(|(host, port)| Some((host, port.parse().ok()?)));
    with_port.unwrap_or((place, if scheme == "https" { 443 } else { 80 }))
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

    #[test]
    fn host_and_port_are_found_in_a_url() {
        assert_eq!(address("http://127.0.0.1:1/"), ("127.0.0.1", 1));
        assert_eq!(address("https://gpu.example"), ("gpu.example", 443));
        assert_eq!(address("http://[2001:db8::1]:9"), ("[2001:db8::1]", 9));
        assert_eq!(address("http://[2001:db8::1]"), ("[2001:db8::1]", 80));
    }
}
