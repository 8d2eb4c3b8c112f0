//! Checks, before anybody records, whether recordings would get to their place.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::disk::takes_files;
use crate::server::RecordTo;
use crate::store::{BucketError, StoreSetupError, bucket_of};

/// Why recordings would not get to their place.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    /// Nothing can be written into the folder.
    #[error("nothing can be written into {}: {source}", folder.display())]
    Folder {
        /// The folder, or the one in which it would be made.
        folder: PathBuf,
        /// The system's words.
        source: io::Error,
    },
    /// Nothing says where recordings wait for the store.
    #[error("recordings wait for the store in the server's folder, but none is known")]
    NoFolder,
    /// The environment does not say how to reach the store.
    #[error(transparent)]
    Setup(#[from] StoreSetupError),
    /// The store does not answer, or not for this bucket.
    #[error(transparent)]
    Bucket(#[from] BucketError),
}

impl RecordTo {
    /// Whether recordings would get there. What is for a store waits in `spool`. A file is written and removed, and a
    /// store has `patience` to answer.
    ///
    /// # Errors
    ///
    /// Fails if nothing can be written into the folder, or the store does not have the bucket.
    pub fn check(&self, spool: Option<&Path>, patience: Duration) -> Result<(), CheckError> {
        match self {
            RecordTo::Folder(folder) => can_be_written(folder),
            RecordTo::Store(place) => {
                can_be_written(spool.ok_or(CheckError::NoFolder)?)?;
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
                let runtime = runtime.map_err(|error| BucketError::Store(error.to_string()))?;
                let bucket = bucket_of(place)?;
                let late = |_| BucketError::Store(format!("no answer within {patience:?}"));
                let answer = async { tokio::time::timeout(patience, bucket.exists()).await };
                Ok(runtime.block_on(answer).map_err(late)??)
            }
        }
    }
}

/// Writes a file into a folder, or where it is not there yet, into that in which it would be made, and removes it.
fn can_be_written(folder: &Path) -> Result<(), CheckError> {
    let exists = |path: &&Path| path.as_os_str().is_empty() || fs::symlink_metadata(path).is_ok();
    let there = folder.ancestors().find(exists).unwrap_or(folder);
    let there = if there.as_os_str().is_empty() { Path::new(".") } else { there };
    takes_files(there).map_err(|source| CheckError::Folder { folder: there.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_takes_files_also_if_it_is_still_to_be_made() {
        let there = tempfile::tempdir().unwrap();
        let check = |folder: PathBuf| RecordTo::Folder(folder).check(None, Duration::ZERO);
        check(there.path().to_owned()).unwrap();
        check(there.path().join("a/b")).unwrap();
        assert_eq!(fs::read_dir(there.path()).unwrap().count(), 0, "nothing is left");
        fs::write(there.path().join("file"), "").unwrap();
        let error = check(there.path().join("file/below")).unwrap_err().to_string();
        assert!(error.contains("/file: "), "{error}");
    }
}
