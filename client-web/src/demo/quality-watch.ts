/** Reads the browser's statistics every two seconds, and tells the quality of each participant and of what is sent. */
import type { Participant, Room } from "../sdk/index.js";
import { type Bars, barsOf, between, type Counts } from "./quality.js";

/** Interval of readings, milliseconds. */
const READ_MS = 2000;

/** What is read of a report; each kind has some of it. */
interface Entry {
  type: string;
  trackIdentifier?: string;
  packetsReceived?: number;
  packetsLost?: number;
  totalFreezesDuration?: number;
  fractionLost?: number;
}

/** See the module's head. */
export class QualityWatch {
  private readonly timer: ReturnType<typeof setInterval>;
  private last = new Map<string, Counts>();
  private lastAt = 0;

  /** `told` is called for each participant, and for oneself (null). */
  constructor(
    private readonly room: Room,
    private readonly told: (who: Participant | null, bars: Bars | null) => void,
  ) {
    this.timer = setInterval(() => void this.read().catch(() => undefined), READ_MS);
  }

  /** Ends it. */
  close(): void {
    clearInterval(this.timer);
  }

  private async read(): Promise<void> {
    const report = await this.room.connectionStats();
    const entries = report === null ? [] : ([...report.values()] as Entry[]);
    const at = performance.now();
    const seconds = (at - this.lastAt) / 1000;
    const now = new Map<string, Counts>();
    for (const entry of entries) {
      if (entry.type !== "inbound-rtp" || entry.trackIdentifier === undefined) continue;
      const { packetsReceived = 0, packetsLost = 0, totalFreezesDuration = 0 } = entry;
      now.set(entry.trackIdentifier, { received: packetsReceived, lost: packetsLost, frozenS: totalFreezesDuration });
    }
    for (const who of this.room.participants) this.told(who, this.barsOf(who, now, seconds));
    this.told(null, ownBars(entries));
    this.last = now;
    this.lastAt = at;
  }

  private barsOf(who: Participant, now: Map<string, Counts>, seconds: number): Bars | null {
    const worst = { loss: null as number | null, frozen: 0 };
    for (const track of who.tracks) {
      const id = track.kind === "video" ? track.plain.id : track.track.id;
      const [before, after] = [this.last.get(id), now.get(id)];
      if (before === undefined || after === undefined) continue;
      const { loss, frozen } = between(before, after, seconds);
      if (loss !== null) worst.loss = Math.max(worst.loss ?? 0, loss);
      worst.frozen = Math.max(worst.frozen, frozen);
    }
    return barsOf({ away: who.away, paused: who.camera?.paused ?? false, ...worst });
  }
}

/** By what the server reports of the tracks that it receives. */
function ownBars(entries: readonly Entry[]): Bars | null {
  const losses = entries.flatMap(({ type, fractionLost }) =>
    type === "remote-inbound-rtp" && fractionLost !== undefined ? [fractionLost] : [],
  );
  const loss = losses.length === 0 ? null : Math.max(...losses);
  return barsOf({ away: entries.length === 0, paused: false, loss, frozen: 0 });
}
