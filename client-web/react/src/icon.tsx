/** Small pictures on buttons, beside words that say the same. */
import type { ReactNode } from "react";

const PATHS = {
  microphone: "M12 3a3 3 0 0 1 3 3v5a3 3 0 0 1-6 0V6a3 3 0 0 1 3-3M6 11a6 6 0 0 0 12 0M12 17v4",
  camera: "M4 7h10a1 1 0 0 1 1 1v8a1 1 0 0 1-1 1H4a1 1 0 0 1-1-1V8a1 1 0 0 1 1-1M15 11l6-3v8l-6-3",
  screen: "M4 5h16a1 1 0 0 1 1 1v10a1 1 0 0 1-1 1H4a1 1 0 0 1-1-1V6a1 1 0 0 1 1-1M8 21h8M12 14V8M9 11l3-3 3 3",
  devices: "M4 8h8M18 8h2M4 16h2M12 16h8M15 5v6M9 13v6",
  leave: "M10 4H5v16h5M14 8l4 4-4 4M18 12H9",
} as const;

/** `off`: crossed out. */
export function Icon({ name, off = false }: { name: keyof typeof PATHS; off?: boolean }): ReactNode {
  return (
    <svg className="windlass-icon" viewBox="0 0 24 24" aria-hidden="true">
      <path d={PATHS[name]} />
      {off ? <path d="M4 4l16 16" /> : null}
    </svg>
  );
}
