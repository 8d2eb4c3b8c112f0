//! Checks whether a TURN server relays with the credentials that clients get, and where a STUN server sees this
//! machine.

use std::io::{Read, Write};
use std::net::{IpAddr, TcpStream, UdpSocket};
use std::sync::Arc;
use std::time::Instant;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use turn_client_proto::api::{TurnConfig, TurnEvent, TurnPollRet};
use turn_client_proto::prelude::TurnClientApi;
use turn_client_proto::stun::agent::Transmit;
use turn_client_proto::stun::types::attribute::ErrorCode;
use turn_client_proto::stun::types::message::Message;
use turn_client_proto::tcp::TurnClientTcp;
use turn_client_proto::types::TurnCredentials;
use turn_client_proto::udp::TurnClientUdp;

use crate::TIMEOUT;
use crate::connect::tcp;
use crate::finding::Finding;
use crate::stun::{MAX_ANSWER, WAIT, bound, is_timeout, udp};

/// Name of this check in findings.
const CHECK: &str = "turn";
/// Reason for a fault: the TURN server refused the credentials.
const REFUSED: &str = "refused: it does not take these credentials";

/// A TURN or STUN server, as clients get it.
#[derive(Clone, PartialEq, Eq)]
pub struct Relay {
    /// `turn:HOST[:PORT][?transport=udp|tcp]`, `turns:…`, `stun:HOST[:PORT]` or `stuns:…` (RFC 7064, RFC 7065).
    pub url: String,
    /// What the server asks for; `None` if it asks for nothing.
    pub user: Option<Credentials>,
}

/// What a TURN server asks for.
// Without `Debug`: no log prints a password.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// Name of the user.
    pub name: String,
    /// The user's password.
    pub password: String,
}

/// The parts of a TURN or STUN URL.
struct Place<'a> {
    host: &'a str,
    port: u16,
    relays: bool,
    tls: bool,
    tcp: bool,
}

fn place(url: &str) -> Option<Place<'_>> {
    let (scheme, rest) = url.split_once(':')?;
    let (host, query) = rest.split_once('?').map_or((rest, ""), |(host, query)| (host, query));
    let tls = scheme.ends_with('s');
    // The port is after the last colon, unless that is within an IPv6 address.
    let (host, port) = match host.rsplit_once(':').filter(|(_, port)| !port.contains(']')) {
        Some((host, port)) => (host, port.parse().ok()?),
        None => (host, if tls { 5349 } else { 3478 }),
    };
    let tcp = tls || query == "transport=tcp";
    Some(Place { host, port, relays: scheme.starts_with("turn"), tls, tcp })
}

/// Asks a TURN server for an address that it relays, or a STUN server where it sees this machine. The second value is
/// the address that the STUN server sees.
pub fn relay(relay: &Relay) -> (Finding, Option<IpAddr>) {
    let url = &relay.url;
    let Some(place) = place(url) else {
        let found = format!("{url} is no address of a TURN server");
        return (Finding::fault(CHECK, found, "correct --turn-url"), None);
    };
    let asked = match &relay.user {
        Some(user) if place.relays => allocated(&place, user).map(|at| (at, None)),
        // Its TLS is not spoken here: that it takes connections is all that is looked at.
        _ if place.tls || place.tcp => {
            tcp(place.host, place.port).map(|_| ("takes connections".to_owned(), None))
        }
        _ => {
            bound(place.host, place.port).map(|ip| (format!("sees this machine at {ip}"), Some(ip)))
        }
    };
    match asked {
        Ok((found, seen)) => (Finding::ok(CHECK, format!("{url} {found}")), seen),
        Err(error) => {
            let mend = "start it, open its ports, or correct --turn-url, and --turn-secret or user and password";
            (Finding::fault(CHECK, format!("{url}: {error}"), mend), None)
        }
    }
}

/// Asks a STUN server, `stun:HOST[:PORT]`, at which address it sees this machine.
///
/// # Errors
///
/// Fails if the server does not answer, with the reason for people.
pub fn seen(url: &str) -> Result<IpAddr, String> {
    match place(url) {
        Some(place) if !place.tcp => bound(place.host, place.port),
        _ => Err("no address of a STUN server".to_owned()),
    }
}

/// Asks a TURN server for a relayed address, and returns it.
fn allocated(place: &Place<'_>, user: &Credentials) -> Result<String, String> {
    let config = TurnConfig::new(TurnCredentials::new(&user.name, &user.password));
    let described = |error: std::io::Error| error.to_string();
    if !place.tcp {
        let (socket, to) = udp(place.host, place.port)?;
        let from = socket.local_addr().map_err(described)?;
        return talk(&mut TurnClientUdp::allocate(from, to, config), &mut Datagrams(socket));
    }
    let stream = tcp(place.host, place.port)?;
    let (from, to) =
        (stream.local_addr().map_err(described)?, stream.peer_addr().map_err(described)?);
    let mut client = TurnClientTcp::allocate(from, to, config);
    if place.tls {
        // The handshake needs more patience than what follows.
        stream.set_read_timeout(Some(TIMEOUT)).map_err(described)?;
        let stream = secured(place.host, stream)?;
        stream.sock.set_read_timeout(Some(WAIT)).map_err(described)?;
        return talk(&mut client, &mut Bytes(stream));
    }
    stream.set_read_timeout(Some(WAIT)).map_err(described)?;
    talk(&mut client, &mut Bytes(stream))
}

