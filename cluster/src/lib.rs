//! Several servers that share rooms, and enhancers on other machines.
//!
//! | module | is | pure |
//! | --- | --- | --- |
//! | [`rooms`] | which server serves which room: leases, claims, placement | yes |
//! | [`node`] | one server of a cluster: connects `rooms`, `nats` and `relay` with signalling and the SFU | |
//! | [`relay`] | links between servers that share rooms, and their messages (`proto/relay.proto`) | |
//! | [`ticket`] | proof of a participant's id on the server from which it moves | yes |
//! | [`choice`], [`lease`] | which worker (remote enhancer) a stream goes to, and what workers say of themselves | yes |
//! | [`remote`], [`worker`] | the two ends of a stream between an SFU and a worker (`proto/enhancer.proto`) | |
//! | [`wire`], [`clock`], [`liveness`] | messages, times and pings of these streams | yes |
//! | [`nats`], [`sealed`] | buckets of leases, claims and rules; the seals of their entries | `sealed` |
//! | [`mutual`], [`token`] | mutual TLS and the shared secret of a cluster | |
//!
//! Source: decisions 011 to 015, 025 and 026 in `docs/decisions`; NeuroScaler §5.2 and §7.

pub mod choice;
pub mod clock;
mod key_frame_request;
pub mod lease;
pub mod liveness;
pub mod mutual;
pub mod nats;
pub mod node;
mod rejections;
pub mod relay;
pub mod remote;
pub mod rooms;
pub mod sealed;
pub mod ticket;
pub mod token;
pub mod wire;
pub mod worker;

/// The README of this crate, whose example is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// Generated from the files of `proto/`, each in a module `v1`, by which the files know each other.
#[allow(missing_docs, clippy::pedantic, reason = "generated")]
pub mod proto {
    /// `proto/enhancer.proto`.
    pub mod enhancer {
        pub use v1::*;

        pub mod v1 {
            tonic::include_proto!("windlass.enhancer.v1");
        }
    }

    /// `proto/relay.proto`.
    pub mod relay {
        pub use v1::*;

        pub mod v1 {
            tonic::include_proto!("windlass.relay.v1");
        }
    }
}
