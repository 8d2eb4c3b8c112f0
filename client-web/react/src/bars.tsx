/** How well somebody's connection works, as three bars. */
import type { ReactNode } from "react";
import type { ConnectionQuality } from "windlass-client";

const TEXTS: Readonly<Record<ConnectionQuality, string>> = {
  good: "Good connection",
  fair: "Fair connection",
  poor: "Bad connection",
  lost: "No connection",
};

/** Nothing, where the quality is not known. */
export function Bars({ quality }: { quality: ConnectionQuality | null }): ReactNode {
  if (quality === null) return null;
  const text = TEXTS[quality];
  return (
    <span className="windlass-bars" data-quality={quality} role="img" aria-label={text} title={text}>
      <span />
      <span />
      <span />
    </span>
  );
}
