/** A cap that the page sets on what is sent, as a narrower link would: congestion control plans with no more. */

/**
 * The server's answer with the cap, kbit/s, on every video; null: without one. (RFC 8866 §5.8: `b=AS` in a received
 * description limits what is sent to its maker. Chromium has one limit for all, that of the section that changed last: so
 * those of received videos have it too, where it means nothing else.)
 */
export function capUplink(answer: string, kbps: number | null): string {
  if (kbps === null) return answer;
  const sections = answer.split(/^(?=m=)/m);
  return sections
    .map((section) => {
      if (!section.startsWith("m=video")) return section;
      // After the section's connection data, before its attributes (RFC 8866 §5).
      return section.replace(/^(?=a=)/m, `b=AS:${Math.max(1, Math.round(kbps))}\r\n`);
    })
    .join("");
}
