//! Stills: tiles of the next camera frame, or all of it, that the server requests from a publisher, and the publisher's
//! answers.
//!
//! As in DDS (Du et al., SIGCOMM 2020) the server, which decodes the low layer, chooses the regions. A request names
//! tiles of the low layer. The answer comes on a data channel that the client opens, as anchor messages whose epoch is
//! the request's id, in HTJ2K. An answer must match an open request in id, tiles, size and bytes.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use windlass_types::Size;
use windlass_types::message::AnchorMessageError;
use windlass_types::message::HTJ2K;
use windlass_types::message::{ReassembledAnchor, Reassembler};
use windlass_types::tiles::TileMap;

use crate::api::{RegionRequest, TrackId};

/// Label of the data channel for answers.
pub(crate) const CHANNEL: &str = "windlass-regions";
/// Minimum time between two requests to one publisher.
const MIN_INTERVAL: Duration = Duration::from_millis(250);
/// Time after which a request without an answer ends.
const TIMEOUT: Duration = Duration::from_secs(2);
/// Time between two stills of a track that the enhancer cannot read: nobody knows how long one stays of use. It asks
/// for those of others as often, while a still is of use (`RegionConfig::interval` there).
const WHOLE_INTERVAL: Duration = Duration::from_secs(2);
/// Maximum length of such a still in bytes: 48 kbit/s, as otherwise.
pub(crate) const WHOLE_BYTES: usize = 12_000;
/// Number of such stills without an answer after which none are counted on: a channel for stills is the publisher's,
/// and not each of its tracks may have some.
const MAX_UNANSWERED: u32 = 5;
/// Time after which such a track is asked again.
const ASK_AGAIN: Duration = Duration::from_secs(60);
/// Maximum number of open requests to one publisher; another one replaces the oldest.
const MAX_OPEN: usize = 8;

#[derive(Debug)]
struct Open {
    track: TrackId,
    asked: Instant,
    request: RegionRequest,
}

/// Why a message of the region channel is dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refused {
    /// The message is not an anchor message.
    Malformed,
    /// No open request matches.
    Unasked,
}

/// Which layers of a track the enhancer gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tapped {
    /// None of them.
    Nothing,
    /// The low one alone.
    Low,
    /// Also a larger one, whose frames become anchors: no still is worth its bytes beside them.
    Larger,
}

/// Whether stills of one track can be had.
#[derive(Debug, Default)]
pub(crate) struct Stills {
    /// Whether the track's publisher answers requests.
    answers: bool,
    /// Whether stills may be requested now.
    usable: bool,
    /// When the last whole still was requested.
    last_whole: Option<Instant>,
    /// Number of whole stills that were requested since the last answer.
    unanswered: u32,
}

impl Stills {
    /// Takes whether the publisher has a channel for stills now, and which of the track's layers are tapped. Returns
    /// what to tell the enhancer, if that has changed: whether it may request stills.
    pub(crate) fn update(&mut self, now: Instant, channel: bool, tapped: Tapped) -> Option<bool> {
        let since = self.last_whole.map(|last| now.saturating_duration_since(last));
        if !channel || since.is_some_and(|since| since >= ASK_AGAIN) {
            self.unanswered = 0;
        }
        let answers = channel && self.unanswered < MAX_UNANSWERED;
        let usable = answers && tapped == Tapped::Low;
        let changed = self.usable != usable;
        (self.answers, self.usable) = (answers, usable);
        // Without a tap the enhancer does not know the track.
        (changed && tapped != Tapped::Nothing).then_some(usable)
    }

    /// Whether the publisher answers requests.
    pub(crate) fn answers(&self) -> bool {
        self.answers
    }

    /// Forgets what was sent to the enhancer.
    pub(crate) fn forget(&mut self) {
        self.usable = false;
    }

    /// When the last whole still was requested.
    pub(crate) fn last_whole(&self) -> Option<Instant> {
        self.last_whole
    }

    /// Whether the next still of a track that the enhancer cannot read is due.
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        let since = self.last_whole.map(|last| now.saturating_duration_since(last));
        self.usable && since.is_none_or(|since| since >= WHOLE_INTERVAL)
    }

    /// Notes a request for such a still.
    pub(crate) fn on_whole_request(&mut self, now: Instant) {
        self.last_whole = Some(now);
        self.unanswered += 1;
    }

    /// Notes a still.
    pub(crate) fn on_answer(&mut self) {
        self.unanswered = 0;
    }

    /// Whether stills may be requested.
    pub(crate) fn usable(&self) -> bool {
        self.usable
    }
}

