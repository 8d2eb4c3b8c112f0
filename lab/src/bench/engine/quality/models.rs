//! The networks that are compared: files, and those that the binary contains.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use windlass_sr::{Model, Simd, embedded_model, fused_m_model, fused_model};

use crate::eval::networks::Network;
use crate::eval::sr::{self, Upscaler};

/// Folder with trained networks, from the project's root.
const FOLDER: &str = "models";
/// Ending of the files with weights.
const ENDING: &str = ".safetensors";
/// Ending of the file beside a network with the answer to a test's picture: such files are no networks.
const FIXTURE: &str = ".fixture.safetensors";

/// The named files; without any, those of the folder `models` and the built-in ones that are not among them. Ordered
/// by scale, then by cost, networks of the low picture alone first.
pub(super) fn read(files: &[PathBuf], simd: Option<Simd>) -> Result<Vec<Network>> {
    let found = if files.is_empty() { in_folder(Path::new(FOLDER))? } else { files.to_vec() };
    let mut models: Vec<(String, Arc<Model>)> = Vec::new();
    for path in &found {
        models.push((name(path), sr::network(Some(path))?));
    }
    if files.is_empty() {
        if found.is_empty() {
            eprintln!("note: no {FOLDER}/*{ENDING} from here, so only built-in networks run");
        }
        for (name, model) in built_in()? {
            if !models.iter().any(|(_, other)| same(other, &model)) {
                models.push((name.to_owned(), model));
            }
        }
    }
    models.sort_by_key(|(name, model)| {
        let shape = model.architecture();
        (shape.scale, shape.has_twin(), shape.macs(), name.clone())
    });
    for (n, (name, _)) in models.iter().enumerate() {
        ensure!(
            models[..n].iter().all(|(other, _)| other != name),
            "two networks are called {name}: give them different file names"
        );
    }
    let network = |(name, model)| {
        let upscaler = Upscaler::with(model);
        let upscaler = match simd {
            Some(simd) => upscaler.on(simd.name())?,
            None => upscaler,
        };
        Ok(Network { name, upscaler })
    };
    models.into_iter().map(network).collect()
}

/// The networks of a folder by name; none where there is no such folder.
fn in_folder(folder: &Path) -> Result<Vec<PathBuf>> {
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let reading = || format!("reading the folder {}", folder.display());
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(folder).with_context(reading)? {
        let path = entry.with_context(reading)?.path();
        let file = path.file_name().unwrap_or_default().to_string_lossy();
        if file.ends_with(ENDING) && !file.ends_with(FIXTURE) {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

/// The built-in networks, by the names of their files.
fn built_in() -> Result<[(&'static str, Arc<Model>); 3]> {
    Ok([
        ("xs-x2", embedded_model()?),
        ("fused-xs-x2", fused_model()?),
        ("fused-m-x2", fused_m_model()?),
    ])
}

fn same(a: &Model, b: &Model) -> bool {
    a.architecture() == b.architecture() && a.convs() == b.convs()
}

fn name(path: &Path) -> String {
    path.file_stem().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODELS: &str = "../models";

    fn names(networks: &[Network]) -> Vec<&str> {
        networks.iter().map(|network| network.name.as_str()).collect()
    }

    #[test]
    fn a_folder_gives_its_networks_and_neither_fixtures_nor_other_files() {
        let paths = in_folder(Path::new(MODELS)).unwrap();
        let found: Vec<String> = paths.iter().map(|path| name(path)).collect();
        assert!(found.contains(&"xs-x3".to_owned()), "{found:?}");
        assert!(found.iter().all(|name| !name.contains("fixture")));
        assert!(in_folder(Path::new("/no/such/folder")).unwrap().is_empty());
    }

    #[test]
    fn named_files_run_in_the_order_of_their_scale_and_cost() {
        let file = |name: &str| Path::new(MODELS).join(format!("{name}.safetensors"));
        let files = ["xs-x4", "fused-m-x2", "xs-x2"].map(file);
        let networks = read(&files, Some(Simd::Scalar)).unwrap();
        assert_eq!(names(&networks), ["xs-x2", "fused-m-x2", "xs-x4"]);
        assert!(networks.iter().all(|network| network.upscaler.backend() == "cpu-scalar"));
        assert!(read(&[file("xs-x2"), file("xs-x2")], None).is_err(), "twice the same name");
        assert!(read(&[file("no-such")], None).is_err());
    }

    #[test]
    fn without_a_folder_the_built_in_networks_run() {
        // Tests run in the crate's folder, which has no `models`.
        assert_eq!(names(&read(&[], None).unwrap()), ["xs-x2", "fused-xs-x2", "fused-m-x2"]);
    }
}
