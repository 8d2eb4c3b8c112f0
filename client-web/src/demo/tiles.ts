/** A tile for each participant, and one for each screen that is shared. */
import { type Participant, RemoteVideoTrack, type Room, type Rung, type View } from "../sdk/index.js";
import { type Words, words } from "./language.js";
import type { Stage } from "./stage.js";
import { Tile } from "./tile.js";

/** How tiles are made. */
export interface TileLooks {
  readonly view: View;
  /** The server learns how large tiles are. */
  readonly adaptive: boolean;
}

/** Adds a tile to the stage for each camera and each shared screen, and removes it when that ends. */
export class Tiles {
  private readonly cameras = new Map<Participant, Tile>();
  private readonly screens = new Map<Participant, Tile>();
  private readonly ends: (() => void)[];

  /** `maxRung`: the cap on what is received; null: none. */
  constructor(
    private readonly room: Room,
    private readonly stage: Stage,
    private readonly looks: TileLooks,
    public maxRung: Rung | null,
  ) {
    this.ends = [
      room.on("participant", (who) => this.join(who)),
      room.on("participantLeft", (who) => this.left(who)),
      room.on("speaker", (who) => this.speaks(who)),
      room.on("trackAdded", (track) => {
        if (track instanceof RemoteVideoTrack && this.maxRung !== null) track.setMaxRung(this.maxRung);
      }),
    ];
  }

  /** How many people are in the call, this participant included. */
  get people(): number {
    return [...this.cameras.keys()].filter(({ isSelf }) => !isSelf).length + 1;
  }

  /** Caps what is received from now on. */
  setMaxRung(rung: Rung): void {
    this.maxRung = rung;
    for (const track of this.room.tracks) if (track.kind === "video") track.setMaxRung(rung);
  }

  /** The tile of somebody's camera. */
  tileOf(who: Participant): Tile | null {
    return this.cameras.get(who) ?? null;
  }

  close(): void {
    for (const end of this.ends) end();
  }

  private join(who: Participant): void {
    const name = who.isSelf ? words("you.received") : who.name || words("guest");
    this.show(this.cameras, who, "camera", name);
    this.ends.push(who.on("change", () => this.showScreen(who)));
  }

  private left(who: Participant): void {
    for (const tiles of [this.cameras, this.screens]) {
      const tile = tiles.get(who);
      tiles.delete(who);
      if (tile !== undefined) this.stage.remove(tile);
    }
  }

  private speaks(who: Participant): void {
    const tile = this.cameras.get(who);
    if (tile !== undefined) this.stage.speaks(tile);
  }

  /** Shows what somebody shares, or no longer. */
  private showScreen(who: Participant): void {
    const shown = this.screens.get(who);
    const shares = !who.left && (who.screen !== null || (who.away && shown !== undefined));
    if (shares === (shown !== undefined)) return;
    if (shown === undefined) {
      this.show(this.screens, who, "screen", words("tile.screen", { name: who.name || words("guest") }));
    } else {
      this.screens.delete(who);
      this.stage.remove(shown);
    }
  }

  private show(
    tiles: Map<Participant, Tile>,
    participant: Participant,
    source: "camera" | "screen",
    name: Words | string,
  ): void {
    const { view, adaptive } = this.looks;
    const tile = new Tile({ participant, source, name }, view, adaptive, () => this.stage.pin(tile));
    tiles.set(participant, tile);
    this.stage.add(tile);
  }
}
