use std::process::Command;

use proptest::prelude::*;

use super::*;

/// A silent packet of 20 ms.
const SILENCE: [u8; 3] = [0xf8, 0xff, 0xfe];

const BOTH: Shape = Shape { video: Some(Size::new(320, 180)), audio: true };

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// The file with all patches.
fn whole(mut bytes: Vec<u8>, webm: Webm) -> Vec<u8> {
    let Finish { tail, patches } = webm.finish();
    bytes.extend_from_slice(&tail);
    for Patch { at, bytes: patch } in patches {
        bytes[at as usize..at as usize + patch.len()].copy_from_slice(&patch);
    }
    bytes
}

/// The elements within some bytes: identifier and data.
fn elements(mut bytes: &[u8]) -> Vec<(u32, &[u8])> {
    let mut all = Vec::new();
    while let Some((id, size, header)) = element(&bytes[..bytes.len().min(12)]) {
        let end = (header + size).min(bytes.len() as u64) as usize;
        all.push((id, &bytes[header as usize..end]));
        bytes = &bytes[end..];
    }
    all
}

fn number(data: &[u8]) -> u64 {
    data.iter().fold(0, |number, &byte| number << 8 | u64::from(byte))
}

fn child(of: &[u8], id: u32) -> &[u8] {
    elements(of).into_iter().find(|(found, _)| *found == id).expect("it is there").1
}

/// Track, time in ms and bytes of all blocks.
fn blocks(file: &[u8]) -> Vec<(u8, u64, Vec<u8>)> {
    let segment = child(file, SEGMENT);
    let mut all = Vec::new();
    for (_, cluster) in elements(segment).into_iter().filter(|(id, _)| *id == CLUSTER) {
        let begins = number(child(cluster, 0xe7));
        for (_, block) in elements(cluster).into_iter().filter(|(id, _)| *id == 0xa3) {
            let at = begins + u64::from(u16::from_be_bytes([block[1], block[2]]));
            all.push((block[0] & 0x7f, at, block[4..].to_vec()));
        }
    }
    all
}

proptest! {
    #[test]
    fn every_frame_is_in_the_file_at_its_time(
        frames in prop::collection::vec((any::<bool>(), any::<bool>(), 0u64..3000, 0usize..40), 1..80)
    ) {
        let (mut webm, mut bytes) = Webm::new(BOTH, VideoCodec::Vp9, UNIX_EPOCH);
        let (mut at, mut expected) = (0, Vec::new());
        for (video, key, step, len) in frames {
            at += step;
            let slot = if video { Slot::Video } else { Slot::Audio };
            let data = vec![7; len];
            bytes.extend(webm.push(slot, ms(at), key, &data).unwrap_or_default());
            expected.push((slot.number(), at, data));
        }
        let file = whole(bytes, webm);
        prop_assert_eq!(blocks(&file), expected);
    }

    #[test]
    fn a_file_that_is_cut_off_anywhere_has_its_whole_clusters(cut in 0.0f64..1.0) {
        let (mut webm, mut bytes) = Webm::new(BOTH, VideoCodec::Vp9, UNIX_EPOCH);
        let mut ends = vec![bytes.len()];
        for n in 0..200 {
            if let Some(cluster) = webm.push(Slot::Video, ms(n * 33), n % 50 == 0, &[1; 99]) {
                bytes.extend_from_slice(&cluster);
                ends.push(bytes.len());
            }
        }
        let cut = (bytes.len() as f64 * cut) as usize;
        let read = |at: u64, buffer: &mut [u8]| {
            let from = bytes[..cut].get(at as usize..).filter(|from| !from.is_empty())?;
            let len = from.len().min(buffer.len());
            buffer[..len].copy_from_slice(&from[..len]);
            Some(len)
        };
        let expected = ends.iter().rev().find(|&&end| end <= cut).map(|&end| end as u64);
        prop_assert_eq!(whole_part(read).map(|whole| whole.len), expected);
    }

    #[test]
    fn no_bytes_keep_the_length_of_a_file_from_being_found(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let read = |at: u64, buffer: &mut [u8]| {
            let from = bytes.get(usize::try_from(at).ok()?..).filter(|from| !from.is_empty())?;
            let len = from.len().min(buffer.len());
            buffer[..len].copy_from_slice(&from[..len]);
            Some(len)
        };
        prop_assert!(whole_part(read).is_none_or(|whole| whole.len <= bytes.len() as u64));
    }
}

