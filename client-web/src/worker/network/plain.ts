/** What a frame network must give, by plain loops in f64: what backends are held to. */
import type { Plane } from "./backend.js";
import { MAX_ACTIVATION, type Network } from "./file.js";

type Planes = Float64Array[];

function folded(scale: number, low: Plane, high: Plane): Planes {
  const at = (plane: Plane, x: number, y: number): number => (plane.bytes[y * plane.stride + x] as number) / 255 - 0.5;
  const planes = [new Float64Array(low.width * low.height)];
  for (let phase = 0; phase < scale ** 2; phase++) planes.push(new Float64Array(low.width * low.height));
  for (let y = 0; y < low.height; y++) {
    for (let x = 0; x < low.width; x++) {
      for (const [n, plane] of planes.entries()) {
        const [dx, dy] = [(n - 1) % scale, Math.floor((n - 1) / scale)];
        plane[y * low.width + x] = n === 0 ? at(low, x, y) : at(high, scale * x + dx, scale * y + dy);
      }
    }
  }
  return planes;
}

function convolved(layer: Network["layers"][number], planes: Planes, width: number, height: number): Planes {
  return Array.from(layer.bias, (bias, o) => {
    const out = new Float64Array(width * height).fill(bias);
    for (const [i, plane] of planes.entries()) {
      for (let tap = 0; tap < 9; tap++) {
        const weight = layer.weight[(o * layer.inputs + i) * 9 + tap] as number;
        const [dx, dy] = [(tap % 3) - 1, Math.floor(tap / 3) - 1];
        for (let y = Math.max(0, -dy); y < height - Math.max(0, dy); y++)
          for (let x = Math.max(0, -dx); x < width - Math.max(0, dx); x++)
            out[y * width + x] = (out[y * width + x] as number) + weight * (plane[(y + dy) * width + x + dx] as number);
      }
    }
    return out;
  });
}

/** The residual in grey levels, row after row without gaps. */
export function residualOf({ scale, layers }: Network, low: Plane, high: Plane): Float64Array {
  const { width, height } = low;
  let planes = folded(scale, low, high);
  for (const [n, layer] of layers.entries()) {
    planes = convolved(layer, planes, width, height);
    if (n + 1 < layers.length)
      planes = planes.map((plane) => plane.map((v) => Math.min(MAX_ACTIVATION, Math.max(0, v))));
  }
  const out = new Float64Array(scale ** 2 * width * height);
  for (let y = 0; y < scale * height; y++)
    for (let x = 0; x < scale * width; x++) {
      const phase = planes[scale * (y % scale) + (x % scale)] as Float64Array;
      out[y * scale * width + x] = phase[Math.floor(y / scale) * width + Math.floor(x / scale)] as number;
    }
  return out;
}

/** Samples that are further than rounding and `tolerance` from the high picture with a residual. */
export function wrongSamples(out: Plane, high: Plane, residual: ArrayLike<number>, tolerance: number): number {
  let wrong = 0;
  for (let y = 0; y < high.height; y++)
    for (let x = 0; x < high.width; x++) {
      const sample = (high.bytes[y * high.stride + x] as number) + (residual[y * high.width + x] as number);
      const exact = Math.min(255, Math.max(0, sample));
      if (Math.abs((out.bytes[y * out.stride + x] as number) - exact) > 0.5 + tolerance) wrong++;
    }
  return wrong;
}
