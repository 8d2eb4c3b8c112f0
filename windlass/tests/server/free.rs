//! Addresses at which nobody listens.

use std::hash::{BuildHasher, RandomState};
use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener, UdpSocket};

/// An address of this machine at which nobody listens, by TCP or UDP, and that no other call returns while this process
/// runs. Its port is below those that systems give to whoever asks for any.
pub(crate) fn free_address() -> SocketAddr {
    loop {
        let port = 20_000 + (RandomState::new().hash_one(()) % 12_000) as u16;
        // A listener at the same port of another address stands for it, to the tests of all processes.
        let taken = TcpListener::bind(SocketAddr::from(([127, 77, 0, 1], port)));
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        match taken {
            // Not on Linux: there is no such address.
            Err(e) if e.kind() != ErrorKind::AddrInUse => {}
            Err(_) => continue,
            Ok(taken) => std::mem::forget(taken),
        }
        if TcpListener::bind(address).is_ok() && UdpSocket::bind(address).is_ok() {
            return address;
        }
    }
}
