/** The own picture: small in a corner, or a tile among the others. */
import { WindlassVideo } from "../sdk/index.js";
import { QualityBars } from "./bars.js";
import { make, sign } from "./dom.js";
import { words } from "./language.js";
import type { Sending } from "./sending.js";

export class OwnTile {
  readonly bars = new QualityBars();
  private readonly video = new WindlassVideo();
  private readonly silent = sign("silent", "mic-off", words("own.muted"));
  private readonly hand = sign("raised-hand", "hand", words("own.hand"));
  readonly element = make(
    "section",
    { class: "own", "aria-label": words("own.label") },
    this.video,
    this.hand,
    make("span", { class: "nameplate" }, this.silent, make("span", {}, words("you")), this.bars.element),
  );

  constructor(name: string) {
    this.video.setAttribute("name", name);
  }

  /** Shows what is sent now. */
  show(sending: Sending): void {
    const { picture } = sending;
    this.video.track = picture;
    this.video.toggleAttribute("mirror", sending.mirrored);
    this.silent.hidden = !sending.has("microphone") || sending.on("microphone");
    this.element.classList.toggle("off", picture === null);
  }

  /** Shows whether the own hand is raised. */
  showHand(raised: boolean): void {
    this.hand.hidden = !raised;
  }

  /** Lets go of the picture. */
  close(): void {
    this.video.track = null;
  }
}
