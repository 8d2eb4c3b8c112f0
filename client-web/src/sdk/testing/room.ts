/** Rooms at servers in memory, in a browser without media. */
import { mock } from "node:test";
import { type JoinOptions, join } from "../join.js";
import type { Room } from "../room.js";
import { pass, startClock, stopClock } from "./clock.js";
import { FakeTrack } from "./devices.js";
import { FakePeerConnection } from "./peer-connection.js";
import { FakeServer, startServers, stopServers } from "./server.js";

const rooms: Room[] = [];
const former = new Map<string, PropertyDescriptor | undefined>();

const capabilities = { codecs: [{ mimeType: "video/VP9" }, { mimeType: "audio/opus" }] };

/** What `getUserMedia` and `getDisplayMedia` were asked for; nothing is ever opened. */
export const asked: string[] = [];

/** A stream of tracks. */
export class FakeStream {
  constructor(private readonly tracks: FakeTrack[] = []) {}
  getTracks(): FakeTrack[] {
    return this.tracks;
  }
  getVideoTracks(): FakeTrack[] {
    return this.tracks.filter(({ kind }) => kind === "video");
  }
  getAudioTracks(): FakeTrack[] {
    return this.tracks.filter(({ kind }) => kind === "audio");
  }
}

const ask = (what: string) => () => {
  asked.push(what);
  return Promise.reject(new DOMException("none", "NotFoundError"));
};

/** Stands in for the browser, with servers in memory and a clock of the test's. */
export function startBrowser(): void {
  startClock();
  startServers();
  mock.method(console, "warn", () => undefined);
  asked.length = 0;
  const mediaDevices = Object.assign(new EventTarget(), {
    getUserMedia: ask("devices"),
    getDisplayMedia: ask("screen"),
    enumerateDevices: () => Promise.resolve([]),
  });
  const globals = {
    RTCPeerConnection: FakePeerConnection,
    RTCRtpReceiver: { getCapabilities: () => capabilities },
    RTCRtpSender: { getCapabilities: () => capabilities },
    MediaStream: FakeStream,
    MediaStreamTrack: FakeTrack,
    document: Object.assign(new EventTarget(), { baseURI: "https://page.example/", visibilityState: "visible" }),
    navigator: { mediaDevices },
    fetch: () => Promise.reject(new Error("no network")),
  };
  for (const [name, value] of Object.entries(globals)) {
    former.set(name, Object.getOwnPropertyDescriptor(globalThis, name));
    Object.defineProperty(globalThis, name, { value, configurable: true, writable: true });
  }
}

export function stopBrowser(): void {
  for (const room of rooms.splice(0)) room.leave();
  for (const [name, descriptor] of former) {
    if (descriptor === undefined) Reflect.deleteProperty(globalThis, name);
    else Object.defineProperty(globalThis, name, descriptor);
  }
  former.clear();
  stopServers();
  stopClock();
}

/** A room that is joined. */
export async function joined(options: Partial<JoinOptions> = {}, server = new FakeServer("a")): Promise<Room> {
  const room = await join(server.url, { room: "standup", name: "Me", ...options });
  rooms.push(room);
  await pass(50);
  return room;
}

export const sound = (): MediaStreamTrack => new FakeTrack("audio", "A microphone", {}) as unknown as MediaStreamTrack;
