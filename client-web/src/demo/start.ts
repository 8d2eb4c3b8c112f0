/** The start screen: room, name, source, and layers to send. */
import type { Layers } from "../sdk/index.js";
import { brand, icon, make } from "./dom.js";
import { inventRoom, type PageOptions, roomName } from "./options.js";
import { openCamera, openFile, type Source, SourceError } from "./source.js";

/** The choices of the person. */
export interface Choice {
  room: string;
  name: string;
  layers: Layers;
  loopback: boolean;
  /** Whether full-size stills may be sent. */
  stills: boolean;
  /** Null: watch only. */
  source: Source | null;
}

type Origin = "camera" | "file" | "none";

const LAYERS: readonly { value: Layers; label: string; note: string }[] = [
  { value: "qhf", label: "Full", note: "All sizes; about 2.2 Mbit/s" },
  { value: "qh", label: "Weak uplink", note: "Up to half size; about 650 kbit/s" },
  { value: "q", label: "Very weak", note: "A quarter of the size; about 150 kbit/s" },
];

const STILLS_NOTE =
  "While you send small video, the others may get full-size pictures of your camera, or parts of them, every second or two; off, none are sent.";

/** The parts of the enhancement, and what each gives. */
const PARTS: readonly { part: string; gives: string }[] = [
  { part: "Filters", gives: "in your browser: crisper edges, for no bits at all." },
  {
    part: "Stills",
    gives: "of the camera or a shared screen, a few kilobytes each: eyes, hair and small print come back.",
  },
  { part: "A network", gives: "in the server, where no stills come: a little detail, guessed." },
];

/** The command that measures the parts. */
const MEASURE = "windlass-lab eval CLIP --display 1280x720";

/** See the module's head. */
export class StartScreen {
  readonly element: HTMLElement;
  private readonly room: HTMLInputElement;
  private readonly name: HTMLInputElement;
  private readonly file = make("input", { type: "file", accept: "video/*", class: "sr", tabIndex: -1 });
  private readonly preview = make("video", { class: "picture", muted: true, playsInline: true, autoplay: true });
  private readonly previewNote = make("p", { class: "preview-note" });
  private readonly problem = make("div", { class: "problem", role: "alert", hidden: true });
  private readonly buttons: HTMLButtonElement[] = [];
  private readonly stills = make("input", { type: "checkbox", name: "stills" });
  private origin: Origin;
  private layers: Layers;
  private source: Source | null = null;

  constructor(
    options: PageOptions,
    private readonly chosen: (choice: Choice) => Promise<void>,
  ) {
    this.layers = options.layers;
    this.origin = options.source;
    this.stills.checked = options.detail;
    this.room = make("input", {
      id: "room",
      name: "room",
      value: options.room ?? inventRoom(),
      required: true,
      maxLength: 64,
      autocomplete: "off",
      spellcheck: false,
    });
    this.name = make("input", {
      id: "name",
      name: "name",
      value: options.name ?? localStorage.getItem("windlass-name") ?? (options.auto ? "Guest" : ""),
      placeholder: "Such as Ada",
      required: true,
      maxLength: 64,
      autocomplete: "name",
    });
    this.file.onchange = () => void this.open("file");
    this.element = this.lay(options.room !== null);
    this.describe();
  }

  /** Shows an error and its hint. */
  fail(message: string, hint: string): void {
    this.problem.replaceChildren(icon("alert"), make("p", {}, make("strong", {}, message), " ", hint));
    this.problem.hidden = false;
    this.busy(false);
  }

  /** Joins with the current choices. */
  async join(loopback: boolean): Promise<void> {
    const room = roomName(this.room.value);
    if (room === null || this.name.value.trim() === "") {
      (room === null ? this.room : this.name).reportValidity();
      return;
    }
    this.problem.hidden = true;
    this.busy(true);
    if (this.origin !== "none" && this.source === null && !(await this.open(this.origin))) {
      this.busy(false);
      return;
    }
    if (loopback && this.source === null) {
      this.fail("There is nothing to show you.", "Choose the camera or a video file to try it alone.");
      return;
    }
    const name = this.name.value.trim();
    localStorage.setItem("windlass-name", name);
    const stills = this.stills.checked;
    await this.chosen({ room, name, layers: this.layers, loopback, stills, source: this.source });
  }

