//! What `deploy/` says of the server is true of the server.

mod server;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;
use server::Server;

fn deploy(name: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy")).join(name)
}

fn read(name: &str) -> String {
    std::fs::read_to_string(deploy(name)).unwrap()
}

/// Names of ours in a query.
fn names(query: &str) -> impl Iterator<Item = &str> {
    let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    query
        .split(move |c: char| !is_name(c))
        .filter(|word| word.starts_with("windlass_") || word.starts_with("process_"))
}

/// Every text below a key, however deep.
fn texts_of<'a>(value: &'a Value, key: &str, found: &mut Vec<&'a str>) {
    match value {
        Value::Object(map) => {
            for (name, value) in map {
                if let Some(text) = value.as_str().filter(|_| name == key) {
                    found.push(text);
                }
                texts_of(value, key, found);
            }
        }
        Value::Array(list) => list.iter().for_each(|value| texts_of(value, key, found)),
        _ => {}
    }
}

/// Names with their types, as `/metrics` declares them.
fn declared(text: &str) -> BTreeMap<&str, &str> {
    text.lines().filter_map(|l| l.strip_prefix("# TYPE ")?.split_once(' ')).collect()
}

#[test]
fn every_query_of_the_dashboard_and_the_alerts_names_a_metric_that_there_is() {
    let server = Server::start_enhanced(&[]);
    let text = server.get("/metrics");
    let mut there: BTreeSet<&str> = declared(&text).into_keys().collect();
    // With a certificate only: tests/tls.rs sees them.
    there.insert("windlass_tls_handshakes_total");
    there.insert("windlass_tls_certificate_not_after_timestamp_seconds");
    let dashboard: Value = serde_json::from_str(&read("grafana/windlass.json")).unwrap();
    let mut queries = Vec::new();
    texts_of(&dashboard, "expr", &mut queries);
    texts_of(&dashboard, "definition", &mut queries);
    assert!(queries.len() > 50, "{queries:?}");
    let alerts = read("prometheus/alerts.yml");
    queries.push(&alerts);
    for query in queries {
        let mut known = 0;
        for name in names(query) {
            assert!(there.contains(name), "{name} of {query}");
            known += 1;
        }
        assert!(known > 0, "{query}");
    }
}

/// What `promtool check metrics` asks for, as far as it concerns names.
#[test]
fn metrics_have_help_and_names_as_prometheus_wants_them() {
    let server = Server::start_enhanced(&[]);
    let text = server.get("/metrics");
    let (_, text) = text.split_once("\r\n\r\n").unwrap();
    let helped: BTreeSet<&str> =
        text.lines().filter_map(|l| Some(l.strip_prefix("# HELP ")?.split_once(' ')?.0)).collect();
    for (name, kind) in declared(text) {
        assert!(helped.contains(name), "{name} has no help");
        assert_eq!(name.ends_with("_total"), kind == "counter", "{name} is a {kind}");
        for part in name.split('_') {
            let abbreviated = ["s", "ms", "us", "ns", "sec", "b", "kb", "mb", "gb", "m", "h", "d"];
            assert!(!abbreviated.contains(&part), "{name}: no unit is abbreviated");
            assert!(!["milliseconds", "kilobytes", "megabytes"].contains(&part), "{name}");
        }
    }
    let types = text.lines().filter(|l| l.starts_with("# TYPE ")).count();
    assert_eq!(types, declared(text).len(), "what has one name is in one piece");
    let mut seen = BTreeSet::new();
    for line in text.lines().filter(|l| !l.starts_with('#')) {
        let (series, value) = line.rsplit_once(' ').unwrap();
        assert!(value.parse::<f64>().is_ok(), "{line}");
        assert!(seen.insert(series), "{series} is there twice");
    }
}

#[test]
fn the_container_is_healthy_when_the_server_is() {
    let health = |url: &str| {
        let binary = env!("CARGO_BIN_EXE_windlass");
        Command::new(binary).args(["health", "--server", url]).output().unwrap()
    };
    let server = Server::start(&[]);
    let url = format!("http://{}", server.addr);
    assert!(health(&url).status.success());
    drop(server);
    let output = health(&url);
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains(&url), "{output:?}");
    let cache = tempfile::tempdir().unwrap();
    let env = [("XDG_CACHE_HOME", cache.path().to_str().unwrap())];
    let server = Server::start_with(&["--tls-self-signed"], &env);
    assert!(health(&format!("http://{}", server.addr)).status.success(), "HTTPS answers too");
}

#[test]
fn the_configuration_of_the_compose_file_can_be_used() {
    let file = deploy("windlass.yaml");
    let output = Command::new(env!("CARGO_BIN_EXE_windlass"))
        .args(["config", "--check", file.to_str().unwrap()])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let compose = read("compose.yaml");
    assert!(compose.contains("read_only: true") && compose.contains("stop_grace_period: 40s"));
}
