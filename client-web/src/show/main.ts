/**
 * The page `/demo`: the product shows itself, without a camera, a permission or a second person. A clip goes through
 * the server in a private room, and comes back as the others of a call would get it.
 */
import { brand, make } from "../demo/dom.js";
import { saidOf } from "../demo/failure.js";
import { language, say, setLanguage, type Words, words, write } from "../demo/language.js";
import { languageOf } from "../demo/preferences.js";
import { join, type Publication, type Room, WindlassError, WindlassVideo } from "../sdk/index.js";
import { Loupe } from "./loupe.js";
import { type Figures, Meter } from "./meter.js";
import { Scene, type SceneName } from "./scene.js";
import { Sway } from "./sway.js";

/** The bitrates of the slider, kbit/s. */
const UPLINKS = [60, 80, 100, 150, 200, 300, 450, 700, 1000, 1500, 2000] as const;
const FIRST = 150;
/** Where the loupe is at first: on the lettering, on the table. Parts of the picture. */
const PLACES: Record<SceneName, [number, number]> = { person: [0.63, 0.8], text: [0.17, 0.44] };
/**
 * Part of the uplink that congestion control plans with: the stills of a camera come on top of its layers. With all of
 * it, 150 kbit/s of the person sent 166, and the rebuilt half was 1.5 dB worse (`tests/e2e/measure/demo-uplink.mjs`).
 */
const PLANNED: Record<SceneName, number> = { person: 0.75, text: 1 };
/**
 * Part of the uplink that text leaves to its video, which hardly moves: the rest is for stills. Without it the rebuilt
 * half was 4.4 dB worse at 150 kbit/s (the same program).
 */
const TEXT_VIDEO = 0.3;

/** `window.windlassShow`: the state of the page, for tests and the console. */
const hook: { room: Room | null; figures: Figures | null; failure: string | null } = {
  room: null,
  figures: null,
  failure: null,
};
Object.assign(window, { windlassShow: hook });

/** The access token: as on the page of calls. */
function access(): { token?: string; room?: string } {
  const fragment = new URLSearchParams(location.hash.slice(1));
  const token = fragment.get("token") ?? new URL(location.href).searchParams.get("token");
  const room = fragment.get("room");
  return { ...(token === null ? {} : { token }), ...(room === null ? {} : { room }) };
}

/** One scene, being sent. */
class Running {
  private readonly meter: Meter;
  private readonly loupe: Loupe;
  private readonly ends: (() => void)[] = [];
  private publication: Publication | null = null;

  private constructor(
    private readonly page: Page,
    private readonly scene: Scene,
    private readonly room: Room,
  ) {
    const { video } = page;
    room.on("participant", (self) => {
      const show = () => {
        if (self.camera === null || video.track === self.camera) return;
        video.track = self.camera;
        // However small the window is, all of the clip is rebuilt: the loupe shows it.
        const { width, height } = scene.canvas;
        self.camera.setView({ width, height });
      };
      this.ends.push(self.on("change", show));
      show();
    });
    room.on("disconnected", ({ reason }) => {
      if (reason.code !== "left") page.fail(reason);
    });
    this.meter = new Meter(room, scene, video, (figures) => page.tell(figures));
    const pictures = () => {
      const rebuilt = video.getAttribute("state") === "native" ? "plain" : "enhanced";
      return [Meter.picture(video, "plain"), Meter.picture(video, rebuilt)] as const;
    };
    this.loupe = new Loupe(page.stage, pictures);
    this.loupe.place(...PLACES[scene.name]);
    page.loupe.replaceChildren(this.loupe.element);
  }

  static async start(page: Page, name: SceneName, kbps: number): Promise<Running> {
    const { token, room: named } = access();
    const [scene, room] = await Promise.all([
      Scene.open(name),
      join(location.href, {
        room: named ?? `demo-${Math.random().toString(36).slice(2, 12)}`,
        name: say("show.name"),
        loopback: true,
        ...(token === undefined ? {} : { token }),
      }),
    ]);
    const running = new Running(page, scene, room);
    running.limit(kbps);
    hook.room = room;
    [running.publication = null] = await room.publish(scene.track, {
      name: "camera",
      content: "camera",
      detail: "ask",
    });
    running.divide(kbps);
    return running;
  }

  /** Sends no more than so much from now on. */
  limit(kbps: number): void {
    this.room.setMaxUplink(PLANNED[this.scene.name] * kbps);
    this.divide(kbps);
    this.meter.restart();
  }

  /** Leaves text's stills their part, as a server does that adapts the layers of its publishers. */
  private divide(kbps: number): void {
    const { publication, scene } = this;
    if (publication?.id == null || scene.name !== "text") return;
    const q = { kbps: TEXT_VIDEO * kbps, fps: undefined, active: undefined, needed: undefined };
    publication.turn({ type: "knobs", track: publication.id, layers: { q } });
  }

  close(): void {
    for (const end of this.ends.splice(0)) end();
    this.meter.close();
    this.loupe.close();
    this.room.leave();
    this.scene.close();
    this.page.video.track = null;
    hook.room = null;
    hook.figures = null;
  }
}

const decimal = (value: number): string =>
  value.toLocaleString(language(), { minimumFractionDigits: 1, maximumFractionDigits: 1 });

/** A bitrate in words. */
const bitrate = (kbps: number): string =>
  kbps >= 1000 ? say("show.mbps", { mbps: decimal(kbps / 1000) }) : say("show.kbps", { kbps });

