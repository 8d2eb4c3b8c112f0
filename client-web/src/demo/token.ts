/**
 * The access token of this tab. The address does not keep it, as people share addresses; the tab does, so that a page
 * that is loaded again can join again. Another invitation to the same room, opened in the tab, takes its place.
 */

const KEY = "windlass-token";

/** What of `sessionStorage` it needs. */
export type TabStore = Pick<Storage, "getItem" | "setItem">;

/** The access token of this tab, kept in the tab's storage. */
export class TabToken {
  private token: string | null;

  /** `given`: the token of the address, null: none. */
  constructor(
    private readonly store: TabStore | null,
    room: string | null,
    given: string | null,
  ) {
    this.token = given ?? this.kept(room);
  }

  /** The token to join with; null: none. */
  get current(): string | null {
    return this.token;
  }

  /** Keeps it, or a newer one, for a room. */
  keep(room: string, token = this.token): void {
    this.token = token;
    if (token === null) return;
    try {
      this.store?.setItem(KEY, JSON.stringify({ room, token }));
    } catch {
      // A browser that keeps nothing asks for the invitation again.
    }
  }

  private kept(room: string | null): string | null {
    try {
      const found = Object(JSON.parse(this.store?.getItem(KEY) ?? "null")) as { room?: unknown; token?: unknown };
      return found.room === room && typeof found.token === "string" ? found.token : null;
    } catch {
      return null;
    }
  }
}
