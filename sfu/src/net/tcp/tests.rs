//! Connections that are slow, silent, half open or not ours at all, on real sockets.

use std::io::{Read, Write};
use std::net::TcpStream as Client;

use super::frame::framed;
use super::*;

const TIMEOUT: Duration = Duration::from_secs(20);

fn port(connections: usize) -> TcpPort {
    let listen = "127.0.0.1:0".parse().expect("address");
    TcpPort::start(&TcpConfig { connections, ..TcpConfig::at(listen) }).expect("started")
}

fn connect(port: &TcpPort) -> Client {
    let client = Client::connect(port.local_addr()).expect("connected");
    client.set_read_timeout(Some(TIMEOUT)).expect("timeout");
    client.set_nodelay(true).expect("option");
    client
}

/// The next datagram that comes.
fn arrived(port: &mut TcpPort) -> TcpDatagram {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    let next = async { tokio::time::timeout(TIMEOUT, port.next()).await };
    runtime.expect("runtime").block_on(next).expect("something comes")
}

/// Waits for the port's thread. It tells nobody what it counts or that it has forgotten a connection, and the client
/// sees the end of a connection before that. So the test looks again and again, and waits no longer than it must.
fn until(what: &str, holds: impl Fn() -> bool) {
    let end = Instant::now() + TIMEOUT;
    while !holds() {
        assert!(Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn received(client: &mut Client) -> Vec<u8> {
    let mut head = [0; 2];
    client.read_exact(&mut head).expect("in time");
    let mut frame = vec![0; usize::from(u16::from_be_bytes(head))];
    client.read_exact(&mut frame).expect("in time");
    frame
}

/// Whether the server closes the connection, or has.
fn is_closed(client: &mut Client) -> bool {
    loop {
        match client.read(&mut [0; 64]) {
            Ok(0) => return true,
            Ok(_) => {}
            Err(error) => return error.kind() != io::ErrorKind::WouldBlock,
        }
    }
}

#[test]
fn datagrams_go_both_ways_and_a_stream_byte_by_byte_is_as_good() {
    let mut port = port(10);
    let mut client = connect(&port);
    let frame = framed(b"one byte at a time").expect("frame");
    for byte in &frame {
        client.write_all(&[*byte]).expect("sent");
    }
    client
        .write_all(&[framed(b"two").expect("frame"), framed(b"three").expect("frame")].concat())
        .expect("sent");
    let first = arrived(&mut port);
    assert_eq!(first.data, b"one byte at a time");
    assert_eq!(first.from, client.local_addr().expect("address"));
    assert_eq!([arrived(&mut port).data, arrived(&mut port).data], [&b"two"[..], b"three"]);
    for n in 0..50_u8 {
        port.sender().send(Instant::now(), first.from, &vec![n; usize::from(n) * 20]);
    }
    for n in 0..50_u8 {
        assert_eq!(received(&mut client), vec![n; usize::from(n) * 20]);
    }
    let counters = port.sender().counters();
    assert_eq!((counters.tcp_connections, counters.tcp_frames_in), (1, 3));
    until("the last is counted", || port.sender().counters().tcp_frames_out == 50);
}

#[test]
fn what_is_no_frame_of_ours_ends_its_connection_and_no_other() {
    let mut port = port(10);
    let mut good = connect(&port);
    for garbage in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0xff; 4000], b"\x16\x03\x01\x02\x00\x01\x00"]
    {
        let mut bad = connect(&port);
        bad.write_all(garbage).expect("sent");
        assert!(is_closed(&mut bad));
    }
    good.write_all(&framed(b"still here").expect("frame")).expect("sent");
    assert_eq!(arrived(&mut port).data, b"still here");
    until("only one is left", || port.sender().open() == 1);
    assert_eq!(port.sender().counters().tcp_malformed, 3);
}

#[test]
fn a_client_that_ends_half_way_through_a_frame_is_forgotten() {
    let port = port(10);
    let mut client = connect(&port);
    let from = client.local_addr().expect("address");
    client.write_all(&framed(b"a whole one").expect("frame")[..5]).expect("sent");
    until("it is there", || port.sender().open() == 1);
    client.shutdown(std::net::Shutdown::Write).expect("shut down");
    until("it is gone", || port.sender().open() == 0);
    port.sender().send(Instant::now(), from, b"too late");
    assert_eq!(port.sender().counters().tcp_gone, 1);
}

#[test]
fn a_stranger_that_goes_on_talking_is_hung_up_on() {
    let mut port = port(10);
    let mut client = connect(&port);
    let frame = framed(b"hello?").expect("frame");
    let sent = (0..5000).take_while(|_| client.write_all(&frame).is_ok()).count();
    assert!(sent > 100 && is_closed(&mut client));
    until("it is gone", || port.sender().open() == 0);
    assert_eq!(port.sender().counters().tcp_unanswered, 1);
    let heard = std::iter::from_fn(|| port.try_next()).count();
    assert!((90..=100).contains(&heard), "{heard}");
}

#[test]
fn what_a_slow_reader_is_sent_is_dropped_and_costs_neither_memory_nor_others() {
    let mut port = port(10);
    let (mut slow, mut other) = (connect(&port), connect(&port));
    let mut hello = |client: &mut Client| {
        client.write_all(&framed(b"hello").expect("frame")).expect("sent");
        arrived(&mut port).from
    };
    let (to_slow, to_other) = (hello(&mut slow), hello(&mut other));
    let sender = port.sender().clone();
    // 60 MB in two seconds by the time that it is told, of which nobody reads a byte.
    let (media, begun) = (vec![0x80; 1200], Instant::now());
    let mut waited = 0;
    for round in 0..200 {
        let now = begun + Duration::from_millis(10) * round;
        for _ in 0..250 {
            let asked = Instant::now();
            sender.send(now, to_slow, &media);
            waited += usize::from(asked.elapsed() >= Duration::from_millis(100));
        }
        sender.send(now, to_other, b"in time");
        assert_eq!(received(&mut other), b"in time");
    }
    let counters = sender.counters();
    let dropped = counters.tcp_dropped_full + counters.tcp_dropped_late;
    assert!(dropped > 30_000 && counters.tcp_dropped_late > 0, "{counters:?}");
    // Some, where the thread lost its core.
    assert!(waited < 50, "{waited} of 50000");
    // What it reads at last are whole frames.
    for _ in 0..100 {
        assert_eq!(received(&mut slow), media);
    }
}

#[test]
fn ten_thousand_connections_leave_room_for_nobody_and_harm_nothing() {
    let mut port = port(500);
    let mut first = connect(&port);
    first.write_all(&framed(b"first").expect("frame")).expect("sent");
    let from = arrived(&mut port).from;
    // A connection without an answer ends after ten seconds. On a busy machine the others take longer than that.
    port.sender().send(Instant::now(), from, b"served");
    assert_eq!(received(&mut first), b"served");
    let mut held = Vec::new();
    for n in 0..10_000 {
        let Ok(client) = Client::connect(port.local_addr()) else { continue };
        // The files that a process may have open are not without end.
        if n % 16 == 0 {
            held.push(client);
        }
    }
    port.sender().send(Instant::now(), from, b"still served");
    assert_eq!(received(&mut first), b"still served");
    assert!(port.sender().open() <= 500);
    drop(held);
    until("they are forgotten", || port.sender().open() == 1);
    let counters = port.sender().counters();
    assert!(counters.tcp_connections + counters.tcp_refused_full > 9000, "{counters:?}");
    let mut late = connect(&port);
    late.write_all(&framed(b"there is room again").expect("frame")).expect("sent");
    assert_eq!(arrived(&mut port).data, b"there is room again");
}

#[test]
fn an_address_in_use_is_an_error_and_a_stopped_port_is_free_again() {
    let port = port(1);
    let local = port.local_addr();
    assert!(TcpPort::start(&TcpConfig::at(local)).is_err());
    let mut client = connect(&port);
    drop(port);
    assert!(is_closed(&mut client));
    TcpPort::start(&TcpConfig::at(local)).expect("free again");
}
