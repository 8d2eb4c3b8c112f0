//! The VP9 RTP payload descriptor (RFC 9628). Malformed input is an error, never a panic.

use windlass_types::Size;

use super::descriptor::{
    ALL_TEMPORAL, Descriptor, MAX_SPATIAL, Malformed, PictureId, Reader, SpatialLayers,
};

/// Reads the descriptor at the start of an RTP payload.
pub(crate) fn parse(payload: &[u8]) -> Result<Descriptor, Malformed> {
    let mut reader = Reader::new(payload);
    let flags = reader.u8()?;
    let (inter, flexible) = (flags & 0x40 != 0, flags & 0x10 != 0);
    let mut picture_id = None;
    if flags & 0x80 != 0 {
        picture_id = Some(PictureId::read(&mut reader)?);
    }
    let (mut spatial, mut tl0) = (0, None);
    let (mut temporal, mut resumes) = (None, None);
    if flags & 0x20 != 0 {
        let layers = reader.u8()?;
        spatial = layers >> 1 & 7;
        temporal = Some(layers >> 5);
        // Switching up point: no later frame needs one of a higher layer from before this one.
        resumes = (layers & 0xf0 == 0x10).then_some(ALL_TEMPORAL);
        if !flexible {
            tl0 = Some((reader.u8()?, reader.at - 1));
        }
    }
    if flexible && inter {
        // Up to three references, each with a bit that says whether another follows.
        let mut more = true;
        for _ in 0..3 {
            if more {
                more = reader.u8()? & 1 != 0;
            }
        }
        if more {
            return Err(Malformed);
        }
    }
    let has_structure = flags & 0x02 != 0;
    let layers = has_structure.then(|| read_scalability_structure(&mut reader)).transpose()?;
    if reader.at >= payload.len() {
        return Err(Malformed);
    }
    let (begin, end) = (flags & 0x08 != 0, flags & 0x04 != 0);
    Ok(Descriptor {
        picture_id,
        tl0,
        inter,
        begin,
        end,
        spatial,
        temporal,
        resumes,
        layers,
        len: reader.at,
    })
}

/// Reads the number and the sizes of the spatial layers. Empty sizes do not count.
fn read_scalability_structure(reader: &mut Reader<'_>) -> Result<SpatialLayers, Malformed> {
    let head = reader.u8()?;
    let count = usize::from(head >> 5) + 1;
    let mut sizes = [None; MAX_SPATIAL];
    if head & 0x10 != 0 {
        for n in 0..count {
            let mut side = || Ok(u16::from_be_bytes([reader.u8()?, reader.u8()?]));
            let size = Size::new(side()?, side()?);
            // Those above the last one that is told apart belong to it.
            sizes[n.min(MAX_SPATIAL - 1)] = (size.pixels() > 0).then_some(size);
        }
    }
    if head & 0x08 != 0 {
        for _ in 0..reader.u8()? {
            let references = usize::from(reader.u8()? >> 2 & 3);
            reader.skip(references)?;
        }
    }
    Ok(SpatialLayers { count: count.min(MAX_SPATIAL), sizes })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_key_frame_as_chromium_sends_it_is_read() {
        // I, L, B, E, V; 15-bit id; layer indices; TL0PICIDX; structure: one layer with its size, one picture in the
        // group.
        let payload =
            [0xae, 0x81, 0x02, 0x00, 0x07, 0x18, 0x01, 0x40, 0x00, 0xb4, 0x01, 0x00, 0x82];
        let d = parse(&payload).expect("descriptor");
        assert_eq!((d.picture_id.expect("id").value, d.tl0), (0x102, Some((7, 4))));
        assert!(d.starts_key() && d.end);
        let sizes = [Some(Size::new(320, 180)), None, None];
        assert_eq!((d.len, d.layers), (12, Some(SpatialLayers { count: 1, sizes })));
    }

    #[test]
    fn spatial_layers_are_read() {
        let structure = |layers: u8| {
            // F, B, V; the structure: layers with their sizes.
            let mut payload = vec![0x1a, (layers - 1) << 5 | 0x10];
            for side in (1..=layers).flat_map(|n| [u16::from(n) * 160, u16::from(n) * 90]) {
                payload.extend(side.to_be_bytes());
            }
            payload.push(0x82);
            parse(&payload).expect("descriptor").layers.expect("the structure")
        };
        let size = |n: u16| Some(Size::new(n * 160, n * 90));
        let two = SpatialLayers { count: 2, sizes: [size(1), size(2), None] };
        assert_eq!(structure(2), two);
        let many = SpatialLayers { count: 3, sizes: [size(1), size(2), size(5)] };
        assert_eq!(structure(5), many, "those above count as the third");
        // I, P, L, E; of the layers' byte: temporal layer 1, spatial layer 2, which needs the one below.
        let d = parse(&[0xe4, 0x7f, 0x25, 0x07, 0x00]).expect("descriptor");
        assert_eq!((d.spatial, d.temporal, d.begin, d.end), (2, Some(1), false, true));
    }

    #[test]
    fn temporal_layers_are_read() {
        // I, P, L, B, E; the layers' byte: base without and with a switching up point, layer 1 with one.
        let read = |byte| {
            let d = parse(&[0xec, 0x7f, byte, 0x07, 0x00]).expect("descriptor");
            (d.temporal, d.resumes, d.is_base())
        };
        assert_eq!(read(0x00), (Some(0), None, true));
        assert_eq!(read(0x10), (Some(0), Some(ALL_TEMPORAL), true));
        assert_eq!(read(0x30), (Some(1), None, false));
        assert_eq!(parse(&[0xc8, 0x7f, 0x00]).expect("descriptor").temporal, None);
    }

    #[test]
    fn a_seven_bit_picture_id_stays_seven_bits() {
        let mut payload = [0xc8, 0x7f, 0x00];
        let d = parse(&payload).expect("descriptor");
        d.rewrite(&mut payload, 0x80, 0);
        assert_eq!(payload, [0xc8, 0x00, 0x00]);
    }

    #[test]
    fn the_size_of_a_key_frame_is_read() {
        // marker 2, profile 0, key, shown; sync code; colour space 1; 320x180.
        let frame = [0x82, 0x49, 0x83, 0x42, 0x20, 0x13, 0xf0, 0x0b, 0x30];
        assert_eq!(
            windlass_types::key_frame::key_frame_size(&frame),
            Some(windlass_types::Size::new(320, 180))
        );
        assert_eq!(windlass_types::key_frame::key_frame_size(&frame[..8]), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(data: Vec<u8>, id: u16, tl0: u8) {
            let _ = windlass_types::key_frame::key_frame_size(&data);
            if let Ok(d) = parse(&data) {
                prop_assert!(d.len < data.len());
                let mut rewritten = data.clone();
                d.rewrite(&mut rewritten, id, tl0);
                let again = parse(&rewritten).expect("still a descriptor");
                prop_assert_eq!(again.len, d.len);
                prop_assert_eq!(again.picture_id.map(|p| p.value), d.picture_id.map(|p| id & p.mask()));
                prop_assert_eq!(again.tl0.map(|t| t.0), d.tl0.map(|_| tl0));
                prop_assert_eq!((again.begin, again.end, again.inter), (d.begin, d.end, d.inter));
                prop_assert_eq!(&rewritten[d.len..], &data[d.len..]);
            }
        }
    }
}
