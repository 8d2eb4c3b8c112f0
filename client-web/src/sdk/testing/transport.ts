/** A media connection in memory: what is sent and received, without media. */
import type { WindlassError } from "../errors.js";
import type { Rung, TrackInfo, Welcome } from "../protocol.js";
import type { Publication } from "../publication.js";
import type { ReceiverListener, VideoReceiver } from "../receiver.js";
import type { Transport, Transports } from "../session.js";
import { type RemoteTrack, RemoteVideoTrack } from "../tracks.js";

/** A transport in memory, which notes what is sent. */
export class FakeTransport implements Transport {
  onLost: ((error: WindlassError) => void) | null = null;
  onUp: (() => void) | null = null;
  readonly sent = new Set<Publication>();
  readonly ids = new Map<Publication, string>();
  readonly listeners = new Map<string, ReceiverListener>();
  frozen = false;
  closed = false;
  bytes = 0;
  /** Whether pictures of the received tracks have come. */
  pictures = false;
  /** Whether a worker rebuilds the received tracks. */
  rebuilds = false;
  private readonly received: RemoteTrack[] = [];
  /** With what the server refuses the next track. */
  refusal: WindlassError | null = null;

  constructor(
    readonly welcome: Welcome,
    readonly maxRungs: ReadonlyMap<string, Rung>,
  ) {}

  /** The media path comes up, and with it a picture of each track. */
  up(): void {
    this.pictures = true;
    this.onUp?.();
  }

  get sections(): number {
    return this.sent.size;
  }

  publish(publication: Publication): Promise<void> {
    if (this.refusal !== null) return Promise.reject(this.refusal);
    this.sent.add(publication);
    this.ids.set(publication, `${this.welcome.participant}/${publication.name}`);
    return Promise.resolve();
  }

  unpublish(publication: Publication): Promise<void> {
    this.sent.delete(publication);
    return Promise.resolve();
  }

  subscribe(info: TrackInfo): RemoteTrack {
    const track: RemoteTrack =
      info.kind === "audio"
        ? { ...info, kind: "audio", track: {} as MediaStreamTrack, level: 0, replaces: null }
        : new RemoteVideoTrack(info, this.receiver(info.id));
    this.received.push(track);
    return track;
  }

  unsubscribe(id: string): void {
    const index = this.received.findIndex((track) => track.id === id);
    if (index >= 0) this.received.splice(index, 1);
  }

  tracks(): RemoteTrack[] {
    return [...this.received];
  }

  idOf(publication: Publication): string | null {
    return this.ids.get(publication) ?? null;
  }

  learnOwn(): void {}

  setIceServers(): void {}

  settled(): Promise<void> {
    return Promise.resolve();
  }

  stats(): Promise<RTCStatsReport> {
    return Promise.resolve(new Map([["T", { type: "transport", bytesReceived: this.bytes }]]));
  }

  freeze(): void {
    this.frozen = true;
  }

  thaw(): void {
    this.frozen = false;
  }

  close(): void {
    this.closed = true;
  }

  private receiver(id: string): VideoReceiver {
    const transport = this;
    const receiver = {
      plain: {},
      get enhanced() {
        return transport.rebuilds ? {} : null;
      },
      reason: "starting",
      carry: (listener: ReceiverListener) => this.listeners.set(id, listener),
      setRung: () => undefined,
      setView: () => undefined,
      nativeFrames: () => Promise.resolve(this.pictures ? 1 : 0),
    };
    return receiver as unknown as VideoReceiver;
  }
}

/** Makes the transports of a test, in order. */
export class FakeTransports implements Transports {
  readonly made: FakeTransport[] = [];
  /** With what the servers of the next connections refuse tracks. */
  refusal: WindlassError | null = null;

  ready(): Promise<boolean> {
    return Promise.resolve(true);
  }

  connect(_: unknown, welcome: Welcome, maxRungs: ReadonlyMap<string, Rung>): Transport {
    const transport = new FakeTransport(welcome, maxRungs);
    transport.refusal = this.refusal;
    this.made.push(transport);
    return transport;
  }

  /** The latest one. */
  get latest(): FakeTransport {
    const latest = this.made.at(-1);
    if (latest === undefined) throw new Error("no transport has been made");
    return latest;
  }
}

/** A publication without a camera. */
export function publication(name: string): Publication {
  const fake = {
    kind: "video",
    name,
    muted: false,
    backupOf: null as Publication | null,
    requests: [] as unknown[],
    setMuted(muted: boolean) {
      this.muted = muted;
    },
    request(request: unknown) {
      this.requests.push(request);
    },
    turn(knobs: unknown) {
      this.requests.push(knobs);
    },
    backUp(codecs: readonly string[]) {
      return codecs.length === 0
        ? null
        : Object.assign(publication(`${name} in ${codecs[0]}`), {
            backupOf: this as unknown as Publication,
            codec: codecs[0],
          });
    },
    uplink: () => ({ kbps: 100, width: 1280, height: 720, fps: 30 }),
  };
  return fake as unknown as Publication;
}
