//! Addresses at which nobody listens.

use std::hash::{BuildHasher, RandomState};
use std::net::{SocketAddr, TcpListener, UdpSocket};

/// An address of this machine at which nobody listens, by TCP or UDP. Its port is below those that systems give to
/// whoever asks for any, so that no other test gets it meanwhile.
pub(crate) fn free_address() -> SocketAddr {
    loop {
        let port = 20_000 + (RandomState::new().hash_one(()) % 12_000) as u16;
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        if TcpListener::bind(address).is_ok() && UdpSocket::bind(address).is_ok() {
            return address;
        }
    }
}
