//! Enhancers and SFUs on other machines.
//!
//! Source: `docs/decisions/011-enhancer-workers.md` and `012-leases-in-nats.md`; NeuroScaler §4.2 and §7. [`wire`] says the same as [`windlass_types`] in the messages of
//! `proto/enhancer.proto`, whose times are spans: what becomes of them is [`clock`]'s.

pub mod choice;
pub mod clock;
pub mod judge;
mod key_wish;
pub mod lease;
pub mod links;
pub mod mutual;
pub mod nats;
pub mod remote;
mod rogues;
pub mod rooms;
pub mod sealed;
pub mod ticket;
pub mod token;
pub mod wire;
pub mod worker;

/// What prost and tonic make of `proto/enhancer.proto`.
#[allow(missing_docs, clippy::pedantic, reason = "generated")]
pub mod proto {
    tonic::include_proto!("windlass.enhancer.v1");
}

/// What they make of `proto/relay.proto`.
#[allow(missing_docs, clippy::pedantic, reason = "generated")]
pub mod relay {
    tonic::include_proto!("windlass.relay.v1");
}
