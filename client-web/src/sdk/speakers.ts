/**
 * Who is heard now, several at once: from levels of sound that are read here. The server's word for the one active
 * speaker is another thing; that one holds through pauses.
 */
import type { LocalInput } from "./devices/local-input.js";
import type { Participant } from "./participant.js";

/** Interval of readings, milliseconds. */
const READ_MS = 100;
/**
 * Share of a reading in the average: a louder sound counts within 0.2 s, a quieter one after half a second, as words
 * have gaps.
 */
const [RISE, FALL] = [0.5, 0.2];
/** The averaged level from which somebody is heard: 45 dB below full scale. Levels are as in `Meter.read`. */
const BEGIN = 0.25;
/** The averaged level below which somebody is no longer heard: 50 dB below full scale, as for the server. */
const END = 1 / 6;
/** By how much one must be louder to change places with the one before: 3 dB. */
const MARGIN = 0.05;

/** Sorts sources of sound into heard and unheard, so that neither the list nor its order flickers. */
export class Heard<Source> {
  private readonly averages = new Map<Source, number>();
  private list: readonly Source[] = [];

  /** Who is heard, the loudest first. */
  get all(): readonly Source[] {
    return this.list;
  }

  /** Takes the next reading of all sources; true where the list or its order is another one now. */
  take(levels: ReadonlyMap<Source, number>): boolean {
    for (const source of this.averages.keys()) if (!levels.has(source)) this.averages.delete(source);
    for (const [source, level] of levels) {
      const before = this.average(source);
      this.averages.set(source, before + (level - before) * (level > before ? RISE : FALL));
    }
    const former = this.list;
    const stay = former.filter((source) => this.average(source) >= END);
    const came = [...levels.keys()].filter((source) => !former.includes(source) && this.average(source) >= BEGIN);
    this.list = this.sorted([...stay, ...came]);
    return this.list.length !== former.length || this.list.some((source, at) => source !== former[at]);
  }

  /** Moves who is clearly louder than the one before to the front. */
  private sorted(sources: Source[]): readonly Source[] {
    for (let end = 1; end < sources.length; end++) {
      for (let at = end; at > 0; at--) {
        const [before, source] = [sources[at - 1] as Source, sources[at] as Source];
        if (this.average(source) < this.average(before) + MARGIN) break;
        sources[at - 1] = source;
        sources[at] = before;
      }
    }
    return sources;
  }

  private average(source: Source): number {
    return this.averages.get(source) ?? 0;
  }
}

/** What it needs of its room. */
export interface SpeakersHost {
  readonly participants: readonly Participant[];
  readonly microphone: Pick<LocalInput, "on" | "level">;
  /** Called when somebody else is heard, or the order is another one. */
  changed(): void;
}

/** Reads the levels of a room, while somebody listens. */
export class Speakers {
  private heard = new Heard<Participant>();
  private own = new Heard<"self">();
  private timer: ReturnType<typeof setInterval> | undefined;
  private endMicrophone: (() => void) | null = null;

  constructor(private readonly host: SpeakersHost) {}

  /** The others who are heard now, the loudest first. */
  get others(): readonly Participant[] {
    return this.heard.all;
  }

  /** Whether this participant is heard now. */
  get self(): boolean {
    return this.own.all.length > 0;
  }

  /** Begins to read, or ends that. */
  read(wanted: boolean): void {
    if (wanted === (this.endMicrophone !== null)) return;
    if (wanted) {
      // The microphone is measured only while somebody listens.
      this.endMicrophone = this.host.microphone.on("level", () => undefined);
      this.timer = setInterval(() => this.next(), READ_MS);
      return;
    }
    clearInterval(this.timer);
    this.endMicrophone?.();
    this.endMicrophone = null;
    this.heard = new Heard();
    this.own = new Heard();
  }

  private next(): void {
    const { participants, microphone } = this.host;
    const others = this.heard.take(new Map(participants.map((who) => [who, who.away ? 0 : who.level])));
    const self = this.own.take(new Map([["self", microphone.level]]));
    if (others || self) this.host.changed();
  }
}
