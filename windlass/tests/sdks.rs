//! The server SDKs (`signaling/sdk`), each by tests in its own language against this program.

use std::io::ErrorKind;
use std::process::Command;

/// Runs what tests an SDK; `false` where its language is not here.
fn passes(language: &str, program: &str, args: &[&str], package: &str) -> bool {
    let ran = Command::new(program)
        .args(args)
        .current_dir(format!("../signaling/sdk/{language}"))
        .env("WINDLASS_BIN", env!("CARGO_BIN_EXE_windlass"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        // Nothing is fetched: there are no dependencies.
        .env("GOPROXY", "off")
        .output();
    let ran = match ran {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let why = format!("no {program} (`apt-get install {package}`)");
            windlass_skips::note(&format!("the {language} SDK"), &why);
            return false;
        }
        ran => ran.unwrap(),
    };
    let said = [ran.stdout, ran.stderr].concat();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&said));
    true
}

#[test]
fn the_node_sdk_works_with_this_server() {
    passes("node", "node", &["--test", "test/server.test.js"], "nodejs");
}

#[test]
fn the_python_sdk_works_with_this_server() {
    passes("python", "python3", &["-m", "unittest"], "python3");
}

#[test]
fn the_go_sdk_works_with_this_server() {
    if passes("go", "go", &["vet", "./..."], "golang-go") {
        passes("go", "go", &["test", "-count=1", "./..."], "golang-go");
        let format = Command::new("gofmt").args(["-l", "../signaling/sdk/go"]).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&format.stdout), "", "files that gofmt would change");
    }
}
