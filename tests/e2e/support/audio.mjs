// A tone in a call, and what a page receives of it.
import { sleep } from "./call.mjs";

/** In a page: publishes a tone that can be switched off. */
export function speak(page, options = {}) {
  return page.evaluate(async (options) => {
    const context = new AudioContext();
    const tone = new OscillatorNode(context, { frequency: 300 });
    const gain = new GainNode(context, { gain: 0.4 });
    const out = context.createMediaStreamDestination();
    tone.connect(gain).connect(out);
    tone.start();
    await context.resume();
    window.hush = (silent) => {
      gain.gain.value = silent ? 0 : 0.4;
    };
    [window.spoken] = await window.windlass.room.publish(out.stream.getAudioTracks()[0], { name: "tone", ...options });
  }, options);
}

/** What the page has received of the track with this name. */
export function heard(page, name) {
  return page.evaluate(async (name) => {
    const track = window.windlass.room.tracks.find((t) => t.kind === "audio" && t.name === name);
    if (track === undefined) return null;
    for (const s of (await window.windlass.room.connectionStats()).values()) {
      if (s.type !== "inbound-rtp" || s.trackIdentifier !== track.track.id) continue;
      const { packetsReceived, bytesReceived, totalAudioEnergy, concealedSamples, totalSamplesReceived } = s;
      return { packetsReceived, bytesReceived, totalAudioEnergy, concealedSamples, totalSamplesReceived };
    }
    return null;
  }, name);
}

/** What came of it in some seconds. */
export async function span(page, name, seconds = 3) {
  const from = await heard(page, name);
  await sleep(seconds * 1000);
  const to = await heard(page, name);
  return Object.fromEntries(Object.keys(to).map((key) => [key, to[key] - from[key]]));
}
