/**
 * What this participant says of itself: its name and attributes. The page sets what they are to be; here each session
 * is sent what differs, the latest state only, so that the page may set them as often as it likes.
 */
import { badOption, ended, type WindlassError } from "./errors.js";
import { KEY, tooLarge, utf8Length, wellFormed } from "./message.js";
import type { SetAttributes } from "./protocol.gen.js";
import type { ParticipantInfo } from "./protocol.js";
import type { Outcome } from "./socket.js";

/** Max number of attributes. */
const MAX_ATTRIBUTES = 16;
/** Max size of a value in UTF-8, bytes. */
const MAX_VALUE_BYTES = 256;
/** Max size of all keys and values together, bytes. */
const MAX_BYTES = 4096;
/** Max size of a name: in characters, and in UTF-8 in bytes. */
const MAX_NAME = { characters: 64, bytes: 128 };
/** Pause after the server limited the rate of changes, milliseconds. */
const RATE_LIMITED_MS = 1100;

/** Attributes of a participant, by key. */
export type Attributes = Readonly<Record<string, string>>;

/** Name and attributes. */
export interface Described {
  readonly name: string;
  readonly attributes: Attributes;
}

/** A session, which tells the server of changes. */
export interface ProfilePath {
  setAttributes(change: SetAttributes): Promise<Outcome>;
}

/** A session, and the state that its server knows. */
interface Link {
  readonly path: ProfilePath;
  told: Described;
  busy: boolean;
}

/** A change of the page: what is wanted with it, and what was before it. */
interface Change {
  readonly wanted: Described;
  readonly before: Described;
  resolve(): void;
  reject(error: WindlassError): void;
}

/** The name and attributes of this participant, and their synchronisation with each session's server. */
export class Profile {
  /** What is to be known. */
  wanted: Described;
  private readonly links = new Set<Link>();
  /** Changes that no server has taken yet, in their order. */
  private waiting: Change[] = [];
  private over = false;

  /** `changed`: called with each change, and where one is taken back. */
  constructor(
    name: string,
    attributes: Attributes,
    private readonly changed: () => void = () => undefined,
  ) {
    this.wanted = { name: wellFormed(name), attributes: checked(attributes) };
  }

  /**
   * Changes attributes (null removes one) and the name (undefined: it stays). Resolves when the server has notified the
   * others; rejects with a {@link WindlassError}, and what was wanted before is so again.
   */
  set(changes: Readonly<Record<string, string | null>>, name?: string): Promise<void> {
    if (this.over) return Promise.reject(ended());
    const { wanted: before } = this;
    try {
      const attributes = new Map<string, string | null>(Object.entries({ ...this.wanted.attributes, ...changes }));
      for (const [key, value] of attributes) if (value === null) attributes.delete(key);
      this.want({
        name: name === undefined ? before.name : checkedName(name),
        attributes: checked(Object.fromEntries(attributes) as Record<string, string>),
      });
    } catch (error) {
      return Promise.reject(error);
    }
    const { wanted } = this;
    return new Promise((resolve, reject) => {
      this.waiting.push({ wanted, before, resolve, reject });
      for (const link of this.links) void this.sync(link);
    });
  }

  /** A session has begun, whose server knows `told`. `may`: whether it allows changes. */
  begin(path: ProfilePath, told: Described, may: boolean): void {
    const link: Link = { path, told, busy: false };
    this.links.add(link);
    if (may || this.waiting.length > 0) void this.sync(link);
  }

  /** Whether a session allows changes has changed. Without that its server tells the others no attributes. */
  granted(path: ProfilePath, may: boolean): void {
    for (const link of this.links) {
      if (link.path !== path) continue;
      if (may) void this.sync(link);
      else link.told = { name: link.told.name, attributes: {} };
    }
  }

  /**
   * A server refuses a join. True where that may be for changes that no server has taken yet: they are taken back, and
   * the next join says what was before them.
   */
  refusedByJoin(error: WindlassError): boolean {
    const [first] = this.waiting;
    if (first === undefined || (error.code !== "malformed" && error.code !== "too_large")) return false;
    const changes = this.waiting.splice(0);
    this.want(first.before);
    for (const { reject } of changes) reject(error);
    return true;
  }

  /** A session has ended. */
  ended(path: ProfilePath): void {
    for (const link of this.links) if (link.path === path) this.links.delete(link);
  }

