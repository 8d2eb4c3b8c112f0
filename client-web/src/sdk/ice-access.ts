/** The lifetime of TURN credentials, and their renewal. */
import type { IceServers } from "./protocol.js";

/** Credentials that expire within this time are renewed before use, milliseconds. */
const EXPIRES_SOON_MS = 60_000;
/** Max wait for new credentials, milliseconds: the present ones may still be valid. */
const RENEWAL_TIMEOUT_MS = 2000;

/** Knows when the TURN credentials of a session expire, and waits for renewed ones. */
export class IceAccess {
  private expiresAt: number;
  private waiting: (() => void)[] = [];

  constructor(
    ice: IceServers,
    private readonly now: () => number = () => performance.now(),
  ) {
    this.expiresAt = this.expiryOf(ice);
  }

  /** Whether the credentials should be renewed before they are used again. */
  expireSoon(): boolean {
    return this.expiresAt - this.now() < EXPIRES_SOON_MS;
  }

  /** Asks for new credentials. Resolves when they have come, or after the time-out. */
  renewed(ask: () => void, timeoutMs = RENEWAL_TIMEOUT_MS): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, timeoutMs);
      this.waiting.push(() => {
        clearTimeout(timer);
        resolve();
      });
      ask();
    });
  }

  /** New credentials have come. */
  renew(ice: IceServers): void {
    this.expiresAt = this.expiryOf(ice);
    for (const resolve of this.waiting.splice(0)) resolve();
  }

  private expiryOf({ ttl_s }: IceServers): number {
    return ttl_s === undefined ? Number.POSITIVE_INFINITY : this.now() + 1000 * ttl_s;
  }
}
