/** The demo page: the start screen, the call, and the screen after a call or a failure. */
import { EnhancedTrack, join, type Room, type TrackStats, WindlassError } from "../sdk/index.js";
import { CallScreen } from "./call.js";
import { brand, icon, make } from "./dom.js";
import { pageOptions } from "./options.js";
import { type Choice, StartScreen } from "./start.js";

const options = pageOptions(new URL(location.href));
const app = document.getElementById("app") as HTMLElement;

/** `window.windlass`: the state of the page, for tests and the console. */
interface PageHook {
  phase: "start" | "joining" | "waiting" | "call" | "over";
  /** The call; null outside one. */
  room: Room | null;
  /** Why the last attempt failed or the call ended. */
  failure: { code: string; message: string; hint: string } | null;
  /** The remote video tracks; in a loopback room the own one. */
  remoteVideos(): EnhancedTrack[];
  /** The latest statistics by track id. */
  stats(): Record<string, TrackStats | null>;
}

const hook: PageHook = {
  phase: "start",
  room: null,
  failure: null,
  remoteVideos: () => (hook.room?.tracks ?? []).filter((track) => track instanceof EnhancedTrack),
  stats: () => Object.fromEntries(hook.remoteVideos().map((track) => [track.id, track.stats])),
};
Object.assign(window, { windlass: hook });

const TITLES: Partial<Record<WindlassError["code"], string>> = {
  left: "You have left the call",
  unauthorized: "This call needs an invitation",
  token_expired: "The invitation has expired",
  forbidden: "The invitation is for something else",
  replaced: "You have joined from elsewhere",
  removed: "You were removed from the call",
  banned: "You are banned from this call",
  revoked: "The invitation was taken back",
  refused: "You were not let in",
  locked: "The call is locked",
  room_full: "The room is full",
  server_full: "The server is full",
  no_codec: "This browser cannot join",
  unreachable: "The server does not answer",
  connection_lost: "The connection is gone",
  media_failed: "Audio and video cannot get through",
  shutting_down: "The server is going down",
  unsupported_version: "This page is out of date",
};

function failed(error: unknown): WindlassError {
  const reason =
    error instanceof WindlassError ? error : new WindlassError("internal", String(error), "Reload the page.");
  hook.failure = { code: reason.code, message: reason.message, hint: reason.hint };
  return reason;
}

function showStart(): StartScreen {
  hook.phase = "start";
  const screen = new StartScreen(options, async (choice) => {
    hook.phase = "joining";
    hook.failure = null;
    try {
      await enter(choice);
    } catch (error) {
      const reason = failed(error);
      hook.phase = "start";
      app.replaceChildren(screen.element);
      const title = TITLES[reason.code];
      const uninvited = reason.code === "unauthorized" && options.token === null;
      const hint = uninvited ? invitation(choice.room) : reason.hint;
      screen.fail(title === undefined ? reason.message : `${title}.`, hint);
    }
  });
  app.replaceChildren(screen.element);
  document.title = "Windlass";
  return screen;
}

/** The hint where a token is missing. */
function invitation(room: string): string {
  const page = location.origin + location.pathname.replace(/\/$/, "");
  return (
    "Open the link that you were sent: it ends with an access token. " +
    `Who runs the server makes such links there: windlass token --key KEY --room ${room} --identity NAME --page ${page}`
  );
}

async function enter(choice: Choice): Promise<void> {
  const { room: name, loopback } = choice;
  const { token } = options;
  const attempt = new AbortController();
  const room = await join(location.href, {
    waiting: () => showWaiting(attempt),
    signal: attempt.signal,
    // A token may be for its room only; the name of a loopback room does not matter.
    room: loopback && token === null ? `alone-${crypto.randomUUID().slice(0, 12)}` : name,
    name: choice.name,
    loopback,
    output: options.output,
    maxNetwork: options.maxNetwork,
    networkBackend: options.networkBackend,
    ...(token === null ? {} : { token }),
  });
  hook.room = room;
  hook.phase = "call";
  if (!loopback) history.replaceState(null, "", linkTo(name));
  const screen = new CallScreen(room, choice, options, (reason) => {
    screen.close();
    choice.source?.stop();
    hook.room = null;
    showOver(failed(reason), choice);
  });
  app.replaceChildren(screen.element);
  document.title = `${loopback ? "Just you" : name} – Windlass`;
  // The room's events report a failure to send; the call continues.
  await screen.publish().catch(() => undefined);
}

/** Shows that a moderator must admit this participant. The screen of a running call has its own banner for that. */
function showWaiting(attempt: AbortController): void {
  if (hook.phase !== "joining") return;
  hook.phase = "waiting";
  const cancel = make("button", { class: "secondary", type: "button" }, "Do not wait");
  cancel.onclick = () => attempt.abort();
  app.replaceChildren(
    make(
      "main",
      { class: "over calm" },
      brand(),
      make(
        "div",
        { class: "card" },
        make("span", { class: "spinner", "aria-hidden": "true" }),
        make("h1", {}, "Waiting to be let in"),
        make(
          "p",
          { role: "status" },
          "Somebody in the call sees that you wait. Nothing of you is sent until they let you in.",
        ),
        make("div", { class: "actions" }, cancel),
      ),
    ),
  );
}

/** The URL of the call with the other options of the page, but without the token: people share URLs. */
function linkTo(room: string): string {
  const url = new URL(location.href);
  url.searchParams.set("room", room);
  url.searchParams.delete("token");
  url.hash = "";
  return url.href;
}

function showOver(reason: WindlassError, choice: Choice): void {
  hook.phase = "over";
  const again = make("button", { class: "primary", type: "button" }, "Join again");
  again.onclick = () => void showStart().join(choice.loopback);
  const back = make("button", { class: "secondary", type: "button" }, "Back to the start");
  back.onclick = () => showStart();
  const kind = reason.code === "left" ? "calm" : "trouble";
  const title = TITLES[reason.code] ?? "The call has ended";
  const redundant = kind === "calm" || `${title}.` === reason.message;
  app.replaceChildren(
    make(
      "main",
      { class: `over ${kind}` },
      brand(),
      make(
        "div",
        { class: "card" },
        icon(kind === "calm" ? "leave" : "alert"),
        make("h1", {}, title),
        make("p", { role: "alert" }, redundant ? reason.hint : `${reason.message} ${reason.hint}`),
        make("div", { class: "actions" }, again, back),
      ),
    ),
  );
  again.focus();
}

// A link with another token may differ in its fragment only, for which browsers do not reload a page.
addEventListener("hashchange", () => {
  if (hook.phase !== "call") location.reload();
});

const start = showStart();
if (options.auto) void start.join(options.loopback);
