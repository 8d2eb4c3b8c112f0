/** The red badge that says that the server records the room. */
import type { Room } from "../sdk/index.js";
import { make } from "./dom.js";
import { words } from "./language.js";

export class RecordedBadge {
  readonly element = make("output", { class: "recorded", hidden: true }, words("recorded"));
  readonly close: () => void;

  constructor(room: Room) {
    const show = () => {
      this.element.hidden = !room.recording;
    };
    const endings = [room.on("recording", show), room.on("reconnected", show), room.on("moved", show)];
    this.close = () => {
      for (const end of endings) end();
    };
    show();
  }
}
