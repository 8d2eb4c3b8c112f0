/** The report that people send to who helps them. It holds no token, and nothing of what camera and microphone saw. */
import type { CheckResult } from "../sdk/index.js";

/** Where and when the check was run. */
export interface ReportContext {
  server: string;
  browser: string;
  at: Date;
}

/** The report as text. */
export function reportText(results: readonly CheckResult[], { server, browser, at }: ReportContext): string {
  const lines = results.flatMap(({ name, outcome, detail, advice }) => [
    `${outcome.padEnd(7)}  ${name.padEnd(10)}  ${detail}`,
    ...(advice === "" ? [] : [`${" ".repeat(21)}→ ${advice}`]),
  ]);
  return [`Windlass check of ${server}`, at.toISOString(), browser, "", ...lines, ""].join("\n");
}
