//! GPUs that are cut into slices (MIG): what is there, how a process comes to have one, and an enhancer for each. On a
//! machine whose CUDA driver and NVML are emulated, since CUDA shows a process one slice at the most:
//! `enhancer/sr/tests/cuda/machine.h`.

#![cfg(target_os = "linux")]

mod cluster;
#[path = "../../enhancer/sr/tests/cuda/emulated.rs"]
mod emulated;
mod server;

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::sleep;
use std::time::{Duration, Instant};

use cluster::{ANCHORS, Nats, TOKEN, alone, moving_fps, until};
use emulated::{emulated_driver, own_folder, sources};
use serde_json::{Value, json};
use server::{Server, eventually, figure, get_from, lab};
use windlass_sr::{Architecture, Model};

/// Slices as `machine.h` numbers them.
const FIRST: &str = "MIG-51515151-5151-5151-5151-515151510001";
const SECOND: &str = "MIG-51515151-5151-5151-5151-515151510002";
/// The card beside the one that is cut.
const WHOLE: &str = "GPU-cacacaca-caca-caca-caca-cacacaca0100";

/// The environment of the emulated machine: one card in so many slices, and others.
fn machine(slices: &str, cards: &str) -> Option<Vec<(String, String)>> {
    let Some(folder) = emulated_driver() else {
        windlass_skips::skip("no C++ compiler (`c++`, Debian's package g++)");
        return None;
    };
    let folder = folder.to_str().unwrap();
    let own = own_folder();
    let (own, cache) = (own.to_str().unwrap(), own.join("cache"));
    let sources = sources();
    let all = [
        ("LD_LIBRARY_PATH", folder),
        ("TMPDIR", own),
        ("XDG_CACHE_HOME", cache.to_str().unwrap()),
        ("EMULATED_INCLUDE", sources.to_str().unwrap()),
        ("EMULATED_KERNELS", folder),
        ("EMULATED_SLICES", slices),
        ("EMULATED_DEVICES", cards),
    ];
    Some(all.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec())
}

fn windlass(args: &[&str], machine: &[(String, String)]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_windlass"));
    command.args(args).envs(machine.iter().cloned()).env_remove("CUDA_VISIBLE_DEVICES");
    command
}

/// Standard output, standard error and exit code of a command that ends by itself.
fn ended(command: &mut Command) -> (String, String, Option<i32>) {
    let output = command.output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    (text(output.stdout), text(output.stderr), output.status.code())
}

#[test]
fn a_gpu_that_is_not_there_is_found_by_the_doctor() {
    let Some(machine) = machine("", "1") else { return };
    let (said, _, code) = ended(&mut windlass(&["doctor", "--device", "GPU-0badcafe"], &machine));
    assert_eq!(code, Some(1), "{said}");
    let fault = said.lines().find(|line| line.starts_with("fault    gpu"));
    assert!(fault.is_some_and(|line| line.contains("GPU-0badcafe")), "{said}");
}

#[test]
fn the_machines_devices_are_listed_with_what_to_set() {
    let Some(machine) = machine("2", "2") else { return };
    let (said, error, code) = ended(&mut windlass(&["devices"], &machine));
    assert_eq!(code, Some(0), "{error}");
    for part in ["driver 999.9", "0:0", "1g.1gb", "1024 MiB", "--each-device"] {
        assert!(said.contains(part), "{part} is missing in {said}");
    }
    let how = [FIRST, SECOND, WHOLE].map(|uuid| format!("--device {uuid}"));
    assert!(how.iter().all(|how| said.contains(how)), "{said}");
    let mut seen = windlass(&["devices", "--json"], &machine);
    let (said, error, code) = ended(seen.env("CUDA_VISIBLE_DEVICES", SECOND));
    assert_eq!(code, Some(0), "{error}");
    let report: Value = serde_json::from_str(&said).expect("one JSON object");
    let ordinals: Vec<_> =
        report["rows"].as_array().unwrap().iter().map(|r| &r["ordinal"]).collect();
    assert_eq!(ordinals, ["0", "0:0", "0:1", "1"]);
    assert_eq!(
        (&report["rows"][0]["use"], &report["rows"][2]["uuid"]),
        (&Value::Null, &SECOND.into())
    );
    assert_eq!(report["cuda_visible_devices"], SECOND);
}

