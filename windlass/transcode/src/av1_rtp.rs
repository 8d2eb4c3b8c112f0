//! AV1 in RTP payloads (AOM, *RTP Payload Format For AV1*, §4.4 and §4.5).

use std::sync::Arc;

/// Maximum bytes of a payload: with all headers it fits into the packets of every network.
const MAX_PAYLOAD: usize = 1100;
/// First element continues the last one of the packet before.
const CONTINUES: u8 = 0x80;
/// Last element goes on in the next packet.
const GOES_ON: u8 = 0x40;
/// A coded video sequence begins.
const NEW_SEQUENCE: u8 = 0x08;

/// Type of a temporal delimiter, which packets do not have.
const TEMPORAL_DELIMITER: u8 = 2;
/// Bit of an OBU's first byte: an extension byte follows.
const HAS_EXTENSION: u8 = 4;
/// Bit of an OBU's first byte: its size follows.
const HAS_SIZE: u8 = 2;

/// The payloads of a picture's packets: its OBUs, without their sizes. `None` if the data are no OBUs with sizes.
pub(crate) fn payloads(data: &[u8], key: bool) -> Option<Vec<Arc<[u8]>>> {
    let mut packets = Vec::new();
    let mut packet = vec![if key { NEW_SEQUENCE } else { 0 }];
    let mut left = data;
    while !left.is_empty() {
        let (obu, rest) = split_obu(left)?;
        left = rest;
        if obu[0] >> 3 & 15 == TEMPORAL_DELIMITER {
            continue;
        }
        let mut element = obu.as_slice();
        while !element.is_empty() {
            // Each element is behind its length, of one byte or two.
            let room = MAX_PAYLOAD.saturating_sub(packet.len() + 2);
            if room == 0 {
                packets.push(std::mem::replace(&mut packet, vec![0]));
                continue;
            }
            let (part, after) = element.split_at(element.len().min(room));
            write_leb128(&mut packet, part.len());
            packet.extend_from_slice(part);
            element = after;
            if !element.is_empty() {
                packet[0] |= GOES_ON;
                packets.push(std::mem::replace(&mut packet, vec![CONTINUES]));
            }
        }
    }
    if packet.len() > 1 {
        packets.push(packet);
    }
    Some(packets.into_iter().map(Arc::from).collect())
}

/// Takes an OBU from the front of the data. It is returned without its size.
fn split_obu(data: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let (&first, mut rest) = data.split_first()?;
    if first & HAS_SIZE == 0 {
        return None;
    }
    let mut obu = vec![first & !HAS_SIZE];
    if first & HAS_EXTENSION != 0 {
        let (&extension, after) = rest.split_first()?;
        obu.push(extension);
        rest = after;
    }
    let (size, rest) = read_leb128(rest)?;
    let (content, rest) = rest.split_at_checked(size)?;
    obu.extend_from_slice(content);
    Some((obu, rest))
}

/// A number in LEB128 (AV1 §4.10.5), and what follows.
fn read_leb128(data: &[u8]) -> Option<(usize, &[u8])> {
    let mut value = 0;
    for (n, byte) in data.iter().enumerate().take(4) {
        value |= usize::from(byte & 0x7f) << (7 * n);
        if byte & 0x80 == 0 {
            return Some((value, &data[n + 1..]));
        }
    }
    None
}

fn write_leb128(to: &mut Vec<u8>, mut value: usize) {
    while value >= 0x80 {
        to.push(value as u8 | 0x80);
        value >>= 7;
    }
    to.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An OBU with its size, of a type.
    fn obu(kind: u8, content: &[u8]) -> Vec<u8> {
        let mut obu = vec![kind << 3 | HAS_SIZE];
        write_leb128(&mut obu, content.len());
        obu.extend_from_slice(content);
        obu
    }

    /// The elements of payloads, put together again.
    fn elements(payloads: &[Arc<[u8]>]) -> Vec<Vec<u8>> {
        let mut all: Vec<Vec<u8>> = Vec::new();
        let mut open = false;
        for payload in payloads {
            assert!(payload.len() <= MAX_PAYLOAD);
            assert_eq!(payload[0] & CONTINUES != 0, open);
            let mut rest = &payload[1..];
            while !rest.is_empty() {
                let (length, after) = read_leb128(rest).expect("length");
                let (part, after) = after.split_at(length);
                if std::mem::take(&mut open) {
                    all.last_mut().expect("begun").extend_from_slice(part);
                } else {
                    all.push(part.to_vec());
                }
                rest = after;
            }
            open = payload[0] & GOES_ON != 0;
        }
        assert!(!open);
        all
    }

    #[test]
    fn a_picture_is_cut_into_packets_and_can_be_put_together_again() {
        for bytes in [0, 1, 126, 127, 1080, 1090, 1094, 1095, 1096, 1097, 1098, 1099, 2200, 9999] {
            let frame: Vec<u8> = (0..bytes).map(|n| n as u8).collect();
            let data = [obu(2, &[]), obu(1, &[7; 10]), obu(6, &frame)].concat();
            let payloads = payloads(&data, true).expect("OBUs");
            assert_eq!(payloads[0][0] & NEW_SEQUENCE, NEW_SEQUENCE);
            assert!(payloads[1..].iter().all(|payload| payload[0] & NEW_SEQUENCE == 0));
            let elements = elements(&payloads);
            assert_eq!(elements[0], [&[1 << 3][..], &[7; 10]].concat());
            assert_eq!(elements[1], [&[6 << 3][..], &frame].concat());
            assert_eq!(elements.len(), 2, "{bytes}");
        }
    }

    #[test]
    fn an_extension_stays_before_the_content() {
        let payloads = payloads(&[6 << 3 | HAS_SIZE | HAS_EXTENSION, 9, 1, 5], false);
        assert_eq!(elements(&payloads.expect("an OBU")), [[6 << 3 | HAS_EXTENSION, 9, 5]]);
    }

    #[test]
    fn what_is_no_obu_with_a_size_has_no_packets() {
        let (without, cut) = ([6 << 3, 1, 2], [6 << 3 | HAS_SIZE, 9, 2]);
        for data in [&without[..], &cut, &[6 << 3 | HAS_SIZE, 0xff, 0xff, 0xff, 0xff, 1]] {
            assert_eq!(payloads(data, false), None);
        }
        assert_eq!(payloads(&[], false), Some(Vec::new()));
    }
}
