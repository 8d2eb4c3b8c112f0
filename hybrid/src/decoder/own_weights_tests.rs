//! Pictures of decoders whose stream has weights of its own.

use proptest::prelude::*;
use windlass_network::difference::write;
use windlass_network::{LastLayer, Network, Scene};
use windlass_types::message::{AnchorHeader, HTJ2K};
use windlass_types::weights::{OWN, OwnWeights, SCALE, WeightsMessage};
use windlass_types::{AnchorSource, Size};
use windlass_vp9::Samples;

use super::tests::{REALTIME, at, frames};
use super::*;
use crate::anchor::codec::Htj2k;
use crate::detail::Detail;

fn decoder() -> HybridDecoder {
    let (network, scale) = (Some(Tier::Xs), usize::from(SCALE));
    HybridDecoder::new(HybridConfig { network, scale, ..HybridConfig::default() })
}

/// The built-in network's last convolution, which makes pictures lighter.
fn lighter() -> (&'static Network, LastLayer) {
    let networks = Tier::Xs.networks().iter();
    let network = networks.clone().find(|network| network.scale() == usize::from(SCALE));
    let network = network.expect("it is built in");
    let mut last = network.last_layer();
    for bias in &mut last.bias {
        *bias += 20 * network.last_unit() as i32;
    }
    (network, last)
}

/// Weights for pictures that look like the decoder's.
fn message(decoder: &HybridDecoder, epoch: u16) -> WeightsMessage {
    let low = decoder.lr().expect("a picture");
    let (network, last) = lighter();
    let own = OwnWeights {
        size: Size::new(low.width() as u16, low.height() as u16),
        hash: last.hash(),
        scene: Scene::of(Samples::from(&low.planes()[0])).0,
        difference: write(network, &last, 0).expect("small differences").into(),
    };
    WeightsMessage { stream: 1, epoch, network: OWN, own: Some(own) }
}

/// Shows the same picture again: that of a key frame.
fn push(decoder: &mut HybridDecoder, n: usize) -> Vec<u8> {
    decoder.push_frame(at(n), frames(REALTIME)[0]).expect("a sound stream");
    decoder.hr().expect("a picture").y.samples().to_vec()
}

fn mean(samples: &[u8]) -> f64 {
    samples.iter().map(|&v| f64::from(v)).sum::<f64>() / samples.len() as f64
}

#[test]
fn own_weights_make_pictures_from_the_next_on_until_they_are_taken_back() {
    let (mut plain, mut own) = (decoder(), decoder());
    push(&mut plain, 0);
    push(&mut own, 0);
    let message = message(&own, 3);
    assert_eq!(own.push_weights(&message.to_bytes()), WeightsOutcome::Taken);
    assert!(!own.runs_own_weights());
    for n in 1..4 {
        let (generic, lighter) = (push(&mut plain, n), push(&mut own, n));
        assert!(mean(&lighter) > mean(&generic) + 15.0, "frame {n}");
        assert!(own.runs_own_weights());
    }
    let late = WeightsMessage { epoch: 2, own: None, ..message.clone() };
    assert_eq!(own.push_weights(&late.to_bytes()), WeightsOutcome::FormerEpoch);
    let back = WeightsMessage { epoch: 3, own: None, ..message };
    assert_eq!(own.push_weights(&back.to_bytes()), WeightsOutcome::TakenBack);
    assert_eq!(push(&mut plain, 4), push(&mut own, 4));
    assert_eq!(own.stats().weights_taken, 1);
}

#[test]
fn pictures_of_another_scene_or_size_are_made_by_the_built_in_network() {
    let (mut plain, mut own) = (decoder(), decoder());
    push(&mut plain, 0);
    push(&mut own, 0);
    let sound = message(&own, 0);
    let with = |change: &dyn Fn(&mut OwnWeights)| {
        let mut message = sound.clone();
        change(message.own.as_mut().expect("own weights"));
        message.to_bytes()
    };
    let others = [with(&|own| own.scene.reverse()), with(&|own| own.size.width += 2)];
    for (n, other) in others.into_iter().enumerate() {
        assert_eq!(own.push_weights(&other), WeightsOutcome::Taken);
        assert_eq!(push(&mut plain, n + 1), push(&mut own, n + 1));
        assert!(!own.runs_own_weights());
    }
    // A gap is no other scene, another stream is.
    own.push_weights(&sound.to_bytes());
    push(&mut own, 3);
    own.reset();
    push(&mut own, 0);
    assert!(own.runs_own_weights());
    own.forget_weights();
    push(&mut own, 1);
    assert!(!own.runs_own_weights());
}