#[test]
fn where_there_is_none_the_reason_is_told() {
    let Some(machine) = machine("0", "0") else { return };
    let (said, error, code) = ended(&mut windlass(&["devices", "--json"], &machine));
    assert_eq!((error.trim(), code), ("windlass: the NVIDIA driver finds no GPU", Some(1)));
    let report: Value = serde_json::from_str(&said).expect("one JSON object");
    assert_eq!((&report["rows"], &report["driver"]), (&Value::Array(Vec::new()), &Value::Null));
    let (_, error, code) = ended(windlass(&["devices"], &machine).env("EMULATED_NOT_LOADED", "1"));
    assert_eq!((error.contains("installed but not loaded"), code), (true, Some(1)), "{error}");
    for (device, told) in [("cuda", "finds no GPU"), ("cpu", "--each-device needs GPUs")] {
        let args = ["enhance", "--each-device", "--device", device];
        let (_, error, code) = ended(&mut windlass(&args, &machine));
        assert_eq!((error.contains(told), code), (true, Some(1)), "{error}");
    }
}

#[test]
fn a_server_has_the_slice_that_it_was_told() {
    let _turn = alone();
    let Some(machine) = machine("2", "2") else { return };
    let folder = tempfile::tempdir().unwrap();
    let network = &network(folder.path());
    let network = network.to_str().unwrap();
    let of = |args: &[&str]| {
        let machine: Vec<_> = machine.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        Server::start_enhanced_with(&[args, &["--network", network]].concat(), &machine)
    };
    let working = |server: &Server| {
        let page = server.get("/metrics");
        let cards = page.lines().filter(|line| line.starts_with("windlass_enhancer_gpu_working{"));
        cards.map(str::to_owned).collect::<Vec<_>>()
    };
    let first = working(&of(&["--device", "cuda"]));
    assert!(
        first.len() == 1 && first[0].contains(FIRST) && first[0].ends_with(" 1"),
        "without a word the first: {first:?}"
    );
    let second = working(&of(&["--device", "0:1"]));
    assert!(
        second.len() == 1 && second[0].contains(SECOND) && second[0].ends_with(" 1"),
        "{second:?}"
    );
    let whole = working(&of(&["--device", "GPU-cacacaca-caca-caca-caca-cacacaca01"]));
    assert!(whole.len() == 1 && whole[0].contains(WHOLE), "{whole:?}");
    for (device, told) in [
        ("0:5", "there is no device 0:5; there are: 0:0 (MIG-"),
        ("0", "is cut into slices"),
        ("0:0,0:1", "--each-device"),
    ] {
        let serve = ["serve", "--http", "127.0.0.1:0", "--udp", "127.0.0.1:0", "--device", device];
        let (_, error, code) = ended(&mut windlass(&serve, &machine));
        assert_eq!((error.contains(told), code), (true, Some(1)), "{error}");
    }
}

/// `windlass enhance --each-device`, what its log says, and where the figures of its processes are.
struct Each {
    parent: Child,
    log: Arc<Mutex<Vec<Value>>>,
    figures: Arc<Mutex<Vec<std::net::SocketAddr>>>,
}

impl Each {
    fn start(nats: &Nats, network: &Path, machine: &[(String, String)]) -> Each {
        let args = [
            ["enhance", "--each-device", "--listen", "127.0.0.1:0", "--metrics", "127.0.0.1:0"]
                .as_slice(),
            &[
                "--device",
                "cuda",
                "--network",
                network.to_str().unwrap(),
                "--anchor-fraction",
                "0.2",
            ],
            &[
                "--budget",
                "2s",
                "--captured",
                "layers,stills",
                "--cluster-token",
                TOKEN,
                "--nats",
                &nats.url(),
                "--log-json",
            ],
        ];
        let mut command = windlass(&args.concat(), machine);
        let mut parent = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (log, figures) = (Arc::<Mutex<Vec<Value>>>::default(), Arc::<Mutex<Vec<_>>>::default());
        let (lines, into) = (BufReader::new(parent.stderr.take().unwrap()).lines(), log.clone());
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                eprintln!("{line}");
                into.lock().unwrap().extend(serde_json::from_str::<Value>(&line));
            }
        });
        let (lines, into) =
            (BufReader::new(parent.stdout.take().unwrap()).lines(), figures.clone());
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let at = line.split_once("http://").map(|(_, at)| at.trim_end_matches("/metrics."));
                into.lock()
                    .unwrap()
                    .extend(at.and_then(|at| at.parse::<std::net::SocketAddr>().ok()));
            }
        });
        Each { parent, log, figures }
    }

    /// Processes that were started for a device, the first first.
    fn processes(&self, device: &str) -> Vec<u64> {
        let log = self.log.lock().unwrap();
        let starts = log.iter().map(|line| &line["fields"]);
        let starts = starts.filter(|said| {
            said["message"] == "enhancer process started" && said["device"] == device
        });
        starts.filter_map(|said| said["pid"].as_u64()).collect()
    }

    /// Pictures that the device has made, as the process says that has it now.
    fn pictures(&self, device: &str) -> f64 {
        let all = self.figures.lock().unwrap().clone();
        let there = all.iter().filter(|at| std::net::TcpStream::connect(at).is_ok());
        let mut of_it = there.filter(|at| get_from(**at, "/readyz", "").contains(device));
        let Some(at) = of_it.next() else { return 0.0 };
        let page = get_from(*at, "/metrics", "");
        let line = page.lines().find(|l| l.starts_with("windlass_enhancer_gpu_pictures_total{"));
        let name = line.and_then(|line| line.rsplit_once(' ')).unwrap().0;
        figure(&page, name).unwrap()
    }
}

