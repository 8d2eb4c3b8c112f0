//! Which networks anchors are made by: those of this build, or files of the operator's own.
//!
//! A file that cannot be used is an error that names it, before any call begins.

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use thiserror::Error;

use crate::{Model, ModelError, by_four_model, fused_m_model, fused_model};

/// Maximum size of a network's file, in bytes; the largest architecture takes less than a quarter.
const MAX_FILE: u64 = 64 << 20;

/// The operator's choice of networks.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum NetworkChoice {
    /// For each stream, the best built-in network that the machine can sustain, at the scale at which the stream is
    /// watched.
    #[default]
    Auto,
    /// The network `fused-xs-x2` for all streams.
    Xs,
    /// The network `fused-m-x2` for all streams.
    M,
    /// For each stream, the best of the operator's own networks, of whatever scales.
    Files(Vec<PathBuf>),
}

/// A network with its name.
pub type NamedModel = (Arc<str>, Arc<Model>);

/// Why networks cannot be loaded.
#[derive(Debug, Error)]
pub enum NetworkError {
    /// A built-in network cannot be read.
    #[error(
        "a network that is built into this program cannot be used: {0}; install the program again"
    )]
    BuiltIn(#[from] ModelError),
    /// A file cannot be read.
    #[error("cannot read the network {}: {source}; check its path and permissions", path.display())]
    Read {
        /// The network's file.
        path: PathBuf,
        /// Why the file cannot be read.
        source: std::io::Error,
    },
    /// A file is larger than any network.
    #[error("the network {} is too large: it has more than {MAX_FILE} bytes", path.display())]
    TooLarge {
        /// The network's file.
        path: PathBuf,
    },
    /// A file is no network that the engines run.
    #[error("cannot use the network {}: {source}", path.display())]
    Refused {
        /// The network's file.
        path: PathBuf,
        /// Why the weights are refused.
        source: ModelError,
    },
}

impl NetworkChoice {
    /// The networks to choose from, with their names: by scale, then the cheapest first.
    ///
    /// # Errors
    ///
    /// Fails if a file cannot be read, is too large, or is no network that the engines run.
    pub fn models(&self) -> Result<Vec<NamedModel>, NetworkError> {
        let mut models = match self {
            NetworkChoice::Auto => {
                vec![
                    ("fused-xs-x2".into(), fused_model()?),
                    ("fused-m-x2".into(), fused_m_model()?),
                    ("xs-x4".into(), by_four_model()?),
                ]
            }
            NetworkChoice::Xs => vec![("fused-xs-x2".into(), fused_model()?)],
            NetworkChoice::M => vec![("fused-m-x2".into(), fused_m_model()?)],
            NetworkChoice::Files(paths) => {
                paths.iter().map(|path| read(path)).collect::<Result<Vec<NamedModel>, _>>()?
            }
        };
        models.sort_by_key(|(_, model)| {
            let architecture = model.architecture();
            (architecture.scale, architecture.macs())
        });
        Ok(models)
    }
}

/// Reads a network from a file, and names it by the file.
fn read(path: &Path) -> Result<NamedModel, NetworkError> {
    let unread = |source| NetworkError::Read { path: path.to_owned(), source };
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(unread)?;
    file.take(MAX_FILE + 1).read_to_end(&mut bytes).map_err(unread)?;
    if bytes.len() as u64 > MAX_FILE {
        return Err(NetworkError::TooLarge { path: path.to_owned() });
    }
    let model = Model::from_safetensors(&bytes)
        .map_err(|source| NetworkError::Refused { path: path.to_owned(), source })?;
    // It becomes a label of the metrics.
    let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let name: String = stem
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' })
        .collect();
    Ok((name.into(), Arc::new(model)))
}

impl fmt::Display for NetworkChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NetworkChoice::Auto => f.write_str("auto"),
            NetworkChoice::Xs => f.write_str("xs"),
            NetworkChoice::M => f.write_str("m"),
            NetworkChoice::Files(paths) => {
                let names: Vec<_> = paths.iter().map(|path| path.display().to_string()).collect();
                f.write_str(&names.join(","))
            }
        }
    }
}

impl FromStr for NetworkChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(NetworkChoice::Auto),
            "xs" => Ok(NetworkChoice::Xs),
            "m" => Ok(NetworkChoice::M),
            _ => {
                let paths: Vec<PathBuf> = text.split(',').map(PathBuf::from).collect();
                if paths.iter().any(|path| path.extension().is_none_or(|e| e != "safetensors")) {
                    return Err(format!(
                        "network: `{text}` is none of auto, xs, m, and no list of .safetensors files"
                    ));
                }
                Ok(NetworkChoice::Files(paths))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shipped(name: &str) -> PathBuf {
        Path::new("../../models").join(name)
    }

    fn refused(path: PathBuf) -> String {
        NetworkChoice::Files(vec![path]).models().expect_err("it is refused").to_string()
    }

    #[test]
    fn a_choice_is_read_as_it_is_written() {
        for text in ["auto", "xs", "m", "own.safetensors", "a/b.safetensors,c.safetensors"] {
            assert_eq!(
                text.parse::<NetworkChoice>().map(|choice| choice.to_string()),
                Ok(text.to_owned())
            );
        }
        for text in ["", "l", "all", "own.onnx", "own.safetensors,", "xs,m"] {
            let error = text.parse::<NetworkChoice>().expect_err(text);
            assert!(error.contains(".safetensors"), "{error}");
        }
    }

    #[test]
    fn every_choice_of_this_build_gives_some_by_scale_and_then_from_cheap_to_dear() {
        let scales = |choice: NetworkChoice| {
            let models = choice.models().expect("they are built in");
            let of = |(_, model): &NamedModel| {
                let architecture = model.architecture();
                (architecture.scale, architecture.macs())
            };
            assert!(models.iter().map(of).is_sorted());
            models.iter().map(|model| of(model).0).collect::<Vec<_>>()
        };
        assert_eq!(scales(NetworkChoice::Auto), [2, 2, 4]);
        assert_eq!(scales(NetworkChoice::Xs), [2]);
        assert_eq!(scales(NetworkChoice::M), [2]);
    }

    #[test]
    fn files_are_named_and_come_the_cheapest_first() {
        let files = ["fused-m-x2.safetensors", "xs-x4.safetensors", "xs-x2.safetensors"];
        let files = files.map(shipped).to_vec();
        let models = NetworkChoice::Files(files).models().expect("they are networks");
        let names: Vec<&str> = models.iter().map(|(name, _)| name.as_ref()).collect();
        assert_eq!(names, ["xs-x2", "fused-m-x2", "xs-x4"], "by scale first");
    }

    #[test]
    fn what_is_no_network_is_refused_by_name() {
        assert!(refused(shipped("absent.safetensors")).contains("cannot read the network"));
        assert!(refused(shipped("xs-x2.md")).contains("xs-x2.md: not a safetensors file"));
        assert!(refused(shipped("")).contains("cannot read the network"));
        assert!(refused(PathBuf::from("/dev/zero")).contains("has more than"));
    }

    #[test]
    fn a_name_fits_into_a_label() {
        let path = std::env::temp_dir()
            .join(format!("windlass \"odd\" {}.safetensors", std::process::id()));
        std::fs::copy(shipped("xs-x2.safetensors"), &path).expect("it is copied");
        let models = NetworkChoice::Files(vec![path.clone()]).models();
        std::fs::remove_file(path).expect("it is removed");
        let (name, _) = &models.expect("a network")[0];
        assert!(name.starts_with("windlass__odd__"), "{name}");
    }
}
