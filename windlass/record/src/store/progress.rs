//! How far a recording's way into the store is. It is kept in a file beside the recording, so that a server that was
//! killed goes on where it was.

use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

/// Size of the parts in which a file is sent, in bytes. A store takes parts of 5 MiB and more, and each is kept in
/// memory while it is sent.
const PART_BYTES: u64 = 16 << 20;
/// Maximum number of parts of a file. A store takes 10,000.
const MAX_PARTS: u64 = 9_000;
/// Name of the file with the progress, in the folder of a recording.
const FILE: &str = ".stored.json";

/// A file that is sent in parts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Upload {
    /// Name of the file.
    pub file: String,
    /// The store's name for the upload.
    pub id: String,
    /// The store's tags of the parts that it has.
    pub etags: Vec<String>,
}

/// What the store has of a recording.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Progress {
    /// Files that the store has.
    #[serde(default)]
    pub stored: Vec<String>,
    /// The file that is being sent in parts.
    #[serde(default)]
    pub upload: Option<Upload>,
}

/// A part of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Part {
    /// Where it begins, in bytes.
    pub at: u64,
    /// Size in bytes.
    pub bytes: u64,
}

/// What is to be done next.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Send a whole file.
    Put(String),
    /// Begin to send a file in parts.
    Begin(String),
    /// Send the next part of a file.
    Send(Upload, Part),
    /// All parts of a file are sent: have the store put them together.
    Complete(Upload),
    /// All files are stored.
    Done,
}

impl Progress {
    /// What is to be done next, for `files` with their sizes in bytes, of which the last one is sent last.
    pub(super) fn next(&self, files: &[(String, u64)]) -> Step {
        let next = files.iter().find(|(file, _)| !self.stored.contains(file));
        let Some((file, bytes)) = next else { return Step::Done };
        if *bytes <= PART_BYTES {
            return Step::Put(file.clone());
        }
        let Some(upload) = self.upload.as_ref().filter(|upload| upload.file == *file) else {
            return Step::Begin(file.clone());
        };
        let size = PART_BYTES.max(bytes.div_ceil(MAX_PARTS));
        let at = upload.etags.len() as u64 * size;
        if at >= *bytes {
            return Step::Complete(upload.clone());
        }
        Step::Send(upload.clone(), Part { at, bytes: size.min(bytes - at) })
    }

    /// Notes that the store has a file.
    pub(super) fn stored(&mut self, file: String) {
        self.stored.push(file);
        self.upload = None;
    }

    /// The progress of the recording in a folder. If it cannot be read, all files are sent again.
    pub(super) fn read(folder: &Path) -> Progress {
        let text = std::fs::read(folder.join(FILE)).unwrap_or_default();
        serde_json::from_slice(&text).unwrap_or_default()
    }

    /// Keeps the progress, so that there is a whole file at any time.
    pub(super) fn save(&self, folder: &Path) -> io::Result<()> {
        let file = folder.join(FILE);
        let fresh = file.with_extension("json.part");
        std::fs::write(&fresh, serde_json::to_vec(self)?)?;
        std::fs::rename(fresh, file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(sizes: &[(&str, u64)]) -> Vec<(String, u64)> {
        sizes.iter().map(|&(file, bytes)| (file.to_owned(), bytes)).collect()
    }

    #[test]
    fn small_files_are_sent_whole_and_in_order() {
        let all = files(&[("a.webm", PART_BYTES), ("b.json", 0)]);
        let mut progress = Progress::default();
        assert_eq!(progress.next(&all), Step::Put("a.webm".to_owned()));
        progress.stored("a.webm".to_owned());
        assert_eq!(progress.next(&all), Step::Put("b.json".to_owned()));
        progress.stored("b.json".to_owned());
        assert_eq!(progress.next(&all), Step::Done);
    }

    #[test]
    fn a_large_file_is_sent_in_parts_that_are_the_whole() {
        for bytes in [PART_BYTES + 1, 3 * PART_BYTES, PART_BYTES * 10_000 + 7] {
            let all = files(&[("a.webm", bytes)]);
            let mut progress = Progress::default();
            assert_eq!(progress.next(&all), Step::Begin("a.webm".to_owned()));
            let upload = |etags| Upload { file: "a.webm".to_owned(), id: "u".to_owned(), etags };
            let (mut sent, mut parts) = (0, 0);
            progress.upload = Some(upload(Vec::new()));
            while let Step::Send(_, part) = progress.next(&all) {
                assert_eq!(part.at, sent);
                assert!(part.bytes >= PART_BYTES || part.at + part.bytes == bytes);
                (sent, parts) = (sent + part.bytes, parts + 1);
                progress.upload.as_mut().unwrap().etags.push(String::new());
            }
            let whole = progress.upload.clone().unwrap();
            assert_eq!((sent, progress.next(&all)), (bytes, Step::Complete(whole)));
            assert!(parts <= 10_000, "{parts}");
        }
    }

    #[test]
    fn an_upload_of_another_file_is_not_gone_on_with() {
        let upload = Upload { file: "a.webm".to_owned(), id: "u".to_owned(), etags: Vec::new() };
        let progress = Progress { stored: vec!["a.webm".to_owned()], upload: Some(upload) };
        let all = files(&[("a.webm", 1), ("b.webm", PART_BYTES + 1)]);
        assert_eq!(progress.next(&all), Step::Begin("b.webm".to_owned()));
    }

    #[test]
    fn progress_outlives_the_process_and_a_damaged_file_is_none() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(Progress::read(folder.path()), Progress::default());
        let progress = Progress { stored: vec!["a.webm".to_owned()], upload: None };
        progress.save(folder.path()).unwrap();
        assert_eq!(Progress::read(folder.path()), progress);
        std::fs::write(folder.path().join(FILE), b"{\"stored\":").unwrap();
        assert_eq!(Progress::read(folder.path()), Progress::default());
    }
}
