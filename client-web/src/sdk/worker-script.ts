/**
 * The script of the SDK's workers.
 *
 * It is a part of the SDK's own script, as text, and workers start from a `blob:` URL of that. So it is there whatever
 * a bundler makes of the SDK and whichever origin that comes from (a worker's script must be of the page's origin), and
 * it outlives the page's server. Where the page's policy forbids workers of `blob:` URLs, the file `worker.js` takes
 * its place.
 */
import { WORKER } from "windlass:built";

let made: string | null = null;

/** One URL for all workers of the page. */
function inPage(): string {
  made ??= URL.createObjectURL(new Blob([WORKER], { type: "text/javascript" }));
  return made;
}

/** The addresses from which the SDK's workers can be started. */
export class WorkerScript {
  private kept: string | null = null;

  /** `file`: URL of `worker.js`; null where none is known. */
  constructor(
    private readonly file: string | null,
    private readonly ownCopy: () => string = inPage,
  ) {}

  /** The addresses to start a worker from, in the order in which they are tried. */
  get addresses(): string[] {
    const all = [this.kept, this.ownCopy(), this.file];
    return [...new Set(all.filter((address) => address !== null))];
  }

  /** The address from which workers start. */
  get address(): string {
    return this.kept ?? this.ownCopy();
  }

  /** Keeps an address from which a worker has started. */
  keep(address: string): void {
    this.kept = address;
  }
}
