/** The texts of the page `/check`; those of the parts are the SDK's (`sdk/check/texts.ts`). */
import type { CheckResult } from "../sdk/index.js";

export const PAGE = {
  title: "Will a call work here?",
  lead: "This page tries what a call needs. Your browser may ask for camera and microphone: both are closed again at once, and nothing of you is sent.",
  running: "Checking…",
  waiting: "waiting",
  outcomes: { ok: "works", failed: "does not work", skipped: "not tried" } satisfies Record<
    CheckResult["outcome"],
    string
  >,
  summary: (failures: number, results: readonly CheckResult[]): string => {
    if (failures === 0) return "Everything that could be tried works.";
    const worked = (name: CheckResult["name"]) => results.some((r) => r.name === name && r.outcome === "ok");
    const path = worked("udp") || worked("tcp") || worked("turn");
    const count = failures === 1 ? "One part does not work" : `${failures} parts do not work`;
    return path
      ? `${count}. You can call all the same; below is what to do.`
      : `${count}. No call is possible from here now; below is what to do.`;
  },
  copy: "Copy report",
  copied: "Copied",
  select: "Copy it from below",
  report: "Report",
  again: "Check again",
  toCall: "To the calls",
} as const;
