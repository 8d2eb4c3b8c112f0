//! The pages' blocks run: commands as they stand, in a network of their own, and configurations as the server reads
//! them.
//!
//! A block that is tried elsewhere, or cannot be tried, is in [`ELSEWHERE`] with the reason. One that takes minutes is
//! in [`LONG`].

mod server;
mod service;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant, SystemTime};

use serde_json::json;
use server::Client;
use str0m::RtcConfig;
use str0m::media::{Direction, MediaKind};
use tempfile::TempDir;
use tokio_tungstenite::connect_async;

/// Set in the process that runs blocks: the folder with what they find.
const FOLDER: &str = "WINDLASS_DOCS_FOLDER";

/// The page whose blocks are one story, on a machine with the Debian package: what one starts goes on in the next ones.
const STORY: &str = "docs/day.md";

/// Blocks by their beginning, and where they are tried or why they are not.
const ELSEWHERE: [(&str, &str); 23] = [
    ("cargo xtask run ", "it would build anew what is tested here, and serve without end"),
    ("tar -xf windlass-", "`cargo xtask release` lets the program write its manual"),
    ("apt install ./windlass_", "deploy/debian/trial.sh, as root on a Debian"),
    ("apt remove windlass", "deploy/debian/trial.sh, as root on a Debian"),
    (
        "apt install prometheus",
        "it needs root on a Debian; windlass/tests/deploy.rs plays the alerts",
    ),
    ("skopeo copy", "it needs a registry"),
    ("windlass doctor --public", "windlass/tests/public.rs"),
    ("windlass enhance --each-device", "it needs a GPU; windlass/tests/slices.rs"),
    (
        "PUBLIC_IP=192.0.2.10 docker compose",
        "it needs Docker; windlass/tests/deploy.rs reads its files",
    ),
    ("alias dc=", "it needs Docker; windlass/tests/deploy.rs reads its files"),
    ("gst-launch-1.0 whipclientsink", "tests/e2e/soak/gstreamer.test.mjs runs the script"),
    ("python tests/e2e/support/aiortc_client.py", "tests/e2e/soak/interop.test.mjs"),
    ("node tests/e2e/support/libdatachannel_whip.mjs", "tests/e2e/soak/interop.test.mjs"),
    ("openssl req -x509 -newkey ec", "tests/e2e/soak/interop.test.mjs"),
    ("GO111MODULE=off", "tests/e2e/soak/interop.test.mjs"),
    ("pulseaudio -n", "tests/e2e/soak/sip.test.mjs"),
    ("PULSE_SINK=to_sip", "tests/e2e/soak/sip.test.mjs"),
    ("cargo xtask run    ", "the same"),
    ("cargo xtask page && cargo build -p windlass -p", "`cargo xtask test` does the same for all"),
    ("export WINDLASS_CLIPS=", "it needs the clips' repository"),
    ("npm install windlass-react", "tests/e2e/soak/bundlers.test.mjs installs the packages"),
    (
        "docker build -f deploy/Dockerfile",
        "it needs Docker; tests/chart renders and checks the chart",
    ),
    ("enhancer:", "tests/chart, which reads the chart's values"),
];

/// Blocks by their beginning that take minutes. They run where `WINDLASS_LAB` names the laboratory's program, as
/// `cargo xtask soak` does. That they end well is checked, not what they measure.
const LONG: [&str; 8] = [
    "cargo run --release -p windlass-lab -- eval",
    "windlass-lab eval CLIP",
    "windlass serve &  ",
    "windlass-lab loadtest --own --publishers 1 --sub",
    "windlass-lab loadtest --own --publishers 3 --lay",
    "windlass-lab loadtest --own --client webrtc-rs",
    "windlass-lab loadtest --own --publishers 8 --per",
    "windlass-lab calibrate",
];

/// Words of [`LONG`] blocks that stand for something else here.
const STAND_FOR_LONG: [(&str, &str); 5] = [
    ("cargo run --release -p windlass-lab --", "windlass-lab"),
    ("eval CLIP", "eval clip.mp4"),
    // The server goes on by itself, and is no child of this shell.
    ("windlass serve & ", "windlass serve "),
    ("$!", "$(tail -1 pids)"),
    // Two minutes stand for an hour of coming and going.
    ("--seconds 3600", "--seconds 120"),
];

