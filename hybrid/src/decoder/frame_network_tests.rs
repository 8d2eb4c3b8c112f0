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
    let network = Tier::Xs.networks().iter().find(|n| n.scale() == 2).expect("one by two");
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
    let (mut plain, mut decoder) = (new(None), new(XS));
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