/** By how much one half is closer to the clip than the other, by their PSNR in dB. */
function compared(plain: number, rebuilt: number): string {
  const gain = rebuilt - plain;
  const values = { gain: decimal(Math.abs(gain)), rebuilt: decimal(rebuilt), plain: decimal(plain) };
  return say(gain >= 0 ? "show.closer" : "show.further", values);
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** The page. */
class Page {
  readonly video = new WindlassVideo();
  readonly stage = make("div", { class: "scene" }, this.video);
  readonly loupe = make("div", { class: "loupe-place" });
  private readonly sent = make("p", { class: "sent" }, words("show.starting"));
  private readonly seen = make("p", { class: "seen" });
  private readonly problem = make("div", { class: "problem", role: "alert", hidden: true });
  private readonly uplink = make("output", { for: "uplink" });
  private readonly slider = make("input", {
    id: "uplink",
    type: "range",
    min: "0",
    max: String(UPLINKS.length - 1),
    step: "1",
    value: String(UPLINKS.indexOf(FIRST)),
  });
  private readonly sway = new Sway(this.video, matchMedia("(prefers-reduced-motion: reduce)").matches);
  private scene: SceneName = "person";
  private running: Running | null = null;
  private starting: Promise<void> = Promise.resolve();

  constructor() {
    this.video.view = "split";
    this.video.toggleAttribute("fixed-size", true);
    write(this.video, words("show.title"), "name");
    write(this.video, words("show.divider"), "divider-label");
    this.video.append(
      make("span", { slot: "left" }, words("show.plain")),
      make("span", { slot: "right" }, words("show.rebuilt")),
    );
    this.slider.oninput = () => {
      this.sayUplink();
      this.running?.limit(this.kbps);
    };
    this.sayUplink();
    (document.getElementById("app") as HTMLElement).append(this.lay());
    this.start();
  }

  /** Shows the figures of the last moment. */
  tell(figures: Figures): void {
    hook.figures = figures;
    const { sentKbps, plain, rebuilt } = figures;
    this.sway.begin();
    if (sentKbps !== null) this.sent.textContent = say("show.sending", { kbps: Math.round(sentKbps) });
    const reason = this.video.getAttribute("reason");
    const { width, height } = this.video.pictureSize;
    const size = width > 0 ? say("show.size", { width, height }) : "";
    if (plain !== null && rebuilt !== null) this.seen.textContent = `${compared(plain, rebuilt)} ${size}`;
    else this.seen.textContent = reason === "fills" ? say("show.whole") : size;
  }

  /** Says why nothing is shown. */
  fail(error: unknown): void {
    const { message, hint } = error instanceof WindlassError ? saidOf(error) : { message: messageOf(error), hint: "" };
    hook.failure = message;
    const again = make("button", { class: "primary", type: "button" }, words("show.again"));
    again.onclick = () => this.start();
    this.problem.replaceChildren(
      make("p", {}, make("strong", {}, words("show.failed")), ` ${message} ${hint}`),
      make(
        "p",
        { class: "actions" },
        again,
        make("a", { class: "secondary", href: `check${location.hash}` }, words("show.check")),
      ),
    );
    this.problem.hidden = false;
  }

  private get kbps(): number {
    return UPLINKS[Number(this.slider.value)] ?? FIRST;
  }

  private sayUplink(): void {
    const text = bitrate(this.kbps);
    this.uplink.textContent = text;
    this.slider.setAttribute("aria-valuetext", text);
  }

  /** Sends the chosen scene instead of what is sent now. */
  private start(): void {
    this.problem.hidden = true;
    hook.failure = null;
    this.sent.textContent = say("show.starting");
    this.seen.textContent = "";
    // One after the other: the last choice stays.
    this.starting = this.starting.then(async () => {
      this.running?.close();
      this.running = null;
      try {
        this.running = await Running.start(this, this.scene, this.kbps);
      } catch (error) {
        this.fail(error);
      }
    });
  }

  private lay(): HTMLElement {
    const choice = (scene: SceneName, label: Words) => {
      const input = make("input", { type: "radio", name: "scene", value: scene, checked: scene === this.scene });
      input.onchange = () => {
        this.scene = scene;
        this.start();
      };
      return make("label", {}, input, make("span", {}, label));
    };
    const segments = make(
      "div",
      { class: "segments" },
      choice("person", words("show.person")),
      choice("text", words("show.text")),
    );
    const credit = make(
      "p",
      { class: "fine" },
      words("show.credit"),
      " ",
      make("a", { href: "https://creativecommons.org/licenses/by/4.0/" }, words("show.licence")),
      words("show.changed"),
    );
    return make(
      "main",
      { class: "show" },
      make("header", {}, brand(), make("a", { class: "quiet", href: "./" }, words("to.calls"))),
      make("h1", {}, words("show.title")),
      make("p", { class: "lead" }, words("show.lead")),
      this.problem,
      this.stage,
      make(
        "div",
        { class: "below" },
        make(
          "section",
          { class: "card controls" },
          make("div", { class: "said" }, this.sent, this.seen),
          make("label", { class: "uplink", for: "uplink" }, make("span", {}, words("show.uplink")), this.uplink),
          this.slider,
          make("p", { class: "fine" }, words("show.uplink.hint")),
          make("fieldset", {}, make("legend", {}, words("show.clips")), segments),
          make("p", { class: "fine" }, words("show.text.how")),
          make("p", { class: "fine" }, words("show.measure")),
          make("p", { class: "fine" }, words("show.worth")),
        ),
        make(
          "section",
          { class: "card" },
          make("h2", {}, words("show.loupe")),
          this.loupe,
          make("p", { class: "fine" }, words("show.loupe.hint")),
        ),
      ),
      credit,
    );
  }
}

setLanguage(languageOf(new URL(location.href)));
document.title = say("show.tab");
new Page();
