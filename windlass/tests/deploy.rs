//! What `deploy/` says of the server is true of the server.

mod cluster;
mod server;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use cluster::{Nats, Worker, alone, until};
use serde_json::{Value, json};
use server::{Client, Server, eventually, figure};

fn deploy(name: &str) -> PathBuf {
    PathBuf::from("../deploy").join(name)
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

/// The metrics of `docs/metrics.md`, which is made of the program's table: types, and what a server tells them with.
struct Table(BTreeMap<String, (String, String)>);

impl Table {
    fn read() -> Table {
        let text = std::fs::read_to_string("../docs/metrics.md").unwrap();
        let row = |line: &str| {
            let cells: Vec<&str> = line.strip_prefix("| `")?.split('|').map(str::trim).collect();
            let [name, kind, _, _, _, with, ""] = cells[..] else { panic!("{line}") };
            Some((name.trim_matches('`').to_owned(), (kind.to_owned(), with.to_owned())))
        };
        let table = Table(text.lines().filter_map(row).collect());
        assert!(table.0.len() > 200, "{:?}", table.0.keys());
        table
    }

    /// Whether it is a metric, or what a histogram is told by.
    fn has(&self, name: &str) -> bool {
        let series = ["_bucket", "_sum", "_count"].iter().find_map(|part| name.strip_suffix(part));
        let of = |name: &str, kind: &str| self.0.get(name).is_some_and(|(of, _)| of == kind);
        of(name, "counter")
            || of(name, "gauge")
            || series.is_some_and(|histogram| of(histogram, "histogram"))
    }
}

#[test]
fn every_query_of_the_dashboard_and_the_alerts_names_a_metric_that_there_is() {
    let table = Table::read();
    let dashboard: Value = serde_json::from_str(&read("grafana/windlass.json")).unwrap();
    let mut queries = Vec::new();
    texts_of(&dashboard, "expr", &mut queries);
    texts_of(&dashboard, "definition", &mut queries);
    assert!(queries.len() > 50, "{queries:?}");
    let alerts: Value = serde_saphyr::from_str(&read("prometheus/alerts.yml")).unwrap();
    texts_of(&alerts, "expr", &mut queries);
    for query in queries {
        // `up` is Prometheus's own.
        assert!(names(query).count() > 0 || query.starts_with("up{"), "{query}");
        for name in names(query) {
            assert!(table.has(name), "{name} of {query}");
        }
    }
}

/// Words of documents and of `deploy/` that look like metrics.
const OTHER_WORDS: [&str; 7] = [
    // The package's file, and crates.
    "windlass_0",
    "windlass_server_sdk",
    "windlass_sfu",
    "windlass_skips",
    "windlass_types",
    // What an adapter makes of two of them for Kubernetes.
    "windlass_enhancer_demand",
    "windlass_enhancer_publishers",
];

#[test]
fn every_metric_that_is_written_of_is_one_that_there_is() {
    let table = Table::read();
    let mut files = vec![PathBuf::from("../README.md")];
    let mut folders = vec![PathBuf::from("../deploy"), PathBuf::from("../docs")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            match entry.file_name().to_str().unwrap() {
                // These say what was.
                "CHANGELOG.md" | "decisions" | "upstream" => {}
                _ if entry.file_type().unwrap().is_dir() => folders.push(entry.path()),
                _ => files.push(entry.path()),
            }
        }
    }
    let mut known = 0;
    for file in files {
        // Pictures have none.
        let Ok(text) = std::fs::read_to_string(&file) else { continue };
        for name in names(&text).filter(|name| name.starts_with("windlass_")) {
            // `windlass_sfu_…` stands for many.
            if name.ends_with('_') || OTHER_WORDS.contains(&name) {
                continue;
            }
            let told = table.has(name) || table.0.contains_key(name);
            assert!(told, "{name} of {}", file.display());
            known += 1;
        }
    }
    assert!(known > 300, "{known}");
}