#[test]
fn a_cluster_begins_with_a_key_frame_and_after_two_seconds() {
    let (mut webm, _) = Webm::new(BOTH, VideoCodec::Vp9, UNIX_EPOCH);
    assert!(webm.push(Slot::Video, ms(0), true, &[1]).is_none());
    assert!(webm.push(Slot::Audio, ms(10), true, &SILENCE).is_none());
    assert!(webm.push(Slot::Video, ms(33), true, &[1]).is_some(), "a key frame");
    assert!(webm.push(Slot::Video, ms(2032), false, &[1]).is_none());
    assert!(webm.push(Slot::Video, ms(2033), false, &[1]).is_some(), "two seconds");
}

#[test]
fn the_index_names_the_clusters_that_begin_with_key_frames() {
    let (mut webm, mut bytes) = Webm::new(BOTH, VideoCodec::Vp9, UNIX_EPOCH);
    for n in 0..100 {
        let cluster = webm.push(Slot::Video, ms(n * 100), n % 40 == 0, &[1]);
        bytes.extend(cluster.unwrap_or_default());
    }
    let file = whole(bytes, webm);
    let segment = child(&file, SEGMENT);
    let points: Vec<_> = elements(child(segment, CUES))
        .into_iter()
        .map(|(_, point)| {
            let at = number(child(child(point, 0xb7), 0xf1)) as usize;
            let (id, ..) = element(&segment[at..at + 12]).unwrap();
            assert_eq!(id, CLUSTER);
            number(child(point, 0xb3))
        })
        .collect();
    assert_eq!(points, [0, 4000, 8000]);
    let duration = child(child(segment, INFO), 0x4489);
    assert!((f64::from_be_bytes(duration.try_into().unwrap()) - 9900.0).abs() < 1e-9);
}

/// What another program finds in a file; `None`: there is no such program.
fn probed(file: &[u8]) -> Option<String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.webm");
    std::fs::write(&path, file).unwrap();
    let args = ["-v", "error", "-count_packets", "-show_entries"];
    let entries = "stream=codec_name,width,nb_read_packets:format=duration";
    let out =
        Command::new("ffprobe").args(args).args([entries, "-of", "csv=p=0"]).arg(&path).output();
    let Ok(out) = out else {
        windlass_skips::skip("no ffprobe to read a WebM file with");
        return None;
    };
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    Some(String::from_utf8(out.stdout).unwrap())
}

#[test]
fn another_reader_finds_codecs_packets_and_duration() {
    let (mut webm, mut bytes) = Webm::new(BOTH, VideoCodec::Vp9, UNIX_EPOCH);
    for n in 0..250 {
        // The head of a key frame of profile 0: sync code, colours, 320×180.
        let frame = [0x82, 0x49, 0x83, 0x42, 0, 0x13, 0xf0, 0x0b, 0x30, 0];
        bytes.extend(webm.push(Slot::Video, ms(n * 20), n == 0, &frame).unwrap_or_default());
        bytes.extend(webm.push(Slot::Audio, ms(n * 20), true, &SILENCE).unwrap_or_default());
    }
    let cut = probed(&bytes);
    let Some(found) = probed(&whole(bytes, webm)) else { return };
    assert!(found.contains("vp9,320,250") && found.contains("opus,250"), "{found}");
    assert!(found.contains("4.980000"), "{found}");
    assert!(cut.unwrap().contains("vp9,320,"), "also a file that was not finished");
}
