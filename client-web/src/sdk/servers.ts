/**
 * The servers that may have the room, by the URLs of their WebSockets, in the order in which they are tried.
 *
 * The access token goes to allowed servers only: the page's own, and those that the page's own has named, by TLS if the
 * page's own is reached by TLS. Where another server names one that is not allowed, the page's own is asked for the
 * room instead.
 */
export class Servers {
  /** The order of trying; the first is the current or next one. */
  private order: string[];
  /** The allowed origins. */
  private readonly allowed: Set<string>;

  /** `own`: the server that the page names. */
  constructor(private readonly own: string) {
    this.order = [own];
    this.allowed = new Set([originOf(own) ?? own]);
  }

  /** The first `max` servers. */
  first(max: number): string[] {
    return this.order.slice(0, max);
  }

  /** The second server. */
  get second(): string | undefined {
    return this.order[1];
  }

  /** The server `by` has named others; they are allowed if it is the page's own. */
  named(by: string, others: readonly string[]): void {
    if (!this.isAllowed(by) || !isSame(by, this.own)) return;
    for (const other of others) {
      const origin = originOf(other);
      if (origin !== null && (isSecure(origin) || !isSecure(this.own))) this.allowed.add(origin);
    }
  }

  /** Whether the access token may go to `url`. */
  isAllowed(url: string): boolean {
    return this.allowed.has(originOf(url) ?? url);
  }

  /** The call is on `url`. The allowed ones of `others` follow in the order, then the page's own. */
  at(url: string, others: readonly string[]): void {
    const allowed = others.filter((other) => this.isAllowed(other));
    this.order = [...new Set([url, ...allowed, this.own])];
  }

  /** Puts `url` first, or the page's own server where `url` is not allowed; returns that server. */
  goTo(url: string): string {
    const next = this.isAllowed(url) ? url : this.own;
    this.order = [next, ...this.order.filter((other) => other !== next)];
    return next;
  }

  /** Puts the first or second server last. */
  postpone(at: 0 | 1): void {
    this.order.push(...this.order.splice(at, 1));
  }
}

/** The origin of a WebSocket's URL; null where `url` is none, or holds credentials. */
function originOf(url: string): string | null {
  try {
    const { protocol, origin, username, password } = new URL(url);
    const valid = (protocol === "wss:" || protocol === "ws:") && username === "" && password === "";
    return valid ? origin : null;
  } catch {
    return null;
  }
}

const isSecure = (url: string): boolean => url.startsWith("wss:");
const isSame = (a: string, b: string): boolean => originOf(a) === originOf(b);