/// The clip that a user has.
const CLIP: &str = "LivePortrait__d13.mp4";

/// Words of the pages that stand for what each machine has of its own.
const STAND_FOR: [(&str, &str); 6] = [
    ("PUBLIC_IP", "10.9.0.1"),
    ("https://HOST", "http://localhost:7880"),
    (" … ", " "),
    // There is no other group in a user namespace.
    (" -g windlass ", " "),
    // Programs that go on do so by themselves, once they are ready.
    (" &\n", "\n"),
    // So they are no jobs of the shell. This is the last but one.
    ("kill -KILL %2", "kill -KILL $(tail -2 pids | head -1)"),
];

/// A fenced block.
struct Block {
    page: String,
    line: usize,
    language: String,
    text: String,
}

impl Block {
    fn place(&self) -> String {
        format!("{}:{}", self.page, self.line)
    }

    fn is_long(&self) -> bool {
        LONG.iter().any(|beginning| self.text.starts_with(beginning))
    }
}

/// The laboratory's program, if long blocks are to run.
fn lab() -> Option<String> {
    std::env::var("WINDLASS_LAB").ok()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// The pages that users read, by their paths from the root.
fn pages() -> Vec<String> {
    let mut pages = vec!["README.md".to_owned()];
    for folder in ["docs", "lab", "client-web", "client-web/react", "deploy/helm/windlass"] {
        let entries = fs::read_dir(root().join(folder)).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let is_page = |name: &String| Path::new(name).extension().is_some_and(|e| e == "md");
        pages.extend(names.filter(is_page).map(|name| format!("{folder}/{name}")));
    }
    pages.sort();
    pages
}

fn read(page: &str) -> String {
    fs::read_to_string(root().join(page)).unwrap()
}

/// The blocks of all pages.
fn blocks() -> Vec<Block> {
    pages().iter().flat_map(|page| blocks_of(page, &read(page))).collect()
}

fn blocks_of(page: &str, text: &str) -> Vec<Block> {
    let mut found: Vec<Block> = Vec::new();
    let mut is_open = false;
    for (at, line) in text.lines().enumerate() {
        match line.trim_start().strip_prefix("```") {
            Some(_) if is_open => is_open = false,
            Some(language) => {
                is_open = true;
                let language = language.to_owned();
                found.push(Block {
                    page: page.into(),
                    line: at + 1,
                    language,
                    text: String::new(),
                });
            }
            None if is_open => found.last_mut().unwrap().text.extend([line, "\n"]),
            None => {}
        }
    }
    found
}

/// The lines of a page that are in no block.
fn outside(text: &str) -> impl Iterator<Item = &str> {
    let mut is_open = false;
    text.lines().filter(move |line| {
        let fence = line.trim_start().starts_with("```");
        is_open ^= fence;
        !is_open && !fence
    })
}

/// What a page says, without its blocks and the code in its lines.
fn prose(text: &str) -> String {
    outside(text).map(|line| line.split('`').step_by(2).collect::<String>() + "\n").collect()
}

/// The names by which the headings of a page are linked to, as GitHub makes them.
fn headings(text: &str) -> BTreeSet<String> {
    let name = |line: &str| {
        let words = line.trim_start_matches('#').trim().to_lowercase().replace(' ', "-");
        words.chars().filter(|c| c.is_alphanumeric() || "-_".contains(*c)).collect()
    };
    outside(text).filter(|line| line.starts_with('#')).map(name).collect()
}

#[test]
fn every_link_within_the_project_leads_somewhere() {
    let mut broken = Vec::new();
    for page in pages() {
        let folder = root().join(&page).parent().unwrap().to_owned();
        for link in prose(&read(&page)).split("](").skip(1) {
            let target = link.split([')', ' ']).next().unwrap();
            if target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            let (file, heading) = target.split_once('#').unwrap_or((target, ""));
            let file = if file.is_empty() { root().join(&page) } else { folder.join(file) };
            let is_page = file.extension().is_some_and(|e| e == "md");
            let leads = file.exists()
                && (heading.is_empty()
                    || is_page && headings(&fs::read_to_string(&file).unwrap()).contains(heading));
            if !leads {
                broken.push(format!("{page}: {target}"));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

/// A process that has a network of its own; none where that cannot be had.
fn apart(arguments: &[&str]) -> Option<Command> {
    let command = || {
        let mut command = Command::new("unshare");
        command.args(["--map-root-user", "--net", "--pid", "--fork", "--kill-child"]);
        // The laboratory reads there what a process takes. Where /proc is masked it cannot be had.
        if lab().is_some() {
            command.arg("--mount-proc");
        }
        let up = "ip link set lo up && ip link add lan0 type veth peer name lan1 \
                  && ip addr add 10.9.0.1/24 dev lan0 && ip link set lan0 up && ip link set lan1 up";
        // The shell stays, and clears up after processes whose parents have ended.
        command.args(["sh", "-c", &format!("{up} && {{ \"$@\"; exit $?; }}"), "sh"]);
        command
    };
    if !command().arg("true").output().is_ok_and(|ended| ended.status.success()) {
        windlass_skips::skip("no network of its own: no right to make one, or no iproute2");
        return None;
    }
    let mut command = command();
    command.args(arguments);
    Some(command)
}

#[test]
fn every_block_of_commands_and_each_configuration_works() {
    let folder = TempDir::new().unwrap();
    let this = std::env::current_exe().unwrap();
    let inner = ["--exact", "in_a_network_of_its_own", "--ignored", "--nocapture"];
    let Some(mut command) = apart(&[&[this.to_str().unwrap()], &inner[..]].concat()) else {
        return;
    };
    let ended = command.env(FOLDER, folder.path()).output().unwrap();
    assert!(ended.status.success(), "{}", printed(&ended));
    print!("{}", printed(&ended));
}

fn printed(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    format!("{}{}", text(&output.stdout), text(&output.stderr))
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "the test above runs it in a network of its own"]
async fn in_a_network_of_its_own() {
    let machine = Machine::new(Path::new(&std::env::var(FOLDER).unwrap()));
    let elsewhere = ELSEWHERE.iter().map(|(beginning, _)| *beginning);
    let mut unused: BTreeSet<_> = elsewhere.chain(LONG).collect();
    let mut failed = Vec::new();
    let mut tried = 0;
    let mut page = String::new();
    for block in blocks() {
        if page != block.page {
            machine.end();
            page.clone_from(&block.page);
            if page == STORY {
                machine.install();
            }
        }
        if !["sh", "console", "yaml"].contains(&&*block.language) {
            continue;
        }
        unused.retain(|beginning| !block.text.starts_with(beginning));
        let is_elsewhere = ELSEWHERE.iter().any(|(start, _)| block.text.starts_with(start));
        if is_elsewhere || block.language == "yaml" && block.page.starts_with("deploy/") {
            continue;
        }
        if block.is_long() && lab().is_none() {
            println!("{}: it takes minutes; `cargo xtask soak docs` runs it", block.place());
            continue;
        }
        let begun = Instant::now();
        if let Err(why) = machine.run(&block).await {
            failed.push(format!("{}: {why}\n{}", block.place(), block.text));
        }
        if page != STORY {
            machine.end();
        }
        println!("{} {:.1} s", block.place(), begun.elapsed().as_secs_f64());
        tried += 1;
    }
    assert!(unused.is_empty(), "no block begins so: {unused:?}");
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    assert!(tried > 12, "{tried} blocks");
}

/// What blocks find: programs, and files in place of those of `/etc/windlass`.
struct Machine {
    folder: PathBuf,
}

impl Machine {
    fn new(folder: &Path) -> Machine {
        let machine = Machine { folder: folder.to_owned() };
        for name in ["bin", "etc", "var", "work", "work/renewed"] {
            fs::create_dir(folder.join(name)).unwrap();
        }
        let (cert, key) = certificate(365);
        let (old_cert, old_key) = certificate(3);
        let secret =
            "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\n".to_owned();
        let files = [
            ("etc/ca.pem", &cert),
            ("etc/sfu.pem", &cert),
            ("etc/nats-ca.pem", &cert),
            ("etc/turn.pem", &cert),
            ("etc/sfu-key.pem", &key),
            ("etc/turn-key.pem", &key),
            ("etc/nats.creds", &secret),
            ("etc/turn", &secret),
            ("etc/cluster-token", &secret),
            ("work/windlass.key", &secret),
            ("work/cert.pem", &old_cert),
            ("work/key.pem", &old_key),
            ("work/renewed/cert.pem", &cert),
            ("work/renewed/key.pem", &key),
            ("work/.curlrc", &"fail\nno-progress-meter\n".to_owned()),
        ];
        for (name, text) in files {
            fs::write(folder.join(name), text).unwrap();
        }
        let program = env!("CARGO_BIN_EXE_windlass");
        machine.program(
            "windlass",
            &format!(
                "[ \"$1\" = serve ] || exec {program} \"$@\"\n{}",
                begin(program, "grep -q 'Windlass is running' \"$log\"")
            ),
        );
        if let Some(lab) = lab() {
            // Its servers enhance, on the CPU.
            let text = format!("unset WINDLASS_DEVICE\nexec {lab} \"$@\"\n");
            machine.program("windlass-lab", &text);
            if let Ok(clip) = windlass_files::clip(CLIP).canonicalize() {
                std::os::unix::fs::symlink(clip, folder.join("work/clip.mp4")).unwrap();
            }
        }
        machine.program(
            "turnserver",
            &begin("/usr/bin/turnserver", "ss -Hltn | grep -q 10.9.0.1:3478"),
        );
        machine.program(
            "nats-server",
            &begin("/usr/sbin/nats-server", "grep -q 'Server is ready' \"$log\""),
        );
        machine
    }

    /// Has the Debian package, as it is after its installation.
    fn install(&self) {
        for (name, text) in service::lay(&self.folder, |text| self.here(text)) {
            self.program(name, &text);
        }
        let started = self.sh("systemctl start windlass");
        assert!(started.status.success(), "{}", printed(&started));
    }

    /// Ends what the blocks have started.
    fn end(&self) {
        self.sh("[ ! -e pids ] || { for pid in $(cat pids); do kill -KILL $pid || true; tail --pid=$pid -f /dev/null; done; rm pids; }");
    }

    /// A text with the machine's own folders in place of the system's.
    fn here(&self, text: &str) -> String {
        let folder = self.folder.to_str().unwrap();
        text.replace("/etc/windlass", &format!("{folder}/etc"))
            .replace("/var/lib/windlass", &format!("{folder}/var"))
            .replace("/usr/bin/windlass", env!("CARGO_BIN_EXE_windlass"))
    }

    fn program(&self, name: &str, text: &str) {
        let path = self.folder.join("bin").join(name);
        fs::write(&path, format!("#!/bin/sh\n{text}")).unwrap();
        assert!(Command::new("chmod").arg("+x").arg(path).status().unwrap().success());
    }

    /// Runs a block, with what it expects; an error says what went wrong.
    async fn run(&self, block: &Block) -> Result<(), String> {
        let mut text = self.here(&block.text);
        if block.language == "sh" {
            for (word, by) in STAND_FOR {
                text = text.replace(word, by);
            }
        }
        if block.is_long() {
            for (word, by) in STAND_FOR_LONG {
                text = text.replace(word, by);
            }
        }
        for (program, installs) in [
            ("/usr/bin/turnserver", "setup"),
            ("/usr/sbin/nats-server", "setup"),
            ("/usr/bin/janus", "soak"),
        ] {
            let (_, name) = program.rsplit_once('/').unwrap();
            if text.contains(name) && !Path::new(program).exists() {
                let why = format!("no {name} (`cargo xtask {installs}` installs it)");
                windlass_skips::note(&block.place(), &why);
                return Ok(());
            }
        }
        if text.contains("clip.mp4") && !self.folder.join("work/clip.mp4").exists() {
            windlass_skips::note(&block.place(), &format!("no {CLIP}; set WINDLASS_CLIPS"));
            return Ok(());
        }
        if block.language == "yaml" {
            let file = self.folder.join("work/windlass.yaml");
            fs::write(&file, &text).unwrap();
            let check = Command::new(env!("CARGO_BIN_EXE_windlass"))
                .args(["config", "--check"])
                .arg(file)
                .output();
            let check = check.map_err(|e| e.to_string())?;
            return if check.status.success() { Ok(()) } else { Err(printed(&check)) };
        }
        // Of a running server is asked what does not start one itself.
        let asks = ["windlass rooms", "windlass record", "localhost:7880/admin"]
            .iter()
            .any(|call| text.contains(call));
        let given = asks && !text.contains("windlass serve") && block.page != STORY;
        let _ana = if given { Some(self.serve_ana().await?) } else { None };
        if block.language == "console" {
            return self.repeats(&text);
        }
        let limit = Duration::from_secs(if block.is_long() { 1200 } else { 60 });
        let ended = self.sh_for(&text, limit);
        if ended.status.success() { Ok(()) } else { Err(printed(&ended)) }
    }

    fn sh(&self, text: &str) -> Output {
        self.sh_for(text, Duration::from_secs(60))
    }

    /// Runs a script, which has `limit` to end.
    fn sh_for(&self, text: &str, limit: Duration) -> Output {
        let path = std::env::var("PATH").unwrap_or_default();
        Command::new("timeout")
            .args([&limit.as_secs().to_string(), "bash", "-euo", "pipefail", "-c", text])
            .current_dir(self.folder.join("work"))
            .env("PATH", format!("{}:{path}", self.folder.join("bin").display()))
            .env("HOME", self.folder.join("work"))
            .env("WINDLASS_DEVICE", "off")
            .output()
            .unwrap()
    }

    /// A server with a key, and in its room *tea-room* ana with a microphone.
    async fn serve_ana(&self) -> Result<Client, String> {
        let key = self.folder.join("etc/k1").display().to_string();
        let begun = self.sh(&format!(
            "windlass key {key} >&2; windlass serve --token-key k1=@{key} --record-to recordings >&2; windlass token --key k1=@{key} --room tea-room --identity ana"
        ));
        let token = String::from_utf8_lossy(&begun.stdout).trim().to_owned();
        if !begun.status.success() {
            return Err(printed(&begun));
        }
        let url = "ws://127.0.0.1:7880/ws";
        let mut ana = Client(connect_async(url).await.map_err(|e| e.to_string())?.0);
        ana.say(&json!({"type": "join", "version": 1, "room": "tea-room", "name": "Ana", "token": token})).await;
        assert_eq!(ana.hear(&["welcome", "error"]).await["type"], "welcome");
        let mut rtc = RtcConfig::new().build(Instant::now());
        let mut change = rtc.sdp_api();
        let mid = change.add_media(MediaKind::Audio, Direction::SendOnly, None, None, None);
        let (offer, _) = change.apply().unwrap();
        let publish = json!([{"mid": mid.to_string(), "kind": "audio", "name": "microphone"}]);
        ana.say(&json!({"type": "offer", "id": 1, "sdp": offer.to_sdp_string(), "publish": publish, "subscribe": []})).await;
        assert_eq!(ana.hear(&["answer", "error"]).await["type"], "answer");
        Ok(ana)
    }

    /// Runs the commands of a transcript, and looks for the lines that it shows of each.
    fn repeats(&self, transcript: &str) -> Result<(), String> {
        for step in format!("\n{transcript}").split("\n$ ").skip(1) {
            let (command, shown) = step.split_once('\n').unwrap_or((step, ""));
            let said = printed(&self.sh(command));
            let missing: Vec<_> =
                shown.lines().filter(|line| !said.contains(line.trim_end())).collect();
            if !missing.is_empty() {
                return Err(format!("{missing:?} is not in\n{said}"));
            }
        }
        Ok(())
    }
}

/// A certificate for that many days, and its key.
fn certificate(days: u64) -> (String, String) {
    let names = ["example.org".to_owned(), "localhost".to_owned()];
    let key = rcgen::KeyPair::generate().unwrap();
    let mut asked = rcgen::CertificateParams::new(names).unwrap();
    let end = SystemTime::UNIX_EPOCH.elapsed().unwrap() + Duration::from_secs(86400 * days);
    asked.not_after = rcgen::date_time_ymd(1970, 1, 1) + end;
    (asked.self_signed(&key).unwrap().pem(), key.serialize_pem())
}

/// A script that starts a program which goes on, and ends once the command `ready` succeeds.
fn begin(program: &str, ready: &str) -> String {
    format!(
        "log=$(mktemp)\n{program} \"$@\" > \"$log\" 2>&1 &\necho $! >> pids\n\
         for _ in $(seq 200); do {ready} && exit 0; kill -0 $! 2>/dev/null || break; sleep 0.1; done\n\
         cat \"$log\" >&2; exit 1\n"
    )
}