#[test]
fn pictures_that_anchors_have_a_part_in_are_made_by_the_built_in_network() {
    let (mut plain, mut own) = (decoder(), decoder());
    push(&mut plain, 0);
    push(&mut own, 0);
    own.push_weights(&message(&own, 0).to_bytes());
    push(&mut plain, 1);
    push(&mut own, 1);
    assert!(own.runs_own_weights());
    let (width, height) = own.hr().map(|hr| (hr.width(), hr.height())).expect("a picture");
    let header = AnchorHeader::new(
        HTJ2K,
        AnchorSource::Captured,
        at(1),
        Size::new(width as u16, height as u16),
    );
    let payload = Htj2k::encode(&Detail::zero(width, height), 85).expect("a sound detail");
    let anchor = ReassembledAnchor { header, payload };
    for decoder in [&mut plain, &mut own] {
        let outcome = decoder.push_anchor(&anchor);
        assert!(matches!(outcome, AnchorOutcome::Applied { .. }), "{outcome:?}");
    }
    assert_eq!(push(&mut plain, 2), push(&mut own, 2));
    assert!(!own.runs_own_weights());
}

#[test]
fn a_wrong_message_takes_all_weights_back_and_says_why() {
    let (mut plain, mut own) = (decoder(), decoder());
    push(&mut plain, 0);
    push(&mut own, 0);
    let sound = message(&own, 0);
    let with = |change: &dyn Fn(&mut WeightsMessage)| {
        let mut message = sound.clone();
        change(&mut message);
        message.to_bytes()
    };
    let change = |change: &dyn Fn(&mut OwnWeights)| {
        with(&|message| change(message.own.as_mut().expect("own weights")))
    };
    let mut version = sound.to_bytes();
    version[0] = 2;
    let wrong = [
        (version, WeightsRefusal::Version),
        (sound.to_bytes()[..30].to_vec(), WeightsRefusal::Malformed),
        (change(&|own| own.difference = vec![1; 9].into()), WeightsRefusal::Malformed),
        (with(&|message| message.network.tier = 7), WeightsRefusal::Network),
        (with(&|message| message.network.scale = 3), WeightsRefusal::Network),
        (change(&|own| own.hash ^= 1), WeightsRefusal::Hash),
        (
            change(&|own| {
                let mut wild = vec![15, 15];
                wild.resize(4000, 0x55);
                own.difference = wild.into();
            }),
            WeightsRefusal::Bounds,
        ),
    ];
    let count = wrong.len();
    for (n, (wrong, why)) in wrong.into_iter().enumerate() {
        assert_eq!(own.push_weights(&sound.to_bytes()), WeightsOutcome::Taken);
        assert_eq!(own.push_weights(&wrong), WeightsOutcome::Refused(why));
        assert_eq!(push(&mut plain, n + 1), push(&mut own, n + 1), "{why:?}");
    }
    assert_eq!(own.stats().weights_refused, count as u64);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 1 } else { 64 }))]
    #[test]
    fn foreign_bytes_and_sound_ones_that_were_changed_never_fail(
        foreign in proptest::collection::vec(any::<u8>(), 0..200),
        changes in proptest::collection::vec((0usize..900, any::<u8>()), 1..6),
        cut in 0usize..900,
    ) {
        let mut decoder = decoder();
        push(&mut decoder, 0);
        decoder.push_weights(&foreign);
        let mut bytes = message(&decoder, 0).to_bytes();
        for (at, to) in changes {
            let at = at % bytes.len();
            bytes[at] = to;
        }
        bytes.truncate(cut.max(1));
        decoder.push_weights(&bytes);
        push(&mut decoder, 1);
    }
}
