/** A peer connection without media. */

/** What is used of a transceiver. */
interface FakeTransceiver {
  mid: string | null;
  direction: string;
  readonly receiver: { track: object };
  readonly sender: { replaceTrack(): Promise<void> };
  setCodecPreferences(): void;
  stop(): void;
}

/** A peer connection in memory, whose transceivers get a `mid` with the local description. */
export class FakePeerConnection {
  static latest: FakePeerConnection;
  connectionState = "new";
  signalingState = "stable";
  localDescription: { sdp: string } | null = null;
  remoteDescription: { sdp: string } | null = null;
  onconnectionstatechange: (() => void) | null = null;
  readonly transceivers: FakeTransceiver[] = [];
  iceRestarts = 0;
  rollbacks = 0;
  closed = false;

  constructor() {
    FakePeerConnection.latest = this;
  }

  /** Packets that have come; null: a browser that does not count them. */
  packetsReceived: number | null = null;
  /** Messages sent on data channels. */
  probes = 0;

  createDataChannel(): { readyState: string; send(): void } {
    return { readyState: "open", send: () => void this.probes++ };
  }

  getStats(): Promise<Map<string, object>> {
    const transport = { type: "transport", packetsReceived: this.packetsReceived };
    return Promise.resolve(new Map(this.packetsReceived === null ? [] : [["T", transport]]));
  }

  getTransceivers(): FakeTransceiver[] {
    return this.transceivers;
  }

  addTransceiver(_: unknown, { direction }: { direction: string }): FakeTransceiver {
    const sender = { replaceTrack: () => Promise.resolve() };
    const transceiver = {
      mid: null,
      direction,
      receiver: { track: {} },
      sender,
      setCodecPreferences: () => undefined,
      stop() {
        this.direction = "stopped";
      },
    };
    this.transceivers.push(transceiver);
    return transceiver;
  }

  setLocalDescription(description?: { type: string }): Promise<void> {
    if (description?.type === "rollback") {
      this.rollbacks++;
      this.signalingState = "stable";
      return Promise.resolve();
    }
    this.transceivers.forEach((transceiver, index) => {
      transceiver.mid ??= `${index}`;
    });
    this.localDescription = { sdp: "v=0\r\n" };
    this.signalingState = "have-local-offer";
    return Promise.resolve();
  }

  setRemoteDescription(description: { sdp: string }): Promise<void> {
    this.remoteDescription = description;
    this.signalingState = "stable";
    return Promise.resolve();
  }

  restartIce(): void {
    this.iceRestarts++;
  }

  close(): void {
    this.closed = true;
  }

  becomes(state: string): void {
    this.connectionState = state;
    this.onconnectionstatechange?.();
  }
}
