//! Reads a publisher's Dependency Descriptor (AV1 RTP payload specification, appendix A): of which layers its frames
//! are.
//!
//! A key frame lists templates, each with a spatial and a temporal layer. Every packet names one of them. What else the
//! descriptor says of a frame, forwarding does not need.

use str0m::rtp::ExtensionValues;
use windlass_types::FrameLayers;

use super::descriptor::BitReader;

/// Bits of a packet's mandatory fields: begin, end, the template, and the frame's number.
const MARK_BITS: u32 = 24;
/// Maximum number of templates: a packet names one of so many.
const MAX_TEMPLATES: usize = 64;
/// Maximum number of spatial layers that the descriptor knows.
const MAX_LISTED_SPATIAL: u8 = 4;
/// Maximum number of temporal layers that the descriptor knows.
const MAX_LISTED_TEMPORAL: u8 = 8;

/// The layers of a stream's templates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Templates {
    /// Number of the first template.
    offset: u8,
    /// Number of the frame that listed them, and its picture.
    first: u16,
    picture: u16,
    /// Spatial and temporal layer of each.
    layers: Vec<(u8, u8)>,
}

impl Templates {
    /// Puts what a packet's descriptor says among the packet's values. Returns whether it can be read.
    pub(crate) fn parse(descriptor: &[u8], values: &mut ExtensionValues) -> bool {
        let Some((mark, templates)) = read(descriptor) else { return false };
        // As in the descriptor that is written: frame marking is never negotiated here.
        values.frame_mark = Some(mark);
        if let Some(templates) = templates {
            values.user_values.set(templates);
        }
        true
    }

    /// The templates that a packet's descriptor lists, if it does.
    pub(crate) fn of(values: &ExtensionValues) -> Option<&Templates> {
        values.user_values.get()
    }

    /// These templates, with pictures that go on from those of former templates.
    pub(crate) fn after(&self, former: Option<&Templates>) -> Templates {
        let picture = former.map_or(0, |former| former.picture_of(self.first).wrapping_add(1));
        Templates { picture, ..self.clone() }
    }

    /// The picture of a frame. A publisher numbers its frames; each picture has one of each spatial layer.
    fn picture_of(&self, frame: u16) -> u16 {
        let frames = i32::from(frame.wrapping_sub(self.first) as i16);
        let pictures = frames.div_euclid(i32::from(self.spatial_layers()));
        self.picture.wrapping_add(pictures as u16)
    }

    fn spatial_layers(&self) -> u8 {
        self.layers.iter().map(|(spatial, _)| spatial + 1).max().unwrap_or(1)
    }

    /// What the descriptor of a packet says by these templates.
    pub(crate) fn layers(&self, values: &ExtensionValues) -> Option<FrameLayers> {
        let mark = values.frame_mark?;
        let template = (mark >> 16 & 0x3f) as u8;
        let at = template.wrapping_sub(self.offset) & 0x3f;
        let &(spatial, temporal) = self.layers.get(usize::from(at))?;
        let lists = Templates::of(values).is_some();
        Some(FrameLayers {
            begin: mark & 0x80_0000 != 0,
            end: mark & 0x40_0000 != 0,
            spatial,
            temporal,
            spatial_layers: if lists { self.spatial_layers() } else { 0 },
            picture: self.picture_of(mark as u16) & 0x7fff,
        })
    }
}

