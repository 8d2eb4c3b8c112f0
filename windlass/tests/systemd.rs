//! The service of the Debian package (`deploy/debian`): what systemd expects of the server.

#![cfg(target_os = "linux")]

mod server;

use std::os::unix::net::UnixDatagram;
use std::time::Duration;

use server::Server;

#[test]
fn the_server_tells_systemd_when_it_serves() {
    let unit = std::fs::read_to_string("../deploy/debian/windlass.service").unwrap();
    assert!(unit.lines().any(|line| line == "Type=notify"), "else systemd does not listen");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let server = Server::start_with(&[], &[("NOTIFY_SOCKET", path.to_str().unwrap())]);
    let mut told = [0; 64];
    let bytes = socket.recv(&mut told).expect("a message");
    assert_eq!(std::str::from_utf8(&told[..bytes]).unwrap().trim(), "READY=1");
    assert_eq!(server.status("/readyz"), 200);
}
