//! An OCI image layout on disk (Open Container Initiative, Image Format Specification 1.1): blobs that are named by
//! their digests, and an index that names the first of them.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::process::Cmd;

/// Media type of an index.
pub(super) const INDEX: &str = "application/vnd.oci.image.index.v1+json";
/// Media type of a manifest.
pub(super) const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
/// Media type of an image's configuration.
pub(super) const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
/// Media type of a layer.
pub(super) const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";

/// A layout that grows in a folder.
pub(super) struct Layout {
    folder: PathBuf,
}

/// The descriptor of a blob: its type, digest and size.
#[derive(Clone)]
pub(super) struct Descriptor(Value);

impl Descriptor {
    /// The descriptor as documents hold it, with the further fields of `more`.
    pub(super) fn with(&self, more: &Value) -> Value {
        let mut value = self.0.clone();
        for (key, field) in more.as_object().into_iter().flatten() {
            value[key] = field.clone();
        }
        value
    }
}

impl Layout {
    /// An empty layout in a folder.
    pub(super) fn new(folder: PathBuf) -> Result<Layout> {
        fs::create_dir_all(folder.join("blobs/sha256"))?;
        let version = json!({ "imageLayoutVersion": "1.0.0" });
        fs::write(folder.join("oci-layout"), version.to_string())?;
        Ok(Layout { folder })
    }

    /// Moves a file into the layout, and returns its descriptor.
    pub(super) fn file(&self, file: &Path, kind: &str) -> Result<Descriptor> {
        let (digest, size) = (sha256(file)?, fs::metadata(file)?.len());
        fs::rename(file, self.folder.join("blobs/sha256").join(&digest))?;
        Ok(Descriptor(json!({
            "mediaType": kind,
            "digest": format!("sha256:{digest}"),
            "size": size,
        })))
    }

    /// Writes a document to the layout, and returns its descriptor.
    pub(super) fn document(&self, document: &Value, kind: &str) -> Result<Descriptor> {
        let draft = self.folder.join("draft");
        fs::write(&draft, document.to_string())?;
        self.file(&draft, kind)
    }

    /// Completes the layout. `first` is the blob that readers get first, by this name.
    pub(super) fn end(self, first: &Descriptor, name: &str) -> Result<PathBuf> {
        let named = json!({ "annotations": { "org.opencontainers.image.ref.name": name } });
        let index = json!({
            "schemaVersion": 2,
            "mediaType": INDEX,
            "manifests": [first.with(&named)],
        });
        fs::write(self.folder.join("index.json"), index.to_string())?;
        Ok(self.folder)
    }
}

/// The SHA-256 digest of a file.
pub(super) fn sha256(file: &Path) -> Result<String> {
    let said = Cmd::new("sha256sum").arg(file).output();
    let said = said.with_context(|| format!("`sha256sum` could not read {}", file.display()))?;
    let digest = said.split_whitespace().next().context("`sha256sum` printed nothing")?;
    Ok(digest.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Holds the blob that a descriptor names against it, and all that it names in turn; gives how many there are.
    fn verify(folder: &Path, descriptor: &Value) -> usize {
        let digest = descriptor["digest"].as_str().and_then(|d| d.strip_prefix("sha256:"));
        let blob = folder.join("blobs/sha256").join(digest.expect("a digest"));
        assert_eq!(sha256(&blob).ok().as_deref(), digest);
        assert_eq!(fs::metadata(&blob).map(|of| of.len()).ok(), descriptor["size"].as_u64());
        let kind = descriptor["mediaType"].as_str().expect("a type");
        if !kind.ends_with("+json") {
            return 1;
        }
        let text = fs::read_to_string(blob).expect("a document");
        let document: Value = serde_json::from_str(&text).expect("JSON");
        let lists = ["manifests", "layers"].into_iter().filter_map(|key| document[key].as_array());
        let mut named: Vec<_> = lists.flatten().collect();
        named.extend(document.get("config").filter(|config| config.get("digest").is_some()));
        1 + named.into_iter().map(|named| verify(folder, named)).sum::<usize>()
    }

    #[test]
    fn every_descriptor_names_a_blob_by_its_digest_and_size() {
        let dir = tempfile::tempdir().expect("a folder");
        let layout = Layout::new(dir.path().join("layout")).expect("a layout");
        let file = dir.path().join("layer");
        fs::write(&file, "files").expect("a file");
        let layer = layout.file(&file, LAYER).expect("a layer");
        let config = layout.document(&json!({ "os": "linux" }), CONFIG).expect("a document");
        let manifest = json!({ "config": config.0, "layers": [layer.0] });
        let manifest = layout.document(&manifest, MANIFEST).expect("a manifest");
        let platform = json!({ "platform": { "os": "linux" } });
        let index = json!({ "manifests": [manifest.with(&platform)] });
        let index = layout.document(&index, INDEX).expect("an index");
        let folder = layout.end(&index, "0.1.0").expect("the end");
        let text = fs::read_to_string(folder.join("index.json")).expect("index.json");
        let top: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(
            top["manifests"][0]["annotations"]["org.opencontainers.image.ref.name"],
            "0.1.0"
        );
        assert_eq!(verify(&folder, &top["manifests"][0]), 4);
        let blobs = fs::read_dir(folder.join("blobs/sha256")).expect("blobs").count();
        assert_eq!(blobs, 4, "nothing else is there");
        assert!(!folder.join("draft").exists());
    }
}
