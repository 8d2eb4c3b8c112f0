//! What a server with a public name does by itself. It finds where others reach it ([`find`]) and makes the key of its
//! access tokens ([`make_key`]). It gets a certificate by ACME ([`Acme`]) or, for development, makes its own
//! ([`self_signed`]).
//!
//! Everything is kept in the server's folder ([`folder`]), so that a restart need not ask again.
//!
//! ```
//! use windlass_public::{PublicName, Validity, made, make_key};
//!
//! let name: PublicName = "Calls.example.".parse()?;
//! assert_eq!(name.to_string(), "calls.example");
//! assert!("203.0.113.5".parse::<PublicName>().is_err(), "an address is no name");
//!
//! // A key is made once; a later start finds it.
//! # let folder = tempfile::tempdir()?;
//! let file = folder.path().join("token-key");
//! assert!(make_key(&file)? && !make_key(&file)?);
//! let pair = made(&[name.to_string()].into())?;
//! let validity = Validity::of((pair.certificate + &pair.key).as_bytes());
//! assert!(validity.is_some_and(|validity| validity.not_before < validity.not_after));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

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
