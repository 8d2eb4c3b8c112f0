//! Runs tests on a GPU that the CPU stands in for: see `driver.cpp`. They need a C++ compiler; without one they say so
//! and pass.

// Each test file uses a part of it.
#![allow(dead_code)]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// Says that a test that is run again is to do its work.
const INNER: &str = "WINDLASS_TEST_EMULATED";

/// Where the driver's sources are, from the package of any test that includes this file.
pub(crate) fn sources() -> PathBuf {
    let folders = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    let mut folders = folders.map(|folder| folder.join("enhancer/sr/tests/cuda"));
    folders.find(|folder| folder.is_dir()).expect("the driver's sources")
}

/// The emulated driver's folder; `None` without a C++ compiler.
pub(crate) fn emulated_driver() -> Option<&'static Path> {
    static FOLDER: OnceLock<Option<PathBuf>> = OnceLock::new();
    let made = FOLDER.get_or_init(|| {
        let folder =
            Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("cuda-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder for the driver");
        let source = sources().join("driver.cpp");
        let library = folder.join("libcuda.so");
        let flags = ["-std=c++17", "-O1", "-shared", "-fPIC", "-o"];
        let built = Command::new("c++").args(flags).arg(&library).arg(source).arg("-ldl").status();
        if !built.is_ok_and(|status| status.success()) {
            return None;
        }
        for name in ["libnvrtc.so", "libnvidia-ml.so.1"] {
            std::fs::copy(&library, folder.join(name)).expect("the driver's other names");
        }
        Some(folder)
    });
    made.as_deref()
}

/// Runs the test of this name again on the emulated device, with more of its environment.
pub(crate) fn on_emulated_device(name: &str, more: &[(&str, &str)], work: fn()) {
    if std::env::var_os(INNER).is_some() {
        return work();
    }
    let Some(folder) = emulated_driver() else {
        windlass_skips::skip("no C++ compiler (`c++`, Debian's package g++)");
        return;
    };
    let output = Command::new(std::env::current_exe().expect("the test's program"))
        .args(["--exact", name, "--include-ignored", "--nocapture"])
        .env(INNER, "1")
        .env("LD_LIBRARY_PATH", folder)
        .env("TMPDIR", folder)
        .env("XDG_CACHE_HOME", folder.join("cache"))
        .env("EMULATED_INCLUDE", sources())
        .env("EMULATED_LOST", folder.join(format!("lost-{name}")))
        .env("EMULATED_FULL", folder.join(format!("full-{name}")))
        .env("EMULATED_HANG", folder.join(format!("hang-{name}")))
        .envs(more.iter().copied())
        .output()
        .expect("the test again");
    let said =
        [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    assert!(output.status.success(), "{}\n{}", said[0], said[1]);
    print!("{}", said[0]);
}
