//! One world of an SFU, WebRTC clients and the links between them, in virtual time, for tests and measurements.
//!
//! A [`World`] has the SFU's core, a [`Client`] of the WebRTC stack for each participant, an emulated link to and from
//! each of them (`windlass-netem`), and a [`Camera`] for each publisher. The camera's frames are headers of a codec
//! without picture data. The world has no sockets, and reads the clock once, for its start time: a minute of a call
//! takes a second. [`World::step`] returns the events of a step. A test that needs no links may use [`Client`] alone,
//! over its own sockets.
//!
//! ```
//! use std::time::Duration;
//! use windlass_netem::Profile;
//! use windlass_sfu::{ParticipantId, SfuConfig};
//! use windlass_testkit::{Access, WorldEvent, World};
//!
//! let mut world = World::new(SfuConfig::default());
//! let publisher = world.join(ParticipantId(1), Access::wide(1));
//! let track = world.publish(publisher, 7);
//! let viewer = world.join(ParticipantId(2), Access::of(Profile::Lte, 3));
//! world.subscribe(viewer, &[track]);
//! let events = world.run(Duration::from_secs(4));
//! let came = |h: &&WorldEvent| matches!(h, WorldEvent::Arrived { at, .. } if *at == viewer);
//! assert!(events.iter().filter(came).count() > 100);
//! ```

mod camera;
mod client;
mod world;

pub use camera::{Camera, CameraPacket};
pub use client::{Client, Offered, Said, Video};
pub use world::{Access, Party, World, WorldEvent};
