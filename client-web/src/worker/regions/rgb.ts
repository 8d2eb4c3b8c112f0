/** The luma of a shared screen or a canvas, by the sum that Chromium's own encoders are fed by. Pure. */
import type { Luma } from "./mosaic.js";

/** Four bytes a pixel; `order`: where red, green and blue are among them. */
export interface Rgb extends Luma {
  order: readonly [number, number, number];
}

/** BT.601, limited range, as libyuv has it. */
export function lumaOfRgb({ data, offset, stride, order: [r, g, b], width, height }: Rgb): Luma {
  const y = new Uint8Array(width * height);
  const sample = (at: number): number => data[at] ?? 0;
  for (let row = 0; row < height; row++) {
    for (let column = 0; column < width; column++) {
      const at = offset + row * stride + column * 4;
      y[row * width + column] = (66 * sample(at + r) + 129 * sample(at + g) + 25 * sample(at + b) + 0x1080) >> 8;
    }
  }
  return { data: y, offset: 0, stride: width, width, height };
}
