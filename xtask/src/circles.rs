//! Circles of files: two files of a crate that use each other can only be read, tested and moved together.
//!
//! What a file uses is read from its paths (`crate::…`, `super::…`), by text: macros and re-exports hide some, which is
//! good enough to stop new circles. Tests do not count. A circle that stays is in [`ALLOWED`] with its reason and its
//! size, which may only shrink.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use crate::root;
use crate::source::{code, files};

/// Circles that stay: one of the circle's files, the maximum number of its files, and why it stays.
const ALLOWED: [(&str, usize, &str); 20] = [
    ("cluster::nats", 3, TWO),
    ("cluster::node", 3, CORE),
    ("cluster::rooms", 3, CORE),
    ("enhancer::pipeline::worker", 2, CORE),
    ("enhancer/sr::cpu", 2, TWO),
    ("enhancer/sr::cuda::driver", 3, TWO),
    ("enhancer/sr::cuda::plan", 2, TWO),
    ("enhancer/sr::model", 3, "a model keeps its weights packed for each type of number"),
    (
        "hybrid::reconstruct::learned::filters",
        4,
        "`simd` has the inner loops of the other three, in vectors of any width",
    ),
    ("hybrid/vp9::picture", 3, TWO),
    ("lab::bench::engine::measure", 7, ARGS),
    ("lab::bench::links", 2, TWO),
    ("lab::link", 2, TWO),
    (
        "lab/engines::engines",
        8,
        "the list of engines makes each of them, and each is one of the list",
    ),
    ("sfu::net", 2, TWO),
    ("sfu::net::tcp", 2, TWO),
    ("signaling::rights", 3, CORE),
    ("windlass::cli", 2, ARGS),
    (
        "windlass::config",
        12,
        "options have the types of parts that read all options, and the cluster's parts take the whole configuration",
    ),
    ("xtask::process", 2, "a process runs in the root folder"),
];

/// A reason why a circle stays: the struct is the border.
const CORE: &str = "one struct whose `impl` is cut by subject: each file uses the struct, which holds a part of each";
/// A reason why a circle stays: it is small, and its files are read together.
const TWO: &str = "a type and what is made of it, in a file each";
/// A reason why a circle stays: its files are one command line.
const ARGS: &str = "a command's arguments name those of its parts, which take the whole";

/// The files that each file of a crate uses, by module path.
type Uses = BTreeMap<String, BTreeSet<String>>;

/// Fails where files of a crate use each other in a circle that is not allowed.
pub(crate) fn check() -> Result<()> {
    let mut wrong = Vec::new();
    let mut seen = [false; ALLOWED.len()];
    for folder in crates()? {
        let src = root().join(&folder).join("src");
        for circle in circles(&uses(&modules(&src)?)) {
            let name = |module: &String| format!("{folder}::{module}");
            let known = ALLOWED.iter().position(|(one, ..)| circle.iter().any(|m| name(m) == *one));
            if let Some(at) = known {
                seen[at] = true;
            }
            let max = known.map_or(1, |at| ALLOWED[at].1);
            if circle.len() > max {
                let files = circle.join(", ");
                wrong.push(format!(
                    "{folder}: {} files, at most {max} may be: {files}",
                    circle.len()
                ));
            }
        }
    }
    for (at, _) in seen.iter().enumerate().filter(|(_, seen)| !**seen) {
        wrong.push(format!("{} is in no circle any more: take it from the list", ALLOWED[at].0));
    }
    if wrong.is_empty() {
        Ok(())
    } else {
        bail!("files use each other in circles:\n{}", wrong.join("\n"))
    }
}

