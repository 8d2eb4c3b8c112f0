//! The UDP socket: receives and sends datagrams in batches, with the kernel's arrival times.
//!
//! An arrival time taken after a busy loop looks like queueing on the path, and publishers' bandwidth estimates would
//! collapse. So the kernel stamps each datagram when it arrives (`SO_TIMESTAMPNS`). All `unsafe` code of the crate is
//! in this module.

mod descriptors;
mod receive;
mod send;

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;

use socket2::{Domain, Protocol, SockRef, Socket as Socket2, Type};
use tokio::io::Interest;

use crate::config::RECEIVE_BUFFER;

pub(super) use self::descriptors::raise as raise_descriptors;
pub(super) use self::receive::Inbox;
pub(super) use self::send::{Outbox, Sent};

/// Requested size of the send buffer, in bytes. The buffer holds datagrams while the link is busy.
const SEND_BUFFER: usize = 4 << 20;

/// A bound socket outside a runtime.
pub(super) struct Socket {
    socket: UdpSocket,
    local: SocketAddr,
}

impl Socket {
    /// Binds the first socket of an address.
    pub(super) fn bind(addr: SocketAddr) -> io::Result<Socket> {
        Socket::open(addr, false)
    }

    /// Binds another socket to the same address. The kernel distributes datagrams by their source address.
    pub(super) fn another(&self) -> io::Result<Socket> {
        // Set after the first bind, so that a second server on the same address is refused, and gets no datagrams.
        SockRef::from(&self.socket).set_reuse_port(true)?;
        Socket::open(self.local, true)
    }

    fn open(addr: SocketAddr, shared: bool) -> io::Result<Socket> {
        let socket = Socket2::new(Domain::for_address(addr), Type::DGRAM, Some(Protocol::UDP))?;
        // The system may grant less; then bursts are dropped earlier, and NACK repairs them.
        let _ = socket.set_recv_buffer_size(RECEIVE_BUFFER);
        let _ = socket.set_send_buffer_size(SEND_BUFFER);
        socket.set_nonblocking(true)?;
        // Emulators and sandboxes lack it. Then the time of reading counts as that of arrival.
        let _ = enable_timestamps(&socket);
        if addr.is_ipv6() && addr.ip().is_unspecified() {
            // IPv4 too, whatever the system's default is.
            socket.set_only_v6(false)?;
        }
        socket.set_reuse_port(shared)?;
        socket.bind(&addr.into())?;
        let socket: UdpSocket = socket.into();
        let local = socket.local_addr()?;
        Ok(Socket { socket, local })
    }

    /// Whether the kernel supports UDP GSO.
    pub(super) fn supports_segments(&self) -> bool {
        send::supports_segments(&self.socket)
    }

    pub(super) fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// The socket inside a runtime. The caller must be inside that runtime.
    pub(super) fn into_async(self) -> io::Result<AsyncSocket> {
        let socket = tokio::net::UdpSocket::from_std(self.socket)?;
        Ok(AsyncSocket { socket, is_ipv6: self.local.is_ipv6() })
    }
}

/// The socket inside a runtime.
pub(super) struct AsyncSocket {
    socket: tokio::net::UdpSocket,
    is_ipv6: bool,
}

impl AsyncSocket {
    /// An address for the socket: an IPv6 socket takes IPv4 addresses mapped into IPv6 (RFC 4291 §2.5.5.2).
    pub(super) fn mapped(&self, address: SocketAddr) -> SocketAddr {
        match address {
            SocketAddr::V4(v4) if self.is_ipv6 => (v4.ip().to_ipv6_mapped(), v4.port()).into(),
            other => other,
        }
    }

    /// Waits for a datagram.
    pub(super) async fn readable(&self) -> io::Result<()> {
        self.socket.readable().await
    }

    /// Receives waiting datagrams, as many as `inbox` can hold.
    pub(super) fn try_receive(&self, inbox: &mut Inbox) -> io::Result<()> {
        self.socket.try_io(Interest::READABLE, || inbox.fill(&self.socket))
    }

    /// Sends the datagrams of the outbox, and empties it.
    pub(super) fn send(&self, outbox: &mut Outbox) -> Sent {
        outbox.flush(&self.socket)
    }
}

fn enable_timestamps(socket: &Socket2) -> io::Result<()> {
    let on: libc::c_int = 1;
    // SAFETY: the descriptor is open, and the option's value is a `c_int` that outlives the call.
    let rc = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_TIMESTAMPNS,
            (&raw const on).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    if rc == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_comes_is_divided_among_the_sockets_of_an_address_and_no_server_else_gets_it() {
        let first = Socket::bind("127.0.0.1:0".parse().expect("address")).expect("bind");
        let to = first.local_addr();
        let second = first.another().expect("another");
        assert_eq!(second.local_addr(), to);
        let refused = Socket::bind(to).err().map(|error| error.kind());
        assert_eq!(refused, Some(io::ErrorKind::AddrInUse));
        let sockets = [first, second].map(|s| s.into_async().expect("runtime"));
        let clients: Vec<UdpSocket> =
            (0..64).map(|_| UdpSocket::bind("127.0.0.1:0").expect("bind")).collect();
        for client in clients.iter().chain(&clients) {
            client.send_to(b"hello", to).expect("send");
        }
        let mut sources = [Vec::new(), Vec::new()];
        let mut inbox = Inbox::new();
        while sources[0].len() + sources[1].len() < 128 {
            let at = tokio::select! {
                _ = sockets[0].readable() => 0,
                _ = sockets[1].readable() => 1,
            };
            if sockets[at].try_receive(&mut inbox).is_ok() {
                sources[at].extend(inbox.datagrams().map(|d| d.source));
            }
        }
        assert!(sources.iter().all(|s| !s.is_empty()));
        for sources in &mut sources {
            sources.sort_unstable();
            assert!(
                sources.chunks(2).all(|of_one| of_one[0] == of_one[1]),
                "a sender's come to one"
            );
        }
    }

    #[tokio::test]
    async fn a_socket_of_both_families_speaks_to_each_by_its_own_addresses() {
        let socket = Socket::bind("[::]:0".parse().expect("address")).expect("bind");
        let (port, segments) = (socket.local_addr().port(), socket.supports_segments());
        let socket = socket.into_async().expect("runtime");
        for host in ["127.0.0.1", "::1"] {
            let ip: std::net::IpAddr = host.parse().expect("address");
            let client = UdpSocket::bind((ip, 0)).expect("bind");
            client.set_read_timeout(Some(std::time::Duration::from_secs(5))).expect("timeout");
            client.send_to(b"hello", (ip, port)).expect("send");
            let mut inbox = Inbox::new();
            while socket.try_receive(&mut inbox).is_err() {
                socket.readable().await.expect("readable");
            }
            let source = inbox.datagrams().next().expect("one").source;
            assert_eq!(source, client.local_addr().expect("address"), "as it is outside");
            let mut outbox = Outbox::new(segments);
            for size in [900, 900, 900, 10] {
                outbox.push(socket.mapped(source), vec![1; size], None);
            }
            let sent = socket.send(&mut outbox);
            assert_eq!((sent.taken, sent.refused), (4, 0));
            let mut buffer = [0; 2000];
            let lens = [(); 4].map(|()| client.recv(&mut buffer).expect("in time"));
            assert_eq!(lens, [900, 900, 900, 10]);
        }
    }
}
