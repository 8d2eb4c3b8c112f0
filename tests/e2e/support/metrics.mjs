// Picture quality against the source, and the plain upsamplers that enhancement must beat.

/** PSNR in dB of two luma planes, without the rows that carry the frame number. */
export function psnr(a, b, width, height, skipRows) {
  let sum = 0;
  const from = skipRows * width;
  const to = width * height;
  for (let i = from; i < to; i++) sum += (a[i] - b[i]) ** 2;
  return 10 * Math.log10(255 ** 2 / Math.max(sum / (to - from), 1e-9));
}

const cubic = (x) => {
  const t = Math.abs(x);
  if (t < 1) return 1.5 * t ** 3 - 2.5 * t ** 2 + 1;
  return t < 2 ? -0.5 * t ** 3 + 2.5 * t ** 2 - 4 * t + 2 : 0;
};
const sinc = (x) => (x === 0 ? 1 : Math.sin(Math.PI * x) / (Math.PI * x));
const lanczos3 = (x) => (Math.abs(x) < 3 ? sinc(x) * sinc(x / 3) : 0);

/** Kernels by name, with their radius in low-resolution pixels. */
export const KERNELS = { bicubic: [cubic, 2], lanczos: [lanczos3, 3] };

/** Doubles a luma plane with centre-aligned samples and clamped edges. */
export function upsample2(src, width, height, [kernel, radius]) {
  const taps = [-0.25, 0.25].map((offset) => {
    const w = [];
    for (let k = -radius; k <= radius; k++) w.push(kernel(k - offset));
    const sum = w.reduce((a, b) => a + b);
    return w.map((v) => v / sum);
  });
  const clamp = (v, hi) => (v < 0 ? 0 : v > hi ? hi : v);
  const wide = new Float32Array(width * 2 * height);
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      for (let phase = 0; phase < 2; phase++) {
        let v = 0;
        for (let k = -radius; k <= radius; k++) v += taps[phase][k + radius] * src[y * width + clamp(x + k, width - 1)];
        wide[y * width * 2 + 2 * x + phase] = v;
      }
    }
  }
  const out = new Uint8Array(width * height * 4);
  for (let y = 0; y < height; y++) {
    for (let phase = 0; phase < 2; phase++) {
      const rows = taps[phase].map((_, k) => clamp(y + k - radius, height - 1) * width * 2);
      for (let x = 0; x < width * 2; x++) {
        let v = 0;
        for (let k = 0; k < rows.length; k++) v += taps[phase][k] * wide[rows[k] + x];
        out[(2 * y + phase) * width * 2 + x] = clamp(Math.round(v), 255);
      }
    }
  }
  return out;
}

/** Arithmetic mean; NaN for none. */
export const mean = (values) => values.reduce((a, b) => a + b, 0) / values.length;
