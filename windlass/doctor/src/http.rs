//! One request to a server, by plain HTTP.

use std::io::{Read, Result, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// What is read of an answer at most.
const MAX_BYTES: u64 = 4096;

/// The answer to `GET path`: its head, and as much of its body as fits into 4 KiB. `host` is what the request names;
/// each step may take `patience`.
///
/// # Errors
///
/// There is no connection, or it ends or waits too long.
pub fn get(addr: SocketAddr, host: &str, path: &str, patience: Duration) -> Result<String> {
    let mut stream = TcpStream::connect_timeout(&addr, patience)?;
    stream.set_read_timeout(Some(patience))?;
    write!(stream, "GET {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n")?;
    let mut answer = Vec::new();
    stream.take(MAX_BYTES).read_to_end(&mut answer)?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}