/// The requests to one publisher.
#[derive(Debug, Default)]
pub(crate) struct Regions {
    open: VecDeque<Open>,
    next: u16,
    last: Option<Instant>,
    answers: Reassembler,
}

impl Regions {
    /// Makes a request for tiles of a track's low layer (`size`), at `scale` times its size; `None` within
    /// [`MIN_INTERVAL`] of the last.
    pub(crate) fn request(
        &mut self,
        now: Instant,
        track: TrackId,
        size: Size,
        scale: u16,
        tiles: &[u8],
        bytes: usize,
    ) -> Option<RegionRequest> {
        if self.last.is_some_and(|last| now.saturating_duration_since(last) < MIN_INTERVAL) {
            return None;
        }
        self.last = Some(now);
        self.next = self.next.wrapping_add(1);
        let request = RegionRequest { id: self.next, size, scale, tiles: tiles.to_vec(), bytes };
        if self.open.len() == MAX_OPEN {
            self.open.pop_front();
        }
        self.open.push_back(Open { track, asked: now, request: request.clone() });
        Some(request)
    }

    /// Takes a message; returns the answer and its track with the answer's last message.
    pub(crate) fn take(
        &mut self,
        now: Instant,
        message: &[u8],
    ) -> Result<Option<(TrackId, ReassembledAnchor)>, Refused> {
        let answer =
            self.answers.push(message).map_err(|_: AnchorMessageError| Refused::Malformed)?;
        let Some(answer) = answer else { return Ok(None) };
        self.open.retain(|open| now.saturating_duration_since(open.asked) < TIMEOUT);
        let at = self.open.iter().position(|open| is_answer(&open.request, &answer));
        let open = at.and_then(|at| self.open.remove(at)).ok_or(Refused::Unasked)?;
        Ok(Some((open.track, answer)))
    }
}

/// Whether an answer is one to this request.
fn is_answer(request: &RegionRequest, answer: &ReassembledAnchor) -> bool {
    let header = &answer.header;
    let map = TileMap::parse(request.size, &request.tiles);
    // An answer with all tiles has no map.
    let tiles_match = match map.map(|map| map.is_full()) {
        Some(true) => !header.tiled,
        Some(false) => header.tiled && answer.payload.starts_with(&request.tiles),
        None => false,
    };
    tiles_match
        && header.epoch == request.id
        && header.codec == HTJ2K
        && header.beyond_prior
        && header.size == request.size.scaled(request.scale)
        && answer.payload.len() <= request.bytes
}

#[cfg(test)]
mod tests {
    use windlass_types::AnchorSource;
    use windlass_types::message::AnchorHeader;
    use windlass_types::message::encode_chunks;

    use super::*;

    const TRACK: TrackId = TrackId(3);
    const LOW: Size = Size::new(320, 180);
    /// All tiles of [`LOW`].
    const WHOLE: [u8; 2] = [0xff, 0x7f];

    fn answer(request: &RegionRequest, bytes: usize) -> Vec<Vec<u8>> {
        let tiled = request.tiles != WHOLE;
        let header = AnchorHeader {
            codec: HTJ2K,
            source: AnchorSource::Captured,
            tiled,
            beyond_prior: true,
            part: 0,
            stream: 0,
            epoch: request.id,
            chunk_index: 0,
            chunk_count: 1,
            age_ms: 0,
            rtp_timestamp: 90_000 + bytes as u32,
            size: Size::new(640, 360),
        };
        let map = if tiled { &request.tiles[..] } else { &[] };
        let payload = [map, &vec![0; bytes - map.len()]].concat();
        encode_chunks(&header, &payload, 1000).expect("within the format")
    }

    fn give(regions: &mut Regions, now: Instant, messages: &[Vec<u8>]) -> Result<bool, Refused> {
        let mut got = Ok(None);
        for message in messages {
            got = regions.take(now, message);
        }
        got.map(|answer| answer.is_some_and(|(track, _)| track == TRACK))
    }

    fn asked(regions: &mut Regions, now: Instant) -> RegionRequest {
        regions.request(now, TRACK, LOW, 2, &[5, 0], 3000).expect("not too soon")
    }

