//! `windlass key`: makes a token key, once.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;
use windlass_public::make_key;
use windlass_signaling::access::TokenKey;

/// Arguments of `windlass key`.
#[derive(Debug, Args)]
pub(crate) struct KeyArgs {
    /// Where the key is kept; one that is there stays as it is
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

/// Makes a key in the file unless there is one, and says how it is used.
pub(crate) fn run(args: &KeyArgs) -> Result<()> {
    let file = &args.file;
    let made =
        make_key(file).with_context(|| format!("cannot make a key in {}", file.display()))?;
    let key = format!("k1=@{}", file.display());
    key.parse::<TokenKey>().with_context(|| format!("{} is no token key", file.display()))?;
    println!(
        "{} {}.",
        if made { "A token key was made:" } else { "There is a token key:" },
        file.display()
    );
    println!("  windlass serve --token-key {key} …");
    println!("makes rooms need access tokens, and");
    println!("  windlass token --key {key} --room tea-room --identity ana --page https://HOST");
    println!("makes a link that has one.");
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn what_is_no_key_is_neither_replaced_nor_taken_for_one() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("k1");
        fs::write(&file, "short").unwrap();
        let error = format!("{:#}", run(&KeyArgs { file: file.clone() }).unwrap_err());
        assert!(error.contains("is no token key") && error.contains("32 bytes"), "{error}");
        assert_eq!(fs::read_to_string(&file).unwrap(), "short");
    }
}
