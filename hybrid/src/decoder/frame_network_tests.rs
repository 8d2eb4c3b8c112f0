//! Pictures of decoders with networks.

use windlass_network::{Changed, Runner};
use windlass_vp9::{Plane, Samples};

use super::tests::{REALTIME, anchor, at, frames};
use super::*;

const XS: Option<Tier> = Some(Tier::Xs);

fn new(network: Option<Tier>) -> HybridDecoder {
    HybridDecoder::new(HybridConfig { network, ..HybridConfig::default() })
}

/// What a network makes of the picture of a decoder without one.
fn made(plain: &HybridDecoder) -> Plane {
    made_by(XS, plain)
}

/// What the networks of a tier make of it; without one for its scale the rebuilt picture.
fn made_by(tier: Option<Tier>, plain: &HybridDecoder) -> Plane {
    let networks = tier.map_or(&[][..], Tier::networks);
    let Some(network) = networks.iter().find(|n| n.scale() == plain.scale()) else {
        return plain.hr().expect("a picture").y.clone();
    };
    let (low, high) = (plain.lr().expect("a picture"), plain.hr().expect("a picture"));
    let mut shown = Plane::filled(high.width(), high.height(), 0);
    let low = Samples::from(&low.planes()[0]);
    Runner::new(Isa::SCALAR).run(network, low, (&high.y).into(), Changed::All, &mut shown);
    shown
}

#[test]
fn pictures_are_what_the_network_makes_of_those_without_it() {
    let (mut plain, mut decoder) = (new(None), new(XS));
    for (n, chunk) in frames(REALTIME).into_iter().enumerate() {
        for decoder in [&mut plain, &mut decoder] {
            decoder.push_frame(at(n), chunk).expect("a sound stream");
        }
        if n == 4 {
            let low = plain.lr().map(|low| (low.width() as u16, low.height() as u16));
            let (width, height) = low.expect("it is shown");
            for decoder in [&mut plain, &mut decoder] {
                decoder.push_anchor(&anchor(n, 2 * width, 2 * height));
                assert!(decoder.refresh());
            }
        }
        let (shown, rebuilt) = (decoder.hr().expect("a picture"), plain.hr().expect("a picture"));
        assert_eq!(shown.y, made(&plain), "frame {n}");
        assert_eq!((&shown.u, &shown.v), (&rebuilt.u, &rebuilt.v), "frame {n}");
        assert_ne!(shown.y, rebuilt.y, "frame {n}");
    }
}

#[test]
fn a_network_comes_and_goes_between_frames() {
    let (mut plain, mut decoder) = (new(None), new(None));
    for (n, chunk) in frames(REALTIME).into_iter().enumerate() {
        match n {
            3 | 9 => decoder.set_network(XS),
            6 => decoder.set_network(None),
            _ => {}
        }
        for decoder in [&mut plain, &mut decoder] {
            decoder.push_frame(at(n), chunk).expect("a sound stream");
        }
        let shown = &decoder.hr().expect("a picture").y;
        if matches!(n, 3..6 | 9..) {
            assert_eq!(*shown, made(&plain), "frame {n}");
        } else {
            assert_eq!(*shown, plain.hr().expect("a picture").y, "frame {n}");
        }
    }
}

#[test]
fn pictures_of_a_scale_without_a_network_are_the_rebuilt_ones() {
    let (mut plain, mut decoder) = (new(None), new(Some(Tier::Xxs)));
    for (n, chunk) in frames(REALTIME).into_iter().enumerate() {
        for decoder in [&mut plain, &mut decoder] {
            if n == 5 {
                decoder.rescale(3);
            }
            decoder.push_frame(at(n), chunk).expect("a sound stream");
        }
        assert_eq!(decoder.hr() == plain.hr(), n >= 5, "frame {n}");
    }
}

