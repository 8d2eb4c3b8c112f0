//! Changes to inputs that keep their structure: chunks are dropped, swapped, repeated, cut, joined
//! to superframes; headers get other bits and sizes; tiles get other data.

use crate::container::{join, split};

/// Number of bytes at the start of a frame in which its headers lie.
const HEADER: usize = 24;

/// A generator of random numbers from a seed (xorshift).
#[derive(Debug)]
pub struct Random(u32);

impl Random {
    /// A generator whose numbers depend on the seed alone.
    pub fn new(seed: u32) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9) | 1)
    }

    /// A random number from 0 to `end` - 1; 0 for an `end` of 0.
    pub fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 17;
        self.0 ^= self.0 << 5;
        ((u64::from(self.0) * end as u64) >> 32) as usize
    }
}

/// Changes the input in `data[..size]` in place and returns its new size, at most `max`. `plain` is the fuzzer's own
/// way to change a few bytes: it takes a buffer, the number of bytes in use, and their limit.
pub fn mutate(
    data: &mut [u8],
    size: usize,
    max: usize,
    seed: u32,
    mut plain: impl FnMut(&mut [u8], usize, usize) -> usize,
) -> usize {
    let mut r = Random::new(seed);
    let max = max.min(data.len());
    let size = size.min(max);
    if r.below(16) == 0 {
        return plain(data, size, max);
    }
    let mut options = data[..size].first().copied().unwrap_or(0);
    let mut chunks: Vec<Vec<u8>> = split(&data[..size]).1.into_iter().map(<[u8]>::to_vec).collect();
    if chunks.is_empty() {
        return plain(data, size, max);
    }
    for _ in 0..=r.below(3) {
        if r.below(24) == 0 {
            options ^= 1 << r.below(4);
        }
        change(&mut chunks, &mut r, max - size, &mut plain);
    }
    let out = join(options, &chunks, max);
    data[..out.len()].copy_from_slice(&out);
    out.len()
}

fn change(
    chunks: &mut Vec<Vec<u8>>,
    r: &mut Random,
    room: usize,
    plain: &mut impl FnMut(&mut [u8], usize, usize) -> usize,
) {
    if chunks.is_empty() {
        chunks.push(vec![0x82, 0x49, 0x83, 0x42]);
    }
    let at = r.below(chunks.len());
    let other = r.below(chunks.len());
    let chunk = &mut chunks[at];
    match r.below(16) {
        0 | 1 => flip(chunk, 0, HEADER, r),
        2 => flip(chunk, HEADER, usize::MAX, r),
        3 => scramble(chunk, r),
        4 => chunk.truncate(r.below(chunk.len() + 1)),
        5 => chunk.extend((0..=r.below(64)).map(|i| (i * 29 + at) as u8 ^ 0x5a)),
        6 => drop(chunks.remove(at)),
        7 => chunks.insert(other, chunks[at].clone()),
        8 => chunks.swap(at, other),
        9 => chunks.insert(at, vec![0x88 | r.below(8) as u8]),
        10 => superframe(chunks, at, 2 + r.below(3)),
        11 => resize_key(chunk, r),
        12 => graft(chunks, at, other, r),
        _ => {
            let size = chunk.len();
            chunk.resize(size + room.min(64), 0);
            let limit = chunk.len();
            let size = if limit == 0 { 0 } else { plain(chunk, size, limit) };
            chunk.truncate(size);
        }
    }
}

/// Flips one to four bits of `chunk[start..end]`.
fn flip(chunk: &mut [u8], start: usize, end: usize, r: &mut Random) {
    let end = end.min(chunk.len());
    for _ in 0..=r.below(4) {
        if let Some(byte) = chunk.get_mut(start..end).and_then(|part| {
            let i = r.below(part.len());
            part.get_mut(i)
        }) {
            *byte ^= 1 << r.below(8);
        }
    }
}

/// Writes random bytes from a random place behind the headers on.
fn scramble(chunk: &mut [u8], r: &mut Random) {
    let start = HEADER.min(chunk.len());
    let start = start + r.below(chunk.len() - start + 1);
    let end = start + r.below(chunk.len() - start + 1);
    for byte in &mut chunk[start..end] {
        *byte = r.below(256) as u8;
    }
}

/// Joins `count` chunks from `at` on to one superframe with an index (Annex B).
fn superframe(chunks: &mut Vec<Vec<u8>>, at: usize, count: usize) {
    let count = count.min(chunks.len() - at);
    let frames: Vec<_> = chunks.drain(at..at + count).collect();
    let mut whole = frames.concat();
    let marker = 0xc0 | 1 << 3 | (count as u8 - 1);
    whole.push(marker);
    for frame in &frames {
        whole.extend((frame.len() as u16).to_le_bytes());
    }
    whole.push(marker);
    chunks.insert(at, whole);
}

/// Writes another size into the header of a key frame: 16 bits of width and of height from bit 36 on.
fn resize_key(chunk: &mut [u8], r: &mut Random) {
    if chunk.len() < 9 || chunk[1..4] != [0x49, 0x83, 0x42] {
        return;
    }
    let (width, height) = (r.below(200) as u32, r.below(180) as u32);
    let size = (u64::from(width << 16 | height) << 4).to_be_bytes();
    chunk[4] = chunk[4] & 0xf0 | size[3];
    chunk[5..8].copy_from_slice(&size[4..7]);
    chunk[8] = chunk[8] & 0x0f | size[7];
}

/// Puts the rest of one chunk behind the headers of another.
fn graft(chunks: &mut [Vec<u8>], at: usize, from: usize, r: &mut Random) {
    let cut = |chunk: &[u8], r: &mut Random| r.below(chunk.len().min(3 * HEADER) + 1);
    let start = cut(&chunks[from], r);
    let tail = chunks[from][start..].to_vec();
    let keep = cut(&chunks[at], r);
    chunks[at].truncate(keep);
    chunks[at].extend(tail);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_change_stays_within_the_limit() {
        let chunks = [vec![0x82, 0x49, 0x83, 0x42, 0, 0, 0, 0, 0, 0], vec![7; 100], vec![]];
        let start = join(0, &chunks, 4096);
        for seed in 0..20_000 {
            let mut data = start.clone();
            data.resize(160, 0);
            let size = mutate(&mut data, start.len(), 160, seed, |_, size, _| size);
            assert!(size <= 160);
        }
    }

    #[test]
    fn a_resized_key_frame_says_its_size() {
        let mut chunk = vec![0x82, 0x49, 0x83, 0x42, 0x20, 0, 0, 0, 0x0f];
        resize_key(&mut chunk, &mut Random::new(3));
        assert_eq!((chunk[4] & 0xf0, chunk[8] & 0x0f), (0x20, 0x0f));
        let width = u32::from(chunk[5]) << 4 | u32::from(chunk[6]) >> 4;
        assert!(width < 200);
    }
}
