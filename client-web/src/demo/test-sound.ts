/** A short sound on the chosen loudspeaker, to hear whether it is the right one. */
import type { DeviceList } from "../sdk/index.js";
import { icon, make } from "./dom.js";
import { words } from "./language.js";

/** Two notes, hertz. */
const NOTES = [523.25, 659.25];
/** Length of each, seconds. */
const NOTE_S = 0.25;

/** A button that plays the test sound. `failed` gets the reason where it cannot. */
export function soundButton(devices: DeviceList, failed: (error: unknown) => void): HTMLElement {
  const button = make("button", { class: "quiet try-sound", type: "button" }, icon("sound"), words("ready.sound"));
  button.onclick = async () => {
    button.disabled = true;
    await playTestSound(devices).catch(failed);
    button.disabled = false;
  };
  return button;
}

async function playTestSound(devices: DeviceList): Promise<void> {
  const context = new AudioContext();
  const output = context.createMediaStreamDestination();
  const audio = new Audio();
  audio.srcObject = output.stream;
  const end = devices.followSpeaker(audio);
  NOTES.forEach((frequency, at) => {
    const note = new OscillatorNode(context, { frequency });
    const volume = new GainNode(context, { gain: 0.2 });
    const start = context.currentTime + 0.05 + at * NOTE_S;
    volume.gain.setTargetAtTime(0, start + NOTE_S * 0.7, 0.03);
    note.connect(volume).connect(output);
    note.start(start);
    note.stop(start + NOTE_S);
  });
  await audio.play().catch(() => undefined);
  await new Promise((done) => setTimeout(done, 1000 * (NOTES.length * NOTE_S + 0.3)));
  end();
  audio.srcObject = null;
  await context.close();
}