#[test]
fn a_server_tells_the_metrics_of_the_table_and_no_others() {
    let table = Table::read();
    let server = Server::start_enhanced(&[]);
    let always = |with: &str| ["", "Linux", "an enhancer"].contains(&with);
    // The networks are known once they have been measured.
    eventually(&server, "all metrics told", || {
        let text = server.get("/metrics");
        let told = declared(&text);
        for (name, kind) in &told {
            let known = table.0.get(*name).map(|(kind, _)| kind.as_str());
            assert_eq!(known, Some(*kind), "{name}");
        }
        let absent = |(name, (_, with)): (&String, &(String, String))| {
            (always(with) && !told.contains_key(name.as_str())).then(|| name.clone())
        };
        let absent: Vec<String> = table.0.iter().filter_map(absent).collect();
        if !absent.is_empty() {
            eprintln!("not told yet: {absent:?}");
        }
        absent.is_empty()
    });
}

/// Runs Prometheus's own checker on a text or on files; `None` where it is not installed.
fn promtool(args: &[&str], input: &str) -> Option<Output> {
    let mut command = Command::new("promtool");
    command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let Ok(mut child) = command.spawn() else {
        windlass_skips::skip("there is no `promtool`: apt-get install prometheus");
        return None;
    };
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    Some(child.wait_with_output().unwrap())
}

#[test]
fn prometheus_can_read_metrics_and_alerts() {
    let server = Server::start_enhanced(&[]);
    let text = server.get("/metrics");
    let (_, metrics) = text.split_once("\r\n\r\n").unwrap();
    let checks: [(&[&str], &str); 4] = [
        (&["check", "metrics"], metrics),
        (&["check", "rules", "../deploy/prometheus/alerts.yml"], ""),
        (&["check", "config", "../deploy/prometheus/prometheus.yml"], ""),
        (&["check", "config", "../deploy/prometheus/cluster.yml"], ""),
    ];
    for (check, input) in checks {
        let Some(output) = promtool(check, input) else { return };
        assert!(output.status.success(), "{check:?}: {output:?}");
    }
    let Some(output) = promtool(&["check", "metrics"], "no_help 1\n") else { return };
    assert!(!output.status.success(), "it finds what is wrong");
}

#[test]
fn each_alert_fires_for_its_cause_alone() {
    let read =
        |name: &str| std::fs::read_to_string(format!("../deploy/prometheus/{name}")).unwrap();
    let (alerts, causes) = (read("alerts.yml"), read("alerts.test.yml"));
    let mut count = 0;
    for alert in alerts.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")) {
        assert!(causes.contains(&format!("alertname=\"{alert}\"")), "{alert} has no test");
        count += 1;
    }
    assert!(count > 10, "{count} alerts");
    let test = ["test", "rules", "../deploy/prometheus/alerts.test.yml"];
    let Some(output) = promtool(&test, "") else { return };
    assert!(output.status.success(), "{output:?}");
}

/// What `promtool check metrics` asks for, as far as it concerns names, and on machines without it.
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
    let server = Server::start_with(&["--tls=self-signed"], &env);
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

/// The services of a compose file that run this program: names, what they are and their command lines, variables at
/// their defaults.
fn services(file: &str) -> BTreeMap<String, (Value, Vec<String>)> {
    let file: Value = serde_saphyr::from_str(&read(file)).unwrap();
    let services = file["services"].as_object().unwrap();
    let ours =
        services.iter().filter(|(_, of)| of["image"] == "windlass" && of["entrypoint"].is_null());
    ours.map(|(name, of)| {
        let command = of["command"].as_array().unwrap().iter().map(|arg| arg.as_str().unwrap());
        (name.clone(), (of.clone(), command.map(at_default).collect()))
    })
    .collect()
}

