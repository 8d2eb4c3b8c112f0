//! One participant's connection: the WebRTC stack, and what limits the input of a connection.

pub(super) mod channels;
pub(super) mod cpu_limit;
mod handshake_gate;
pub(super) mod in_flight;
pub(super) mod link;
pub(super) mod news;
pub(super) mod packet_limit;
pub(super) mod quality;
mod rsa_dtls;
pub(super) mod rtcp;
pub(super) mod sctp_filter;
pub(super) mod srtp;
pub(super) mod stack;
pub(super) mod stand_in;
