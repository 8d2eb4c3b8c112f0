//! Malformed datagrams of every protocol that the media port speaks, from many addresses.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// Addresses that they come from.
const SENDERS: u8 = 64;

/// Sends `count` datagrams, at most so many a second; those that were sent.
pub(crate) fn flood(to: SocketAddr, count: u64, per_second: u64) -> u64 {
    let mut dice = StdRng::seed_from_u64(8);
    let senders: Vec<UdpSocket> = (0..SENDERS)
        .map(|n| UdpSocket::bind((Ipv4Addr::new(127, 0, 8, n + 1), 0)).expect("a socket"))
        .collect();
    let begun = Instant::now();
    let mut sent = 0;
    for n in 0..count {
        let due = begun + Duration::from_secs_f64(n as f64 / per_second as f64);
        let ahead = due.saturating_duration_since(Instant::now());
        if ahead > Duration::from_millis(2) {
            std::thread::sleep(ahead);
        }
        let datagram = malformed(&mut dice);
        let from = &senders[dice.random_range(0..senders.len())];
        sent += u64::from(from.send_to(&datagram, to).is_ok());
    }
    sent
}

/// One of any kind.
pub(crate) fn malformed(dice: &mut StdRng) -> Vec<u8> {
    let mut datagram = match dice.random_range(0..6) {
        0 => noise(dice, 1500),
        1 => stun(dice),
        2 => dtls(dice),
        3 => rtp(dice),
        4 => rtcp(dice),
        _ => {
            let mut first = noise(dice, 200);
            let kinds = [0, 1, 20, 22, 23, 63, 64, 128, 129, 144, 191, 200, 255];
            if let Some(byte) = first.first_mut() {
                *byte = kinds[dice.random_range(0..kinds.len())];
            }
            first
        }
    };
    // Half of them are cut short or have a bit wrong, wherever that is.
    if dice.random() && !datagram.is_empty() {
        let at = dice.random_range(0..datagram.len());
        if dice.random() {
            datagram.truncate(at);
        } else {
            datagram[at] ^= 1 << dice.random_range(0..8);
        }
    }
    datagram
}

fn noise(dice: &mut StdRng, most: usize) -> Vec<u8> {
    (0..dice.random_range(0..=most)).map(|_| dice.random()).collect()
}

/// A length that is right, or absurd.
fn length(dice: &mut StdRng, right: usize) -> u16 {
    match dice.random_range(0..4) {
        0 => dice.random(),
        1 => (right as u16).wrapping_add(1),
        2 => u16::MAX,
        _ => right as u16,
    }
}

/// RFC 8489: a header, and attributes whose lengths may lie.
fn stun(dice: &mut StdRng) -> Vec<u8> {
    let mut attributes = Vec::new();
    for _ in 0..dice.random_range(0..6) {
        let kinds =
            [0x0001, 0x0006, 0x0008, 0x0009, 0x0014, 0x0020, 0x0024, 0x0025, 0x8028, 0x8029];
        let kind: u16 =
            if dice.random() { kinds[dice.random_range(0..kinds.len())] } else { dice.random() };
        let value = noise(dice, 40);
        attributes.extend(kind.to_be_bytes());
        attributes.extend(length(dice, value.len()).to_be_bytes());
        attributes.extend(&value);
        attributes.resize(attributes.len().next_multiple_of(4), 0);
    }
    let kind: u16 =
        [0x0001, 0x0101, 0x0111, 0x0011, dice.random::<u16>() & 0x3fff][dice.random_range(0..5)];
    let mut message = kind.to_be_bytes().to_vec();
    message.extend(length(dice, attributes.len()).to_be_bytes());
    message.extend(0x2112_a442u32.to_be_bytes());
    message.extend(dice.random::<[u8; 12]>());
    message.extend(attributes);
    message
}

/// RFC 6347: records of all types, handshake fragments that begin and end anywhere.
fn dtls(dice: &mut StdRng) -> Vec<u8> {
    let mut body = if dice.random() {
        let mut handshake = vec![dice.random_range(0..25)];
        let whole = dice.random_range(0..0x01_00_00_00u32);
        handshake.extend(&whole.to_be_bytes()[1..]);
        handshake.extend(dice.random::<u16>().to_be_bytes());
        for _ in 0..2 {
            let number = if dice.random() { whole } else { dice.random::<u32>() >> 8 };
            handshake.extend(&number.to_be_bytes()[1..]);
        }
        handshake
    } else {
        Vec::new()
    };
    body.extend(noise(dice, 300));
    let mut record =
        vec![dice.random_range(20..64), 0xfe, [0xfd, 0xff, 0xfc][dice.random_range(0..3)]];
    record.extend(if dice.random() { [0; 8] } else { dice.random() });
    record.extend(length(dice, body.len()).to_be_bytes());
    record.extend(body);
    record
}

/// RFC 3550: contributing sources, extensions and padding that reach beyond the end.
fn rtp(dice: &mut StdRng) -> Vec<u8> {
    let mut packet = vec![0x80 | dice.random_range(0..0x40), dice.random()];
    packet.extend(dice.random::<[u8; 10]>());
    if packet[0] & 0x10 != 0 {
        packet.extend([0xbe, 0xde]);
        packet.extend(length(dice, 4).to_be_bytes());
    }
    packet.extend(noise(dice, 1200));
    packet
}

/// Several reports, the first ones perhaps sound, with counts and lengths that do not fit.
fn rtcp(dice: &mut StdRng) -> Vec<u8> {
    let mut compound = Vec::new();
    for _ in 0..dice.random_range(1..5) {
        let body = noise(dice, 64);
        compound.push(0x80 | dice.random_range(0..0x40));
        compound.push(dice.random_range(192..224));
        compound.extend(length(dice, body.len() / 4).to_be_bytes());
        compound.extend(body);
    }
    compound
}