/// `${NAME:-default}` is the default.
fn at_default(text: &str) -> String {
    let Some((before, rest)) = text.split_once("${") else { return text.to_owned() };
    let (variable, after) = rest.split_once('}').unwrap();
    let (_, default) = variable.split_once(":-").expect("each variable has a default");
    format!("{before}{default}{}", at_default(after))
}

/// An option's value.
fn said<'a>(command: &'a [String], option: &str) -> Option<&'a str> {
    let at = command.iter().position(|arg| arg.split('=').next() == Some(option))?;
    let inside = command[at].split_once('=').map(|(_, value)| value);
    inside.or_else(|| command.get(at + 1).map(String::as_str))
}

fn port(address: &str) -> u16 {
    address.rsplit(':').next().unwrap().parse().unwrap()
}

#[test]
fn every_option_of_the_compose_files_is_one_that_there_is() {
    // Help is shown once all before it has been understood.
    let understood = |command: &[String]| {
        let mut windlass = Command::new(env!("CARGO_BIN_EXE_windlass"));
        windlass.args(command).arg("--help").output().unwrap()
    };
    for (file, count) in [("compose.yaml", 1), ("cluster.compose.yaml", 5)] {
        let mut services = services(file);
        let (_, makes_key) = services.remove("key").unwrap();
        assert!(understood(&makes_key).status.success(), "{file}: {makes_key:?}");
        assert_eq!(services.len(), count, "{file}: {:?}", services.keys());
        for (name, (of, command)) in services {
            let output = understood(&command);
            let told = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{file}, {name}: {told}");
            let config = said(&command, "--config").unwrap();
            assert!(deploy(config.strip_prefix("/etc/windlass/").unwrap()).is_file(), "{config}");
            assert_eq!(of["read_only"], true, "{name}");
            assert_eq!(of["cap_drop"][0], "ALL", "{name}");
            assert_eq!(of["stop_grace_period"], "40s", "{name}");
            let first = &of["depends_on"]["key"]["condition"];
            assert_eq!(first, "service_completed_successfully", "{name}");
            let key = of["environment"]["WINDLASS_TOKEN_KEY"].as_str().unwrap();
            assert_eq!(key, format!("k1=@{}", makes_key[1]), "{name}");
            let (volume, _) = makes_key[1].rsplit_once('/').unwrap();
            let mounted = format!("keys:{volume}:ro");
            assert!(of["volumes"].as_array().unwrap().iter().any(|v| *v == mounted), "{name}");
        }
    }
    assert!(!understood(&["serve".into(), "--no-such=1".into()]).status.success());
}

#[test]
fn the_service_of_the_debian_package_runs_what_there_is() {
    let unit = read("debian/windlass.service");
    let of = |key: &str| {
        let mut values = unit.lines().filter_map(|line| line.strip_prefix(key)?.strip_prefix('='));
        values.next().unwrap_or_else(|| panic!("the unit has no {key}"))
    };
    let command = |key: &str| {
        // A command whose output is not wanted is run by a shell.
        let value = of(key);
        let by_shell = value.strip_prefix("/bin/sh -c \"exec ");
        let program = by_shell.and_then(|it| it.strip_suffix(" >/dev/null\"")).unwrap_or(value);
        let words: Vec<String> = program.split(' ').map(str::to_owned).collect();
        assert_eq!(words[0], "/usr/bin/windlass");
        words[1..].to_vec()
    };
    let windlass = |args: &[String]| {
        let output = Command::new(env!("CARGO_BIN_EXE_windlass")).args(args).output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{args:?}: {told}");
    };
    let (makes_key, serves) = (command("ExecStartPre"), command("ExecStart"));
    windlass(&[makes_key.clone(), vec!["--help".into()]].concat());
    windlass(&[serves.clone(), vec!["--help".into()]].concat());
    assert_eq!(said(&serves, "--config"), Some("/etc/windlass/windlass.yaml"));

    // The key is where the configuration looks for it, in the folder that systemd makes.
    let key = &makes_key[1];
    assert!(key.starts_with(&format!("/var/lib/{}/", of("StateDirectory"))), "{key}");
    let text = read("debian/windlass.yaml");
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    windlass(&["key".into(), path("key")]);
    std::fs::write(path("windlass.yaml"), text.replace(key, &path("key"))).unwrap();
    windlass(&["config".into(), "--check".into(), path("windlass.yaml")]);

    // systemd waits longer than the server drains, and caches go where it lets the server write.
    let config: Value = serde_saphyr::from_str(&text).unwrap();
    let waits: u64 = of("TimeoutStopSec").parse().unwrap();
    assert!(
        waits > config["drain-timeout"].as_str().unwrap().trim_end_matches('s').parse().unwrap()
    );
    assert_eq!(of("Environment"), "XDG_CACHE_HOME=/var/cache");
    assert_eq!(of("CacheDirectory"), "windlass");
}

