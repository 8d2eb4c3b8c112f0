//! Receives many datagrams with one call: `recvmmsg`, with the kernel's arrival times.

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use socket2::{SockAddr, SockAddrStorage};

/// Maximum number of datagrams in one call.
const MAX_BATCH: usize = 32;
/// Longest datagram, in bytes. WebRTC sends no longer ones.
const MAX_DATAGRAM_BYTES: usize = 2048;
/// Buffer for a datagram's control messages, in bytes: a time stamp, and some to spare.
const CONTROL_BYTES: usize = 64;
/// Age above which an arrival time is invalid: the wall clock was set meanwhile.
const MAX_AGE: Duration = Duration::from_secs(2);

/// A received datagram.
#[derive(Debug, Clone, Copy)]
pub(in crate::net) struct Received<'a> {
    /// Content of the datagram; empty if it was longer than [`MAX_DATAGRAM_BYTES`].
    pub(in crate::net) data: &'a [u8],
    /// Source address.
    pub(in crate::net) source: SocketAddr,
    /// Arrival at the kernel; `None` without a time stamp.
    pub(in crate::net) arrival: Option<Instant>,
}

/// Buffer for control messages, aligned for the kernel.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
struct Control([u8; CONTROL_BYTES]);

/// Buffers, and the datagrams of the last call.
pub(in crate::net) struct Inbox {
    room: Box<[[u8; MAX_DATAGRAM_BYTES]]>,
    got: Vec<(usize, SocketAddr, Option<Instant>)>,
}

impl Inbox {
    /// An empty inbox.
    pub(in crate::net) fn new() -> Inbox {
        Inbox {
            room: vec![[0; MAX_DATAGRAM_BYTES]; MAX_BATCH].into_boxed_slice(),
            got: Vec::with_capacity(MAX_BATCH),
        }
    }

    /// The datagrams of the last call.
    pub(in crate::net) fn datagrams(&self) -> impl Iterator<Item = Received<'_>> {
        let taken = self.got.iter().zip(self.room.iter());
        taken.map(|(&(len, source, arrival), room)| Received {
            data: &room[..len],
            source,
            arrival,
        })
    }

    /// Receives the datagrams that wait, without blocking.
    pub(super) fn fill(&mut self, socket: &impl AsRawFd) -> io::Result<()> {
        self.got.clear();
        let mut control = [Control([0; CONTROL_BYTES]); MAX_BATCH];
        let mut addresses: [SockAddrStorage; MAX_BATCH] =
            std::array::from_fn(|_| SockAddrStorage::zeroed());
        let mut slices: [libc::iovec; MAX_BATCH] = std::array::from_fn(|i| libc::iovec {
            iov_base: self.room[i].as_mut_ptr().cast(),
            iov_len: MAX_DATAGRAM_BYTES,
        });
        let mut messages: [libc::mmsghdr; MAX_BATCH] = std::array::from_fn(|i| {
            // SAFETY: a message header is plain data, for which all zeros are an empty one.
            let mut message: libc::mmsghdr = unsafe { std::mem::zeroed() };
            message.msg_hdr.msg_name = (&raw mut addresses[i]).cast();
            message.msg_hdr.msg_namelen = addresses[i].size_of();
            message.msg_hdr.msg_iov = &raw mut slices[i];
            message.msg_hdr.msg_iovlen = 1;
            message.msg_hdr.msg_control = control[i].0.as_mut_ptr().cast();
            message.msg_hdr.msg_controllen = CONTROL_BYTES;
            message
        });
        // SAFETY: the descriptor is open. Every pointer in the headers points to a live local, or to room that `self`
        // owns, with its true length beside it; none of them moves before the call returns. No timeout is given.
        let n = unsafe {
            libc::recvmmsg(
                socket.as_raw_fd(),
                messages.as_mut_ptr(),
                MAX_BATCH as libc::c_uint,
                libc::MSG_DONTWAIT,
                std::ptr::null_mut(),
            )
        };
        if n < 0 {
            return Err(io::Error::last_os_error());
        }
        let clocks = Clocks::now();
        for (message, address) in messages.iter().zip(addresses).take(n as usize) {
            let header = &message.msg_hdr;
            // SAFETY: the kernel wrote an address of this length to the storage.
            let address = unsafe { SockAddr::new(address, header.msg_namelen) };
            // UDP always has an address; without one, an invalid address.
            let source = address.as_socket().unwrap_or(SocketAddr::from(([0, 0, 0, 0], 0)));
            // A dual-stack socket maps IPv4 addresses into IPv6.
            let source = SocketAddr::new(source.ip().to_canonical(), source.port());
            let whole = header.msg_flags & libc::MSG_TRUNC == 0;
            let len = if whole { (message.msg_len as usize).min(MAX_DATAGRAM_BYTES) } else { 0 };
            let stamp = stamp_of(header);
            self.got.push((len, source, stamp.and_then(|stamp| clocks.instant_of(stamp))));
        }
        Ok(())
    }
}

