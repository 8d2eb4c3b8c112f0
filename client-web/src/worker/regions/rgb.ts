/** Pictures of a shared screen or a canvas as luma and chroma, by the sums that Chromium's own encoders are fed by. Pure. */
import type { Picture } from "./mosaic.js";

/** Four bytes a pixel; `order`: where red, green and blue are among them. */
export interface Rgb {
  data: Uint8Array;
  offset: number;
  stride: number;
  order: readonly [number, number, number];
  width: number;
  height: number;
}

/** BT.601, limited range, as libyuv has it; a chroma sample is of the mean of its four pixels. */
export function fromRgb({ data, offset, stride, order: [r, g, b], width, height }: Rgb): Picture {
  const half = { width: Math.ceil(width / 2), height: Math.ceil(height / 2) };
  const y = new Uint8Array(width * height);
  const u = new Uint8Array(half.width * half.height);
  const v = new Uint8Array(half.width * half.height);
  const sample = (at: number): number => data[at] ?? 0;
  for (let row = 0; row < height; row++) {
    for (let column = 0; column < width; column++) {
      const at = offset + row * stride + column * 4;
      y[row * width + column] = (66 * sample(at + r) + 129 * sample(at + g) + 25 * sample(at + b) + 0x1080) >> 8;
    }
  }
  for (let row = 0; row < half.height; row++) {
    const above = offset + 2 * row * stride;
    const below = offset + Math.min(2 * row + 1, height - 1) * stride;
    for (let column = 0; column < half.width; column++) {
      const [left, right] = [8 * column, 4 * Math.min(2 * column + 1, width - 1)];
      const mean = (c: number) =>
        (sample(above + left + c) +
          sample(above + right + c) +
          sample(below + left + c) +
          sample(below + right + c) +
          2) >>
        2;
      const [red, green, blue] = [mean(r), mean(g), mean(b)];
      u[row * half.width + column] = (112 * blue - 74 * green - 38 * red + 0x8080) >> 8;
      v[row * half.width + column] = (112 * red - 94 * green - 18 * blue + 0x8080) >> 8;
    }
  }
  const chroma = { offset: 0, stride: half.width, step: 1, ...half };
  return [
    { data: y, offset: 0, stride: width, step: 1, width, height },
    { data: u, ...chroma },
    { data: v, ...chroma },
  ];
}
