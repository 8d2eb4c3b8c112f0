/**
 * How close a picture is to the clip that was sent. Pure.
 *
 * A received picture does not say which frame of the clip it is. So each is compared with the last frames that were
 * drawn, and the best of them counts: that is right for both halves, and hides no blur, as none of the frames is
 * blurred.
 */

/** Brightness, a byte a pixel. */
export type Luma = Uint8Array;

/** The brightness of RGBA pixels (BT.709). */
export function lumaOf(rgba: Uint8ClampedArray): Luma {
  const luma = new Uint8Array(rgba.length / 4);
  for (let i = 0; i < luma.length; i++) {
    const [r, g, b] = [rgba[4 * i] ?? 0, rgba[4 * i + 1] ?? 0, rgba[4 * i + 2] ?? 0];
    luma[i] = (54 * r + 183 * g + 19 * b + 128) >> 8;
  }
  return luma;
}

/** The mean squared error, of every `step`th pixel. */
export function squaredError(a: Luma, b: Luma, step = 1): number {
  let [sum, count] = [0, 0];
  for (let i = 0; i < a.length; i += step) {
    const difference = (a[i] ?? 0) - (b[i] ?? 0);
    sum += difference * difference;
    count++;
  }
  return sum / count;
}

/** A mean squared error as PSNR, dB. */
export const decibels = (error: number): number => 10 * Math.log10((255 * 255) / Math.max(error, 0.01));

/** Step of the pixels by which the fitting frame is found; a prime, so that no column or row is preferred. */
const COARSE = 31;

/** The last frames that were drawn. */
export class Sent {
  private readonly frames: Luma[] = [];

  /** `max`: how many are kept. */
  constructor(private readonly max: number) {}

  add(frame: Luma): void {
    this.frames.push(frame);
    if (this.frames.length > this.max) this.frames.shift();
  }

  /** The PSNR of a picture against the frame that fits it best; null while none of that size is known. */
  psnr(picture: Luma): number | null {
    const known = this.frames.filter(({ length }) => length === picture.length);
    let best: { frame: Luma; error: number } | null = null;
    for (const frame of known) {
      const error = squaredError(frame, picture, COARSE);
      if (best === null || error < best.error) best = { frame, error };
    }
    return best === null ? null : decibels(squaredError(best.frame, picture));
  }
}

/** The mean of the last values. */
export class Recent {
  private readonly values: number[] = [];

  constructor(private readonly max: number) {}

  add(value: number): void {
    this.values.push(value);
    if (this.values.length > this.max) this.values.shift();
  }

  clear(): void {
    this.values.length = 0;
  }

  /** Null before the first. */
  get mean(): number | null {
    return this.values.length === 0 ? null : this.values.reduce((a, b) => a + b, 0) / this.values.length;
  }
}
