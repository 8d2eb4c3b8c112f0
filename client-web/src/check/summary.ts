/** What the page `/check` says of all its results together. */
import { type Words, words } from "../demo/language.js";
import type { CheckResult } from "../sdk/index.js";

/** The sentence that sums up all results of the check. */
export function summaryOf(results: readonly Pick<CheckResult, "name" | "outcome">[]): Words {
  const count = results.filter(({ outcome }) => outcome === "failed").length;
  if (count === 0) return words("check.all");
  const failed = count === 1 ? words("check.one") : words("check.some", { count });
  const worked = (name: CheckResult["name"]) => results.some((r) => r.name === name && r.outcome === "ok");
  return words(worked("udp") || worked("tcp") || worked("turn") ? "check.possible" : "check.impossible", { failed });
}