#[test]
fn all_that_happens_to_a_decoder_leaves_the_networks_picture_that_of_the_rebuilt_one() {
    let chunks = frames(REALTIME);
    let (mut plain, mut decoder) = (new(None), new(None));
    let mut anew = new(XS).making_all_anew();
    let mut frame = 0;
    for (act, scale, network) in [
        ("", 2, XS),
        ("", 2, Some(Tier::Xxs)),
        ("", 4, Some(Tier::Xxs)),
        ("", 4, XS),
        ("reset", 2, XS),
        ("", 3, XS),
        ("", 2, XS),
        ("picture_at", 2, XS),
        ("refresh", 2, XS),
    ] {
        for decoder in [&mut plain, &mut decoder, &mut anew] {
            decoder.rescale(scale);
            if act == "reset" {
                decoder.reset();
            }
        }
        if act == "reset" {
            frame = 0;
        }
        decoder.set_network(network);
        anew.set_network(network);
        for _ in 0..3 {
            for decoder in [&mut plain, &mut decoder, &mut anew] {
                decoder.push_frame(at(frame), chunks[frame]).expect("a sound stream");
                if act == "picture_at" {
                    decoder.picture_at(at(frame - 2)).expect("a remembered frame");
                } else if act == "refresh" {
                    decoder.refresh();
                }
            }
            frame += 1;
            let shown = &decoder.hr().expect("a picture").y;
            assert_eq!(*shown, anew.hr().expect("a picture").y, "frame {frame}, {act:?}");
            if act != "picture_at" {
                assert_eq!(*shown, made_by(network, &plain), "frame {frame}, {act:?}");
            }
        }
    }
}

#[test]
fn captured_pixels_at_rest_are_shown_as_they_are() {
    let chunks = frames(REALTIME);
    let (mut plain, mut decoder) = (new(None), new(XS));
    for decoder in [&mut plain, &mut decoder] {
        decoder.push_frame(at(0), chunks[0]).expect("a sound stream");
        let low = decoder.lr().map(|low| (low.width() as u16, low.height() as u16));
        let (width, height) = low.expect("it is shown");
        let mut still = anchor(0, 2 * width, 2 * height);
        still.header.source = AnchorSource::Captured;
        decoder.push_anchor(&still);
        assert!(decoder.refresh());
    }
    // The anchor's own frame fits by definition; what moves later does not.
    assert_eq!(decoder.hr(), plain.hr());
    for (n, chunk) in chunks.into_iter().enumerate().skip(1).take(8) {
        for decoder in [&mut plain, &mut decoder] {
            decoder.push_frame(at(n), chunk).expect("a sound stream");
        }
    }
    assert_ne!(decoder.hr(), plain.hr());
}

#[test]
fn a_network_of_the_callers_own_learns_which_cells_are_best() {
    let chunks = frames(REALTIME);
    let (mut plain, mut decoder) = (new(None), new(XS));
    assert_eq!(plain.kept(), KeptCells::NoPicture);
    for (n, chunk) in chunks.into_iter().enumerate().take(9) {
        for decoder in [&mut plain, &mut decoder] {
            decoder.push_frame(at(n), chunk).expect("a sound stream");
            if n == 2 {
                let low = decoder.lr().map(|low| (low.width() as u16, low.height() as u16));
                let (width, height) = low.expect("it is shown");
                let mut still = anchor(n, 2 * width, 2 * height);
                still.header.source = AnchorSource::Captured;
                decoder.push_anchor(&still);
                assert_eq!(decoder.kept(), KeptCells::Stale, "of a picture before the anchor");
                assert!(decoder.refresh());
            }
        }
        let KeptCells::Flags(kept) = plain.kept() else { panic!("a picture is shown") };
        assert!(n >= 2 || !kept.contains(&true), "frame {n}, before the anchor");
        assert!(n != 2 || !kept.contains(&false), "the anchor's own frame");
        let (mut shown, rebuilt) = (made(&plain), &plain.hr().expect("a picture").y);
        let (width, side) = (shown.width(), 2 * crate::cells::CELL);
        let columns = width.div_ceil(side);
        for (i, sample) in shown.samples_mut().iter_mut().enumerate() {
            if kept[i / width / side * columns + i % width / side] {
                *sample = rebuilt.samples()[i];
            }
        }
        assert_eq!(decoder.hr().expect("a picture").y, shown, "frame {n}");
    }
}
