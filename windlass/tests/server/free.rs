//! Addresses at which nobody listens.

use std::hash::{BuildHasher, RandomState};
use std::net::{SocketAddr, TcpListener, UdpSocket};

/// An address of this machine at which nobody listens, by TCP or UDP, and that no other call returns while this process
/// runs. Its port is below those that systems give to whoever asks for any.
pub(crate) fn free_address() -> SocketAddr {
    loop {
        let port = 20_000 + (RandomState::new().hash_one(()) % 12_000) as u16;
        if !is_mine(port) {
            continue;
        }
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        if TcpListener::bind(address).is_ok() && UdpSocket::bind(address).is_ok() {
            return address;
        }
    }
}

/// Takes a port for this process: a name that one process at a time can have stands for it, to the tests of all
/// processes. Linux alone has such names.
#[cfg(target_os = "linux")]
fn is_mine(port: u16) -> bool {
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::net::{SocketAddr, UnixListener};

    let name = SocketAddr::from_abstract_name(format!("windlass-test-port-{port}"));
    let taken = name.and_then(|name| UnixListener::bind_addr(&name));
    taken.map(std::mem::forget).is_ok()
}

#[cfg(not(target_os = "linux"))]
fn is_mine(_: u16) -> bool {
    true
}