  private lay(invited: boolean): HTMLElement {
    const join = make("button", { class: "primary", type: "submit" }, invited ? "Join the call" : "Start the call");
    const alone = make("button", { class: "secondary", type: "button" }, "Try it alone");
    alone.onclick = () => void this.join(true);
    this.buttons.push(join, alone);
    const form = make(
      "form",
      { class: "card", "aria-label": "Join a call" },
      make("div", { class: "preview" }, this.preview, this.previewNote),
      this.problem,
      this.group("Your picture", "origin", [
        { value: "camera", label: "Camera", note: "" },
        { value: "file", label: "Video file", note: "" },
        { value: "none", label: "Just watch", note: "" },
      ]),
      this.file,
      make(
        "div",
        { class: "pair" },
        make("label", { for: "name" }, "Your name", this.name),
        make("label", { for: "room" }, "Room", this.room),
      ),
      this.group("What you send", "layers", LAYERS),
      make(
        "label",
        { class: "consent" },
        this.stills,
        make("span", {}, make("strong", {}, "Send full-size stills too"), make("span", { class: "fine" }, STILLS_NOTE)),
      ),
      make("div", { class: "actions" }, join, alone),
      make("p", { class: "fine" }, "“Try it alone” shows your own low layer as others get it, plain beside rebuilt."),
    );
    form.onsubmit = (event) => {
      event.preventDefault();
      void this.join(false);
    };
    return make(
      "main",
      { class: "start" },
      make(
        "header",
        { class: "hero" },
        brand(),
        make("h1", {}, "Small video, rebuilt where you watch."),
        make(
          "p",
          {},
          "Where a link carries no more than a small picture, your browser rebuilds it at the size you see. It needs no graphics card.",
        ),
        make(
          "dl",
          { class: "parts" },
          ...PARTS.flatMap(({ part, gives }) => [make("dt", {}, part), make("dd", {}, gives)]),
        ),
        make("p", { class: "fine" }, "How much filters and stills give: ", make("code", {}, MEASURE)),
      ),
      form,
    );
  }

  private group(
    legend: string,
    name: "origin" | "layers",
    choices: readonly { value: string; label: string; note: string }[],
  ): HTMLElement {
    const note = make("p", { class: "fine", id: `${name}-note` });
    const current = name === "origin" ? this.origin : this.layers;
    const row = make("div", { class: "segments" });
    const showNote = (value: string) => {
      note.textContent = choices.find((c) => c.value === value)?.note ?? "";
      note.hidden = note.textContent === "";
    };
    for (const { value, label } of choices) {
      const input = make("input", { type: "radio", name, value, checked: value === current });
      input.onchange = () => {
        showNote(value);
        if (name === "layers") this.layers = value as Layers;
        else void this.choose(value as Origin);
      };
      // A second click on the segment opens the file chooser again.
      if (value === "file") {
        input.addEventListener("click", () => {
          if (this.origin === "file") this.file.click();
        });
      }
      row.append(make("label", {}, input, make("span", {}, label)));
    }
    showNote(current);
    return make("fieldset", {}, make("legend", {}, legend), row, note);
  }

  private async choose(origin: Origin): Promise<void> {
    this.origin = origin;
    this.drop();
    this.problem.hidden = true;
    if (origin === "file") this.file.click();
    else if (origin === "camera") await this.open("camera");
  }

  /** Opens the source for the preview. After a failure it shows the error and returns false. */
  private async open(origin: "camera" | "file"): Promise<boolean> {
    const file = this.file.files?.[0];
    if (origin === "file" && file === undefined) {
      this.fail("No video is chosen yet.", "Choose a file, or use the camera.");
      return false;
    }
    this.drop();
    try {
      this.source = origin === "camera" ? await openCamera() : await openFile(file as File);
    } catch (error) {
      if (error instanceof SourceError) this.fail(error.message, error.hint);
      else this.fail("The picture does not start.", String(error));
      return false;
    }
    this.problem.hidden = true;
    this.preview.srcObject = this.source.stream;
    this.preview.classList.toggle("mirror", origin === "camera");
    this.describe();
    return true;
  }

  private drop(): void {
    this.source?.stop();
    this.source = null;
    this.preview.srcObject = null;
    this.describe();
  }

  private describe(): void {
    const notes: Record<Origin, string> = {
      camera: "Your camera and microphone start when you join.",
      file: "Choose a video; it plays in a loop as your camera.",
      none: "You will see and hear the others, and send nothing.",
    };
    const shown = this.source === null;
    this.previewNote.hidden = !shown;
    this.previewNote.replaceChildren(
      icon(this.origin === "file" ? "file" : this.origin === "none" ? "people" : "camera"),
      notes[this.origin],
    );
    if (!shown) return;
    if (this.origin === "none") return;
    const button = make(
      "button",
      { type: "button", class: "quiet" },
      this.origin === "file" ? "Choose a video…" : "Show me a preview",
    );
    button.onclick = () => (this.origin === "file" ? this.file.click() : void this.open("camera"));
    this.previewNote.append(button);
  }

  private busy(busy: boolean): void {
    for (const button of this.buttons) button.disabled = busy;
    this.element.classList.toggle("busy", busy);
  }
}
