//! Checks the map of `docs/design.md` against the code: which crate may depend on which, which libraries it may not
//! use, and what no file of a pure crate may name.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, bail, ensure};

use crate::imports::{has_path, imports};
use crate::metadata::{Dependency, Metadata, Package};
use crate::process::step;
use crate::root;
use crate::source::{code, files};

/// The page with the table of crates. Its rows say which of the project's crates each may depend on. Dependencies of
/// tests alone are not checked.
const PAGE: &str = "docs/design.md";

/// Libraries of HTTP, of its WebSockets, and those built on them.
const HTTP: [&str; 16] = [
    "actix-web",
    "async-tungstenite",
    "axum",
    "h2",
    "h3",
    "http",
    "http-body-util",
    "hyper",
    "hyper-util",
    "isahc",
    "reqwest",
    "tokio-tungstenite",
    "tonic",
    "tower-http",
    "tungstenite",
    "ureq",
];
/// WebRTC stacks, and libraries that are part of one.
const WEBRTC: [&str; 13] = [
    "datachannel",
    "interceptor",
    "is",
    "libwebrtc",
    "mediasoup",
    "rtc",
    "rtp",
    "sctp-proto",
    "sdp",
    "str0m",
    "stun",
    "webrtc",
    "webrtc-sys",
];
/// Video encoders and decoders that are not ours.
const VIDEO: [&str; 11] = [
    "av-decoders",
    "dav1d",
    "env-libvpx-sys",
    "ffmpeg-next",
    "ffmpeg-sys-next",
    "gstreamer",
    "libvpx-sys",
    "openh264",
    "rav1d",
    "rav1e",
    "vpx-encode",
];
/// Libraries of sockets, and those that run tasks which wait for sockets.
const SOCKETS: [&str; 10] = [
    "async-nats",
    "async-std",
    "futures-util",
    "mio",
    "nix",
    "quinn",
    "smol",
    "socket2",
    "tokio",
    "tokio-stream",
];

/// Libraries that crates may not use: the map's last column, as far as libraries stand for it.
const NEVER: [(&str, &[&[&str]]); 17] = [
    ("types", &[&HTTP, &WEBRTC, &VIDEO, &SOCKETS]),
    ("netem", &[&HTTP, &WEBRTC, &VIDEO, &SOCKETS]),
    ("scores", &[&HTTP, &WEBRTC, &VIDEO, &SOCKETS]),
    ("htj2k", &[&HTTP, &WEBRTC, &VIDEO, &SOCKETS]),
    ("vp9", &[&HTTP, &WEBRTC, &VIDEO, &SOCKETS]),
    ("network", &[&HTTP, &WEBRTC, &VIDEO, &SOCKETS]),
    ("hybrid", &[&HTTP, &WEBRTC, &VIDEO, &SOCKETS]),
    ("wasm", &[&HTTP, &WEBRTC, &VIDEO, &SOCKETS]),
    ("scheduler", &[&HTTP, &WEBRTC, &VIDEO, &SOCKETS]),
    ("sr", &[&HTTP, &WEBRTC, &VIDEO, &SOCKETS]),
    ("enhancer", &[&HTTP, &WEBRTC, &VIDEO, &SOCKETS]),
    ("sfu", &[&HTTP, &VIDEO]),
    ("cluster", &[&WEBRTC, &VIDEO]),
    ("signaling", &[&WEBRTC, &VIDEO]),
    ("protocol", &[&HTTP, &WEBRTC, &VIDEO, &SOCKETS]),
    ("testkit", &[&HTTP, &VIDEO, &SOCKETS]),
    ("transcode", &[&HTTP, &WEBRTC, &SOCKETS]),
];