  /** The call is over. */
  end(reason: WindlassError): void {
    this.over = true;
    this.links.clear();
    for (const { reject } of this.waiting.splice(0)) reject(reason);
  }

  private want(wanted: Described): void {
    this.wanted = wanted;
    this.changed();
  }

  private async sync(link: Link): Promise<void> {
    if (link.busy) return;
    link.busy = true;
    while (this.links.has(link)) {
      const { wanted } = this;
      const change = difference(link.told, wanted);
      if (change === null) {
        this.settled(wanted);
        break;
      }
      const outcome = await link.path.setAttributes(change);
      if (outcome.type === "lost") this.links.delete(link);
      else if (outcome.type === "done") {
        link.told = wanted;
        this.settled(wanted);
      } else if (outcome.error.code === "rate_limited") await pause(RATE_LIMITED_MS);
      else this.refused(link, outcome.error);
    }
    link.busy = false;
  }

  /** A server knows what was wanted then; what was wanted before is out of date. */
  private settled(wanted: Described): void {
    const last = this.waiting.findLastIndex((waiting) => waiting.wanted === wanted);
    for (const { resolve } of this.waiting.splice(0, last + 1)) resolve();
  }

  private refused(link: Link, error: WindlassError): void {
    const waiting = this.waiting.splice(0);
    // Where its server ends, the next session says it at its join.
    if (error.code === "shutting_down" || error.code === "not_joined") {
      this.waiting = waiting;
      this.links.delete(link);
      return;
    }
    this.want(link.told);
    for (const { reject } of waiting) reject(error);
    for (const other of this.links) void this.sync(other);
  }
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** The change that makes `wanted` of `told`; null: there is none. */
function difference(told: Described, wanted: Described): SetAttributes | null {
  const before = new Map(Object.entries(told.attributes));
  const after = new Map(Object.entries(wanted.attributes));
  const gone = [...before.keys()].filter((key) => !after.has(key)).map((key) => [key, null] as const);
  const set = [...gone, ...[...after].filter(([key, value]) => before.get(key) !== value)];
  const renamed = told.name !== wanted.name;
  if (!renamed && set.length === 0) return null;
  return { set: Object.fromEntries<string | null>(set), ...(renamed ? { name: wanted.name } : {}) };
}

/** Whether two have the same name and the same attributes. */
export function saysSame(a: Pick<ParticipantInfo, "name" | "attributes">, b: typeof a): boolean {
  const said = ({ name, attributes = {} }: typeof a) => ({ name, attributes });
  return difference(said(a), said(b)) === null;
}

/** A name that is within the server's bounds; else throws a {@link WindlassError}. */
function checkedName(name: string): string {
  if (typeof name !== "string" || name.trim() === "") {
    throw badOption("A name must not be empty.", "Give the name that the others see.");
  }
  const { characters, bytes } = MAX_NAME;
  if ([...name].length > characters || utf8Length(name) > bytes) {
    throw tooLarge(`The name is longer than ${characters} characters, or ${bytes} bytes.`);
  }
  return wellFormed(name);
}

/** Attributes that are within the server's bounds; else throws a {@link WindlassError}. */
function checked(attributes: Readonly<Record<string, string>>): Attributes {
  let bytes = 0;
  const entries: [key: string, value: string][] = [];
  for (const [key, value] of Object.entries(attributes)) {
    if (!KEY.test(key)) {
      throw badOption(`"${key}" is no key.`, "A key has 1 to 64 letters, digits, hyphens, underscores and dots.");
    }
    if (typeof value !== "string") throw badOption(`The attribute "${key}" is no text.`, "Give a string, or null.");
    const length = utf8Length(value);
    if (length > MAX_VALUE_BYTES) {
      throw tooLarge(`The attribute "${key}" has ${length} bytes; ${MAX_VALUE_BYTES} are allowed.`);
    }
    bytes += key.length + length;
    entries.push([key, wellFormed(value)]);
  }
  if (entries.length > MAX_ATTRIBUTES) {
    throw tooLarge(`${entries.length} attributes are too many; ${MAX_ATTRIBUTES} are allowed.`);
  }
  if (bytes > MAX_BYTES) throw tooLarge(`The attributes have ${bytes} bytes; ${MAX_BYTES} are allowed.`);
  return Object.freeze(Object.fromEntries(entries));
}
