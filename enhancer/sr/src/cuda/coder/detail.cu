// What a picture that was super-resolved on this GPU adds, without it leaving the GPU: how much of it is new to
// subscribers, by tile, and the samples to be coded. windlass-hybrid's `resample::lanczos`, `reconstruct::learned` and
// `anchor::prior`, bit for bit; all of it is integers.
//
// A block of threads takes a part of a tile: its low samples with what filters reach beyond them, edges repeated, in
// shared memory. A thread makes all high samples of a low one.

constexpr int TILE_SIDE = 64;       // of a tile in low samples
constexpr int PART_ROWS = 16;       // of a part
constexpr int DETAIL_THREADS = 256;
constexpr int REACH = 3;            // of the widest filter
constexpr int PATCH_PITCH = TILE_SIDE + 2 * REACH, PATCH_ROWS = PART_ROWS + 2 * REACH;
constexpr int PATCH_BYTES = (2 * PATCH_PITCH * PATCH_ROWS + 15) / 16 * 16;
constexpr int TAPS = 24;            // of a learned filter: 5×5 without the centre
constexpr int FLAT = 80;            // the class without a filter

// Lanczos-3 in 1/128, by scale and phase: weights of the samples from three before to three after.
__constant__ int LANCZOS[3][4][7] = {
  {{1, -9, 35, 114, -17, 4, 0}, {0, 4, -17, 114, 35, -9, 1}},
  {{2, -12, 49, 104, -19, 4, 0}, {0, 0, 0, 128, 0, 0, 0}, {0, 4, -19, 104, 49, -12, 2}},
  {{2, -13, 56, 98, -19, 4, 0}, {0, -4, 15, 125, -11, 3, 0}, {0, 3, -11, 125, 15, -4, 0}, {0, 4, -19, 98, 56, -13, 2}},
};

// A picture on the GPU; held.rs has the same.
struct Picture {
  const i16* residual;  // HR, in 1/64 grey level
  const u8* low;
  int width, height;    // of the low picture
  int scale;
  int columns;          // of tiles
};

struct Measure {
  Picture picture;
  const u8* seen;  // the HR luma that subscribers see
  u64* sums;       // by part of a tile: squares of what differs from that, and of all detail, in (1/16 grey level)²
};

struct Gather {
  Picture picture;
  const i16* filters;  // by class and phase, in 1/1024
  const int* tiles;    // by tile of the image: the picture's tile or -1, and its first column and row in the image
  i16* image;
  u64* sums;           // of the magnitudes of what is gathered, by part of a tile
  int image_width;
  int whole;           // whether the image is the picture; else a mosaic, which is zero where no picture is
};

__device__ __forceinline__ int clamp(int value, int least, int most) { return min(max(value, least), most); }

// The low samples around a part, less 128.
__device__ __forceinline__ void load_patch(const Picture& picture, int left, int top, short* patch) {
  for (int i = threadIdx.x; i < PATCH_PITCH * PATCH_ROWS; i += DETAIL_THREADS) {
    const int x = clamp(left + i % PATCH_PITCH - REACH, 0, picture.width - 1);
    const int y = clamp(top + i / PATCH_PITCH - REACH, 0, picture.height - 1);
    patch[i] = (short)(__ldg(picture.low + (size_t)y * picture.width + x) - 128);
  }
  __syncthreads();
}

// The high samples of the low one in the middle of a patch, in 1/16 grey level.
template <int S>
__device__ __forceinline__ void upsample(const short* middle, int (&out)[S][S]) {
  int across[7][S];
#pragma unroll
  for (int row = 0; row < 7; ++row) {
#pragma unroll
    for (int phase = 0; phase < S; ++phase) {
      int sum = 0;
#pragma unroll
      for (int k = 0; k < 7; ++k) sum += LANCZOS[S - 2][phase][k] * middle[(row - REACH) * PATCH_PITCH + k - REACH];
      across[row][phase] = sum;
    }
  }
#pragma unroll
  for (int y = 0; y < S; ++y) {
#pragma unroll
    for (int x = 0; x < S; ++x) {
      int sum = (1 << 9) + (128 << 14);
#pragma unroll
      for (int k = 0; k < 7; ++k) sum += LANCZOS[S - 2][y][k] * across[k][x];
      out[y][x] = clamp(sum >> 10, -32768, 32767);
    }
  }
}

