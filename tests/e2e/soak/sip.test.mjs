// A telephone of SIP in a room, by a bridge of sound: the devices of a browser in the room are those of a SIP client.
//
// Runs beside light files.
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { test } from "node:test";
import { heard, span, speak } from "../support/audio.mjs";
import { openPage } from "../support/browser.mjs";
import { subscribe, until } from "../support/call.mjs";
import { endAfterTests } from "../support/leftovers.mjs";
import { freePort } from "../support/ports.mjs";
import { startServer } from "../support/server.mjs";
import { skipped } from "../support/skips.mjs";

const MODULES = "/usr/lib/baresip/modules";
const absent = (program) => spawnSync("which", [program]).status !== 0;
const missing = ["baresip", "pulseaudio", "parec", "ffmpeg"].find(absent);
const name = "a SIP telephone hears a room, and is heard";

/** Samples of a recording of three seconds, 8 kHz. */
function record(device, env) {
  const { stdout } = spawnSync("timeout", ["3", "parec", "-d", device, "--raw", "--channels=1", "--rate=8000"], { env });
  return new Int16Array(stdout.buffer, stdout.byteOffset, stdout.length >> 1);
}

test(name, { only: true, skip: skipped(name, missing && `no ${missing} (\`cargo xtask soak\` installs it)`) }, async (t) => {
  const folder = mkdtempSync(path.join(tmpdir(), "sip-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const env = { ...process.env, HOME: folder, XDG_RUNTIME_DIR: path.join(folder, "run") };
  mkdirSync(env.XDG_RUNTIME_DIR, { mode: 0o700 });
  const run = (command, args, log = "ignore") => {
    const program = spawn(command, args, { env, stdio: ["ignore", log, "ignore"] });
    const ended = endAfterTests(() => program.kill("SIGKILL"));
    t.after(() => ended(program.kill("SIGKILL")));
  };

  const sinks = ["from_sip", "to_sip", "ear"].flatMap((sink) => ["-L", `module-null-sink sink_name=${sink}`]);
  const microphone = "module-remap-source master=from_sip.monitor source_name=telephone source_properties=device.description=Telephone";
  run("pulseaudio", ["-n", "--exit-idle-time=-1", "-L", "module-native-protocol-unix", ...sinks, "-L", microphone]);
  const ready = () => spawnSync("pactl", ["list", "short", "sources"], { env }).stdout.includes("telephone");
  await until(ready, "the sound server is there", 10_000);
  const devices = [["from_sip", "from_sip"], ["to_sip", "to_sip.monitor"], ["ear", "ear"]];
  writeFileSync(path.join(folder, ".asoundrc"), devices.map(([pcm, device]) => `pcm.${pcm} { type pulse device ${device} }\n`).join(""));
  const tone = path.join(folder, "tone.wav");
  spawnSync("ffmpeg", ["-v", "error", "-f", "lavfi", "-i", "sine=frequency=440:sample_rate=8000:duration=120", tone]);

  /** A SIP client of this name, with its sound. */
  const client = async (name, sound, ...more) => {
    const port = await freePort();
    const of = path.join(folder, name);
    mkdirSync(of);
    const modules = ["module g711.so", "module alsa.so", "module aufile.so", "module_tmp account.so", "module_app menu.so"];
    const lines = [`sip_listen 127.0.0.1:${port}`, `module_path ${MODULES}`, ...modules, "audio_channels 1", ...sound];
    writeFileSync(path.join(of, "config"), `${lines.join("\n")}\n`);
    writeFileSync(path.join(of, "accounts"), `<sip:${name}@127.0.0.1:${port}>;regint=0;answermode=auto;audio_codecs=PCMU\n`);
    writeFileSync(path.join(of, "contacts"), "");
    run("baresip", ["-f", of, ...more], openSync(path.join(of, "log"), "w"));
    return `sip:${name}@127.0.0.1:${port}`;
  };
  const address = await client("room", ["audio_player alsa,from_sip", "audio_source alsa,to_sip", "audio_alert alsa,from_sip"]);

  const server = await startServer();
  t.after(() => server.stop());
  const viewer = await subscribe(server);
  t.after(() => viewer.close());
  const bridge = await openPage({ sound: { ...env, PULSE_SINK: "to_sip", PULSE_SOURCE: "telephone" } });
  t.after(() => bridge.close());
  await bridge.page.goto(`${server.url}/?room=call&name=Telephone&auto=1&source=none`);
  await until(() => bridge.page.evaluate(() => window.windlass?.phase === "call"), "the bridge joins", 20_000);
  await bridge.page.evaluate(async () => {
    const plain = { echoCancellation: false, noiseSuppression: false, autoGainControl: false };
    const stream = await navigator.mediaDevices.getUserMedia({ audio: plain });
    await window.windlass.room.publish(stream.getAudioTracks()[0], { name: "telephone" });
  });
  await client("telephone", [`audio_source aufile,${tone}`, "audio_player alsa,ear", "audio_alert alsa,ear"], "-e", `/dial ${address}`);

  /** What a SIP client said, but for its figures. */
  const said = (name) => {
    const lines = readFileSync(path.join(folder, name, "log"), "utf8").split(/[\r\n]+/);
    return lines.filter((line) => !/bit\/s|\/dial/.test(line)).slice(-25);
  };
  const state = async () => ({ heard: await heard(viewer.page, "telephone"), room: said("room"), telephone: said("telephone") });
  const sounds = async () => (await heard(viewer.page, "telephone"))?.totalAudioEnergy > 0.01;
  await until(sounds, "the room hears the telephone", 30_000, state);
  const { totalAudioEnergy } = await span(viewer.page, "telephone");
  assert.ok(totalAudioEnergy > 0.01, `${totalAudioEnergy}`);
  const loudest = () => record("ear.monitor", env).reduce((most, sample) => Math.max(most, Math.abs(sample)), 0);
  assert.ok(loudest() < 100, "nobody speaks in the room");
  await speak(viewer.page);
  await until(() => loudest() > 1000, "the telephone hears the room", 30_000, async () => ({ loudest: loudest(), ...(await state()) }));
  assert.deepEqual([...viewer.errors, ...bridge.errors], []);
});
