//! The UDP socket, with the kernel's arrival times.
//!
//! Arrival times taken after a busy loop look like queueing on the path, and publishers' bandwidth estimates
//! collapse; the kernel stamps each datagram when it comes in (`SO_TIMESTAMPNS`), whenever it is read.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use socket2::{Domain, Protocol, SockAddr, Socket as Socket2, Type};
use tokio::io::Interest;

/// What the receive buffer should hold while the thread is busy.
const RECEIVE_BUFFER: usize = 8 << 20;
/// What the send buffer should hold when the link is busy.
const SEND_BUFFER: usize = 4 << 20;
/// An arrival older than this is a clock that was set, not a datagram that waited.
const OLDEST: Duration = Duration::from_secs(2);

/// A datagram that was received into the caller's buffer.
pub(super) struct Received {
    /// Its length in bytes.
    pub(super) len: usize,
    /// Who sent it.
    pub(super) source: SocketAddr,
    /// When the kernel had it; `None` when it did not say.
    pub(super) arrival: Option<Instant>,
}

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

    /// Takes a datagram if there is one.
    pub(super) fn try_receive(&self, buffer: &mut [u8]) -> io::Result<Received> {
        self.socket.try_io(Interest::READABLE, || receive(&self.socket, buffer))
    }

    /// Sends a datagram if the socket takes it.
    pub(super) fn try_send(&self, data: &[u8], to: SocketAddr) -> io::Result<()> {
        self.socket.try_send_to(data, to).map(|_| ())
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

/// Room for control messages, aligned as the kernel wants it.
#[repr(C, align(8))]
struct Control([u8; 128]);

fn receive(socket: &impl AsRawFd, buffer: &mut [u8]) -> io::Result<Received> {
    let mut control = Control([0; 128]);
    let mut slice = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    let mut arrival = None;
    let mut len = 0;
    // SAFETY: `try_init` gives a zeroed address storage and its length. Every pointer in the message header points
    // to a live local with the length given beside it; the control messages are walked with the kernel's macros
    // while `control` is alive, and the timestamp is read unaligned.
    let ((), source) = unsafe {
        SockAddr::try_init(|storage, storage_len| {
            let mut message: libc::msghdr = std::mem::zeroed();
            message.msg_name = storage.cast();
            message.msg_namelen = *storage_len;
            message.msg_iov = &raw mut slice;
            message.msg_iovlen = 1;
            message.msg_control = control.0.as_mut_ptr().cast();
            message.msg_controllen = control.0.len();
            let n = libc::recvmsg(socket.as_raw_fd(), &raw mut message, 0);
            if n < 0 {
                return Err(io::Error::last_os_error());
            }
            *storage_len = message.msg_namelen;
            // A datagram larger than the buffer is none of ours; an empty one is dropped by the caller.
            len = if message.msg_flags & libc::MSG_TRUNC == 0 { n as usize } else { 0 };
            let mut header = libc::CMSG_FIRSTHDR(&raw const message);
            while let Some(h) = header.as_ref() {
                if h.cmsg_level == libc::SOL_SOCKET && h.cmsg_type == libc::SCM_TIMESTAMPNS {
                    let stamp = libc::CMSG_DATA(header).cast::<libc::timespec>().read_unaligned();
                    arrival = instant_of(stamp);
                }
                header = libc::CMSG_NXTHDR(&raw const message, header);
            }
            Ok(())
        })?
    };
    let source = source.as_socket().ok_or(io::ErrorKind::InvalidData)?;
    Ok(Received { len, source, arrival })
}

/// The kernel's stamp is wall-clock time; its age carries it over to the monotonic clock.
fn instant_of(stamp: libc::timespec) -> Option<Instant> {
    let wall = UNIX_EPOCH.checked_add(Duration::new(
        stamp.tv_sec.try_into().ok()?,
        stamp.tv_nsec.try_into().ok()?,
    ))?;
    let age = SystemTime::now().duration_since(wall).unwrap_or_default();
    if age > OLDEST {
        return None;
    }
    Instant::now().checked_sub(age)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_datagram_that_waited_keeps_the_time_at_which_it_came() {
        let socket = Socket::bind("127.0.0.1:0".parse().expect("address")).expect("bind");
        let to = socket.local_addr();
        let socket = socket.into_async().expect("runtime");
        let sender = UdpSocket::bind("127.0.0.1:0").expect("bind");
        // The kernel begins to stamp a moment after it is asked to.
        tokio::time::sleep(Duration::from_millis(100)).await;
        let before = Instant::now();
        sender.send_to(b"windlass", to).expect("send");
        let after = Instant::now();
        tokio::time::sleep(Duration::from_millis(50)).await;
        socket.readable().await.expect("readable");
        let mut buffer = [0; 2000];
        let got = socket.try_receive(&mut buffer).expect("receive");
        assert_eq!(&buffer[..got.len], b"windlass");
        assert_eq!(got.source, sender.local_addr().expect("address"));
        let arrival = got.arrival.expect("stamp");
        let slack = Duration::from_millis(5);
        assert!(
            arrival + slack >= before && arrival <= after + slack,
            "{:?}",
            arrival.duration_since(before)
        );
    }
}
