// What a server can do, as it measured itself: tests of what it cannot are skipped, and say why.

/** What a network may take at most of the 200 ms of a call's budget: the rest is decoding, waiting, coding and the way to the viewer. */
const MAX_NETWORK_S = 0.12;

/** Why a server cannot enhance pictures of this size; false: it can. */
export async function tooSlow(server, width, height) {
  const networks = Object.entries(await server.metrics()).filter(([name]) =>
    name.startsWith("windlass_enhancer_network_seconds_per_pixel{"),
  );
  const [fastest, perPixel] = networks.sort(([, a], [, b]) => a - b)[0];
  const takes = perPixel * width * height;
  if (takes <= MAX_NETWORK_S) return false;
  return `${fastest} takes ${Math.round(1000 * takes)} ms for ${width}x${height} on this CPU, and ${1000 * MAX_NETWORK_S} may`;
}