#[test]
fn a_tag_is_released_by_the_one_command_with_pinned_actions() {
    let file = std::fs::read_to_string("../.github/workflows/release.yml").unwrap();
    let workflow: Value = serde_saphyr::from_str(&file).unwrap();
    let steps = workflow["jobs"]["release"]["steps"].as_array().unwrap();
    let runs = steps.iter().filter_map(|step| step["run"].as_str());
    assert_eq!(runs.filter(|run| run.contains("cargo xtask release ")).count(), 1);
    for step in steps.iter().filter_map(|step| step["uses"].as_str()) {
        let (_, commit) = step.split_once('@').unwrap();
        assert!(commit.len() == 40 && commit.bytes().all(|b| b.is_ascii_hexdigit()), "{step}");
    }
}

#[test]
fn every_container_has_bounds_and_every_image_of_others_is_pinned() {
    for file in ["compose.yaml", "cluster.compose.yaml"] {
        let file: Value = serde_saphyr::from_str(&read(file)).unwrap();
        for (name, of) in file["services"].as_object().unwrap() {
            assert!(of["mem_limit"].is_string() && of["pids_limit"].is_u64(), "{name}");
            let image = of["image"].as_str().unwrap();
            assert!(image == "windlass" || image.contains("@sha256:"), "{name}: {image}");
        }
    }
}

#[test]
fn the_ports_of_the_cluster_are_published_and_asked_for_its_health() {
    let file: Value = serde_saphyr::from_str(&read("cluster.compose.yaml")).unwrap();
    let published = file["services"]["net"]["ports"].as_array().unwrap();
    let is_published = |port: u16, protocol: &str| {
        published.iter().any(|p| *p == format!("{port}:{port}/{protocol}"))
    };
    let scraped = read("prometheus/cluster.yml");
    let mut relays = BTreeSet::new();
    for (name, (of, command)) in services("cluster.compose.yaml") {
        if name == "key" {
            continue;
        }
        let health = of["healthcheck"]["test"][4].as_str().unwrap();
        let figures = said(&command, "--metrics").unwrap();
        let asked = said(&command, "--http").unwrap_or(figures);
        assert_eq!(port(health), port(asked), "{name}");
        let own = port(figures);
        assert!(!is_published(own, "tcp"), "{name}: strangers reach {figures}");
        let is_near = published.iter().any(|p| *p == format!("127.0.0.1:{own}:{own}"));
        assert!(is_near || figures.starts_with("127.0.0.1:"), "{name}: {figures}");
        assert!(scraped.contains(&format!("\"127.0.0.1:{}\"", port(figures))), "{name}: {scraped}");
        if command[0] == "serve" {
            let media = port(said(&command, "--udp").unwrap());
            assert!(is_published(media, "udp") && is_published(media, "tcp"), "{name}");
            let http = port(said(&command, "--http").unwrap());
            assert!(is_published(http, "tcp"), "{name}");
            assert_eq!(said(&command, "--node-url"), Some(&*format!("ws://localhost:{http}/ws")));
            // Without certificates servers speak to each other over the loopback alone.
            let relay = said(&command, "--node-listen").unwrap();
            assert!(relay.starts_with("127.0.0.1:"), "{name}: {relay}");
            assert!(!is_published(port(relay), "tcp") && relays.insert(port(relay)), "{name}");
        }
    }
    assert_eq!(relays.len(), 3);
}

