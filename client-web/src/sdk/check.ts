/** Checks what a call needs, part by part, before or beside a call. */
import { type Assets, filesOf } from "./assets.js";
import { probeDecode, probeEncode } from "./check/codecs.js";
import { probeDevice } from "./check/devices.js";
import { openSignalling, probePath, probeSocket, type Signalling } from "./check/paths.js";
import { probeSpeed } from "./check/speed.js";
import { CHECK_TITLES, type CheckName, type Finding, failed, TEXTS } from "./check/texts.js";
import { WindlassError } from "./errors.js";
import { socketUrl } from "./join.js";

export { CHECK_TITLES, type CheckName } from "./check/texts.js";

/** What one part of the check has found. */
export interface CheckResult {
  /** What was checked. */
  readonly name: CheckName;
  /** The part's name for people. */
  readonly title: string;
  /** `skipped`: it could not be tried, or is not needed. */
  readonly outcome: "ok" | "failed" | "skipped";
  /** What was seen. */
  readonly detail: string;
  /** What the person can do; empty where nothing needs doing. */
  readonly advice: string;
}

/** Options of {@link check}. */
export interface CheckOptions {
  /** The access token, where the server needs one. */
  token?: string | undefined;
  /** The room of the token. A private room of that name is used: nobody is met there. Default: any. */
  room?: string | undefined;
  /** Whether camera and microphone are opened for a moment, for which the browser may ask. Default: true. */
  devices?: boolean;
  /** URLs of the SDK's files, where a page keeps them elsewhere. */
  assets?: Assets;
}

/** How each part is found; for tests. @internal */
export interface Probes {
  open(url: string): Promise<Signalling>;
  path: typeof probePath;
  device(kind: "camera" | "microphone"): Promise<Finding>;
  decode(): Promise<Finding>;
  encode(): Promise<Finding>;
  speed(url: string): Promise<Finding>;
}

/**
 * Checks what a call with the server at `url` needs, and tells each part as soon as it is known: the WebSocket; media
 * over UDP, TCP and a relay; camera and microphone; VP9; and the speed of the rebuilt picture. `url` is as for `join`.
 *
 * It takes some seconds, and at most two minutes where nothing answers. It never throws: what fails is a result, with
 * advice.
 *
 * ```ts
 * for await (const { title, outcome, detail, advice } of check("https://calls.example/")) {
 *   show(title, outcome, detail, advice);
 * }
 * ```
 */
export function check(url: string, options: CheckOptions = {}): AsyncGenerator<CheckResult, void, void> {
  return results(url, options.devices ?? true, browserProbes(options));
}

function browserProbes({ token, room, assets = {} }: CheckOptions): Probes {
  const credentials = { room: room ?? `check-${Math.random().toString(36).slice(2, 12)}`, token };
  const probes: Probes = {
    open: (url) => openSignalling(url, credentials),
    path: probePath,
    device: (kind) => probeDevice(kind, navigator.mediaDevices as MediaDevices | undefined),
    decode: probeDecode,
    encode: probeEncode,
    speed: (url) => probeSpeed(filesOf(assets, url, document.baseURI)),
  };
  if (typeof RTCPeerConnection !== "undefined") return probes;
  const none = (): Promise<Finding> => Promise.resolve(TEXTS.noWebRtc());
  return { ...probes, path: none, decode: none, encode: none, speed: none };
}

/** The results of all parts, in the order of {@link CHECK_TITLES}. @internal */
export async function* results(
  server: string,
  devices: boolean,
  probes: Probes,
): AsyncGenerator<CheckResult, void, void> {
  const result = (name: CheckName, { outcome, detail, advice }: Finding): CheckResult => ({
    name,
    title: CHECK_TITLES[name],
    outcome,
    detail,
    advice,
  });
  let url = "";
  let closed: Finding | null = null;
  try {
    url = socketUrl(server);
    const reception = await probeSocket(url, () => probes.open(url));
    closed = reception.closed;
    yield result("socket", reception.finding);
  } catch (error) {
    const { message, hint } = error instanceof WindlassError ? error : { message: String(error), hint: "" };
    closed = TEXTS.noServer();
    yield result("socket", failed(message, hint));
  }
  // At the same time: each waits for the network most of the time.
  const paths = (["udp", "tcp", "turn"] as const).map((path) => ({
    path,
    found: closed ?? probes.path(path, () => probes.open(url)),
  }));
  for (const { path, found } of paths) yield result(path, await found);
  for (const kind of ["camera", "microphone"] as const) {
    yield result(kind, devices ? await probes.device(kind) : TEXTS.notAsked());
  }
  yield result("decode", await probes.decode());
  yield result("encode", await probes.encode());
  yield result("speed", url === "" ? TEXTS.noDecoder() : await probes.speed(url));
}
