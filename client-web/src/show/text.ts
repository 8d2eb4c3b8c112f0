/**
 * A shared screen with small text: drawn here, so that nothing needs to be bundled. Lines are typed, and a cursor
 * blinks.
 */

export const TEXT_SIZE = { width: 1280, height: 720 };

const LINES: readonly string[] = [
  "Meeting notes, Thursday",
  "",
  "1  The half layer leads from about 100 kbit/s on; below that the quarter layer is sent alone.",
  "2  A still of the larger picture takes a few kilobytes, and serves until the picture moves.",
  "3  Nobody needs a graphics card: the browser rebuilds every frame in WebAssembly.",
  "4  If a frame is late, the plain picture is shown. Media never waits for what makes it better.",
  "",
  "  layer   size        up to         shown at",
  "  q       320 × 180   150 kbit/s    1280 × 720",
  "  h       640 × 360   500 kbit/s    1280 × 720",
  "  f       1280 × 720  1500 kbit/s   1280 × 720",
  "",
  "Open questions",
  "  – Which sizes do people read without effort? Ask three of them before Friday.",
  "  – Does the figure on page 4 need a second axis?",
  "  – Who tells the others when the link of the north office is narrow again?",
];
const TYPED: readonly string[] = [
  "  – Next meeting: Tuesday, 10:30, room 2.14. Bring the figures of last week.",
  "  – Until then: Ada asks the north office, Ben draws page 4 anew.",
];

const [LEFT, TOP, STEP] = [56, 64, 33];
const FONT = '21px ui-monospace, "Liberation Mono", "DejaVu Sans Mono", monospace';
const HEADING = '600 25px system-ui, "Liberation Sans", sans-serif';
/** Letters a second, and the pause before the lines begin again, seconds. */
const [LETTERS, PAUSE] = [4, 20];

/** Draws it as it is `seconds` after the start. */
export function drawText(context: CanvasRenderingContext2D, seconds: number): void {
  const { width, height } = TEXT_SIZE;
  context.fillStyle = "#fbfcfc";
  context.fillRect(0, 0, width, height);
  context.textBaseline = "alphabetic";
  LINES.forEach((line, i) => {
    context.font = i === 0 ? HEADING : FONT;
    context.fillStyle = line === "Open questions" || i === 0 ? "#0b5a66" : "#1b2a2f";
    context.fillText(line, LEFT, TOP + i * STEP);
  });
  const period = TYPED.join("").length / LETTERS + PAUSE;
  let left = Math.floor((seconds % period) * LETTERS);
  context.font = FONT;
  context.fillStyle = "#1b2a2f";
  for (const [i, line] of TYPED.entries()) {
    const typed = line.slice(0, left);
    const y = TOP + (LINES.length + i) * STEP;
    context.fillText(typed, LEFT, y);
    const here = left < line.length || i === TYPED.length - 1;
    if (here && seconds % 1 < 0.6) context.fillRect(LEFT + context.measureText(typed).width + 2, y - 18, 10, 22);
    if (here) return;
    left -= line.length;
  }
}