impl Drop for Each {
    fn drop(&mut self) {
        // Its processes end with it.
        let _ = self.parent.kill();
        let _ = self.parent.wait();
    }
}

fn signal(name: &str, pid: u64) -> bool {
    let sent = Command::new("kill").args([name, &pid.to_string()]).stderr(Stdio::null()).status();
    sent.unwrap().success()
}

/// Where a device's worker is that has a lease now.
fn worker(server: &Server, device: &str) -> Option<String> {
    let page = server.get("/metrics");
    let mut all = page.lines().filter_map(|line| {
        let (address, rest) =
            line.strip_prefix("windlass_worker_device{worker=\"")?.split_once('"')?;
        rest.contains(device).then(|| address.to_owned())
    });
    let up = |address: &String| {
        figure(&page, &format!("windlass_worker_up{{worker=\"{address}\"}}")) > Some(0.5)
    };
    all.find(up)
}

/// Streams that a server's worker has.
fn streams(server: &Server, worker: &str) -> f64 {
    let name = format!("windlass_worker_streams{{worker=\"{worker}\"}}");
    server.metric_if_any(&name).unwrap_or_default()
}

/// A folder with a tiny stream of five frames a second: the emulated device takes long for what a real one does at
/// once.
fn media(into: &Path) -> Option<PathBuf> {
    let folder = into.join("media");
    std::fs::create_dir_all(&folder).unwrap();
    let arguments = "-v error -nostdin -y -f lavfi -i testsrc2=size=48x32:rate=5 -frames:v 30 -pix_fmt yuv420p \
                     -c:v libvpx-vp9 -deadline realtime -cpu-used 7 -b:v 40k -g 15 -lag-in-frames 0 \
                     -error-resilient 1 -auto-alt-ref 0 -f ivf";
    let mut command = Command::new("ffmpeg");
    let made = command.args(arguments.split_whitespace()).arg(folder.join("q.ivf")).status();
    if !made.is_ok_and(|status| status.success()) {
        windlass_skips::skip("no ffmpeg with libvpx-vp9 (Debian's package ffmpeg)");
        return None;
    }
    Some(folder)
}

/// A file with a tiny network, for the same reason.
fn network(into: &Path) -> PathBuf {
    let model = Model::random(Architecture::chain(2, 8, 2), 1).unwrap();
    let (mut data, mut tensors) = (Vec::new(), serde_json::Map::new());
    let about = json!({"arch": "chain", "inputs": "luma", "scale": "2", "base": "lanczos3"});
    tensors.insert("__metadata__".to_owned(), about);
    for (n, conv) in model.convs().iter().enumerate() {
        let (outputs, inputs) = model.architecture().shape(n);
        let mut tensor = |name: &str, shape: Value, values: &[f32]| {
            let from = data.len();
            data.extend(values.iter().flat_map(|value| value.to_le_bytes()));
            let about = json!({"dtype": "F32", "shape": shape, "data_offsets": [from, data.len()]});
            tensors.insert(format!("conv{n}.{name}"), about);
        };
        tensor("weight", json!([outputs, inputs, 3, 3]), &conv.weights);
        tensor("bias", json!([outputs]), &conv.bias);
    }
    let header = serde_json::to_vec(&tensors).unwrap();
    let length = (header.len() as u64).to_le_bytes();
    let file = into.join("tiny-x2.safetensors");
    std::fs::write(&file, [length.as_slice(), &header, &data].concat()).unwrap();
    file
}

