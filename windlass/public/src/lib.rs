//! What a server with a public name sees to by itself: where others reach it ([`find`]), the key of its access tokens
//! ([`make_key`]), and its certificate, by ACME ([`Acme`]) or, for development, of its own ([`self_signed`]).
//!
//! All of it is kept in the server's folder ([`folder`]), so that a restart asks nobody again.

mod acme;
mod address;
mod certificate;
mod challenge;
mod https;
mod key;
mod name;
mod self_signed;
mod state;

pub use acme::{Acme, AcmeError, LETS_ENCRYPT};
pub use address::{AddressError, Found, find};
pub use certificate::{Pair, Validity};
pub use key::make_key;
pub use name::PublicName;
pub use self_signed::{kept, made};
pub use state::{folder, of_user};