/// The mark of a packet, and the templates that it lists.
fn read(descriptor: &[u8]) -> Option<(u32, Option<Templates>)> {
    let mut from = BitReader::new(descriptor);
    let mark = from.bits(MARK_BITS)?;
    if descriptor.len() == 3 || !from.flag()? {
        return Some((mark, None));
    }
    // Decode targets, and dependencies of this frame alone.
    from.bits(4)?;
    let offset = from.bits(6)? as u8;
    let _decode_targets = from.bits(5)?;
    let (mut spatial, mut temporal) = (0, 0);
    let mut layers = Vec::new();
    loop {
        layers.push((spatial, temporal));
        match from.bits(2)? {
            0 => {}
            1 => temporal += 1,
            2 => (spatial, temporal) = (spatial + 1, 0),
            _ => break,
        }
        if layers.len() == MAX_TEMPLATES
            || spatial == MAX_LISTED_SPATIAL
            || temporal == MAX_LISTED_TEMPORAL
        {
            return None;
        }
    }
    Some((mark, Some(Templates { offset, first: mark as u16, picture: 0, layers })))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A descriptor from its bits.
    fn descriptor(bits: &str) -> Vec<u8> {
        let bits: Vec<u8> = bits.bytes().filter(|bit| *bit != b' ').collect();
        bits.chunks(8)
            .map(|byte| {
                let bit = |n: usize| byte.get(n).is_some_and(|bit| *bit == b'1');
                (0..8).fold(0, |value, n| value << 1 | u8::from(bit(n)))
            })
            .collect()
    }

    /// The first packet of a key frame, of template 62, with templates of two spatial layers of two temporal ones each.
    fn key() -> Vec<u8> {
        descriptor("1 0 111110 0000000000000001 1 0000 111110 00011 01 10 01 11 0000")
    }

    #[test]
    fn each_packet_is_of_the_layers_of_its_template() {
        let mut values = ExtensionValues::default();
        assert!(Templates::parse(&key(), &mut values));
        let templates = Templates::of(&values).expect("listed").clone();
        assert_eq!(templates.layers, [(0, 0), (0, 1), (1, 0), (1, 1)]);
        let base = FrameLayers {
            begin: true,
            end: false,
            spatial: 0,
            temporal: 0,
            spatial_layers: 2,
            picture: 0,
        };
        assert_eq!(templates.layers(&values), Some(base));

        // Template 1 comes after 62, 63 and 0; this packet lists none.
        let mut values = ExtensionValues::default();
        assert!(Templates::parse(&descriptor("0 1 000001 0000000000000010"), &mut values));
        let last = FrameLayers {
            begin: false,
            end: true,
            spatial: 1,
            temporal: 1,
            spatial_layers: 0,
            picture: 0,
        };
        assert_eq!(templates.layers(&values), Some(last));
        assert!(Templates::parse(&[0x42, 0, 2], &mut values));
        assert_eq!(templates.layers(&values), None, "a template that there is not");
    }

    #[test]
    fn all_frames_of_a_picture_have_its_number_which_goes_on_over_other_templates() {
        let (_, listed) = read(&key()).expect("a descriptor");
        let first = listed.expect("listed").after(None);
        assert_eq!([1, 2, 3, 4, 0xffff].map(|frame| first.picture_of(frame)), [0, 0, 1, 1, 0xffff]);
        let again = Templates { first: 9, ..first.clone() }.after(Some(&first));
        assert_eq!([9, 10, 11].map(|frame| again.picture_of(frame)), [5, 5, 6]);
    }

    #[test]
    fn what_ends_too_early_or_lists_too_many_layers_is_refused() {
        let key = key();
        for len in 0..key.len() - 1 {
            let read = read(&key[..len]);
            assert!(len == 3 || read.is_none(), "{len}: {read:?}");
        }
        let layers = "10".repeat(5);
        let many = format!("1 0 000000 0000000000000001 1 0000 000000 00011 {layers} 11");
        assert_eq!(read(&descriptor(&many)), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(data: Vec<u8>, mark: u32) {
            let mut values = ExtensionValues::default();
            if Templates::parse(&data, &mut values) && let Some(templates) = Templates::of(&values).cloned() {
                values.frame_mark = Some(mark);
                let layers = templates.layers(&values);
                prop_assert!(layers.is_none_or(|layers| layers.spatial < 4 && layers.temporal < 8));
            }
        }
    }
}
