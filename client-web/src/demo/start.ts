/** The start screen: what one will send, the own name, the room, and the rest behind "More choices". */
import type { Layers } from "../sdk/index.js";
import { brand, icon, make } from "./dom.js";
import { saidOf } from "./failure.js";
import { say, type Words, words } from "./language.js";
import { languagePicker } from "./language-picker.js";
import { inventRoom, type PageOptions, roomName } from "./options.js";
import { prefer, preferences } from "./preferences.js";
import { type Origin, Ready } from "./ready.js";
import { Segments } from "./segments.js";

/** The choices of the person. */
export interface Choice {
  room: string;
  name: string;
  layers: Layers;
  loopback: boolean;
  /** Whether full-size stills may be sent. */
  stills: boolean;
  /** What is sent. */
  ready: Ready;
}

const LAYERS = [
  { value: "qhf", label: words("layers.qhf"), note: words("layers.qhf.note") },
  { value: "qh", label: words("layers.qh"), note: words("layers.qh.note") },
  { value: "q", label: words("layers.q"), note: words("layers.q.note") },
] as const;

const ORIGINS = [
  { value: "devices", label: words("origin.devices") },
  { value: "file", label: words("origin.file") },
  { value: "none", label: words("origin.none") },
] as const;

/** The command that measures the parts of the enhancement. */
const MEASURE = "windlass-lab eval CLIP --display 1280x720";

/** The form before a call: what will be sent, the name and the room. */
export class StartScreen {
  readonly element: HTMLElement;
  private readonly room: HTMLInputElement;
  private readonly name: HTMLInputElement;
  private readonly problem = make("div", { class: "problem", role: "alert", hidden: true });
  private readonly buttons: HTMLButtonElement[] = [];
  private readonly stills = make("input", { type: "checkbox", name: "stills" });
  private readonly ready: Ready;
  private layers: Layers;

  /** `former`: the choices for the call before this one. */
  constructor(
    private readonly options: PageOptions,
    former: Choice | undefined,
    private readonly chosen: (choice: Choice) => Promise<void>,
  ) {
    this.layers = options.layers;
    this.stills.checked = options.detail;
    this.ready = new Ready(
      options.source === "camera" ? "devices" : "none",
      (error, more) => this.refuse(error, more),
      () => {
        this.problem.hidden = true;
      },
    );
    if (former !== undefined) this.ready.remember(former.ready.wants);
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
      value: options.name ?? (preferences.name || (options.auto ? say("guest") : "")),
      placeholder: words("start.name.example"),
      required: true,
      maxLength: 64,
      autocomplete: "name",
    });
    this.element = this.lay(options.room !== null);
    if (!options.auto) void this.ready.openIfAllowed();
  }

  /** Shows an error and its hint. */
  fail(message: string | Words, hint: string | Words): void {
    this.problem.replaceChildren(icon("alert"), make("p", {}, make("strong", {}, message), " ", hint));
    this.problem.hidden = false;
    this.busy(false);
  }

  /** Joins with the current choices. Nobody sees a name where one is alone. */
  async join(loopback: boolean): Promise<void> {
    const room = roomName(this.room.value) ?? (loopback ? inventRoom() : null);
    const name = this.name.value.trim() || (loopback ? say("you") : "");
    if (room === null || name === "") {
      (room === null ? this.room : this.name).reportValidity();
      return;
    }
    this.problem.hidden = true;
    this.busy(true);
    const { ready } = this;
    if (!(await ready.open(loopback))) {
      this.busy(false);
      return;
    }
    const nothing = ready.origin === "none" || (ready.origin === "devices" && !ready.wants.camera);
    if (loopback && nothing) {
      this.fail(words("start.nothing"), words("start.nothing.hint"));
      return;
    }
    if (!loopback) prefer({ name });
    await this.chosen({ room, name, layers: this.layers, loopback, stills: this.stills.checked, ready });
    this.busy(false);
  }

  private lay(invited: boolean): HTMLElement {
    const label = words(invited ? "start.join" : "start.begin");
    const join = make("button", { class: "primary", type: "submit" }, label);
    const alone = make("button", { class: "secondary", type: "button" }, words("start.alone"));
    alone.onclick = () => void this.join(true);
    this.buttons.push(join, alone);
    const form = make(
      "form",
      { class: "card", "aria-label": words("start.form") },
      this.ready.element,
      this.problem,
      make(
        "div",
        { class: "pair" },
        make("label", { for: "name" }, words("start.name"), this.name),
        make("label", { for: "room" }, words("start.room"), this.room),
      ),
      this.more(),
      make("div", { class: "actions" }, join, alone),
      make("p", { class: "fine" }, words("start.alone.note")),
    );
    form.onsubmit = (event) => {
      event.preventDefault();
      void this.join(false);
    };
    return make("main", { class: "start" }, this.hero(), form);
  }

  private hero(): HTMLElement {
    const parts = ["filters", "stills", "network"] as const;
    return make(
      "header",
      { class: "hero" },
      make("div", { class: "top" }, brand(), languagePicker()),
      make("h1", {}, words("start.title")),
      make("p", {}, words("start.what")),
      make(
        "dl",
        { class: "parts" },
        ...parts.flatMap((part) => [
          make("dt", {}, words(`parts.${part}`)),
          make("dd", {}, words(`parts.${part}.gives`)),
        ]),
      ),
      make("p", { class: "fine" }, words("parts.measure"), " ", make("code", {}, MEASURE)),
      make(
        "p",
        { class: "fine" },
        make("a", { href: "demo" }, words("start.demo")),
        " · ",
        make("a", { href: "check" }, words("start.check")),
      ),
    );
  }

  /** What most people leave as it is. Open where the address says something of it. */
  private more(): HTMLElement {
    const { options, ready } = this;
    const origins = new Segments<Origin>("origin", words("origin"), ORIGINS, ready.origin, (origin) => {
      this.problem.hidden = true;
      void ready.choose(origin);
    });
    // A second click on the file opens the file chooser again.
    origins.again = (origin) => {
      if (origin === "file") ready.chooseFile();
    };
    const layers = new Segments<Layers>("layers", words("layers"), LAYERS, this.layers, (value) => {
      this.layers = value;
    });
    return make(
      "details",
      { class: "more", open: options.source === "none" || options.layers !== "qhf" || options.detail },
      make("summary", {}, words("start.more")),
      origins.element,
      layers.element,
      make(
        "label",
        { class: "consent" },
        this.stills,
        make("span", {}, make("strong", {}, words("stills")), make("span", { class: "fine" }, words("stills.note"))),
      ),
    );
  }

  private refuse(error: unknown, more?: Words): void {
    if (error === null) {
      this.fail(more ?? "", words("file.none.hint"));
      return;
    }
    const { message, hint } = saidOf(error);
    this.fail(message, more === undefined ? hint : `${hint} ${more}`);
  }

  private busy(busy: boolean): void {
    for (const button of this.buttons) button.disabled = busy;
    this.element.classList.toggle("busy", busy);
  }
}
