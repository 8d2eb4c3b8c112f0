/** The page `/check`: what a call needs, part by part, with what to do where something fails. It joins no call. */
import { brand, type IconName, icon, make } from "../demo/dom.js";
import { say, setLanguage, words, write } from "../demo/language.js";
import { languageOf } from "../demo/preferences.js";
import { CHECK_TITLES, type CheckName, type CheckResult, check } from "../sdk/index.js";
import { reportText } from "./report.js";
import { summaryOf } from "./summary.js";

setLanguage(languageOf(new URL(location.href)));
document.title = say("check.tab");

/** `window.windlassCheck`: the state of the page, for tests and the console. */
const hook: { done: boolean; results: CheckResult[] } = { done: false, results: [] };
Object.assign(window, { windlassCheck: hook });

const ICONS: Record<CheckResult["outcome"], IconName> = { ok: "check", failed: "alert", skipped: "skip" };

const rows = new Map<CheckName, HTMLElement>();
const summary = make("p", { class: "summary", role: "status" }, words("check.running"));
const again = make("button", { class: "secondary", type: "button" }, words("check.again"));
const copy = make("button", { class: "primary", type: "button" }, words("check.copy"));
const report = make("textarea", { class: "report", readOnly: true, hidden: true, rows: 14 });
write(report, words("check.report"), "aria-label");
const list = make("ol", { class: "parts-list" });

/** The access token, and its room: as on the page of calls. */
function access(): { token?: string; room?: string } {
  const query = new URL(location.href).searchParams;
  const fragment = new URLSearchParams(location.hash.slice(1));
  const token = fragment.get("token") ?? query.get("token");
  const room = fragment.get("room") ?? query.get("room");
  return { ...(token === null ? {} : { token }), ...(room === null ? {} : { room }) };
}

function row(name: CheckName): HTMLElement {
  const element = make(
    "li",
    { class: "part waiting" },
    make("span", { class: "mark", "aria-hidden": "true" }),
    make(
      "div",
      { class: "what" },
      make("h2", {}, words(`check.part.${name}`)),
      make("p", { class: "detail" }, words("check.waiting")),
    ),
  );
  element.dataset["part"] = name;
  rows.set(name, element);
  return element;
}

function show(result: CheckResult): void {
  const element = rows.get(result.name);
  if (element === undefined) return;
  element.className = `part ${result.outcome}`;
  element.querySelector(".mark")?.replaceChildren(icon(ICONS[result.outcome]));
  element
    .querySelector(".what")
    // The findings are the SDK's, which speaks English.
    ?.replaceChildren(
      make(
        "h2",
        {},
        words(`check.part.${result.name}`),
        make("span", { class: "sr" }, words("check.outcome", { outcome: words(`check.outcome.${result.outcome}`) })),
      ),
      make("p", { class: "detail", lang: "en" }, result.detail),
      ...(result.advice === "" ? [] : [make("p", { class: "advice", lang: "en" }, result.advice)]),
    );
}

async function run(): Promise<void> {
  hook.done = false;
  hook.results = [];
  again.disabled = true;
  copy.disabled = true;
  report.hidden = true;
  write(summary, words("check.running"));
  list.replaceChildren(...(Object.keys(CHECK_TITLES) as CheckName[]).map(row));
  for await (const result of check(location.href, access())) {
    hook.results.push(result);
    show(result);
  }
  write(summary, summaryOf(hook.results));
  again.disabled = false;
  copy.disabled = false;
  hook.done = true;
}

async function copyReport(): Promise<void> {
  report.value = reportText(hook.results, { server: location.origin, browser: navigator.userAgent, at: new Date() });
  try {
    await navigator.clipboard.writeText(report.value);
    write(copy, words("check.copied"));
  } catch {
    // No clipboard without https, or it was denied: the person copies it from the field.
    write(copy, words("check.select"));
    report.hidden = false;
    report.focus();
    report.select();
  }
  setTimeout(() => {
    write(copy, words("check.copy"));
  }, 4000);
}

again.onclick = () => void run();
copy.onclick = () => void copyReport();

const app = document.getElementById("app") as HTMLElement;
app.append(
  make(
    "main",
    { class: "check" },
    brand(),
    make("h1", {}, words("check.title")),
    make("p", { class: "lead" }, words("check.lead")),
    make("div", { class: "card" }, summary, list, make("div", { class: "actions" }, copy, again), report),
    make("p", { class: "fine" }, make("a", { href: "./" }, words("to.calls"))),
  ),
);
void run();
