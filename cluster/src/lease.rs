//! What a worker says of itself where all SFUs of a cluster can read it, until it says it again or is no longer believed.
//!
//! Pure: bytes in, values out. Source: NeuroScaler §4.2 (capacities are known to the scheduler); decision 011.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Between two renewals.
pub const RENEW: Duration = Duration::from_millis(500);
/// Who has not renewed its lease for so long gets no new streams.
pub const HOLDS: Duration = Duration::from_secs(2);

/// A longer one is not read.
const MOST_BYTES: usize = 4_096;
/// Networks that are read.
const MOST_NETWORKS: usize = 64;
/// Devices that are read, and so are to be written.
pub const MOST_DEVICES: usize = 16;

/// A worker's lease.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Lease {
    /// Where SFUs reach it (`https://host:port`).
    pub address: String,
    /// Seconds of its accelerators' time that it offers each second, as calibrated.
    pub capacity: f64,
    /// The share of it that is taken, 0 to 1.
    pub load: f64,
    /// Publishers that it has.
    pub streams: u32,
    /// Publishers that it takes.
    pub most_streams: u32,
    /// Networks that are loaded.
    pub networks: Vec<String>,
    /// GPUs, or the slice of one, on which it works: name and UUID of each; none on processors. Workers of before say nothing.
    #[serde(default)]
    pub devices: Vec<String>,
    /// It ends soon: its streams should go elsewhere.
    pub draining: bool,
}

/// Why a lease is none.
#[derive(Debug, Error)]
pub enum BadLease {
    /// More bytes than any has.
    #[error("a lease of {0} bytes")]
    Long(usize),
    /// Something else than a lease.
    #[error("it cannot be read: {0}")]
    Json(#[from] serde_json::Error),
    /// Values that make no sense.
    #[error("{0}")]
    Value(&'static str),
}

impl Lease {
    /// Reads what a worker wrote.
    pub fn read(bytes: &[u8]) -> Result<Lease, BadLease> {
        if bytes.len() > MOST_BYTES {
            return Err(BadLease::Long(bytes.len()));
        }
        let lease: Lease = serde_json::from_slice(bytes)?;
        let fine = |v: f64| v.is_finite() && v >= 0.0;
        if !(lease.address.starts_with("http://") || lease.address.starts_with("https://")) {
            return Err(BadLease::Value("its address is none"));
        }
        if !fine(lease.capacity) || lease.capacity == 0.0 || !fine(lease.load) {
            return Err(BadLease::Value("its capacity or load is none"));
        }
        if lease.networks.len() > MOST_NETWORKS {
            return Err(BadLease::Value("it has too many networks"));
        }
        if lease.devices.len() > MOST_DEVICES {
            return Err(BadLease::Value("it has too many devices"));
        }
        Ok(lease)
    }

    /// As workers write it.
    pub fn write(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;

    /// One of a worker with nothing to do.
    pub(crate) fn lease(address: &str) -> Lease {
        Lease {
            address: address.to_owned(),
            capacity: 1.0,
            load: 0.0,
            streams: 0,
            most_streams: 64,
            networks: vec!["fused-xs-x2".to_owned()],
            devices: vec!["A card MIG 1g.10gb (MIG-b)".to_owned()],
            draining: false,
        }
    }

    #[test]
    fn what_was_written_is_read() {
        let written = lease("https://10.0.0.7:7890");
        assert_eq!(Lease::read(&written.write()).unwrap(), written);
    }

    #[test]
    fn a_lease_of_before_says_nothing_of_devices_and_is_read() {
        let text = String::from_utf8(lease("http://10.0.0.7:7890").write()).unwrap();
        let (before, rest) = text.split_once("\"devices\"").unwrap();
        let former = format!("{before}{}", rest.split_once("],").unwrap().1);
        assert_eq!(Lease::read(former.as_bytes()).unwrap().devices, [""; 0]);
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let broken: [fn(&mut Lease); 5] = [
            |lease| lease.address = "10.0.0.7".to_owned(),
            |lease| lease.capacity = 0.0,
            |lease| lease.load = -1.0,
            |lease| lease.networks = vec![String::new(); 65],
            |lease| lease.devices = vec![String::new(); 17],
        ];
        for spoil in broken {
            let mut lease = lease("http://10.0.0.7:7890");
            spoil(&mut lease);
            assert!(Lease::read(&lease.write()).is_err(), "{lease:?}");
        }
        assert!(matches!(Lease::read(&[b' '; 5_000]), Err(BadLease::Long(5_000))));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = Lease::read(&bytes);
        }
    }
}
