/** Until when the names and passwords of TURN servers are good, and how one waits for new ones. */
import type { IceServers } from "./protocol.js";

/** What ends within this time is renewed before it is needed. */
const SOON_MS = 60_000;
/** A server that does not answer is not waited for: what one has may still be good. */
const PATIENCE_MS = 2000;

/** See the module's head. */
export class IceAccess {
  private ends: number;
  private waiting: (() => void)[] = [];

  constructor(
    ice: IceServers,
    private readonly now: () => number = () => performance.now(),
  ) {
    this.ends = this.endOf(ice);
  }

  /** Whether new ones should be asked for before these are used again. */
  endsSoon(): boolean {
    return this.ends - this.now() < SOON_MS;
  }

  /** Asks for new ones; resolves when they have come, or do not come. */
  renewed(ask: () => void, patienceMs = PATIENCE_MS): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, patienceMs);
      this.waiting.push(() => {
        clearTimeout(timer);
        resolve();
      });
      ask();
    });
  }

  /** New ones have come. */
  renew(ice: IceServers): void {
    this.ends = this.endOf(ice);
    for (const resolve of this.waiting.splice(0)) resolve();
  }

  private endOf({ ttl_s }: IceServers): number {
    return ttl_s === undefined ? Number.POSITIVE_INFINITY : this.now() + 1000 * ttl_s;
  }
}
