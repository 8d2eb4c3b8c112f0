//! Secrets in options: the text itself, or `@FILE`, so that secrets need not be in a command line.

use std::io;

/// Bytes of the text, or the trimmed content of the file that the text names by `@FILE`.
///
/// # Errors
///
/// The file cannot be read.
pub fn bytes(value: &str) -> io::Result<Vec<u8>> {
    match value.strip_prefix('@') {
        None => Ok(value.as_bytes().to_vec()),
        Some(file) => Ok(std::fs::read(file)?.trim_ascii().to_vec()),
    }
}

/// Reads an option's value, which may be `@FILE`, as UTF-8 text.
///
/// # Errors
///
/// The file cannot be read, or is not UTF-8.
pub fn text(value: &str) -> io::Result<String> {
    String::from_utf8(bytes(value)?).map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_without_the_space_around_it() {
        let path = std::env::temp_dir().join(format!("windlass-at-file-{}", std::process::id()));
        std::fs::write(&path, " secret \n").expect("written");
        let at = format!("@{}", path.display());
        assert_eq!(text(&at).expect("read"), "secret");
        std::fs::write(&path, [0xff, b'\n']).expect("written");
        assert_eq!(bytes(&at).expect("read"), [0xff]);
        assert_eq!(text(&at).map_err(|e| e.kind()), Err(io::ErrorKind::InvalidData));
        std::fs::remove_file(&path).expect("removed");
        assert!(text(&at).is_err());
        assert_eq!(text(" as it is ").expect("said"), " as it is ");
    }
}
