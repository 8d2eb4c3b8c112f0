//! Sends one request to a server by plain HTTP.

use std::io::{Read, Result, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Maximum bytes that are read of an answer.
const MAX_BYTES: u64 = 4096;

/// Sends `GET path` and returns the answer: its head, and as much of its body as fits into 4 KiB. `host` is the value
/// of the header `Host`. Each step may take `patience`.
///
/// # Errors
///
/// Fails if there is no connection, or if it ends or waits too long.
pub fn get(addr: SocketAddr, host: &str, path: &str, patience: Duration) -> Result<String> {
    let mut stream = TcpStream::connect_timeout(&addr, patience)?;
    stream.set_read_timeout(Some(patience))?;
    write!(stream, "GET {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n")?;
    let mut answer = Vec::new();
    stream.take(MAX_BYTES).read_to_end(&mut answer)?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}
