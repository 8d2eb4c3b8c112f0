//! Sends many datagrams with one call: `sendmmsg`, with several datagrams of one size to one address as one message
//! (UDP GSO, `UDP_SEGMENT`, Linux 4.18 and later; without it each datagram is a message).

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::time::Instant;

use windlass_types::Latencies;

use socket2::SockAddr;

/// Maximum number of messages in one call.
const MAX_MESSAGES: usize = 64;
/// Maximum number of datagrams in an outbox. One flush sends all of them.
const MAX_DATAGRAMS: usize = 256;
/// Maximum number of datagrams in one message. The kernel's limit is 64.
const MAX_SEGMENTS: usize = 32;
/// Maximum bytes of one message: the longest UDP datagram, less headers.
const MAX_MESSAGE_BYTES: usize = 60_000;
/// Buffer of the control message with the segment size, in bytes.
const CONTROL_BYTES: usize = 32;

/// A datagram to send.
struct Datagram {
    to: SocketAddr,
    data: Vec<u8>,
    /// Arrival of the packet that the datagram forwards.
    arrival: Option<Instant>,
}

/// Result of a flush.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(in crate::net) struct Sent {
    /// Datagrams that the socket accepted.
    pub(in crate::net) taken: u64,
    /// Datagrams that the socket did not accept.
    pub(in crate::net) refused: u64,
    /// Accepted datagrams that shared a message with others (UDP GSO).
    pub(in crate::net) segmented: u64,
    /// Number of system calls.
    pub(in crate::net) calls: u64,
}

/// Datagrams to send, in order.
pub(in crate::net) struct Outbox {
    waiting: Vec<Datagram>,
    /// Whether the kernel supports UDP GSO.
    segments: bool,
    /// Time from the arrival of packets to the calls that forwarded them.
    pub(in crate::net) forwarding: Latencies,
}

impl Outbox {
    /// An empty outbox. `segments`: the kernel supports UDP GSO.
    pub(in crate::net) fn new(segments: bool) -> Outbox {
        let waiting = Vec::with_capacity(MAX_DATAGRAMS);
        Outbox { waiting, segments, forwarding: Latencies::default() }
    }

    /// Adds a datagram; `false` if the outbox is full and must be flushed.
    pub(in crate::net) fn push(
        &mut self,
        to: SocketAddr,
        data: Vec<u8>,
        arrival: Option<Instant>,
    ) -> bool {
        self.waiting.push(Datagram { to, data, arrival });
        self.waiting.len() < MAX_DATAGRAMS
    }

    /// Sends all datagrams. Those that the socket does not accept are dropped, as on a full link.
    pub(super) fn flush(&mut self, socket: &impl AsRawFd) -> Sent {
        let mut sent = Sent::default();
        if self.waiting.is_empty() {
            return sent;
        }
        let now = Instant::now();
        for arrival in self.waiting.iter().filter_map(|d| d.arrival) {
            self.forwarding.record(now.saturating_duration_since(arrival));
        }
        let mut rest = &self.waiting[..];
        while !rest.is_empty() {
            let runs = runs(rest, self.segments);
            sent.calls += 1;
            match send(socket, rest, &runs) {
                Ok(messages) => {
                    for &run in &runs[..messages] {
                        sent.taken += run as u64;
                        sent.segmented += if run > 1 { run as u64 } else { 0 };
                    }
                    rest = &rest[runs[..messages].iter().sum()..];
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    sent.refused += rest.len() as u64;
                    break;
                }
                // The device or the kernel cannot: send each datagram by itself from now on.
                Err(error) if runs[0] > 1 && cannot_segment(&error) => {
                    tracing::info!(%error, "UDP segmentation offload failed: sending each datagram by itself, which takes more CPU time");
                    self.segments = false;
                }
                // An ICMP error for an earlier datagram, or no route: drops the first message only.
                Err(error) => {
                    tracing::trace!(%error, "UDP send failed: datagram dropped");
                    sent.refused += runs[0] as u64;
                    rest = &rest[runs[0]..];
                }
            }
        }
        self.waiting.clear();
        sent
    }
}

fn cannot_segment(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::EIO | libc::EINVAL | libc::EOPNOTSUPP | libc::EMSGSIZE)
    )
}