/// Folders and files of pure code, which gets time and bytes as arguments.
const PURE: [&str; 23] = [
    "types/src",
    "lab/netem/src",
    "lab/scores/src",
    "hybrid/htj2k/src",
    "hybrid/network/src",
    "hybrid/vp9/src",
    "hybrid/src",
    "enhancer/scheduler/src",
    "enhancer/src/tiles",
    "sfu/src/core",
    "signaling/protocol/src",
    "client-web/wasm/src",
    "windlass/transcode/src",
    // The files that the table in `cluster/src/lib.rs` calls pure, and those that they use.
    "cluster/src/choice.rs",
    "cluster/src/clock.rs",
    "cluster/src/key_frame_request.rs",
    "cluster/src/lease.rs",
    "cluster/src/liveness.rs",
    "cluster/src/rejections.rs",
    "cluster/src/rooms",
    "cluster/src/sealed.rs",
    "cluster/src/ticket.rs",
    "cluster/src/wire.rs",
];
/// Files in pure folders that are exempt. They plant faults in development builds, or ask once for the largest
/// instruction set to use, whose results are the same.
const EXEMPT: [&str; 3] =
    ["sfu/src/core/fault_injection.rs", "hybrid/vp9/src/simd/cap.rs", "hybrid/htj2k/src/wide.rs"];
/// Items that pure code may not name, by their whole paths: clocks, threads, sockets, files, processes and the
/// environment.
const IMPURE: [&str; 13] = [
    "std::env",
    "std::fs",
    "std::net::TcpListener",
    "std::net::TcpStream",
    "std::net::UdpSocket",
    "std::os::unix::net",
    "std::process::Command",
    "std::thread::Builder",
    "std::thread::sleep",
    "std::thread::spawn",
    "std::time::Instant::now",
    "std::time::SystemTime::now",
    "tokio",
];

/// Checks the map against the code.
pub(crate) fn check() -> Result<()> {
    step("Holding the crates against docs/design.md");
    let packages = Metadata::of_ours()?.packages;
    let page = std::fs::read_to_string(root().join(PAGE)).context(PAGE)?;
    let map = map(&page);
    let mut wrong = arrows(&map, &packages)?;
    wrong.extend(strangers(&map));
    wrong.extend(libraries(&packages));
    for place in PURE {
        let path = root().join(place);
        let found = if path.is_file() { vec![path] } else { files(&path)? };
        ensure!(!found.is_empty(), "{place} has no Rust files");
        for file in found {
            let name = file.strip_prefix(root()).unwrap_or(&file).display().to_string();
            if EXEMPT.contains(&name.as_str()) {
                continue;
            }
            let text = std::fs::read_to_string(&file)?;
            wrong.extend(impure(&text).iter().map(|what| format!("{name} names `{what}`")));
        }
    }
    if !wrong.is_empty() {
        bail!("{PAGE} (and xtask/src/borders.rs) does not allow this: {}", wrong.join("; "));
    }
    Ok(())
}

impl Package {
    /// The package's name in the map.
    fn short(&self) -> &str {
        self.name.strip_prefix("windlass-").unwrap_or(&self.name)
    }

    /// The package's dependencies, without those of tests alone.
    fn built_of(&self) -> impl Iterator<Item = &Dependency> {
        self.dependencies.iter().filter(|d| d.kind.is_none())
    }
}

/// Libraries that crates use though they may not.
fn libraries(packages: &[Package]) -> Vec<String> {
    let never: BTreeMap<&str, &[&[&str]]> = NEVER.into_iter().collect();
    let mut wrong = Vec::new();
    for package in packages {
        let groups = never.get(package.short()).copied().unwrap_or_default();
        let is_forbidden = |d: &&Dependency| groups.iter().any(|g| g.contains(&d.name.as_str()));
        let used = package.built_of().filter(is_forbidden);
        wrong.extend(used.map(|d| format!("{} uses {}", package.short(), d.name)));
    }
    wrong
}

/// The map: each crate of the page's table, and the crates that it may depend on.
///
/// Such a row is `| folder | crate | is | may depend on | never |`. Names stand in backticks. Other words of the fourth
/// column are for readers, but `all but` turns the names after it round.
fn map(page: &str) -> BTreeMap<String, BTreeSet<String>> {
    let rows: Vec<Vec<&str>> = page
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.strip_suffix(" |"))
        .map(|row| row.split(" | ").collect())
        .filter(|cells: &Vec<&str>| cells.len() == 5)
        .collect();
    let crates: Vec<(String, &str)> =
        rows.iter().filter_map(|row| Some((crate_of(row[1])?, row[3]))).collect();
    let all: BTreeSet<String> = crates.iter().map(|(name, _)| name.clone()).collect();
    let allowed = |on: &str| {
        let named: BTreeSet<String> = in_backticks(on).map(str::to_owned).collect();
        if on.starts_with("all but") { all.difference(&named).cloned().collect() } else { named }
    };
    crates.iter().map(|(name, on)| (name.clone(), allowed(on))).collect()
}

