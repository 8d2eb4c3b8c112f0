//! What a server with a public name does by itself. It finds where others reach it ([`find`]) and makes the key of its
//! access tokens ([`make_key`]). It gets a certificate by ACME ([`Acme`]) or, for development, makes its own
//! ([`self_signed`]).
//!
//! Everything is kept in the server's folder ([`folder`]), so that a restart need not ask again.

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
