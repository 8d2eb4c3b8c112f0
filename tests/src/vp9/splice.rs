//! Streams changed after encoding: frames shown again, superframes, headers with other values.
//!
//! What a decoder makes of a changed stream drifts away from what the encoder meant, but every
//! decoder must drift alike. So headers can take values that libvpx's encoder never writes.

use vp9dec::header::{
    FrameHeader, LoopFilterDeltas, NewFrameHeader, PersistentState, SegFeaturePersist,
    parse_uncompressed_header,
};
use vp9dec::superframe::split_superframe;

use super::Stream;
use super::header_writer::{show_existing, write};

/// Frames as one chunk with a superframe index (annex B).
pub fn superframe(frames: &[&[u8]]) -> Vec<u8> {
    let largest = frames.iter().map(|f| f.len()).max().unwrap_or(0);
    let bytes = (1..4).find(|n| largest >> (8 * n) == 0).unwrap_or(4);
    let marker = 0xc0 | (bytes as u8 - 1) << 3 | (frames.len() as u8 - 1);
    let mut chunk = frames.concat();
    chunk.push(marker);
    for frame in frames {
        chunk.extend(&(frame.len() as u32).to_le_bytes()[..bytes]);
    }
    chunk.push(marker);
    chunk
}

/// After every `period` chunks, a chunk that shows a slot again, another one each time.
pub fn show_slots(stream: &Stream, period: usize) -> Stream {
    let mut chunks = Vec::new();
    for (n, chunk) in stream.chunks.iter().enumerate() {
        chunks.push(chunk.clone());
        if n % period == period - 1 {
            chunks.push(show_existing((n / period) as u8));
        }
    }
    Stream { name: format!("{} with slots shown", stream.name), chunks }
}

/// Two chunks at a time become one superframe, in which only the last shown frame is displayed.
pub fn pair_up(stream: &Stream) -> Stream {
    let pair = |chunks: &[Vec<u8>]| {
        let frames: Vec<&[u8]> = chunks.iter().flat_map(|c| split_superframe(c)).collect();
        if frames.len() > 8 { chunks.concat() } else { superframe(&frames) }
    };
    Stream {
        name: format!("{} in superframes", stream.name),
        chunks: stream.chunks.chunks(2).map(pair).collect(),
    }
}

/// Every header goes through `change` (with the number of its frame) and is written anew; what
/// follows it stays. Changes must keep how the rest is parsed: no other transform mode, references
/// or switchable filter where there were none.
///
/// # Errors
///
/// Fails if a frame's header cannot be parsed.
pub fn rewrite(
    stream: &Stream,
    what: &str,
    mut change: impl FnMut(usize, &mut NewFrameHeader),
) -> Result<Stream, String> {
    let mut persistent = PersistentState::default();
    let (mut chunks, mut n) = (Vec::new(), 0);
    for chunk in &stream.chunks {
        let mut frames = Vec::new();
        for data in split_superframe(chunk) {
            let (header, used) = parse_uncompressed_header(data, &persistent)
                .map_err(|e| format!("{}: {e:?}", stream.name))?;
            let FrameHeader::New(mut header) = header else {
                frames.push(data.to_vec());
                continue;
            };
            persist(&mut persistent, &header);
            change(n, &mut header);
            n += 1;
            frames.push([&write(&header), &data[used..]].concat());
        }
        let frames: Vec<&[u8]> = frames.iter().map(Vec::as_slice).collect();
        chunks.push(if frames.len() == 1 { frames[0].to_vec() } else { superframe(&frames) });
    }
    Ok(Stream { name: format!("{} {what}", stream.name), chunks })
}

/// What the original stream's next header builds on.
fn persist(persistent: &mut PersistentState, header: &NewFrameHeader) {
    for slot in (0..8).filter(|slot| header.refresh_frame_flags >> slot & 1 == 1) {
        persistent.ref_frame_sizes[slot] = (header.width, header.height);
    }
    persistent.loop_filter_deltas = LoopFilterDeltas {
        ref_deltas: header.loop_filter.ref_deltas,
        mode_deltas: header.loop_filter.mode_deltas,
    };
    persistent.segmentation = SegFeaturePersist {
        enabled: header.segmentation.feature_enabled,
        data: header.segmentation.feature_data,
        abs_or_delta: header.segmentation.abs_or_delta_update,
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_superframe_splits_into_its_frames() {
        let frames: [&[u8]; 3] = [&[1; 3], &[2; 300], &[3]];
        assert_eq!(split_superframe(&superframe(&frames)), frames);
    }
}
