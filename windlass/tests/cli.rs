//! The binary from outside: help, refusals, start and end.

use std::io::{BufRead, BufReader, Read};
use std::net::TcpListener;
use std::process::{Command, Stdio};

fn windlass(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_windlass"));
    command.args(args).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Standard output, standard error and exit code of a command that ends by itself.
fn ended(args: &[&str]) -> (String, String, Option<i32>) {
    let output = windlass(args).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    (text(output.stdout), text(output.stderr), output.status.code())
}

#[test]
fn help_tells_every_option_with_its_default() {
    let (help, _, code) = ended(&["serve", "--help"]);
    assert_eq!(code, Some(0));
    for part in ["--http", "127.0.0.1:7880", "--advertise", "--budget", "[default: 200ms]"] {
        assert!(help.contains(part), "{part} is missing in {help}");
    }
}

#[test]
fn what_cannot_be_used_is_refused_with_a_sentence() {
    let (_, error, code) = ended(&["serve", "--budget", "1ms"]);
    assert_eq!(
        (error.trim(), code),
        ("windlass: budget must be from 50ms to 2s, not 1ms", Some(1))
    );
    let (_, error, code) = ended(&["serve", "--speed", "9"]);
    assert_eq!(code, Some(2));
    assert!(error.contains("--speed"), "{error}");
    let (_, error, code) = ended(&["serve", "--log", "a=b=c", "--http", "127.0.0.1:0"]);
    assert_eq!(code, Some(1));
    assert!(error.contains("log filter"), "{error}");
}

#[test]
fn a_file_of_the_version_before_is_read_with_a_warning() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("windlass.yaml");
    std::fs::write(&file, "budget-ms: \"150\"\nmax-rooms: 7\n").unwrap();
    let file = file.to_str().unwrap();
    let (said, error, code) = ended(&["config", "--check", file]);
    assert_eq!((said.trim(), code), (&*format!("{file} can be used."), Some(0)), "{error}");
    for part in ["write `budget: 150ms`", "this version only", "`max-rooms` is no option any more"]
    {
        assert!(error.contains(part), "{part} is missing in {error}");
    }
}

#[test]
fn the_configuration_in_force_says_where_each_value_comes_from() {
    let folder = tempfile::tempdir().unwrap();
    let (state, file) = (folder.path().join("state"), folder.path().join("windlass.yaml"));
    std::fs::write(&file, "public: calls.example\nbudget: 150ms\n").unwrap();
    let args = ["config", "--show", "--max-participants", "9", "--config", file.to_str().unwrap()];
    let output =
        windlass(&args).env("STATE_DIRECTORY", &state).env("WINDLASS_CAPTURED", "off").output();
    let text = String::from_utf8(output.unwrap().stdout).unwrap();
    let line = |name: &str| {
        let found = text.lines().find(|line| line.split(':').next() == Some(name));
        found.unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let file = file.display();
    assert_eq!(line("max-participants"), "max-participants: 9 # command line");
    assert_eq!(line("captured"), "captured: off # WINDLASS_CAPTURED");
    assert_eq!(line("budget"), format!("budget: 150ms # {file}"));
    assert_eq!(line("network"), "network: auto # default");
    // What follows from the public name.
    assert!(line("http").ends_with(":443 # by public"), "{text}");
    assert_eq!(line("metrics"), "metrics: 127.0.0.1:7889 # by public");
    assert_eq!(line("tls"), "tls: acme # by public");
    let key = format!("token-key: k1=@{} # by public", state.join("token-key").display());
    assert_eq!(line("token-key"), key);
}

#[test]
fn a_port_in_use_is_told_with_what_to_do_next() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = taken.local_addr().unwrap().to_string();
    let (_, error, code) = ended(&["serve", "--http", &addr, "--udp", "127.0.0.1:0"]);
    assert_eq!(code, Some(1));
    assert!(error.contains(&addr) && error.contains("--http 127.0.0.1:"), "{error}");
}

#[test]
fn the_server_says_where_it_is_and_ends_in_order_when_asked() {
    let mut server =
        windlass(&["serve", "--http", "127.0.0.1:0", "--udp", "127.0.0.1:0"]).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.starts_with("Windlass is running: http://localhost:"), "{line}");
    let pid = server.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    let status = server.wait().unwrap();
    let mut log = String::new();
    server.stderr.take().unwrap().read_to_string(&mut log).unwrap();
    assert_eq!(status.code(), Some(0), "{log}");
    assert!(log.contains("shutting down") && !log.contains("panicked"), "{log}");
}

#[test]
fn the_annotated_file_can_be_used_and_a_wrong_one_is_refused_with_its_line() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("windlass.yaml");
    let path = file.to_str().unwrap();
    let (annotated, _, code) = ended(&["config", "--annotated"]);
    assert_eq!(code, Some(0));
    assert!(annotated.contains("\nbudget: 200ms\n"), "{annotated}");
    std::fs::write(&file, &annotated).unwrap();
    let (said, error, code) = ended(&["config", "--check", path]);
    assert_eq!((said.contains("can be used"), code), (true, Some(0)), "{error}");
    std::fs::write(&file, annotated.replace("\nbudget: 200ms\n", "\nbudgets: 200ms\n")).unwrap();
    for command in [&["config", "--check", path][..], &["serve", "--config", path][..]] {
        let (_, error, code) = ended(command);
        assert_eq!(code, Some(1));
        for part in ["windlass.yaml", "line ", "column 10", "did you mean `budget`?"] {
            assert!(error.contains(part), "{part} is missing in {error}");
        }
    }
}

#[test]
fn a_file_that_is_not_named_is_not_read_and_that_is_said() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("windlass.yaml"), "no such thing").unwrap();
    let mut command = windlass(&["serve", "--http", "127.0.0.1:0", "--udp", "127.0.0.1:0"]);
    let mut server = command.current_dir(dir.path()).spawn().unwrap();
    let line = BufReader::new(server.stderr.take().unwrap()).lines().next().unwrap().unwrap();
    server.kill().unwrap();
    server.wait().unwrap();
    assert!(line.contains("--config windlass.yaml"), "{line}");
}