/// The crate that the second column names, without `windlass-`. Packages of npm and PyPI are none.
fn crate_of(cell: &str) -> Option<String> {
    let cell = match cell.split_once("crate `") {
        Some((_, name)) => name,
        None => cell.strip_prefix('`')?,
    };
    let name = cell.split('`').next()?;
    Some(name.strip_prefix("windlass-").unwrap_or(name).to_owned())
}

/// The names in backticks.
fn in_backticks(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// Dependencies that may not be; an error where the map lacks a crate.
fn arrows(map: &BTreeMap<String, BTreeSet<String>>, packages: &[Package]) -> Result<Vec<String>> {
    let mut wrong = Vec::new();
    for package in packages {
        let from = package.short();
        let allowed = map.get(from).with_context(|| format!("the table of {PAGE} lacks {from}"))?;
        let ours = package.built_of().filter_map(|d| d.name.strip_prefix("windlass-"));
        let refused = ours.filter(|to| !allowed.contains(*to));
        wrong.extend(refused.map(|to| format!("{from} rests on {to}")));
    }
    Ok(wrong)
}

/// Names in the map's fourth column that are no crates.
fn strangers(map: &BTreeMap<String, BTreeSet<String>>) -> Vec<String> {
    let named = map.iter().flat_map(|(from, on)| on.iter().map(move |to| (from, to)));
    let unknown = named.filter(|(_, to)| !map.contains_key(*to));
    unknown.map(|(from, to)| format!("{from} may depend on `{to}`, which is no crate")).collect()
}

/// The impure items that a file's code names.
fn impure(text: &str) -> Vec<&'static str> {
    let code = code(text);
    let imports = imports(&code);
    // An item is matched by its last two names, whatever comes before them; a crate by any item in it.
    let named = |what: &str| match what.rmatch_indices("::").nth(1) {
        Some((at, _)) => has_path(&code, &what[at + 2..]),
        None if what.contains("::") => has_path(&code, what),
        None => code.contains(&format!("{what}::")),
    };
    let is_there = |what: &&str| named(what) || imports.iter().any(|i| i.reaches(&code, what));
    IMPURE.into_iter().filter(is_there).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, on: &[(&str, Option<&str>)]) -> Package {
        let dependency = |&(name, kind): &(&str, Option<&str>)| Dependency {
            name: name.into(),
            kind: kind.map(Into::into),
        };
        let dependencies = on.iter().map(dependency).collect();
        Package { name: name.into(), dependencies, ..Package::default() }
    }

    const TABLE: &str = "| folder | crate | is | may depend on | never |\n| --- | --- | --- | --- | --- |\n\
        | `types/` | `windlass-types` | the types | nothing of ours | logic |\n\
        | `sfu/` | `windlass-sfu` | forwards `VP9` | `types`, the WebRTC stack | HTTP |\n\
        | `web/` | npm `windlass-client`, crate `windlass-wasm` | the SDK | `types` (WASM) | – |\n\
        | `react/` | npm `windlass-react` | components | `windlass-client`, React | media |\n\
        | `windlass/` | `windlass` | the program | `sfu` | logic |\n\
        | `lab/` | `windlass-lab` | measures | all but `windlass` | – |\n";

    #[test]
    fn the_map_is_read_from_the_table() {
        let map = map(TABLE);
        let allowed = |name: &str| map[name].iter().map(String::as_str).collect::<Vec<_>>();
        assert_eq!(map.len(), 5);
        assert_eq!(allowed("types"), [""; 0]);
        assert_eq!(allowed("sfu"), ["types"]);
        assert_eq!(allowed("wasm"), ["types"]);
        assert_eq!(allowed("lab"), ["lab", "sfu", "types", "wasm"]);
    }

    #[test]
    fn an_arrow_that_the_map_lacks_is_named_and_what_tests_need_is_not_asked_for() {
        let sfu = [("windlass-hybrid", None), ("windlass-types", None), ("tokio", None)];
        let types = [("windlass-hybrid", Some("dev"))];
        let packages = vec![package("windlass-sfu", &sfu), package("windlass-types", &types)];
        let wrong = arrows(&map(TABLE), &packages).unwrap();
        assert_eq!(wrong, ["sfu rests on hybrid"]);
        let packages = vec![package("windlass-new", &[])];
        assert!(arrows(&map(TABLE), &packages).is_err());
    }

    #[test]
    fn a_name_that_is_no_crate_is_found_in_the_table() {
        let old = TABLE.replace("| `sfu` | logic |", "| `sfu`, `link` | logic |");
        assert_eq!(strangers(&map(TABLE)), [""; 0]);
        assert_eq!(strangers(&map(&old)), ["windlass may depend on `link`, which is no crate"]);
    }

    #[test]
    fn comments_and_tests_may_name_clocks_and_code_may_not() {
        let text = "#[cfg(test)]\nmod fixture;\n// tokio::\nfn a() { Instant::now() }\n#[cfg(test)]\npub mod tests {\n std::fs::read()\n}";
        assert_eq!(impure(text), ["std::time::Instant::now"]);
        assert_eq!(impure("//! tokio::net\n"), [""; 0]);
    }

    #[test]
    fn imports_of_files_sockets_and_the_environment_are_found_in_every_form() {
        for (text, what) in [
            ("use std::fs;\n", "std::fs"),
            ("use std::{collections::BTreeMap, fs as files};\n", "std::fs"),
            ("use std::{\n    env::{self, var},\n};\n", "std::env"),
            ("fn a() { std::env::var(\"A\"); }\n", "std::env"),
            ("use std::net::{SocketAddr, UdpSocket};\n", "std::net::UdpSocket"),
            ("use std::net;\nfn a(s: net::TcpStream) {}\n", "std::net::TcpStream"),
            ("use std::net::*;\nfn a(s: TcpListener) {}\n", "std::net::TcpListener"),
            (
                "use std::time::Instant as Clock;\nfn a() { Clock::now(); }\n",
                "std::time::Instant::now",
            ),
            ("use std::thread::spawn;\n", "std::thread::spawn"),
            ("use tokio::sync::mpsc;\n", "tokio"),
        ] {
            assert_eq!(impure(text), [what], "{text}");
        }
    }

    #[test]
    fn addresses_and_instants_that_are_given_are_pure() {
        let text = "use std::net::{IpAddr, SocketAddr};\nuse std::time::Instant;\n\
            fn a(now: Instant, at: SocketAddr) { let _ = env!(\"CARGO_PKG_NAME\"); }\n";
        assert_eq!(impure(text), [""; 0]);
    }

    #[test]
    fn a_library_that_the_map_forbids_is_named_and_what_tests_need_is_not() {
        let sfu = [("axum", None), ("tokio", None), ("str0m", None), ("hyper", Some("dev"))];
        let signaling = [("axum", None), ("str0m", None)];
        let cluster = [("tonic", None), ("webrtc", None)];
        let packages = vec![
            package("windlass-sfu", &sfu),
            package("windlass-signaling", &signaling),
            package("windlass-cluster", &cluster),
            package("windlass-scheduler", &[("tokio", None)]),
        ];
        let wrong = libraries(&packages);
        let all = [
            "sfu uses axum",
            "signaling uses str0m",
            "cluster uses webrtc",
            "scheduler uses tokio",
        ];
        assert_eq!(wrong, all);
    }

    #[test]
    fn every_crate_with_forbidden_libraries_is_in_the_map() {
        let page = std::fs::read_to_string(root().join(PAGE)).unwrap();
        let map = map(&page);
        assert!(NEVER.iter().all(|(name, _)| map.contains_key(*name)));
    }
}
