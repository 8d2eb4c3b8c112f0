//! Runs tests on a GPU that the CPU stands in for: see `driver.cpp`. They need a C++ compiler; without one they say so
//! and pass.

// Each test file uses a part of it.
#![allow(dead_code)]

use std::hash::{DefaultHasher, Hash, Hasher};
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

/// The folder of the emulated driver, by what it is made of, and of the kernels that it has compiled: they outlive the
/// tests. `None` without a C++ compiler.
pub(crate) fn emulated_driver() -> Option<&'static Path> {
    static FOLDER: OnceLock<Option<PathBuf>> = OnceLock::new();
    let made = FOLDER.get_or_init(|| {
        let compiler = Command::new("c++").arg("--version").output().ok()?.stdout;
        let mut made_of = DefaultHasher::new();
        compiler.hash(&mut made_of);
        // Kernels are for this CPU.
        let cpu = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let of_cpu = ["model name", "flags", "Features"];
        let sets = cpu.lines().filter(|line| of_cpu.iter().any(|name| line.starts_with(name)));
        sets.take(2).for_each(|line| line.hash(&mut made_of));
        for name in ["driver.cpp", "emulate.h", "emulate_wgmma.h", "machine.h"] {
            std::fs::read(sources().join(name)).expect("the driver's source").hash(&mut made_of);
        }
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"))
            .join(format!("cuda-driver-{:016x}", made_of.finish()));
        if folder.exists() {
            return Some(folder);
        }
        let making = own_folder().join("driver");
        std::fs::create_dir_all(&making).expect("a folder for the driver");
        let library = making.join("libcuda.so");
        let flags = ["-std=c++17", "-O1", "-shared", "-fPIC", "-o"];
        let source = sources().join("driver.cpp");
        let built = Command::new("c++").args(flags).arg(&library).arg(source).arg("-ldl").status();
        if !built.is_ok_and(|status| status.success()) {
            return None;
        }
        for name in ["libnvrtc.so", "libnvidia-ml.so.1"] {
            std::fs::copy(&library, making.join(name)).expect("the driver's other names");
        }
        // Another test's program may have been quicker.
        let _ = std::fs::rename(&making, &folder);
        assert!(folder.exists(), "{} cannot be made", folder.display());
        Some(folder)
    });
    made.as_deref()
}

/// A folder that only this process uses.
pub(crate) fn own_folder() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let name = format!("cuda-test-{}", std::process::id());
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        // An earlier process may have had its number.
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).expect("a folder for the driver");
        folder
    })
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
    let own = own_folder();
    let output = Command::new(std::env::current_exe().expect("the test's program"))
        .args(["--exact", name, "--include-ignored", "--nocapture"])
        .env(INNER, "1")
        .env("LD_LIBRARY_PATH", folder)
        .env("TMPDIR", own)
        .env("XDG_CACHE_HOME", own.join("cache"))
        .env("EMULATED_INCLUDE", sources())
        .env("EMULATED_KERNELS", folder)
        .env("EMULATED_LOST", own.join(format!("lost-{name}")))
        .env("EMULATED_FULL", own.join(format!("full-{name}")))
        .env("EMULATED_HANG", own.join(format!("hang-{name}")))
        .envs(more.iter().copied())
        .output()
        .expect("the test again");
    let said =
        [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    assert!(output.status.success(), "{}\n{}", said[0], said[1]);
    print!("{}", said[0]);
}
