//! The lease of a worker (an enhancer on another machine): address, capacity and load, written into a bucket that all
//! SFUs read.
//!
//! Pure: bytes in, values out. Source: NeuroScaler §5.2 (capacities are known to the scheduler); decisions 011 and 012.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Interval between two renewals of a worker's lease.
pub const RENEW_INTERVAL: Duration = Duration::from_millis(500);
/// Age of the last renewal from which on a worker gets no new streams.
pub const LEASE_TIMEOUT: Duration = Duration::from_secs(2);

/// Longest lease that is read, in bytes.
const MAX_BYTES: usize = 4_096;
/// Maximum number of networks in a lease.
const MAX_NETWORKS: usize = 64;
/// Maximum number of devices in a lease.
pub const MAX_DEVICES: usize = 16;

/// A worker's lease.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Lease {
    /// gRPC address for SFUs (`https://host:port`).
    pub address: String,
    /// Accelerator time that the worker offers, in calibrated seconds per second.
    pub capacity: f64,
    /// Share of the capacity that is in use, 0 to 1.
    pub load: f64,
    /// Number of streams that the worker has: one for each publisher.
    pub streams: u32,
    /// Maximum number of streams of the worker.
    #[serde(rename = "most-streams")]
    pub max_streams: u32,
    /// Names of the loaded networks.
    pub networks: Vec<String>,
    /// Name and UUID of each GPU, or GPU slice, in use. Empty for workers on CPUs, and for workers of older versions.
    #[serde(default)]
    pub devices: Vec<String>,
    /// Whether the worker is about to stop: its streams should move to others.
    pub draining: bool,
}

/// Why a lease is refused.
#[derive(Debug, Error)]
pub enum BadLease {
    /// The lease is longer than any that a worker writes.
    #[error("the worker's lease is too long: it has {0} bytes, more than {MAX_BYTES}")]
    TooLong(usize),
    /// The lease is not the expected JSON.
    #[error("the worker's lease is malformed: {0}; check that all machines have the same version")]
    Json(#[from] serde_json::Error),
    /// A value is out of its range.
    #[error("the worker's lease is invalid: {0}")]
    Value(&'static str),
}

impl Lease {
    /// Parses and checks a lease.
    ///
    /// # Errors
    ///
    /// The bytes are no lease, or a value is out of its range.
    pub fn read(bytes: &[u8]) -> Result<Lease, BadLease> {
        if bytes.len() > MAX_BYTES {
            return Err(BadLease::TooLong(bytes.len()));
        }
        let lease: Lease = serde_json::from_slice(bytes)?;
        let is_valid = |v: f64| v.is_finite() && v >= 0.0;
        if !(lease.address.starts_with("http://") || lease.address.starts_with("https://")) {
            return Err(BadLease::Value("the address is not an http:// or https:// URL"));
        }
        if !is_valid(lease.capacity) || lease.capacity == 0.0 || !is_valid(lease.load) {
            return Err(BadLease::Value("the capacity must be above 0, and the load 0 or more"));
        }
        if lease.networks.len() > MAX_NETWORKS {
            return Err(BadLease::Value("the lease names too many networks"));
        }
        if lease.devices.len() > MAX_DEVICES {
            return Err(BadLease::Value("the lease names too many devices"));
        }
        Ok(lease)
    }

    /// The lease as JSON.
    pub fn write(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The lease of an idle worker.
    pub(crate) fn lease(address: &str) -> Lease {
        Lease {
            address: address.to_owned(),
            capacity: 1.0,
            load: 0.0,
            streams: 0,
            max_streams: 64,
            networks: vec!["fused-xs-x2".to_owned()],
            devices: vec!["A GPU MIG 1g.10gb (MIG-b)".to_owned()],
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
        assert!(matches!(Lease::read(&[b' '; 5_000]), Err(BadLease::TooLong(5_000))));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = Lease::read(&bytes);
        }
    }
}
