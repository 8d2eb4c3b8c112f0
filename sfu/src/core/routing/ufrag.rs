//! The receiver of a STUN request: the server's half of its USERNAME (RFC 8445 §7.2.2, RFC 8489 §14.3).

/// STUN attribute USERNAME.
const USERNAME: u16 = 0x0006;
/// STUN magic cookie, which begins at the fifth byte of every STUN message (RFC 8489 §5).
const MAGIC_COOKIE: [u8; 4] = [0x21, 0x12, 0xa4, 0x42];
/// Bytes of a STUN header.
const HEADER: usize = 20;

/// The receiver's user name fragment; `None` without one, or if the datagram is not a STUN message.
pub(crate) fn ufrag(datagram: &[u8]) -> Option<&str> {
    std::str::from_utf8(attribute(datagram, USERNAME)?).ok()?.split(':').next()
}

/// The first attribute of type `wanted`; `None` without one, or if the datagram is not a STUN message.
pub(crate) fn attribute(datagram: &[u8], wanted: u16) -> Option<&[u8]> {
    let (head, mut rest) = datagram.split_at_checked(HEADER)?;
    if head[0] >= 4 || head[4..8] != MAGIC_COOKIE {
        return None;
    }
    while let Some((kind, behind)) = rest.split_at_checked(4) {
        let len = usize::from(u16::from_be_bytes([kind[2], kind[3]]));
        let value = behind.get(..len)?;
        if u16::from_be_bytes([kind[0], kind[1]]) == wanted {
            return Some(value);
        }
        rest = behind.get(len.next_multiple_of(4)..)?;
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn request(attributes: &[(u16, &[u8])]) -> Vec<u8> {
        let mut out = vec![0, 1, 0, 0];
        out.extend(MAGIC_COOKIE);
        out.extend([9; 12]);
        for (kind, value) in attributes {
            out.extend(kind.to_be_bytes());
            out.extend((value.len() as u16).to_be_bytes());
            out.extend_from_slice(value);
            out.resize(out.len().next_multiple_of(4), 0);
        }
        out
    }

    #[test]
    fn the_receivers_half_is_found_behind_other_attributes() {
        let request =
            request(&[(0x24, &[1, 2, 3, 4]), (0x8022, b"agent"), (USERNAME, b"server:client")]);
        assert_eq!(ufrag(&request), Some("server"));
    }

    #[test]
    fn what_is_no_request_has_none() {
        let whole = request(&[(USERNAME, b"server:client")]);
        assert_eq!(ufrag(&request(&[])), None);
        assert_eq!(ufrag(&whole[..30]), None, "cut short");
        for at in [0, 4] {
            let mut other = whole.clone();
            other[at] = 0x80;
            assert_eq!(ufrag(&other), None);
        }
    }

    proptest! {
        #[test]
        fn foreign_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..80), cookie: bool) {
            let mut bytes = bytes;
            if cookie && bytes.len() > 8 {
                bytes[4..8].copy_from_slice(&MAGIC_COOKIE);
                bytes[0] = 0;
            }
            let _ = ufrag(&bytes);
        }
    }
}