fn secured(
    host: &str,
    stream: TcpStream,
) -> Result<StreamOwned<ClientConnection, TcpStream>, String> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    let name = ServerName::try_from(host.to_owned()).map_err(|error| error.to_string())?;
    let connection = ClientConnection::new(Arc::new(config), name).map_err(|e| e.to_string())?;
    let mut stream = StreamOwned::new(connection, stream);
    // The handshake, whose error says what is wrong with the certificate.
    stream.flush().map_err(|error| format!("no TLS: {error}"))?;
    Ok(stream)
}

/// A connection that carries messages to the server and back.
trait Carries {
    fn send(&mut self, bytes: &[u8]) -> std::io::Result<()>;
    fn receive(&mut self, into: &mut [u8]) -> std::io::Result<usize>;
}

struct Datagrams(UdpSocket);

impl Carries for Datagrams {
    fn send(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.0.send(bytes).map(drop)
    }

    fn receive(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        self.0.recv(into)
    }
}

struct Bytes<S>(S);

impl<S: Read + Write> Carries for Bytes<S> {
    fn send(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.0.write_all(bytes)?;
        self.0.flush()
    }

    fn receive(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        self.0.read(into)
    }
}

/// Runs the TURN client until it has a relayed address.
fn talk(client: &mut impl TurnClientApi, carrier: &mut impl Carries) -> Result<String, String> {
    let begun = Instant::now();
    let mut answer = [0; MAX_ANSWER];
    let mut refusals = 0;
    loop {
        let passed = begun.elapsed();
        if passed > TIMEOUT {
            return Err("no answer".to_owned());
        }
        let nanos = i64::try_from(passed.as_nanos()).unwrap_or(i64::MAX);
        let now = turn_client_proto::stun::Instant::from_nanos(nanos);
        if let TurnPollRet::Closed = client.poll(now) {
            return Err(REFUSED.to_owned());
        }
        while let Some(event) = client.poll_event() {
            match event {
                TurnEvent::AllocationCreated(_, relayed) => {
                    return Ok(format!("relays, at {}", relayed.ip()));
                }
                TurnEvent::AllocationCreateFailed(_) => {
                    return Err(REFUSED.to_owned());
                }
                _ => {}
            }
        }
        let described = |error: std::io::Error| format!("no answer: {error}");
        while let Some(transmit) = client.poll_transmit(now) {
            carrier.send(transmit.data.as_ref()).map_err(described)?;
        }
        let size = match carrier.receive(&mut answer) {
            Ok(0) => return Err("it closed the connection".to_owned()),
            Ok(size) => size,
            // The client asks, or asks again, when its time has come.
            Err(error) if is_timeout(&error) => continue,
            Err(error) => return Err(described(error)),
        };
        // The first request has no credentials, and is refused as that. The client goes on after another refusal.
        refusals += u32::from(is_unauthorized(&answer[..size]));
        if refusals > 1 {
            return Err(REFUSED.to_owned());
        }
        let (from, to) = (client.remote_addr(), client.local_addr());
        let (data, transport) = (answer[..size].to_vec(), client.transport());
        // What it is not for is of no use here.
        let _ = client.recv(Transmit { data, transport, from, to }, now);
    }
}

/// Whether an answer has the error code 401.
fn is_unauthorized(answer: &[u8]) -> bool {
    let message = Message::from_bytes(answer).ok();
    let error = message.and_then(|message| message.attribute::<ErrorCode>().ok());
    error.is_some_and(|error| error.code() == ErrorCode::UNAUTHORIZED)
}

#[cfg(test)]
mod tests {
    use turn_client_proto::stun::types::attribute::XorMappedAddress;
    use turn_client_proto::stun::types::message::{MessageWrite, MessageWriteExt, MessageWriteVec};

    use super::*;
    use crate::finding::Level;

    #[test]
    fn urls_have_their_usual_ports() {
        let of = |url: &'static str| {
            let Place { host, port, relays, tls, tcp } = place(url).unwrap();
            (host, port, relays, tls, tcp)
        };
        assert_eq!(of("turn:a.example"), ("a.example", 3478, true, false, false));
        assert_eq!(of("turn:a:99?transport=tcp"), ("a", 99, true, false, true));
        assert_eq!(of("turns:a.example:443"), ("a.example", 443, true, true, true));
        assert_eq!(of("stun:[2001:db8::1]:1"), ("[2001:db8::1]", 1, false, false, false));
        assert_eq!(of("stuns:[::1]"), ("[::1]", 5349, false, true, true));
    }

    #[test]
    fn a_server_that_does_not_answer_is_a_fault() {
        let url = "turn:127.0.0.1:9".to_owned();
        let user = Some(Credentials { name: "user".to_owned(), password: "password".to_owned() });
        let (found, seen) = relay(&Relay { url, user });
        assert_eq!((found.level, seen), (Level::Fault, None));
        assert!(found.mend.unwrap().contains("--turn-url"));
    }

    #[test]
    fn a_stun_server_says_where_it_sees_this_machine() {
        let server = UdpSocket::bind("127.0.0.1:0").unwrap();
        let port = server.local_addr().unwrap().port();
        std::thread::spawn(move || {
            let mut bytes = [0; 512];
            let (size, from) = server.recv_from(&mut bytes).unwrap();
            let request = Message::from_bytes(&bytes[..size]).unwrap();
            let mut answer = Message::builder_success(&request, MessageWriteVec::new());
            let seen = "203.0.113.5:7".parse().unwrap();
            answer.add_attribute(&XorMappedAddress::new(seen, request.transaction_id())).unwrap();
            server.send_to(&answer.finish(), from).unwrap();
        });
        let url = format!("stun:127.0.0.1:{port}");
        let (found, seen) = relay(&Relay { url, user: None });
        assert_eq!(found.level, Level::Ok, "{found:?}");
        assert_eq!(seen, Some("203.0.113.5".parse().unwrap()));
    }
}