// The class of a low sample, by the structure tensor of the 3×3 samples around it.
__device__ __forceinline__ int class_of(const short* middle) {
  int energy = 0, a = 0, b = 0;
#pragma unroll
  for (int dy = -1; dy <= 1; ++dy) {
#pragma unroll
    for (int dx = -1; dx <= 1; ++dx) {
      const short* const at = middle + dy * PATCH_PITCH + dx;
      const int gx = at[1] - at[-1], gy = at[PATCH_PITCH] - at[-PATCH_PITCH];
      energy += gx * gx + gy * gy, a += gx * gx - gy * gy, b += 2 * gx * gy;
    }
  }
  const int wide = a < 0 ? -a : a, high = b < 0 ? -b : b;
  const int strength = energy + max(wide, high) + min(wide, high) * 3 / 8;
  if (strength < 72) return FLAT;
  const int level = (strength >= 288) + (strength >= 1152) + (strength >= 4608) + (strength >= 18432);
  const int coherent = 2 * (strength - energy) > energy;
  return (level * 2 + coherent) * 8 + 4 * (a < 0) + 2 * (b < 0) + (high > wide);
}

// What subscribers expect of each high sample themselves.
template <int S>
__device__ __forceinline__ void expect(const short* middle, const i16* filters, int (&out)[S][S]) {
  const int of = class_of(middle);
  if (of == FLAT) {
#pragma unroll
    for (int phase = 0; phase < S * S; ++phase) out[phase / S][phase % S] = 0;
    return;
  }
#pragma unroll
  for (int y = 0; y < S; ++y) {
#pragma unroll
    for (int x = 0; x < S; ++x) {
      const i16* const weights = filters + ((size_t)of * S * S + y * S + x) * TAPS;
      int sum = 1 << 9;
#pragma unroll
      for (int tap = 0; tap < TAPS; ++tap) {
        const int place = tap < TAPS / 2 ? tap : tap + 1;
        sum += __ldg(weights + tap) * (middle[(place / 5 - 2) * PATCH_PITCH + place % 5 - 2] - middle[0]);
      }
      // A fifth is taken back: see `anchor::prior`.
      out[y][x] = clamp(sum >> 10, -1024, 1024) * 4 / 5;
    }
  }
}

// A sample of the residual in 1/16 grey level, halves away from zero.
__device__ __forceinline__ int detail_of(int residual) {
  const int size = min(residual < 0 ? -residual : residual, 255 * 64) + 2 >> 2;
  return residual < 0 ? -size : size;
}

template <int S>
__device__ __forceinline__ void measure_part(const Measure& of, int left, int top, const short* patch, u64 (&sums)[2]) {
  const Picture& picture = of.picture;
  for (int i = threadIdx.x; i < TILE_SIDE * PART_ROWS; i += DETAIL_THREADS) {
    const int x = left + i % TILE_SIDE, y = top + i / TILE_SIDE;
    if (x >= picture.width || y >= picture.height) continue;
    int base[S][S];
    upsample<S>(patch + (i / TILE_SIDE + REACH) * PATCH_PITCH + i % TILE_SIDE + REACH, base);
#pragma unroll
    for (int phase = 0; phase < S * S; ++phase) {
      const size_t at = (size_t)(S * y + phase / S) * S * picture.width + S * x + phase % S;
      const int detail = detail_of(__ldg(picture.residual + at));
      const int known = 16 * __ldg(of.seen + at) - base[phase / S][phase % S];
      const int differs = clamp(detail - known, -32768, 32767);
      sums[0] += (u64)((long long)differs * differs), sums[1] += (u64)((long long)detail * detail);
    }
  }
}