/// The kernel's arrival time among a message's control messages.
fn stamp_of(message: &libc::msghdr) -> Option<libc::timespec> {
    // SAFETY: the header is of a message that `recvmmsg` has filled in; the control messages, which live as long as the
    // caller's room for them, are walked with the kernel's macros, and the stamp is read unaligned.
    unsafe {
        let mut at = libc::CMSG_FIRSTHDR(message);
        while let Some(header) = at.as_ref() {
            if header.cmsg_level == libc::SOL_SOCKET && header.cmsg_type == libc::SCM_TIMESTAMPNS {
                return Some(libc::CMSG_DATA(at).cast::<libc::timespec>().read_unaligned());
            }
            at = libc::CMSG_NXTHDR(message, at);
        }
    }
    None
}

/// Wall clock and monotonic clock at one moment, read once for all datagrams of a call.
struct Clocks {
    wall: SystemTime,
    monotonic: Instant,
}

impl Clocks {
    fn now() -> Clocks {
        Clocks { wall: SystemTime::now(), monotonic: Instant::now() }
    }

    /// Converts the kernel's time stamp to the monotonic clock, by its age on the wall clock.
    fn instant_of(&self, stamp: libc::timespec) -> Option<Instant> {
        let wall = UNIX_EPOCH.checked_add(Duration::new(
            stamp.tv_sec.try_into().ok()?,
            stamp.tv_nsec.try_into().ok()?,
        ))?;
        let age = self.wall.duration_since(wall).unwrap_or_default();
        if age > MAX_AGE {
            return None;
        }
        self.monotonic.checked_sub(age)
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use super::super::Socket;
    use super::*;

    /// Time for which a datagram waits. The kernel's clock alone is read, and no test can set it: real time must pass
    /// between arrival and reading, clearly more than [`SLACK`].
    const WAIT: Duration = Duration::from_millis(25);
    /// Maximum difference of two clocks that are read one after the other.
    const SLACK: Duration = Duration::from_millis(5);

    #[tokio::test]
    async fn a_datagram_that_waited_keeps_the_time_at_which_it_came() {
        let socket = Socket::bind("127.0.0.1:0".parse().expect("address")).expect("bind");
        let to = socket.local_addr();
        let socket = socket.into_async().expect("runtime");
        let sender = UdpSocket::bind("127.0.0.1:0").expect("bind");
        let mut inbox = Inbox::new();
        // The kernel begins to stamp a moment after it is asked to. Until then, its stamps are the times of reading.
        let begun = Instant::now();
        loop {
            let before = Instant::now();
            sender.send_to(b"windlass", to).expect("send");
            let after = Instant::now();
            tokio::time::sleep(WAIT).await;
            socket.readable().await.expect("readable");
            let read = Instant::now();
            socket.try_receive(&mut inbox).expect("receive");
            let got = inbox.datagrams().next().expect("one");
            assert_eq!(got.data, b"windlass");
            assert_eq!(got.source, sender.local_addr().expect("address"));
            let arrival = got.arrival.expect("stamp");
            if arrival + SLACK < read || begun.elapsed() > Duration::from_secs(2) {
                let age = arrival.duration_since(before);
                assert!(arrival + SLACK >= before && arrival <= after + SLACK, "{age:?}");
                break;
            }
        }
    }

    #[tokio::test]
    async fn datagrams_of_a_batch_come_in_order_and_one_that_is_too_long_is_empty() {
        let socket = Socket::bind("127.0.0.1:0".parse().expect("address")).expect("bind");
        let to = socket.local_addr();
        let socket = socket.into_async().expect("runtime");
        let sender = UdpSocket::bind("127.0.0.1:0").expect("bind");
        for n in 0..MAX_BATCH as u8 + 3 {
            let len = if n == 7 { MAX_DATAGRAM_BYTES + 1 } else { usize::from(n) + 1 };
            sender.send_to(&vec![n; len], to).expect("send");
        }
        let (mut inbox, mut lens, mut calls) = (Inbox::new(), Vec::new(), 0);
        while lens.len() < MAX_BATCH + 3 {
            socket.readable().await.expect("readable");
            if socket.try_receive(&mut inbox).is_ok() {
                calls += 1;
                lens.extend(inbox.datagrams().map(|d| d.data.len()));
            }
        }
        let expected: Vec<usize> =
            (1..=MAX_BATCH + 3).map(|n| if n == 8 { 0 } else { n }).collect();
        assert_eq!(lens, expected);
        assert!(calls < 10, "{calls} calls");
        let error = socket.try_receive(&mut inbox).expect_err("empty");
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        assert_eq!(inbox.datagrams().count(), 0);
    }
}
