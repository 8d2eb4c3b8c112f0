//! Whole offers, spoiled at random: several sections, types renumbered, lines repeated. They come from participants who
//! are connected, while a call goes on beside them.
//!
//! `WINDLASS_MUTATOR_SECONDS` says for how long (10), `WINDLASS_MUTATOR_SEED` with which seed (the clock's); it is
//! printed.

use std::time::{Instant as Clock, SystemTime, UNIX_EPOCH};

use super::harness::*;
use super::offers::{AUDIO, CHROMIUM, VIDEO, sdp, watcher};
use crate::api::{Answer, Offer, OfferError, TrackId};
use crate::core::*;

/// What no offer may take of a media thread, on a machine that does much else, and in a build that is not optimised.
const MAX_TIME: Duration = Duration::from_secs(1);

/// What types and streams are renumbered to, and lines that are put in.
const NUMBERS: [&str; 17] = [
    "0",
    "1",
    "8",
    "35",
    "63",
    "96",
    "97",
    "98",
    "99",
    "100",
    "101",
    "111",
    "127",
    "128",
    "255",
    "65536",
    "4294967295",
];
const LINES: [&str; 16] = [
    "a=sendonly",
    "a=recvonly",
    "a=sendrecv",
    "a=inactive",
    "a=bundle-only",
    "a=ice-lite",
    "a=setup:passive",
    "a=setup:active",
    "a=rtpmap:7 VP9/90000",
    "a=fmtp:9 apt=98",
    "a=rid:x recv",
    "a=simulcast:recv x send q",
    "a=ssrc-group:FID 1 1",
    "a=ssrc:0 cname:x",
    "a=ice-ufrag:other",
    "a=extmap:1 urn:ietf:params:rtp-hdrext:sdes:mid",
];

struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % sides.max(1)
    }

    fn of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.roll(all.len())]
    }
}

fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Where sections begin, and the end.
fn sections(lines: &[String]) -> Vec<usize> {
    let begins = lines.iter().enumerate().filter(|(_, line)| line.starts_with("m="));
    begins.map(|(at, _)| at).chain(std::iter::once(lines.len())).collect()
}

/// Replaces a number wherever it stands alone.
fn renumber(line: &str, from: &str, to: &str) -> String {
    let mut out = String::new();
    let mut word = String::new();
    for c in line.chars().chain(std::iter::once('\n')) {
        if c.is_ascii_alphanumeric() {
            word.push(c);
            continue;
        }
        out += if word == from { to } else { &word };
        word.clear();
        out.push(c);
    }
    out.pop();
    out
}

fn mutate(lines: &mut Vec<String>, others: &[Vec<String>], dice: &mut Dice) {
    if lines.is_empty() {
        return;
    }
    let (at, to) = (dice.roll(lines.len()), dice.roll(lines.len()));
    let begins = sections(lines);
    let section = |dice: &mut Dice| {
        let n = dice.roll(begins.len() - 1);
        begins.get(n).copied().zip(begins.get(n + 1).copied())
    };
    match dice.roll(16) {
        0 => lines.swap(at, to),
        1 => drop(lines.remove(at)),
        2 => {
            let again = vec![lines[at].clone(); 1 + dice.roll(200)];
            lines.splice(at..at, again);
        }
        3 => lines.insert(at, (*dice.of(&LINES)).to_owned()),
        4 => {
            let other = dice.of(others);
            lines.insert(at, dice.of(other).clone());
        }
        // A type becomes another one, in a section or everywhere.
        5..=8 => {
            let (from, to) = (*dice.of(&NUMBERS), *dice.of(&NUMBERS));
            let whole = dice.roll(3) == 0;
            let (begin, end) = section(dice).filter(|_| !whole).unwrap_or((0, lines.len()));
            for line in &mut lines[begin..end] {
                *line = renumber(line, from, to);
            }
        }
        9 => {
            let line = lines[at].clone();
            let cut = line.char_indices().map(|(i, _)| i).nth(dice.roll(line.len().max(1)));
            lines[at] = line[..cut.unwrap_or(0)].to_owned() + *dice.of(&NUMBERS);
        }
        10 => {
            if let Some((begin, end)) = section(dice) {
                lines.drain(begin..end);
            }
        }
        // Another section, with a mid of its own.
        11 | 12 => {
            let other = dice.of(others).clone();
            let begins = sections(&other);
            let n = dice.roll(begins.len() - 1);
            let Some(part) = begins.get(n).zip(begins.get(n + 1)) else { return };
            let mid = format!("n{}", dice.roll(1000));
            let part = other[*part.0..*part.1].iter().map(|line| {
                if line.starts_with("a=mid:") { format!("a=mid:{mid}") } else { line.clone() }
            });
            lines.extend(part.collect::<Vec<_>>());
            for line in lines.iter_mut().filter(|line| line.starts_with("a=group:BUNDLE")) {
                line.push(' ');
                line.push_str(&mid);
            }
        }
        13 => {
            if let Some((begin, _)) = section(dice) {
                let port =
                    if lines[begin].contains(" 9 ") { (" 9 ", " 0 ") } else { (" 0 ", " 9 ") };
                lines[begin] = lines[begin].replacen(port.0, port.1, 1);
            }
        }
        14 => {
            if let Some((begin, _)) = section(dice) {
                let kinds = ["m=audio", "m=video", "m=application", "m=text"];
                let (from, to) = (*dice.of(&kinds), *dice.of(&kinds));
                lines[begin] = lines[begin].replacen(from, to, 1);
            }
        }
        _ => {
            for _ in 0..dice.roll(40) {
                let (from, to) = (dice.roll(lines.len()), dice.roll(lines.len()));
                lines[to] = lines[from].clone();
            }
        }
    }
}

