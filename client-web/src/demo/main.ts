/** The demo page: the start screen, the call, and the screen after a call or a failure. */
import { join, RemoteVideoTrack, type Room, type TrackStats, WindlassError } from "../sdk/index.js";
import { CallScreen } from "./call.js";
import { saidOf, titleOf } from "./failure.js";
import { say, setLanguage, words } from "./language.js";
import { keyFragment, type PageOptions, pageOptions } from "./options.js";
import { overScreen, waitingScreen } from "./over.js";
import { languageOf } from "./preferences.js";
import { type Choice, StartScreen } from "./start.js";
import { TabToken } from "./token.js";

const options = pageOptions(new URL(location.href));
/** The fragment with the key of encryption, which a later address may lack. */
const key = keyFragment(new URL(location.href));
setLanguage(languageOf(new URL(location.href)));
const token = new TabToken(tabStore(), options.room, options.token);
const app = document.getElementById("app") as HTMLElement;

/** `window.windlass`: the state of the page, for tests and the console. */
interface PageHook {
  phase: "start" | "joining" | "waiting" | "call" | "over";
  /** The call; null outside one. */
  room: Room | null;
  /** Why the last attempt failed or the call ended. */
  failure: { code: string; message: string; hint: string } | null;
  /** The remote video tracks; in a loopback room the own one. */
  remoteVideos(): RemoteVideoTrack[];
  /** The latest statistics by track id. */
  stats(): Record<string, TrackStats | null>;
}

const hook: PageHook = {
  phase: "start",
  room: null,
  failure: null,
  remoteVideos: () => (hook.room?.tracks ?? []).filter((track) => track instanceof RemoteVideoTrack),
  stats: () => Object.fromEntries(hook.remoteVideos().map((track) => [track.id, track.stats])),
};
Object.assign(window, { windlass: hook });

/** The call that runs. */
let running: { screen: CallScreen; room: string } | null = null;

function failed(error: unknown): WindlassError {
  const reason =
    error instanceof WindlassError ? error : new WindlassError("internal", String(error), say("failure.reload"));
  hook.failure = { code: reason.code, message: reason.message, hint: reason.hint };
  return reason;
}

/** `former`: what was chosen for the call that is over: who was muted there does not begin to send. */
function showStart(former?: Choice): StartScreen {
  hook.phase = "start";
  const screen = new StartScreen(former === undefined ? options : as(former), former, async (choice) => {
    hook.phase = "joining";
    hook.failure = null;
    try {
      await enter(choice);
    } catch (error) {
      const reason = failed(error);
      hook.phase = "start";
      app.replaceChildren(screen.element);
      const title = titleOf(reason.code);
      const { message, hint } = saidOf(reason);
      const uninvited = reason.code === "unauthorized" && token.current === null;
      screen.fail(title === null ? message : `${title}.`, uninvited ? invitation(choice.room) : hint);
    }
  });
  app.replaceChildren(screen.element);
  document.title = say("product");
  return screen;
}

/** The options of the page with what was chosen for a call. */
function as({ room, name, layers, stills, loopback, ready: { origin } }: Choice): PageOptions {
  const source = origin === "none" ? "none" : "camera";
  return { ...options, auto: true, layers, source, detail: stills, ...(loopback ? {} : { room, name }) };
}

/** The hint where a token is missing. */
function invitation(room: string): string {
  const page = location.origin + location.pathname.replace(/\/$/, "");
  return say("token.none", { command: `windlass token --key KEY --room ${room} --identity NAME --page ${page}` });
}

async function enter(choice: Choice): Promise<void> {
  const { room: name, loopback } = choice;
  const attempt = new AbortController();
  const room = await join(location.href, {
    waiting: () => showWaiting(attempt),
    signal: attempt.signal,
    // A token may be for its room only; the name of a loopback room does not matter.
    room: loopback && token.current === null ? `alone-${crypto.randomUUID().slice(0, 12)}` : name,
    name: choice.name,
    loopback,
    output: options.output,
    maxNetwork: options.maxNetwork,
    networkBackend: options.networkBackend,
    // At each attempt to connect the newest.
    ...(token.current === null ? {} : { token: () => token.current ?? "" }),
    ...(options.key === null ? {} : { encryption: { key: options.key } }),
  });
  hook.room = room;
  hook.phase = "call";
  if (!loopback) {
    token.keep(name);
    history.replaceState(null, "", linkTo(name));
  }
  const screen = new CallScreen(room, choice, options, (reason) => {
    screen.close();
    hook.room = null;
    running = null;
    showOver(failed(reason), choice);
  });
  running = { screen, room: name };
  app.replaceChildren(screen.element);
  document.title = say("title", { room: loopback ? words("alone") : name });
  await screen.begin();
}

/** Shows that a moderator must admit this participant. The screen of a running call has its own banner for that. */
function showWaiting(attempt: AbortController): void {
  if (hook.phase !== "joining") return;
  hook.phase = "waiting";
  app.replaceChildren(waitingScreen(() => attempt.abort()));
}

/** The URL of the call with the other options of the page, but without the token: people share URLs. */
function linkTo(room: string): string {
  const url = new URL(location.href);
  url.searchParams.set("room", room);
  url.searchParams.delete("token");
  url.hash = key;
  return url.href;
}

function showOver(reason: WindlassError, choice: Choice): void {
  hook.phase = "over";
  const again = () => {
    const start = showStart(choice);
    // A file is chosen again: nobody expects the camera instead.
    if (choice.ready.origin !== "file") void start.join(choice.loopback);
  };
  app.replaceChildren(overScreen(reason, again, () => showStart(choice)));
}

/** Null where the browser keeps nothing for this page. */
function tabStore(): Storage | null {
  try {
    return sessionStorage;
  } catch {
    return null;
  }
}

// A link with another token may differ in its fragment only, for which browsers do not reload a page.
addEventListener("hashchange", () => {
  if (running === null) {
    location.reload();
    return;
  }
  const { screen, room } = running;
  const asked = pageOptions(new URL(location.pathname + location.hash, location.href));
  if (asked.token === null || (asked.room ?? room) !== room) return;
  token.keep(room, asked.token);
  history.replaceState(null, "", linkTo(room));
  screen.renewed();
});

const start = showStart();
if (options.auto) void start.join(options.loopback);
