/**
 * Which ways lead to the server: its WebSocket, and media over UDP, TCP and a relay. Each way of media is tried by a
 * peer connection of its own, in a private room, that knows the server's candidates of this one protocol alone. Nothing
 * is sent or received by it.
 */
import { Moved, WindlassError } from "../errors.js";
import { handshake } from "../handshake.js";
import type { IceServers, Welcome } from "../protocol.js";
import { SignalSocket } from "../socket.js";
import { bounded } from "./bounded.js";
import { type Finding, type Path, TEXTS } from "./texts.js";

/** Max time of one way, milliseconds. */
const PATH_MS = 6000;
/** Max servers that are asked after one another for the room. */
const MAX_HOPS = 3;

/** An open socket to a server that has let this client in. */
export interface Signalling {
  ice: IceServers;
  /** The server's answer to an offer. */
  answer(sdp: string): Promise<string>;
  close(): void;
}

/** Who asks to be let in. */
export interface Credentials {
  room: string;
  token: string | undefined;
}

/** Joins a private room. Rejects with a `WindlassError`. */
export async function openSignalling(url: string, { room, token }: Credentials): Promise<Signalling> {
  const request = { room, name: "check", loopback: true, token, attributes: {}, seat: undefined, ticket: undefined };
  for (let at = url, hops = 0; ; hops++) {
    const socket = await SignalSocket.open(at);
    let welcome: Welcome;
    try {
      welcome = await handshake(at, socket, { ...request, waiting: () => undefined, signal: undefined });
    } catch (error) {
      socket.close();
      // The token goes to no server but the one that the page names.
      if (!(error instanceof Moved) || hops >= MAX_HOPS || token !== undefined) throw error;
      at = error.url;
      continue;
    }
    socket.onMessage = () => undefined;
    return {
      ice: welcome.ice,
      answer: async (sdp) => (await socket.request({ type: "offer", sdp, publish: [], subscribe: [] })).sdp,
      close: () => {
        socket.send({ type: "leave" });
        socket.close();
      },
    };
  }
}

/** How the server's WebSocket answers, and why this client is not let in, where it is not. */
export interface Reception {
  finding: Finding;
  /** What every way of media finds, where none can be tried. */
  closed: Finding | null;
}

/** Tries the WebSocket. */
export async function probeSocket(
  url: string,
  open: () => Promise<Signalling>,
  now = () => performance.now(),
): Promise<Reception> {
  const from = now();
  let closed: Finding | null = null;
  const finding = await bounded(
    async () => {
      try {
        (await open()).close();
        return TEXTS.answers(url, now() - from);
      } catch (error) {
        if (!(error instanceof WindlassError) || error.code === "unreachable" || error.code === "connection_lost") {
          throw error;
        }
        closed = TEXTS.notLetIn(error.message, error.hint);
        return TEXTS.answersClosed(url, error.message);
      }
    },
    2 * PATH_MS,
    () => TEXTS.noAnswer(url),
  );
  if (finding.outcome === "ok") return { finding, closed };
  return { finding: TEXTS.noAnswer(url), closed: TEXTS.noServer() };
}

/** The candidates of a description, by protocol. */
function candidates(sdp: string): { line: string; protocol: string; address: string }[] {
  return sdp
    .split(/\r?\n/)
    .filter((line) => line.startsWith("a=candidate:"))
    .map((line) => {
      const [, , protocol = "", , host = "", port = ""] = line.split(" ");
      return {
        line,
        protocol: protocol.toLowerCase(),
        address: host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`,
      };
    });
}

/** The description with candidates of one protocol alone. */
export function only(sdp: string, protocol: string): { sdp: string; addresses: string[] } {
  const all = candidates(sdp);
  const others = new Set(all.filter((candidate) => candidate.protocol !== protocol).map(({ line }) => line));
  const lines = sdp.split(/\r?\n/).filter((line) => !others.has(line));
  const kept = all.filter((candidate) => candidate.protocol === protocol);
  return { sdp: lines.join("\r\n"), addresses: [...new Set(kept.map(({ address }) => address))] };
}

/** Tries one way of media. */
export function probePath(
  path: Path,
  open: () => Promise<Signalling>,
  connection = (config: RTCConfiguration): RTCPeerConnection => new RTCPeerConnection(config),
): Promise<Finding> {
  let end = (): void => undefined;
  let fails: () => Finding = TEXTS.late;
  const probe = async (): Promise<Finding> => {
    const signalling = await open();
    end = () => signalling.close();
    const servers = signalling.ice.servers.filter(({ urls }) => urls.some((url) => /^turns?:/.test(url)));
    if (path === "turn" && servers.length === 0) return TEXTS.notOffered(path);
    const pc = connection({
      bundlePolicy: "max-bundle",
      iceServers: path === "turn" ? servers : [],
      iceTransportPolicy: path === "turn" ? "relay" : "all",
    });
    end = () => {
      pc.close();
      signalling.close();
    };
    pc.createDataChannel("check");
    await pc.setLocalDescription();
    const answer = only(await signalling.answer(pc.localDescription?.sdp ?? ""), path === "tcp" ? "tcp" : "udp");
    if (answer.addresses.length === 0) return TEXTS.notOffered(path);
    const addresses = answer.addresses.join(" or ");
    fails = () =>
      path === "udp" ? TEXTS.udpFails(addresses) : path === "tcp" ? TEXTS.tcpFails(addresses) : TEXTS.turnFails();
    const connected = new Promise<boolean>((resolve) => {
      pc.onconnectionstatechange = () => {
        if (pc.connectionState === "connected") resolve(true);
        if (pc.connectionState === "failed") resolve(false);
      };
    });
    await pc.setRemoteDescription({ type: "answer", sdp: answer.sdp });
    if (!(await connected)) return fails();
    const { address, tripMs } = await chosen(pc);
    return TEXTS.connects(path, address ?? addresses, tripMs);
  };
  return bounded(probe, PATH_MS, () => fails()).finally(() => end());
}

/** The server's address that was chosen, and the time to it and back. */
async function chosen(pc: RTCPeerConnection): Promise<{ address: string | null; tripMs: number | null }> {
  const stats = [...(await pc.getStats()).values()];
  const pair = stats.find((entry) => entry.type === "candidate-pair" && entry.nominated && entry.state === "succeeded");
  const remote = stats.find((entry) => entry.id === pair?.remoteCandidateId);
  const trip: unknown = pair?.currentRoundTripTime;
  const host: unknown = remote?.address;
  const shown = typeof host === "string" && host.includes(":") ? `[${host}]` : host;
  return {
    address: typeof host === "string" ? `${shown}:${remote.port}` : null,
    tripMs: typeof trip === "number" ? trip * 1000 : null,
  };
}
