//! Knobs by gradient: what a publisher is asked to send, and how many anchors its stream gets.
//!
//! Source: OneAdapt (§4.1): every interval the configuration moves along the gradient of *accuracy − λ ·
//! resources* (equations 4.1 and 4.2), with the gradient from available data instead of from trials (§4.1.3).
//! Accuracy is picture quality here, and the knobs are the low layer, its frame rate and bitrate, and enhanced anchors'
//! fraction and bytes.
//!
//! Worth: over the plain half layer +1.4, +0.7 and +2.8 VMAF at 40, 80 and 150 kbit/s (three people in turn) and +14.2
//! VMAF-NEG on a shared screen, and from −1.8 to 0 on other people; over the best fixed setting, which is known
//! afterwards only, −2.0 to 0 (`lab/notes/controller.md`). Not measured: its two knobs of enhanced anchors.
//!
//! - [`Meter`] sums up an interval of frames that the server decodes anyway ([`Measurements`]).
//! - [`Model`] says what quality and bits other knobs would give; a [`Belief`](belief) keeps it up to date.
//! - [`Ascent`] climbs it, a bounded way each interval.
//! - [`Controller`] puts them together: numbers climb, layers and frame rates, which are discrete, change when another
//!   one's top is higher by more than a margin, at once or after a while.
//!
//! # How a server calls it
//!
//! One [`Controller`] and one [`Meter`] for each publisher, beside its tap. When the publisher's track begins,
//! [`Controller::start`] gives the knobs to send. Each frame that the tap decodes goes to [`Meter::low`]. Once a second
//! the server takes [`Meter::take`], with the uplink estimate of its congestion control (what this publisher can send
//! in all), fills in what subscribers reported of enhanced anchors, and calls [`Controller::observe`]; where that gives
//! knobs, they are sent as a `knobs` message: `layers` has the layer with its bit and frame rate and `active`, the
//! others with `active: false`. Anchor fraction and bytes go to the scheduler and the anchors' encoder. Nothing waits
//! for an answer: a publisher that does not follow shows it in the next interval's measurements. While a publisher's
//! layers are also forwarded as they are to somebody (a rung without anchors), the server narrows
//! [`ControllerConfig::layers`] to these.
//!
//! Pure: no clocks, no randomness, no I/O; equal calls give equal knobs. Everything that comes in may be absurd:
//! then the knobs stay as they are, but never above the uplink.
//!
//! ```
//! use std::time::Duration;
//! use windlass_enhancer::control::{Controller, ControllerConfig, Meter};
//! use windlass_types::{Bitrate, Size};
//!
//! let (camera, uplink) = (Size::new(1280, 720), Bitrate::kbps(150.0));
//! let mut controller = Controller::new(ControllerConfig::default());
//! let mut meter = Meter::new();
//! let begin = controller.start(uplink, camera);
//! assert!(begin.bitrate <= uplink);
//! // … meter.low(layer, &info, &picture) for a second; here no frame came:
//! let uplink = Bitrate::kbps(100.0);
//! let measured = meter.take(Duration::from_secs(1), camera, uplink);
//! let knobs = controller.observe(Duration::from_secs(1), &measured).expect("the uplink fell");
//! assert!(knobs.bitrate <= uplink && knobs.layer == begin.layer);
//! ```

mod ascent;
mod belief;
mod controller;
mod knobs;
mod meter;
mod model;
mod texture;

pub use ascent::Ascent;
pub use controller::{Controller, ControllerConfig};
pub use knobs::{Knobs, divisor};
pub use meter::{LowMeasure, Measurements, Meter};
pub use model::{Expected, Model};
pub use texture::Texture;