template <int S>
__device__ __forceinline__ u64 gather_part(const Gather& of, int left, int top, const short* patch, i16* to) {
  const Picture& picture = of.picture;
  u32 sum = 0;
  for (int i = threadIdx.x; i < TILE_SIDE * PART_ROWS; i += DETAIL_THREADS) {
    const int column = i % TILE_SIDE, row = i / TILE_SIDE;
    const bool inside = left + column < picture.width && top + row < picture.height;
    if (!inside && of.whole) continue;
    int expected[S][S];
    if (inside) expect<S>(patch + (row + REACH) * PATCH_PITCH + column + REACH, of.filters, expected);
#pragma unroll
    for (int phase = 0; phase < S * S; ++phase) {
      int left_over = 0;
      if (inside) {
        const size_t at = (size_t)(S * (top + row) + phase / S) * S * picture.width + S * (left + column) + phase % S;
        left_over = clamp(detail_of(__ldg(picture.residual + at)) - expected[phase / S][phase % S], -32768, 32767);
      }
      to[(size_t)(S * row + phase / S) * of.image_width + S * column + phase % S] = (i16)left_over;
      sum += left_over < 0 ? -left_over : left_over;
    }
  }
  return sum;
}

// The sums of all threads of a block, N for each, to `to`.
template <int N>
__device__ __forceinline__ void add_up(u64* all, const u64 (&own)[N], u64* to) {
#pragma unroll
  for (int n = 0; n < N; ++n) all[N * threadIdx.x + n] = own[n];
  __syncthreads();
  for (int half = DETAIL_THREADS / 2; half; half /= 2) {
    if ((int)threadIdx.x < half) {
#pragma unroll
      for (int n = 0; n < N; ++n) all[N * threadIdx.x + n] += all[N * (threadIdx.x + half) + n];
    }
    __syncthreads();
  }
  if (threadIdx.x < N) to[threadIdx.x] = all[threadIdx.x];
}

constexpr int PARTS = TILE_SIDE / PART_ROWS;

extern "C" __global__ void __launch_bounds__(DETAIL_THREADS) measure_tiles(const Measure of) {
  SHARED(memory);
  short* const patch = (short*)memory;
  u64* const all = (u64*)(memory + PATCH_BYTES);
  const Picture& picture = of.picture;
  const int tile = blockIdx.x, part = blockIdx.y;
  const int left = tile % picture.columns * TILE_SIDE, top = tile / picture.columns * TILE_SIDE + part * PART_ROWS;
  load_patch(picture, left, top, patch);
  u64 sums[2] = {0, 0};
  if (picture.scale == 2) measure_part<2>(of, left, top, patch, sums);
  if (picture.scale == 3) measure_part<3>(of, left, top, patch, sums);
  if (picture.scale == 4) measure_part<4>(of, left, top, patch, sums);
  add_up<2>(all, sums, of.sums + 2 * (tile * PARTS + part));
}
ENTRY(measure_tiles)

extern "C" __global__ void __launch_bounds__(DETAIL_THREADS) gather_tiles(const Gather of) {
  SHARED(memory);
  short* const patch = (short*)memory;
  const Picture& picture = of.picture;
  const int* const tile = of.tiles + 3 * blockIdx.x;
  const int part = blockIdx.y, from = tile[0], scale = picture.scale;
  // Of no tile, all of it lies outside.
  const int left = from < 0 ? picture.width : from % picture.columns * TILE_SIDE;
  const int top = (from < 0 ? picture.height : from / picture.columns * TILE_SIDE) + part * PART_ROWS;
  load_patch(picture, left, top, patch);
  i16* const to = of.image + (size_t)(tile[2] + scale * part * PART_ROWS) * of.image_width + tile[1];
  u64 sum[1] = {0};
  if (scale == 2) sum[0] = gather_part<2>(of, left, top, patch, to);
  if (scale == 3) sum[0] = gather_part<3>(of, left, top, patch, to);
  if (scale == 4) sum[0] = gather_part<4>(of, left, top, patch, to);
  add_up<1>((u64*)(memory + PATCH_BYTES), sum, of.sums + PARTS * blockIdx.x + part);
}
ENTRY(gather_tiles)