#[test]
fn every_slice_is_a_device_of_the_placement() {
    let _turn = alone();
    let Some(machine) = machine("2", "1") else { return };
    let folder = tempfile::tempdir().unwrap();
    let Some(media) = media(folder.path()) else { return };
    let Some(nats) = Nats::start(None) else { return };
    let args = ["--nats", &nats.url(), "--cluster-token", TOKEN, "--budget", "2s"];
    let server = Server::start_enhanced(&args);
    let mut each = Each::start(&nats, &network(folder.path()), &machine);
    eventually(&server, "a lease for each slice", || {
        worker(&server, FIRST).is_some() && worker(&server, SECOND).is_some()
    });
    let [first, second] = [FIRST, SECOND].map(|device| worker(&server, device).unwrap());
    assert_ne!(first, second);

    let mut load = lab();
    load.args(["loadtest", "--server", &format!("http://{}", server.addr), "--publishers", "2"]);
    load.args(["--ramp", "0.5", "--seconds", "30", "--budget-ms", "2000", "--json", "--media"])
        .arg(media);
    let load = std::thread::spawn(move || load.output().unwrap());
    eventually(&server, "a stream on each", || {
        (streams(&server, &first) - 1.0).abs() < 0.1
            && (streams(&server, &second) - 1.0).abs() < 0.1
    });
    until(&server, ANCHORS, 4.0);
    eventually(&server, "pictures of each", || {
        each.pictures(FIRST) > 0.5 && each.pictures(SECOND) > 0.5
    });

    let killed = each.processes(FIRST)[0];
    assert!(signal("-KILL", killed));
    let moved = eventually(&server, "all on the other", || streams(&server, &second) > 1.5);
    let anchors = server.metric(ANCHORS);
    until(&server, ANCHORS, anchors + 2.0);
    let back = eventually(&server, "a lease again", || {
        worker(&server, FIRST).is_some_and(|again| again != first)
    });
    println!("moved after {moved:?}; a lease again {back:?} after the anchors");
    let started = each.processes(FIRST);
    assert!(started.len() == 2 && started[1] != killed, "{started:?}");
    assert_eq!(each.processes(SECOND).len(), 1);

    let ran = load.join().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let report: Value = serde_json::from_slice(&ran.stdout).expect("one JSON object");
    let row = &report["rows"][0];
    assert!(row["lost"] == 0 && moving_fps(row) > 4.5, "video never stopped: {row}");

    assert!(signal("-TERM", each.parent.id().into()));
    let since = Instant::now();
    let status = loop {
        if let Some(status) = each.parent.try_wait().unwrap() {
            break status;
        }
        assert!(since.elapsed() < Duration::from_secs(20), "it does not end");
        sleep(Duration::from_millis(20));
    };
    assert!(status.success(), "{status}");
    let last = [started[1], each.processes(SECOND)[0]];
    assert!(last.into_iter().all(|pid| !signal("-0", pid)), "its processes have ended before it");
}

#[test]
fn a_worker_of_a_cluster_has_the_slice_that_it_was_told() {
    let _turn = alone();
    let Some(machine) = machine("2", "1") else { return };
    let Some(nats) = Nats::start(None) else { return };
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start_enhanced(&["--nats", &nats.url(), "--cluster-token", TOKEN]);
    let network = network(folder.path());
    let args = ["enhance", "--listen", "127.0.0.1:0", "--nats", &nats.url()];
    let mut command = windlass(&args, &machine);
    command.args(["--device", "0:1", "--cluster-token", TOKEN, "--network"]).arg(network);
    let started = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let _process = Each { parent: started.unwrap(), log: Arc::default(), figures: Arc::default() };
    eventually(&server, "a lease of the second slice", || worker(&server, SECOND).is_some());
    assert_eq!(worker(&server, FIRST), None);
}

#[test]
fn processes_end_with_the_one_that_started_them() {
    let _turn = alone();
    let Some(machine) = machine("2", "1") else { return };
    let Some(nats) = Nats::start(None) else { return };
    let folder = tempfile::tempdir().unwrap();
    let mut each = Each::start(&nats, &network(folder.path()), &machine);
    let since = Instant::now();
    let wait = |what: &str, is_so: &dyn Fn() -> bool| {
        while !is_so() {
            assert!(since.elapsed() < Duration::from_secs(60), "never {what}");
            sleep(Duration::from_millis(20));
        }
    };
    wait("figures of both", &|| each.figures.lock().unwrap().len() == 2);
    let pids = [each.processes(FIRST)[0], each.processes(SECOND)[0]];
    assert!(pids.iter().all(|pid| signal("-0", *pid)));
    each.parent.kill().unwrap();
    each.parent.wait().unwrap();
    wait("gone", &|| {
        let lives = |pid: &u64| {
            let mut state = String::new();
            let file = std::fs::File::open(format!("/proc/{pid}/stat"));
            let read = file.and_then(|mut file| file.read_to_string(&mut state));
            read.is_ok() && !state.contains(") Z ")
        };
        !pids.iter().any(lives)
    });
}