/// The folders of all packages that have a `src`.
fn crates() -> Result<Vec<String>> {
    let mut found = Vec::new();
    let mut look = vec![root()];
    while let Some(folder) = look.pop() {
        for entry in std::fs::read_dir(&folder)? {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if !path.is_dir()
                || name.starts_with('.')
                || ["target", "node_modules", "src"].contains(&name.as_str())
            {
                continue;
            }
            if path.join("Cargo.toml").exists() && path.join("src").is_dir() {
                found.push(
                    path.strip_prefix(root()).unwrap_or(&path).to_string_lossy().into_owned(),
                );
            }
            look.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// The code of each file by its module path.
fn modules(src: &Path) -> Result<BTreeMap<String, String>> {
    let module = |file: &Path| {
        let path = file.strip_prefix(src).unwrap_or(file).with_extension("");
        let parts = path.iter().map(|part| part.to_string_lossy().into_owned());
        let mut parts: Vec<String> = parts.collect();
        parts.pop_if(|last| ["mod", "lib", "main"].contains(&last.as_str()));
        parts.join("::")
    };
    let read = |file: &PathBuf| Ok((module(file), code(&std::fs::read_to_string(file)?)));
    files(src)?.iter().map(read).collect()
}

/// The other files that each file uses.
fn uses(files: &BTreeMap<String, String>) -> Uses {
    let target = |from: &str, path: &str| {
        let mut base: Vec<&str> = from.split("::").filter(|part| !part.is_empty()).collect();
        for (at, part) in path.split("::").enumerate() {
            match part {
                "crate" if at == 0 => base.clear(),
                "self" if at == 0 => {}
                "super" => drop(base.pop()),
                name => base.push(name),
            }
        }
        while !base.is_empty() && !files.contains_key(&base.join("::")) {
            base.pop();
        }
        base.join("::")
    };
    let of = |(name, text): (&String, &String)| {
        let used = paths(text)
            .iter()
            .map(|path| target(name, path))
            .filter(|to| to != name && files.contains_key(to))
            .collect();
        (name.clone(), used)
    };
    files.iter().map(of).collect()
}

/// The paths in a file that begin with `crate`, `super` or `self`. Groups in braces are expanded, comments left out.
fn paths(text: &str) -> Vec<String> {
    let code: Vec<&str> = text.lines().map(|l| l.split("//").next().unwrap_or_default()).collect();
    let code = code.join("\n");
    let mut found = Vec::new();
    for start in ["crate::", "super::", "self::"] {
        for (at, _) in code.match_indices(start) {
            let before = code[..at].chars().next_back();
            if before.is_none_or(|c| !c.is_alphanumeric() && c != '_' && c != ':') {
                path_at(&code[at..], "", &mut found);
            }
        }
    }
    found
}

/// Reads one path, or each of a group, and returns the text behind it.
fn path_at<'a>(text: &'a str, prefix: &str, found: &mut Vec<String>) -> &'a str {
    let text = text.trim_start();
    let end =
        text.find(|c: char| !c.is_alphanumeric() && c != '_' && c != ':').unwrap_or(text.len());
    let (path, mut rest) = text.split_at(end);
    let whole = format!("{prefix}{path}");
    if !(whole.ends_with("::") && rest.starts_with('{')) {
        found.push(whole.trim_end_matches(':').to_owned());
        return rest;
    }
    rest = &rest[1..];
    loop {
        let inner = rest.trim_start().trim_start_matches(',').trim_start();
        if let Some(after) = inner.strip_prefix('}') {
            return after;
        }
        let after = path_at(inner, &whole, found);
        // The text is `as name`, or no path.
        let next = after.find([',', '}']).unwrap_or(after.len());
        if after.len() == inner.len() && next == 0 && !inner.starts_with([',', '}'])
            || inner.is_empty()
        {
            return inner;
        }
        rest = &after[next..];
    }
}

/// Groups of modules each of which reaches all others of its group, of two or more.
fn circles(uses: &Uses) -> Vec<Vec<String>> {
    let reach = |from: &String| {
        let (mut seen, mut open) = (BTreeSet::new(), vec![from]);
        while let Some(next) = open.pop() {
            for to in uses.get(next).into_iter().flatten() {
                if seen.insert(to) {
                    open.push(to);
                }
            }
        }
        seen
    };
    let reached: BTreeMap<&String, BTreeSet<&String>> =
        uses.keys().map(|m| (m, reach(m))).collect();
    let mut found: Vec<Vec<String>> = Vec::new();
    for (module, to) in &reached {
        if !to.contains(module) || found.iter().flatten().any(|known| known == *module) {
            continue;
        }
        found.push(
            to.iter().filter(|m| reached[*m].contains(module)).map(|m| (*m).clone()).collect(),
        );
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_in_groups_are_told_apart() {
        let text = "use crate::a::{b, c::{D, E as F}, self};\nuse super::g; // crate::not\nfn f() { self::h::i() }";
        let mut all = paths(text);
        all.sort();
        assert_eq!(
            all,
            [
                "crate::a::b",
                "crate::a::c::D",
                "crate::a::c::E",
                "crate::a::self",
                "self::h::i",
                "super::g"
            ]
        );
    }

    #[test]
    fn a_circle_is_found_and_a_chain_is_not() {
        let files = [
            ("a", "use crate::b::X;"),
            ("b", "use super::c::Y;"),
            ("c", "use crate::a;"),
            ("d", "use crate::a;"),
        ];
        let files = files.map(|(name, text)| (name.to_owned(), text.to_owned())).into();
        assert_eq!(circles(&uses(&files)), [["a", "b", "c"]]);
    }
}
