/**
 * The servers that a call may be on, by their WebSockets. The page chooses one; further ones are gone to, and given the access token, only if that
 * one has named them, and by TLS if it is reached by TLS. Where another server names one that is not known, the page's own is asked where the room is.
 */

/** See the module's head. */
export class Servers {
  /** Those that may have the room: the first is the present or next one. */
  private order: string[];
  /** Origins that one may go to. */
  private readonly known: Set<string>;

  /** `own`: the page's choice. */
  constructor(private readonly own: string) {
    this.order = [own];
    this.known = new Set([originOf(own) ?? own]);
  }

  /** The first few. */
  first(most: number): string[] {
    return this.order.slice(0, most);
  }

  /** The one after the first. */
  get second(): string | undefined {
    return this.order[1];
  }

  /** The server at `by` has named others. */
  named(by: string, others: readonly string[]): void {
    if (!this.mayGo(by) || !isSame(by, this.own)) return;
    for (const other of others) {
      const origin = originOf(other);
      if (origin !== null && (isSecure(origin) || !isSecure(this.own))) this.known.add(origin);
    }
  }

  /** Whether one may go there. */
  mayGo(url: string): boolean {
    return this.known.has(originOf(url) ?? url);
  }

  /** The call is at `url`, and may go on at those others; the page's own is the last that is asked. */
  at(url: string, others: readonly string[]): void {
    const may = others.filter((other) => this.mayGo(other));
    this.order = [...new Set([url, ...may, this.own])];
  }

  /** The server at `url`, or who can tell whether it is one, is the next to be tried, and the present one the last. */
  goTo(url: string): string {
    const next = this.mayGo(url) ? url : this.own;
    this.order = [next, ...this.order.filter((known) => known !== next)];
    return next;
  }

  /** The first was of no use: it is tried last. */
  postpone(at: 0 | 1): void {
    this.order.push(...this.order.splice(at, 1));
  }
}

/** The origin of a WebSocket's address; null where it is none. */
function originOf(url: string): string | null {
  try {
    const { protocol, origin, username, password } = new URL(url);
    const fine = (protocol === "wss:" || protocol === "ws:") && username === "" && password === "";
    return fine ? origin : null;
  } catch {
    return null;
  }
}

const isSecure = (url: string): boolean => url.startsWith("wss:");
const isSame = (a: string, b: string): boolean => originOf(a) === originOf(b);
