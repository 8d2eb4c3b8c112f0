//! The VP8 RTP payload descriptor (RFC 7741). Malformed input is an error, never a panic.

use windlass_types::Size;

use super::descriptor::{Descriptor, Malformed, PictureId, Reader};

/// Reads the descriptor at the start of an RTP payload.
pub(crate) fn parse(payload: &[u8]) -> Result<Descriptor, Malformed> {
    let mut reader = Reader::new(payload);
    let first = reader.u8()?;
    let (mut picture_id, mut tl0) = (None, None);
    let (mut temporal, mut resumes) = (None, None);
    if first & 0x80 != 0 {
        let has = reader.u8()?;
        if has & 0x80 != 0 {
            picture_id = Some(PictureId::read(&mut reader)?);
        }
        if has & 0x40 != 0 {
            tl0 = Some((reader.u8()?, reader.at - 1));
        }
        if has & 0x30 != 0 {
            let byte = reader.u8()?;
            temporal = (has & 0x20 != 0).then_some(byte >> 6);
            // Layer sync: the frame needs base frames alone.
            resumes = temporal.filter(|_| byte & 0x20 != 0);
        }
    }
    let data = payload.get(reader.at).ok_or(Malformed)?;
    // The first partition begins the frame; its first bit is 0 in key frames (RFC 6386 §9.1).
    let (starts, partition) = (first & 0x10 != 0, first & 0x07);
    let begin = starts && partition == 0;
    let inter = !begin || data & 1 != 0;
    Ok(Descriptor {
        picture_id,
        tl0,
        inter,
        begin,
        end: true,
        spatial: 0,
        temporal,
        resumes,
        layers: None,
        len: reader.at,
    })
}

/// Size of a key frame, from its start (RFC 6386 §9.1); `None` if it is none.
pub(crate) fn key_frame_size(frame: &[u8]) -> Option<Size> {
    let &[tag, _, _, 0x9d, 0x01, 0x2a, ref rest @ ..] = frame else { return None };
    let &[w0, w1, h0, h1, ..] = rest else { return None };
    let side = |low, high| u16::from_le_bytes([low, high]) & 0x3fff;
    let size = Size::new(side(w0, w1), side(h0, h1));
    (tag & 1 == 0 && size.width > 0 && size.height > 0).then_some(size)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// X, S; I, L, T; 15-bit id; TL0PICIDX; TID; then a key frame of 640×360.
    const KEY: [u8; 16] = [
        0x90, 0xe0, 0x81, 0x02, 0x07, 0x00, 0x10, 0x02, 0x00, 0x9d, 0x01, 0x2a, 0x80, 0x02, 0x68,
        0x01,
    ];

    #[test]
    fn a_key_frame_with_its_size_is_read() {
        let d = parse(&KEY).expect("descriptor");
        assert_eq!((d.picture_id.expect("id").value, d.tl0, d.len), (0x102, Some((7, 4)), 6));
        assert!(d.starts_key());
        assert_eq!(key_frame_size(&KEY[d.len..]), Some(Size::new(640, 360)));
    }

    #[test]
    fn temporal_layers_are_read() {
        // The last byte of the descriptor: layer 2, without and with sync.
        let read = |byte| {
            let d = parse(&[0x90, 0xa0, 0x81, 0x02, byte, 0x11]).expect("descriptor");
            (d.temporal, d.resumes, d.is_base())
        };
        assert_eq!(read(0x80), (Some(2), None, false));
        assert_eq!(read(0xa0), (Some(2), Some(2), false));
        assert_eq!(read(0x00), (Some(0), None, true));
        let without = parse(&[0x90, 0x80, 0x81, 0x02, 0x11]).expect("descriptor");
        assert_eq!((without.temporal, without.is_base()), (None, true));
    }

    #[test]
    fn a_later_packet_of_a_frame_begins_none() {
        assert!(!parse(&[0x80, 0x00, 0x10]).expect("descriptor").begin);
        assert!(!parse(&[0x11, 0x10]).expect("second partition").starts_key());
        assert!(!parse(&[0x10, 0x11]).expect("an inter frame").starts_key());
        assert_eq!(parse(&[0x90, 0xe0, 0x81]), Err(Malformed));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(data: Vec<u8>, id: u16, tl0: u8) {
            let _ = key_frame_size(&data);
            if let Ok(d) = parse(&data) {
                prop_assert!(d.len < data.len());
                let mut rewritten = data.clone();
                d.rewrite(&mut rewritten, id, tl0);
                let again = parse(&rewritten).expect("still a descriptor");
                prop_assert_eq!((again.len, again.begin, again.inter), (d.len, d.begin, d.inter));
                prop_assert_eq!(again.picture_id.map(|p| p.value), d.picture_id.map(|p| id & p.mask()));
                prop_assert_eq!(&rewritten[d.len..], &data[d.len..]);
            }
        }
    }
}
