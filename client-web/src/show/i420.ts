/**
 * RGBA pixels as I420, the format of encoders: BT.709, limited range, chroma of each four pixels averaged. Width and
 * height are even.
 */
export function i420Of(rgba: Uint8ClampedArray, width: number, height: number): Uint8Array<ArrayBuffer> {
  const [half, quarter] = [width >> 1, (width * height) >> 2];
  const planes = new Uint8Array(width * height + 2 * quarter);
  const [u, v] = [width * height, width * height + quarter];
  for (let y = 0; y < height; y += 2) {
    for (let x = 0; x < width; x += 2) {
      let [r, g, b] = [0, 0, 0];
      for (let i = 0; i < 4; i++) {
        const at = (y + (i >> 1)) * width + x + (i & 1);
        const [pr, pg, pb] = [rgba[4 * at] ?? 0, rgba[4 * at + 1] ?? 0, rgba[4 * at + 2] ?? 0];
        planes[at] = 16.5 + 0.1826 * pr + 0.6142 * pg + 0.062 * pb;
        r += pr;
        g += pg;
        b += pb;
      }
      const at = (y >> 1) * half + (x >> 1);
      planes[u + at] = 128.5 + (-0.1006 * r - 0.3386 * g + 0.4392 * b) / 4;
      planes[v + at] = 128.5 + (0.4392 * r - 0.3989 * g - 0.0403 * b) / 4;
    }
  }
  return planes;
}
