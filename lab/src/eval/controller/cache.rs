//! Runs with fixed settings, kept in files: they do not depend on the controller, and take most of the time.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::play::Run;

/// Version of the kept runs: to be raised when encoders, decoder or scores change the result of a run.
const VERSION: u32 = 2;

/// A folder of kept runs; without one, no run is kept.
#[derive(Debug, Clone)]
pub(super) struct Cache {
    folder: Option<PathBuf>,
}

impl Cache {
    /// A cache in `folder`, which is made if it is missing.
    pub(super) fn new(folder: Option<&Path>) -> Result<Cache> {
        if let Some(folder) = folder {
            std::fs::create_dir_all(folder)
                .with_context(|| format!("making {}", folder.display()))?;
        }
        Ok(Cache { folder: folder.map(Path::to_path_buf) })
    }

    /// The run kept under `key`, or the one that `make` gives. A file that cannot be read is made anew.
    pub(super) fn run(&self, key: &str, make: impl FnOnce() -> Result<Run>) -> Result<Run> {
        let Some(folder) = &self.folder else { return make() };
        let path = folder.join(format!("{:016x}.json", hash(&format!("{VERSION} {key}"))));
        let kept = std::fs::read(&path).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
        if let Some(run) = kept {
            return Ok(run);
        }
        let run = make()?;
        std::fs::write(&path, serde_json::to_vec(&run)?)
            .with_context(|| format!("writing {}", path.display()))?;
        Ok(run)
    }
}

/// The FNV-1a hash of a text, which is the same in every build.
fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_made_once_by_key_and_again_where_its_file_is_damaged() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::new(Some(folder.path())).unwrap();
        let made = std::cell::Cell::new(0);
        let run = |key| {
            let make = || {
                made.set(made.get() + 1);
                Ok(Run { intervals: Vec::new(), metering_ms_per_s: 1.5 })
            };
            cache.run(key, make).unwrap().metering_ms_per_s
        };
        let sum = run("a") + run("a") + run("b");
        assert!((sum - 4.5).abs() < 1e-9 && made.get() == 2);
        for file in std::fs::read_dir(folder.path()).unwrap() {
            std::fs::write(file.unwrap().path(), "{").unwrap();
        }
        run("a");
        assert_eq!(made.get(), 3);
    }
}
