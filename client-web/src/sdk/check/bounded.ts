/** A bound on the time of a probe, and on its failures. */
import { WindlassError } from "../errors.js";
import { type Finding, TEXTS } from "./texts.js";

/** The finding of `probe`, or after `ms` that of `late`. Never rejects. */
export async function bounded(
  probe: () => Promise<Finding>,
  ms: number,
  late: () => Finding = TEXTS.late,
): Promise<Finding> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const bound = new Promise<Finding>((resolve) => {
    timer = setTimeout(() => resolve(late()), ms);
  });
  try {
    return await Promise.race([probe(), bound]);
  } catch (error) {
    if (error instanceof WindlassError) return TEXTS.refuses(error.message, error.hint);
    return TEXTS.broken(String((error as Error | undefined)?.message ?? error));
  } finally {
    clearTimeout(timer);
  }
}
