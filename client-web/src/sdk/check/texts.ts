/** What the check says to people: titles, findings and advice. All its texts are here. */
import type { InputKind } from "../devices/errors.js";

/** The parts of the check, in the order in which they are run. */
export const CHECK_TITLES = {
  socket: "Connection to the server",
  udp: "Media over UDP",
  tcp: "Media over TCP",
  turn: "Media over a relay (TURN)",
  camera: "Camera",
  microphone: "Microphone",
  decode: "Receiving VP9",
  encode: "Sending VP9 in layers",
  speed: "Speed of the rebuilt picture",
} as const;

/** The name of a part of the check. */
export type CheckName = keyof typeof CHECK_TITLES;

/** What a part has found: how it went, what was seen, and what the person can do (empty where nothing needs doing). */
export interface Finding {
  outcome: "ok" | "failed" | "skipped";
  detail: string;
  advice: string;
}

export const ok = (detail: string): Finding => ({ outcome: "ok", detail, advice: "" });
export const failed = (detail: string, advice: string): Finding => ({ outcome: "failed", detail, advice });
export const skipped = (detail: string, advice = ""): Finding => ({ outcome: "skipped", detail, advice });

const ms = (time: number): string => `${Math.max(1, Math.round(time))} ms`;

/** A path of media. */
export type Path = "udp" | "tcp" | "turn";

export const TEXTS = {
  answers: (url: string, time: number) => ok(`${url} answers in ${ms(time)}.`),
  answersClosed: (url: string, reason: string) => ok(`${url} answers. ${reason}`),
  noAnswer: (url: string) =>
    failed(
      `${url} does not answer.`,
      "Check your network. If other pages work, a proxy or firewall stops WebSockets: ask its administrator to allow this address.",
    ),
  noServer: () => skipped("There is no connection to the server."),
  notLetIn: (reason: string, hint: string) => skipped(reason, hint),
  connects: (path: Path, address: string, time: number | null) => {
    const by = path === "turn" ? "The relay reaches" : "This browser reaches";
    return ok(`${by} ${address}${time === null ? "" : ` in ${ms(time)}`}.`);
  },
  notOffered: (path: Path) =>
    skipped(
      path === "turn"
        ? "The server names no relay. None is needed where UDP or TCP works."
        : `The server offers no media over ${path.toUpperCase()}.`,
    ),
  udpFails: (addresses: string) =>
    failed(
      `Nothing comes back by UDP from ${addresses}.`,
      `A firewall, a VPN or the browser's settings stop UDP. Ask the network's administrator to allow UDP to ${addresses}, or try another network. Calls go by TCP meanwhile, where that works, with more delay.`,
    ),
  tcpFails: (addresses: string) =>
    failed(
      `No connection by TCP to ${addresses}.`,
      `It matters only where UDP fails. Ask the network's administrator to allow TCP to ${addresses}, or try another network.`,
    ),
  turnFails: () =>
    failed(
      "The relay does not connect.",
      "It matters only where UDP and TCP fail. Ask who runs the server to check its TURN server's address and secret.",
    ),
  refuses: (message: string, hint: string) => failed(message, hint),
  device: (label: string, size: string) =>
    ok(`${[label || "It works", size].filter((part) => part !== "").join(", ")}.`),
  deviceMissing: (message: string, hint: string, kind: InputKind) =>
    failed(
      message,
      `${hint} You can join without: the others ${kind === "camera" ? "see" : "hear"} nothing of you then.`,
    ),
  deviceSilent: (kind: InputKind) =>
    failed(
      `The ${kind} is on, but sends nothing.`,
      `Look for a switch or a cover on the ${kind}, and close other programs that use it.`,
    ),
  unanswered: (kind: InputKind) =>
    failed(
      `The browser still asks whether this page may use the ${kind}.`,
      "Answer its question, then run the check again.",
    ),
  notAsked: () => skipped("It was left out."),
  noWebRtc: () => failed("This browser has no WebRTC.", "Use a current Chrome, Edge or Firefox: calls need it."),
  decodes: (how: string) => ok(how),
  noVp9: () =>
    failed("This browser has no VP9 for calls.", "Use a current Chrome, Edge or Firefox: it cannot join without VP9."),
  decodesWrong: () =>
    failed(
      "VP9 is there, but a picture that was encoded does not come back.",
      "Restart the browser. If it stays, switch off hardware acceleration in its settings.",
    ),
  sends: (layers: number) => ok(`VP9 in ${layers} layers.`),
  sendsOne: () =>
    failed(
      "VP9 in one layer only.",
      "Calls work, but everybody gets the same size of you. Use a current Chrome, Edge or Firefox.",
    ),
  fast: (fps: number, size: string) => ok(`${Math.round(fps)} pictures a second of ${size}.`),
  slow: (fps: number, size: string) =>
    failed(
      `${Math.round(fps)} pictures a second of ${size}; 30 are needed.`,
      "Calls work, with plain pictures. Close other programs and tabs, or connect a power supply.",
    ),
  cannotRebuild: () =>
    skipped(
      "This browser cannot rebuild pictures. Calls work, with plain ones.",
      "Use a current Chrome, Edge or Firefox.",
    ),
  noDecoder: () =>
    failed(
      "The decoder of rebuilt pictures does not start.",
      "Reload the page. Calls work meanwhile, with plain pictures.",
    ),
  late: () => failed("It takes too long.", "Run the check again. If it stays, reload the page."),
  broken: (error: string) => failed(`It ended with an error: ${error}`, "Run the check again, or use another browser."),
} as const;