/// The number of datagrams in each message of one call. In a message all datagrams but the last have one size, and the
/// last is not longer.
fn runs(datagrams: &[Datagram], segments: bool) -> Vec<usize> {
    let mut runs = Vec::with_capacity(MAX_MESSAGES.min(datagrams.len()));
    let mut rest = datagrams;
    while let Some(first) = rest.first().filter(|_| runs.len() < MAX_MESSAGES) {
        let size = first.data.len();
        let (mut run, mut bytes, mut open) = (1, size, segments && size > 0);
        while let Some(next) = rest.get(run).filter(|next| {
            let fits = (1..=size).contains(&next.data.len())
                && bytes + next.data.len() <= MAX_MESSAGE_BYTES;
            open && run < MAX_SEGMENTS && next.to == first.to && fits
        }) {
            bytes += next.data.len();
            open = next.data.len() == size;
            run += 1;
        }
        runs.push(run);
        rest = &rest[run..];
    }
    runs
}

/// Buffer of a control message, aligned for the kernel.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
struct Control([u8; CONTROL_BYTES]);

/// Makes one call; returns how many messages were accepted, at least one. `runs` divides the first `datagrams` into
/// messages.
fn send(socket: &impl AsRawFd, datagrams: &[Datagram], runs: &[usize]) -> io::Result<usize> {
    let total: usize = runs.iter().sum();
    let mut slices: Vec<libc::iovec> = datagrams[..total]
        .iter()
        .map(|d| libc::iovec { iov_base: d.data.as_ptr().cast_mut().cast(), iov_len: d.data.len() })
        .collect();
    let mut addresses: Vec<SockAddr> = Vec::with_capacity(runs.len());
    let mut control = vec![Control([0; CONTROL_BYTES]); runs.len()];
    let mut at = 0;
    for &run in runs {
        addresses.push(datagrams[at].to.into());
        at += run;
    }
    let mut messages = Vec::with_capacity(runs.len());
    at = 0;
    for ((&run, address), control) in runs.iter().zip(&mut addresses).zip(&mut control) {
        // SAFETY: a message header is plain data, for which all zeros are an empty one.
        let mut message: libc::mmsghdr = unsafe { std::mem::zeroed() };
        let header = &mut message.msg_hdr;
        header.msg_name = address.as_ptr().cast_mut().cast();
        header.msg_namelen = address.len();
        header.msg_iov = slices[at..].as_mut_ptr();
        header.msg_iovlen = run as _;
        if run > 1 {
            let size = datagrams[at].data.len() as u16;
            header.msg_control = control.0.as_mut_ptr().cast();
            // SAFETY: the room is aligned for a control message header and longer than one with two bytes behind it
            // (24 bytes of 32), as `msg_controllen` says; it lives until the call below has returned.
            unsafe {
                header.msg_controllen = libc::CMSG_SPACE(size_of::<u16>() as u32) as _;
                let first = libc::CMSG_FIRSTHDR(header);
                (*first).cmsg_level = libc::SOL_UDP;
                (*first).cmsg_type = libc::UDP_SEGMENT;
                (*first).cmsg_len = libc::CMSG_LEN(size_of::<u16>() as u32) as _;
                libc::CMSG_DATA(first).cast::<u16>().write_unaligned(size);
            }
        }
        messages.push(message);
        at += run;
    }
    // SAFETY: the descriptor is open. Every pointer in the headers points to an element of a vector above, none of
    // which is changed or dropped before the call returns, with its true length or count beside it; the kernel only
    // reads them.
    let n = unsafe {
        libc::sendmmsg(
            socket.as_raw_fd(),
            messages.as_mut_ptr(),
            messages.len() as libc::c_uint,
            libc::MSG_DONTWAIT,
        )
    };
    if n < 0 { Err(io::Error::last_os_error()) } else { Ok(n as usize) }
}

