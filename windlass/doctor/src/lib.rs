//! Finds what would keep a server from serving, before anybody calls. Each check looks at one part and returns
//! [`Finding`]s.
//!
//! Checks block; those that ask another machine wait for at most [`TIMEOUT`]. They change nothing: sockets are bound
//! and closed, and a relay's allocation is not used.
//!
//! ```
//! use std::net::UdpSocket;
//! use windlass_doctor::{Listens, Protocol, Report, ports};
//!
//! // Another program has the port of media.
//! let other = UdpSocket::bind("127.0.0.1:0")?;
//! let media = Listens { option: "--media", protocol: Protocol::Udp, addr: other.local_addr()? };
//! let report = Report::new(ports(([127, 0, 0, 1], 1).into(), &[media]));
//! assert!(report.has_faults());
//! assert!(report.to_string().contains("another program has UDP 127.0.0.1:"));
//! # Ok::<(), std::io::Error>(())
//! ```

mod addresses;
mod certificate;
mod clock;
mod connect;
mod finding;
mod http;
mod limits;
mod name;
mod pace;
mod ports;
mod relay;
mod stun;

use std::time::Duration;

pub use addresses::{Reach, addresses, is_private};
pub use certificate::certificate;
pub use clock::clock;
pub use connect::{address, connect};
pub use finding::{Finding, Level, Report};
pub use http::get;
pub use limits::{Wanted, limits};
pub use name::name;
pub use pace::pace;
pub use ports::{Listens, Protocol, RIGHTS, ports};
pub use relay::{Credentials, Relay, relay, seen};

/// Maximum time for an answer of another machine.
pub const TIMEOUT: Duration = Duration::from_secs(3);