    #[test]
    fn the_enhancer_is_told_once_when_stills_can_be_had_and_when_not() {
        let (mut stills, now) = (Stills::default(), Instant::now());
        assert_eq!(stills.update(now, true, Tapped::Nothing), None, "nothing is tapped");
        assert_eq!(stills.update(now, true, Tapped::Low), Some(true));
        assert_eq!(stills.update(now, true, Tapped::Low), None);
        assert_eq!(stills.update(now, true, Tapped::Larger), Some(false), "a larger layer is sent");
        assert!(stills.answers() && !stills.usable());
        assert_eq!(stills.update(now, true, Tapped::Low), Some(true));
        assert_eq!(stills.update(now, false, Tapped::Nothing), None, "the tap's end has told it");
    }

    #[test]
    fn a_track_that_never_answers_is_not_counted_on_for_a_minute() {
        let (mut stills, mut now) = (Stills::default(), Instant::now());
        let mut asked = 0;
        for _ in 0..30 {
            stills.update(now, true, Tapped::Low);
            if stills.is_due(now) {
                stills.on_whole_request(now);
                asked += 1;
            }
            now += WHOLE_INTERVAL;
        }
        assert_eq!((asked, stills.answers()), (MAX_UNANSWERED, false));
        now += ASK_AGAIN;
        stills.update(now, true, Tapped::Low);
        assert!(stills.answers() && stills.is_due(now));
        for _ in 0..9 {
            stills.on_whole_request(now);
            stills.on_answer();
            stills.update(now, true, Tapped::Low);
        }
        assert!(stills.answers());
    }

    #[test]
    fn an_answer_is_taken_once() {
        let (mut regions, now) = (Regions::default(), Instant::now());
        let request = asked(&mut regions, now);
        let messages = answer(&request, 2500);
        assert_eq!(give(&mut regions, now, &messages), Ok(true));
        assert_eq!(give(&mut regions, now, &messages), Ok(false), "it repeats itself");
    }

    #[test]
    fn an_answer_of_the_whole_picture_has_no_map() {
        let (mut regions, now) = (Regions::default(), Instant::now());
        let request = regions.request(now, TRACK, LOW, 2, &WHOLE, 3000).expect("the first");
        assert_eq!(give(&mut regions, now, &answer(&request, 3000)), Ok(true));
    }

    #[test]
    fn an_answer_of_another_codec_or_with_what_the_filters_know_is_refused() {
        let (mut regions, now) = (Regions::default(), Instant::now());
        let request = asked(&mut regions, now);
        // Of other lengths, as what repeats itself is not looked at.
        for (at, value, bytes) in [(1, 3, 500), (3, 1, 501)] {
            let mut messages = answer(&request, bytes);
            messages[0][at] = value;
            assert_eq!(give(&mut regions, now, &messages[..1]), Err(Refused::Unasked));
        }
    }

    #[test]
    fn an_answer_without_a_request_is_refused() {
        let (mut regions, now) = (Regions::default(), Instant::now());
        let request = asked(&mut regions, now);
        let other_tiles = RegionRequest { tiles: vec![7, 0], ..request.clone() };
        let other_id = RegionRequest { id: request.id + 1, ..request.clone() };
        for (wrong, bytes) in [(&other_tiles, 100), (&other_id, 100), (&request, 3001)] {
            let refused = give(&mut regions, now, &answer(wrong, bytes));
            assert_eq!(refused, Err(Refused::Unasked));
        }
        let late = now + TIMEOUT;
        assert_eq!(give(&mut regions, late, &answer(&other_id, 10)), Err(Refused::Unasked));
        assert_eq!(regions.take(now, &[1, 2, 3]), Err(Refused::Malformed));
    }

    #[test]
    fn requests_and_open_requests_are_limited() {
        let (mut regions, mut now) = (Regions::default(), Instant::now());
        let first = asked(&mut regions, now);
        assert_eq!(regions.request(now, TRACK, LOW, 2, &[5, 0], 3000), None);
        for _ in 0..MAX_OPEN {
            now += MIN_INTERVAL;
            asked(&mut regions, now);
        }
        assert_eq!(give(&mut regions, now, &answer(&first, 10)), Err(Refused::Unasked));
    }
}