/// The cluster's processes by its own command lines, but for their addresses, which others may have on this machine.
#[test]
fn the_cluster_of_the_compose_file_finds_itself() {
    let _turn = alone();
    let Some(nats) = Nats::start(None) else { return };
    // Figures are asked for where the page is: their own port may be another's on this machine.
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("windlass.yaml");
    let said_of: Vec<String> = read("windlass.yaml")
        .lines()
        .filter(|l| !l.starts_with("metrics:"))
        .map(String::from)
        .collect();
    std::fs::write(&config, said_of.join("\n")).unwrap();
    let config = format!("--config={}", config.display());
    let here = |command: &[String]| -> Vec<String> {
        let moved = [
            "--http",
            "--udp",
            "--advertise",
            "--listen",
            "--metrics",
            "--config",
            "--node-listen",
        ];
        let rest = command[1..].iter().filter(|arg| !moved.iter().any(|of| arg.starts_with(of)));
        let rest = rest.cloned();
        // Servers tell each other the ports that they are given here.
        let relay = said(command, "--node-listen").map(|_| "--node-listen=127.0.0.1:0".to_owned());
        let nats = format!("--nats={}", nats.url());
        rest.chain(relay).chain([config.clone(), nats]).collect()
    };
    let (mut workers, mut servers) = (Vec::new(), Vec::new());
    let mut services = services("cluster.compose.yaml");
    services.remove("key");
    for (of, command) in services.into_values() {
        // NATS is not open, and neither is what lies in it.
        let environment = &of["environment"];
        assert!(environment["WINDLASS_NATS"].as_str().unwrap().contains("nats://windlass:${"));
        assert!(environment["WINDLASS_CLUSTER_TOKEN"].is_string());
        let args = here(&command);
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        match command[0].as_str() {
            "enhance" => workers.push(Worker::start(&args)),
            _ => servers.push(Server::start_enhanced(
                &[&*args, &["--cluster-token", cluster::TOKEN]].concat(),
            )),
        }
    }
    assert_eq!((workers.len(), servers.len()), (2, 3));
    for server in &servers {
        eventually(server, "knows all of the cluster", || {
            let page = server.get("/metrics");
            let up = |worker: &Worker| {
                figure(&page, &format!("windlass_worker_up{{worker=\"{}\"}}", worker.url))
                    == Some(1.0)
            };
            workers.iter().all(up) && figure(&page, "windlass_cluster_nodes") == Some(3.0)
        });
    }
    tokio::runtime::Runtime::new().unwrap().block_on(spreads(&servers[0]));
}

/// Whoever is one too many for a server of the compose file is sent to another, to which it then has a link.
async fn spreads(server: &Server) {
    let mut there = Vec::new();
    for name in ["Ana", "Ben", "Cora", "Dan"] {
        let (client, answer) = Client::join(server, "tea-room", name).await;
        assert_eq!(answer["type"], "welcome", "{name}: {answer}");
        there.push(client);
    }
    let mut fifth = Client::open(server).await;
    fifth.say(&json!({"type": "join", "version": 1, "room": "tea-room", "name": "Eve"})).await;
    let answer = fifth.hear(&["moved", "welcome", "error"]).await;
    assert_eq!(answer["type"], "moved", "{answer}");
    let url = answer["url"].as_str().unwrap();
    assert!(["ws://localhost:7882/ws", "ws://localhost:7884/ws"].contains(&url), "{answer}");
    until(server, "windlass_relay_links", 1.0);
    until(server, "windlass_cluster_rooms_shared", 1.0);
}
