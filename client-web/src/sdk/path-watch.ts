/**
 * Tells soon when the media path carries nothing any more. Browsers say `disconnected` after five seconds and more; a
 * call that moves from one network to another would stand still for that long.
 */

/** Time between two looks while packets come, milliseconds. */
const LOOK_MS = 1000;
/** The same while none come. Each look then asks the server for a sign. */
const PROBE_MS = 400;
/** Silence after which the path counts as dead, milliseconds; long enough for the answer over a satellite. */
const MAX_SILENCE_MS = 2000;
/** Probes that must have stayed without an answer then: time in which the page itself stood still proves nothing. */
const MIN_PROBES = 3;

/** What a look at the path shows. */
export type PathSign = "heard" | "quiet" | "silent";

/** Whether packets come, from how much has come so far, and the time. */
export class Silence {
  private received: number | null = null;
  private since = 0;
  private probes = 0;

  /**
   * Takes how much was received so far; null: not known. A sign but "heard" is to be followed by a probe. A browser
   * that never tells, and a path that cannot be probed, count as heard.
   */
  look(now: number, received: number | null, canProbe: boolean): PathSign {
    const reached = received ?? this.received;
    const former = this.received;
    this.received = reached;
    if (reached === null || former === null || reached > former || !canProbe) {
      this.since = now;
      this.probes = 0;
      return "heard";
    }
    const isSilent = now - this.since >= MAX_SILENCE_MS && this.probes >= MIN_PROBES;
    this.probes++;
    return isSilent ? "silent" : "quiet";
  }
}

/** Looks at a peer connection's path again and again. */
export class PathWatch {
  private readonly silence = new Silence();
  private readonly transports = new Set<string>();
  private timer: ReturnType<typeof setTimeout> | undefined;
  private isClosed = false;

  /** `probe` is a channel that the server acknowledges and otherwise ignores. `onSign` is called after each look. */
  constructor(
    private readonly pc: RTCPeerConnection,
    private readonly probe: RTCDataChannel,
    private readonly onSign: (sign: PathSign) => void,
  ) {
    this.lookIn(LOOK_MS);
  }

  close(): void {
    this.isClosed = true;
    clearTimeout(this.timer);
  }

  private lookIn(ms: number): void {
    this.timer = setTimeout(() => void this.look(), ms);
  }

  private async look(): Promise<void> {
    let sign: PathSign = "heard";
    try {
      const now = performance.now();
      const received = await this.received().catch(() => null);
      if (this.isClosed) return;
      sign = this.silence.look(now, received, this.probe.readyState === "open");
      if (sign !== "heard") this.probe.send(".");
      this.onSign(sign);
    } finally {
      if (!this.isClosed) this.lookIn(sign === "heard" ? LOOK_MS : PROBE_MS);
    }
  }

  /**
   * What has come on all transports: packets, or, as Firefox does not count these, bytes on their selected pairs. Null
   * where the browser counts neither. Answers to ICE's own checks are in neither.
   */
  private async received(): Promise<number | null> {
    const stats = await this.pc.getStats();
    // Reports are many, and reading each makes an object of it.
    if (![...this.transports].some((id) => stats.has(id))) {
      this.transports.clear();
      stats.forEach((report, id) => {
        if (report.type === "transport") this.transports.add(id);
      });
    }
    let sum: number | null = null;
    for (const id of this.transports) {
      const transport = stats.get(id);
      const received = transport?.packetsReceived ?? stats.get(transport?.selectedCandidatePairId)?.bytesReceived;
      if (typeof received === "number") sum = (sum ?? 0) + received;
    }
    return sum;
  }
}