/// Whether the kernel supports UDP GSO.
pub(super) fn supports_segments(socket: &impl AsRawFd) -> bool {
    let mut size: libc::c_int = 0;
    let mut len = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: the descriptor is open; the option's value and its length are live locals of the types that it has.
    let rc = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_UDP,
            libc::UDP_SEGMENT,
            (&raw mut size).cast(),
            &raw mut len,
        )
    };
    rc == 0
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::time::Duration;

    use super::*;

    fn pair() -> (UdpSocket, UdpSocket, SocketAddr) {
        let [from, to] = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").expect("bind"));
        to.set_read_timeout(Some(Duration::from_secs(5))).expect("timeout");
        let address = to.local_addr().expect("address");
        (from, to, address)
    }

    fn received(socket: &UdpSocket, n: usize) -> Vec<Vec<u8>> {
        let mut buffer = [0; 4096];
        (0..n)
            .map(|_| socket.recv(&mut buffer).map(|n| buffer[..n].to_vec()).expect("in time"))
            .collect()
    }

    fn datagrams(sizes: &[usize], to: SocketAddr) -> Vec<Datagram> {
        let datagram =
            |(n, &size): (usize, &usize)| Datagram { to, data: vec![n as u8; size], arrival: None };
        sizes.iter().enumerate().map(datagram).collect()
    }

    fn sent(segments: bool, sizes: &[usize]) -> (Sent, Vec<Vec<u8>>) {
        let (from, to, address) = pair();
        let mut outbox = Outbox::new(segments && supports_segments(&from));
        for datagram in datagrams(sizes, address) {
            assert!(outbox.push(datagram.to, datagram.data, None));
        }
        let sent = outbox.flush(&from);
        assert!(outbox.waiting.is_empty());
        (sent, received(&to, sizes.len()))
    }

    #[test]
    fn datagrams_arrive_as_they_were_whether_they_share_messages_or_not() {
        let sizes = [100, 100, 100, 40, 100, 7, 8, 1200, 1200, 1200];
        for segments in [false, true] {
            let (sent, arrived) = sent(segments, &sizes);
            assert_eq!((sent.taken, sent.refused, sent.calls), (10, 0, 1), "{segments}");
            let lens: Vec<usize> = arrived.iter().map(Vec::len).collect();
            assert_eq!(lens, sizes);
            assert!(arrived.iter().enumerate().all(|(n, d)| d.iter().all(|&b| b == n as u8)));
        }
    }

    #[test]
    fn datagrams_of_one_size_share_a_message_up_to_a_shorter_one() {
        let (here, there) =
            ("192.0.2.1:1".parse().expect("address"), "192.0.2.2:1".parse().expect("address"));
        let mut all = datagrams(&[100, 100, 60, 60, 100, 0, 100], here);
        all.extend(datagrams(&[100, 100], there));
        assert_eq!(runs(&all, true), [3, 1, 1, 1, 1, 2]);
        assert_eq!(runs(&all, false), [1; 9]);
    }

    #[test]
    fn messages_are_bounded_in_datagrams_and_in_bytes_and_calls_in_messages() {
        let to = "192.0.2.1:1".parse().expect("address");
        assert_eq!(runs(&datagrams(&[10; 70], to), true), [32, 32, 6]);
        assert_eq!(runs(&datagrams(&[20_000; 7], to), true), [3, 3, 1]);
        assert_eq!(runs(&datagrams(&[10; 70], to), false).len(), MAX_MESSAGES);
    }

    #[test]
    fn a_datagram_that_cannot_be_sent_costs_none_of_the_others() {
        let (from, to, address) = pair();
        let mut outbox = Outbox::new(true);
        // There is no way from the loopback address to there.
        let nowhere: SocketAddr = "192.0.2.1:9".parse().expect("address");
        outbox.push(address, vec![1; 10], None);
        outbox.push(nowhere, vec![2; 10], None);
        outbox.push(nowhere, vec![2; 70_000], None);
        outbox.push(address, vec![3; 10], None);
        let sent = outbox.flush(&from);
        assert_eq!(sent.taken + sent.refused, 4);
        assert!(sent.refused >= 1, "{sent:?}");
        assert_eq!(received(&to, 2), [vec![1; 10], vec![3; 10]]);
    }

    #[test]
    fn a_full_outbox_says_so_and_time_is_measured_from_arrivals() {
        let (from, to, address) = pair();
        let now = Instant::now();
        let mut outbox = Outbox::new(true);
        let full = (0..MAX_DATAGRAMS)
            .map(|_| outbox.push(address, vec![5; 4], Some(now)))
            .position(|room| !room);
        assert_eq!(full, Some(MAX_DATAGRAMS - 1));
        assert_eq!(outbox.flush(&from).taken, MAX_DATAGRAMS as u64);
        assert_eq!(received(&to, 50).len(), 50);
        assert_eq!(outbox.forwarding.count(), MAX_DATAGRAMS as u64);
        assert_eq!(outbox.flush(&from), Sent::default());
    }
}
