/**
 * Camera pictures in three planes. RGB (a shared screen, a canvas) is converted as Chromium does it for its encoders.
 */

/** The samples of one plane: that of column `x` in row `y` is at `offset + y * stride + x * step`. */
export interface Plane {
  data: Uint8Array;
  offset: number;
  stride: number;
  step: number;
}

/** I420: luma, and U and V of half the width and height, rounded up. */
export interface Picture {
  planes: [Plane, Plane, Plane];
  width: number;
  height: number;
}

/** A picture of four bytes per pixel; `order`: the indices of red, green and blue. */
export interface Rgb {
  data: Uint8Array;
  offset: number;
  stride: number;
  order: readonly [number, number, number];
  width: number;
  height: number;
}

const half = (size: number): number => (size + 1) >> 1;

/** Converts to BT.601, limited range, as libyuv does: chroma is of the mean of four pixels. */
export function pictureOfRgb({ data, offset, stride, order, width, height }: Rgb): Picture {
  const columns = half(width);
  const y = new Uint8Array(width * height);
  const u = new Uint8Array(columns * half(height));
  const v = new Uint8Array(u.length);
  const at = (row: number, column: number): number =>
    offset + Math.min(row, height - 1) * stride + Math.min(column, width - 1) * 4;
  const sample = (pixel: number, colour: number): number => data[pixel + colour] ?? 0;
  const [r, g, b] = order;
  for (let row = 0; row < height; row++) {
    for (let column = 0; column < width; column++) {
      const pixel = at(row, column);
      y[row * width + column] = (66 * sample(pixel, r) + 129 * sample(pixel, g) + 25 * sample(pixel, b) + 0x1080) >> 8;
    }
  }
  for (let row = 0; row < half(height); row++) {
    for (let column = 0; column < columns; column++) {
      const [p, q] = [at(2 * row, 2 * column), at(2 * row, 2 * column + 1)];
      const [s, t] = [at(2 * row + 1, 2 * column), at(2 * row + 1, 2 * column + 1)];
      const mean = (colour: number): number =>
        (sample(p, colour) + sample(q, colour) + sample(s, colour) + sample(t, colour) + 2) >> 2;
      const [red, green, blue] = [mean(r), mean(g), mean(b)];
      u[row * columns + column] = (112 * blue - 74 * green - 38 * red + 0x8080) >> 8;
      v[row * columns + column] = (112 * red - 94 * green - 18 * blue + 0x8080) >> 8;
    }
  }
  const plane = (data: Uint8Array, stride: number): Plane => ({ data, offset: 0, stride, step: 1 });
  return { planes: [plane(y, width), plane(u, columns), plane(v, columns)], width, height };
}

/** The indices of red, green and blue by pixel format. */
const ORDERS: Partial<Record<VideoPixelFormat, readonly [number, number, number]>> = {
  RGBA: [0, 1, 2],
  RGBX: [0, 1, 2],
  BGRA: [2, 1, 0],
  BGRX: [2, 1, 0],
};

/** The picture of a camera frame; null where its pixel format is not supported. */
export async function pictureOf(frame: VideoFrame): Promise<Picture | null> {
  const { format, visibleRect } = frame;
  const order = format === null ? undefined : ORDERS[format];
  if ((format !== "I420" && format !== "NV12" && order === undefined) || visibleRect === null) return null;
  const { width, height } = visibleRect;
  const data = new Uint8Array(frame.allocationSize());
  const [first, second, third] = await frame.copyTo(data);
  if (first === undefined) return null;
  if (order !== undefined) return pictureOfRgb({ data, ...first, order, width, height });
  if (second === undefined) return null;
  const y = { data, ...first, step: 1 };
  if (third !== undefined)
    return { planes: [y, { data, ...second, step: 1 }, { data, ...third, step: 1 }], width, height };
  const u = { data, ...second, step: 2 };
  return { planes: [y, u, { ...u, offset: u.offset + 1 }], width, height };
}

/** Packs the planes of a picture one after the other, without gaps. */
export function pack({ planes, width, height }: Picture, to: Uint8Array): void {
  let end = 0;
  planes.forEach(({ data, offset, stride, step }, n) => {
    const [columns, rows] = n === 0 ? [width, height] : [half(width), half(height)];
    for (let row = 0; row < rows; row++, end += columns) {
      const from = offset + row * stride;
      if (step === 1) to.set(data.subarray(from, from + columns), end);
      else for (let column = 0; column < columns; column++) to[end + column] = data[from + column * step] ?? 0;
    }
  });
}

/** The size of a packed picture, bytes. */
export const packedBytes = (width: number, height: number): number => width * height + 2 * half(width) * half(height);
