//! Calls over bad links in every codec, in virtual time: what is lost is sent again, the layer follows the bandwidth,
//! and layers that nobody needs are paused.

use std::collections::BTreeMap;
use std::time::Duration;

use str0m::Event;
use windlass_netem::{Conditions, Course};
use windlass_sfu::{ParticipantId, SfuConfig, SfuEvent};
use windlass_testkit::{Access, World, WorldEvent};
use windlass_types::{Bitrate, Layer, Rung, VideoCodec};

const CODECS: [VideoCodec; 4] =
    [VideoCodec::Vp9, VideoCodec::Vp8, VideoCodec::H264, VideoCodec::Av1];
const PUBLISHER: ParticipantId = ParticipantId(1);
const VIEWER: ParticipantId = ParticipantId(2);
const SECOND: Duration = Duration::from_secs(1);

/// A link of a rate, with 20 ms and a queue of 300 ms.
fn path(rate: Bitrate) -> Conditions {
    let (queue, delay) = (Duration::from_millis(300), Duration::from_millis(20));
    Conditions { rate, queue, delay, ..Conditions::default() }
}

/// A call of a publisher and a viewer.
struct Call {
    world: World,
    viewer: usize,
    /// The viewer's packets: their numbers, and whether each ends its frame.
    packets: BTreeMap<u64, bool>,
    /// The rung that the viewer was told last.
    rung: Option<Rung>,
    /// Whether the publisher sends each layer.
    sends: [bool; 3],
    /// The bitrate that the smallest layer may have.
    smallest: Option<Bitrate>,
}

impl Call {
    fn new(codec: VideoCodec, up: Course, down: Course) -> Call {
        let mut world = World::of(SfuConfig::default(), codec);
        // No layer is needed for anchors.
        world.core.set_enhancement(world.now, false);
        let wide = || Course::steady(Conditions::default());
        let publisher = world.join(PUBLISHER, Access { down: wide(), up, seed: 1 });
        let track = world.publish(publisher, 7);
        world.run(SECOND);
        let viewer = world.join(VIEWER, Access { down, up: wide(), seed: 3 });
        world.subscribe(viewer, &[track]);
        let (packets, rung) = (BTreeMap::new(), None);
        Call { world, viewer, packets, rung, sends: [true; 3], smallest: None }
    }

    fn run(&mut self, seconds: u32) {
        for event in self.world.run(seconds * SECOND) {
            match event {
                WorldEvent::Client(at, event) if at == self.viewer => {
                    let Event::RtpPacket(packet) = *event else { continue };
                    self.packets.insert(*packet.seq_no, packet.header.marker);
                }
                WorldEvent::Told(VIEWER, SfuEvent::RungChanged { rung, .. }) => {
                    self.rung = Some(rung);
                }
                WorldEvent::Told(PUBLISHER, SfuEvent::Knobs { layers, .. }) => {
                    for (layer, knobs) in layers {
                        self.sends[layer as usize] = knobs.active;
                        if layer == Layer::Q {
                            self.smallest = Some(knobs.bitrate);
                        }
                    }
                }
                _ => {}
            }
        }
    }

    /// How many frames a second have come whole, in the next seconds.
    fn whole_frames(&mut self, seconds: u32) -> f64 {
        self.packets.clear();
        self.run(seconds);
        let (mut whole, mut frames, mut next) = (false, 0, None);
        for (&number, &ends) in &self.packets {
            whole &= next == Some(number);
            frames += u32::from(whole && ends);
            whole |= ends;
            next = Some(number + 1);
        }
        f64::from(frames) / f64::from(seconds)
    }
}

#[test]
fn what_is_lost_both_ways_is_sent_again() {
    for codec in CODECS {
        let lossy = || Course::steady(Conditions { loss: 0.03, ..path(Bitrate::bps(20_000_000)) });
        let mut call = Call::new(codec, lossy(), lossy());
        call.run(6);
        let frames = call.whole_frames(10);
        // A frame has seven packets, so that a third of them would not come whole.
        assert!(frames > 29.5, "{codec:?}: {frames} frames a second");
    }
}

#[test]
fn the_layer_follows_the_bandwidth_down_and_up_again() {
    for codec in CODECS {
        let (wide, narrow) = (path(Bitrate::bps(5_000_000)), path(Bitrate::bps(300_000)));
        let later = [(12 * SECOND, narrow), (32 * SECOND, wide)];
        let mut call =
            Call::new(codec, Course::steady(Conditions::default()), Course::changing(wide, later));
        call.run(11);
        assert_eq!(call.rung, Some(Rung::F), "{codec:?}, wide");
        call.run(12);
        assert_eq!(call.rung, Some(Rung::Q), "{codec:?}, narrow");
        let frames = call.whole_frames(6);
        assert!(frames > 28.0, "{codec:?}: {frames} frames a second of the smallest layer");
        assert_eq!(call.sends, [true, false, false], "{codec:?}: nobody needs larger layers");
        call.run(18);
        assert_eq!(call.rung, Some(Rung::F), "{codec:?}, wide again");
        assert!(call.sends[Layer::F as usize], "{codec:?}");
    }
}

#[test]
fn the_smallest_layer_takes_what_the_narrowest_link_carries_and_all_of_it_once_that_is_wide() {
    for codec in CODECS {
        let later = [(80 * SECOND, path(Bitrate::bps(5_000_000)))];
        let narrow = Course::changing(path(Bitrate::bps(120_000)), later);
        let mut call = Call::new(codec, Course::steady(Conditions::default()), narrow);
        call.run(20);
        for _ in 0..5 {
            let frames = call.whole_frames(10);
            let limit = call.smallest.map(Bitrate::as_kbps).unwrap_or_default();
            assert!(limit > 40.0 && limit < 110.0, "{codec:?}: {limit} kbit/s");
            assert!(frames > 27.0, "{codec:?}: {frames} frames a second");
        }
        call.run(40);
        assert_eq!(call.smallest, Some(Bitrate::bps(150_000)), "{codec:?}");
    }
}