fn lines(sdp: &str) -> Vec<String> {
    sdp.lines().map(str::to_owned).collect()
}

/// Comes in again, as a new client.
fn again(harness: &mut Harness, id: ParticipantId, track: TrackId) -> (Offer, Answer) {
    harness.core.leave(harness.now, id);
    harness.clients.retain(|client| client.address.port() != 4000 + id.0 as u16);
    let (_, offer, answer) = watcher(harness, id, track);
    (offer, answer)
}

#[test]
fn no_offer_breaks_a_connection_or_holds_up_others() {
    let seconds = setting("WINDLASS_MUTATOR_SECONDS").unwrap_or(10);
    let clock =
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |since| since.as_nanos() as u64);
    let seed = setting("WINDLASS_MUTATOR_SEED").unwrap_or(clock) | 1;
    println!("WINDLASS_MUTATOR_SEED={seed}");
    let mut dice = Dice(seed);
    let (mut harness, track, honest) = call();
    let mallory: Vec<ParticipantId> = (3..6).map(ParticipantId).collect();
    let mut last: Vec<(Offer, Answer)> = Vec::new();
    for &id in &mallory {
        let (_, offer, answer) = watcher(&mut harness, id, track);
        last.push((offer, answer));
    }
    harness.run(Duration::from_secs(1));
    let fresh = || [CHROMIUM.to_owned(), sdp(&[AUDIO, VIDEO]), sdp(&[VIDEO; 12])];
    let (begun, mut worst) = (Clock::now(), Duration::ZERO);
    let (mut offers, mut taken) = (0u64, 0u64);
    while begun.elapsed() < Duration::from_secs(seconds) {
        let who = dice.roll(mallory.len());
        let id = mallory[who];
        if !harness.core.peers.contains(id) {
            // A restart of ICE that it knows nothing of has cut it off.
            last[who] = again(&mut harness, id, track);
        }
        let others: Vec<Vec<String>> = fresh()
            .iter()
            .chain(last.iter().map(|(offer, _)| &offer.sdp))
            .map(|sdp| lines(sdp))
            .collect();
        // Mostly from what the connection has agreed to, so that it goes deep.
        let mut spoiled =
            if dice.roll(4) > 0 { lines(&last[who].0.sdp) } else { dice.of(&others).clone() };
        for _ in 0..=dice.roll(6) {
            mutate(&mut spoiled, &others, &mut dice);
        }
        let sdp = spoiled.join("\r\n") + "\r\n";
        let subscribe = if dice.roll(2) == 0 { last[who].0.subscribe.clone() } else { Vec::new() };
        let offer = Offer { sdp, publish: Vec::new(), subscribe };
        let read = ReadOffer::new(offer.clone(), config().limits.sdp_bytes);
        let since = Clock::now();
        let result = harness.core.answer(harness.now, id, read).map(Answered::write);
        worst = worst.max(since.elapsed());
        offers += 1;
        match result {
            Ok(answer) => {
                taken += 1;
                last[who] = (offer.clone(), answer);
                // Some begin anew, or all would become as large as may be.
                if dice.roll(8) == 0 {
                    last[who] = again(&mut harness, id, track);
                }
            }
            Err(error) => {
                assert_ne!(error, OfferError::NotJoined, "seed {seed}");
                let again = harness.core.offer(harness.now, id, &last[who].0);
                assert_eq!(again.as_ref(), Ok(&last[who].1), "seed {seed}: {error}: {}", offer.sdp);
            }
        }
        harness.deliver();
        if offers.is_multiple_of(50) {
            harness.run(Duration::from_millis(50));
        }
        let counters = harness.core.counters;
        assert_eq!(counters.faults, 0, "seed {seed}: something panicked at {}", offer.sdp);
        assert_eq!(counters.offers_failed, 0, "seed {seed}: the stack refused {}", offer.sdp);
        assert!(worst < MAX_TIME, "seed {seed}: {worst:?} for {}", offer.sdp);
    }
    println!("{offers} offers, {taken} taken, the slowest {worst:?}");
    assert!(taken > 10 && offers - taken > 10, "{taken} of {offers}");
    let before = harness.clients[honest].received.len();
    harness.run(Duration::from_secs(2));
    assert!(harness.clients[honest].received.len() > before + 80, "seed {seed}");
}
