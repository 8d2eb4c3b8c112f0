//! Asks a STUN server where it sees this machine (RFC 8489).

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use turn_client_proto::stun::types::attribute::XorMappedAddress;
use turn_client_proto::stun::types::message::{
    BINDING, Message, MessageWrite, MessageWriteExt, MessageWriteVec,
};

use crate::TIMEOUT;
use crate::connect::resolve;

/// Duration of one wait for an answer. Between waits, requests are sent or repeated.
pub(crate) const WAIT: Duration = Duration::from_millis(60);
/// Maximum bytes of an answer: larger than any answer of STUN, or to an allocation.
pub(crate) const MAX_ANSWER: usize = 2048;
/// Number of waits after which a request is repeated at first. It doubles with each repetition.
const FIRST_WAITS: u32 = 4;

/// Creates a UDP socket that is connected to the host.
pub(crate) fn udp(host: &str, port: u16) -> Result<(UdpSocket, SocketAddr), String> {
    let all = resolve(host, port)?;
    // Behind a NAT it is the address of IPv4 that a machine does not know of itself.
    let to = all.iter().find(|addr| addr.is_ipv4()).copied().unwrap_or(all[0]);
    let any: SocketAddr =
        if to.is_ipv4() { ([0, 0, 0, 0], 0).into() } else { ([0u16; 8], 0).into() };
    let open = || -> std::io::Result<UdpSocket> {
        let socket = UdpSocket::bind(any)?;
        socket.connect(to)?;
        socket.set_read_timeout(Some(WAIT))?;
        Ok(socket)
    };
    Ok((open().map_err(|error| error.to_string())?, to))
}

/// Address of this machine in a Binding response of the STUN server.
pub(crate) fn bound(host: &str, port: u16) -> Result<IpAddr, String> {
    let (socket, _) = udp(host, port)?;
    let request = Message::builder_request(BINDING, MessageWriteVec::new());
    let (id, request) = (request.transaction_id(), request.finish());
    let begun = Instant::now();
    let mut answer = [0; MAX_ANSWER];
    let (mut waits, mut again) = (0, 0);
    while begun.elapsed() < TIMEOUT {
        if waits == again {
            socket.send(&request).map_err(|error| error.to_string())?;
            again = (2 * again).max(FIRST_WAITS);
        }
        match socket.recv(&mut answer) {
            Ok(size) => {
                let message = Message::from_bytes(&answer[..size]).ok();
                let message = message.filter(|m| m.transaction_id() == id);
                let mapped = message.and_then(|m| m.attribute::<XorMappedAddress>().ok());
                if let Some(mapped) = mapped {
                    return Ok(mapped.addr(id).ip());
                }
            }
            Err(error) if is_timeout(&error) => waits += 1,
            Err(error) => return Err(format!("no answer: {error}")),
        }
    }
    Err("no answer".to_owned())
}

pub(crate) fn is_timeout(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut)
}
