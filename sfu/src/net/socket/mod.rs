//! The UDP socket: datagrams in and out by the batch, with the kernel's arrival times.
//!
//! Arrival times taken after a busy loop look like queueing on the path, and publishers' bandwidth estimates
//! collapse; the kernel stamps each datagram when it comes in (`SO_TIMESTAMPNS`), whenever it is read.
//! [`receive`] reads many at a call, [`send`] writes many at a call. All `unsafe` of the crate is in this module.

mod receive;
mod send;

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;

use socket2::{Domain, Protocol, Socket as Socket2, Type};
use tokio::io::Interest;

pub(super) use self::receive::Inbox;
pub(super) use self::send::{Outbox, Sent};

/// What the receive buffer should hold while the thread is busy.
const RECEIVE_BUFFER: usize = 8 << 20;
/// What the send buffer should hold when the link is busy.
const SEND_BUFFER: usize = 4 << 20;

/// A bound socket, not yet in a runtime.
pub(super) struct Socket {
    socket: UdpSocket,
    local: SocketAddr,
}

impl Socket {
    pub(super) fn bind(addr: SocketAddr) -> io::Result<Socket> {
        let socket = Socket2::new(Domain::for_address(addr), Type::DGRAM, Some(Protocol::UDP))?;
        // The system may grant less; then bursts are lost earlier, which NACK repairs.
        let _ = socket.set_recv_buffer_size(RECEIVE_BUFFER);
        let _ = socket.set_send_buffer_size(SEND_BUFFER);
        socket.set_nonblocking(true)?;
        enable_timestamps(&socket)?;
        socket.bind(&addr.into())?;
        let socket: UdpSocket = socket.into();
        let local = socket.local_addr()?;
        Ok(Socket { socket, local })
    }

    /// Whether the kernel cuts messages up into datagrams.
    pub(super) fn knows_segments(&self) -> bool {
        send::knows_segments(&self.socket)
    }

    pub(super) fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// Must be called inside the runtime.
    pub(super) fn into_async(self) -> io::Result<AsyncSocket> {
        Ok(AsyncSocket { socket: tokio::net::UdpSocket::from_std(self.socket)? })
    }
}

/// The socket inside the runtime.
pub(super) struct AsyncSocket {
    socket: tokio::net::UdpSocket,
}

impl AsyncSocket {
    /// Waits for a datagram.
    pub(super) async fn readable(&self) -> io::Result<()> {
        self.socket.readable().await
    }

    /// Takes the datagrams that there are, as many as `inbox` has room for.
    pub(super) fn try_receive(&self, inbox: &mut Inbox) -> io::Result<()> {
        self.socket.try_io(Interest::READABLE, || inbox.fill(&self.socket))
    }

    /// Sends what the outbox holds, as far as the socket takes it; the outbox is empty afterwards.
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
