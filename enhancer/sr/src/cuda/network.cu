// Fragments of weights for TILES × 8 outputs.
template <int TILES>
__device__ __forceinline__ void load_weights(u32 (&b)[TILES][2], const u32* from, int lane) {
  if constexpr (TILES % 2 == 0) {
#pragma unroll
    for (int pair = 0; pair < TILES / 2; ++pair) {
      const uint4 v = __ldg((const uint4*)from + pair * 32 + lane);
      b[2 * pair][0] = v.x, b[2 * pair][1] = v.y, b[2 * pair + 1][0] = v.z, b[2 * pair + 1][1] = v.w;
    }
  } else {
#pragma unroll
    for (int tile = 0; tile < TILES; ++tile) {
      const uint2 v = __ldg((const uint2*)from + tile * 32 + lane);
      b[tile][0] = v.x, b[tile][1] = v.y;
    }
  }
}

// Adds to `sums` the products of the pixels from `pixel` on, ROWS rows of 16, with one pass's weights.
template <int CIN, int TAPS, int TILES, int ROWS>
__device__ __forceinline__ void accumulate(float (&sums)[ROWS][TILES][4], const char* from, int pixel, const u32* weights) {
  const int lane = threadIdx.x % 32;
  const int own = pixel + lane % 16, half = lane / 16;
  constexpr int STEP = TILES * 64;
  if constexpr (TAPS == 1) {
#pragma unroll
    for (int k = 0; k < CIN / 16; ++k) {
      u32 b[TILES][2];
      load_weights<TILES>(b, weights + k * STEP, lane);
#pragma unroll
      for (int r = 0; r < ROWS; ++r) {
        u32 a[4];
        load_matrices(a, from + place<CIN>(own, 2 * k + half) + r * PITCH * CIN * 2);
#pragma unroll
        for (int t = 0; t < TILES; ++t) multiply(sums[r][t], a, b[t]);
      }
    }
  } else {
#pragma unroll 1
    for (int k = 0; k < CIN / 16; ++k) {
#pragma unroll
      for (int dx = 0; dx < 3; ++dx) {
        u32 b[3][TILES][2];
#pragma unroll
        for (int dy = 0; dy < 3; ++dy) load_weights<TILES>(b[dy], weights + ((k * 3 + dx) * 3 + dy) * STEP, lane);
        // PITCH is a multiple of 16, so that a row on, the shuffle is the same.
        const char* row = from + place<CIN>(own + dx - 1, 2 * k + half) - PITCH * CIN * 2;
#pragma unroll
        for (int r = 0; r < ROWS + 2; ++r) {
          u32 a[4];
          load_matrices(a, row + r * PITCH * CIN * 2);
#pragma unroll
          for (int dy = 0; dy < 3; ++dy) {
            if (r - dy >= 0 && r - dy < ROWS) {
#pragma unroll
              for (int t = 0; t < TILES; ++t) multiply(sums[r - dy >= 0 && r - dy < ROWS ? r - dy : 0][t], a, b[dy][t]);
            }
          }
        }
      }
    }
  }
}

template <int TILES, int ROWS>
__device__ __forceinline__ void begin(float (&sums)[ROWS][TILES][4], const float* bias) {
#pragma unroll
  for (int t = 0; t < TILES; ++t) {
    const float low = __ldg(bias + 8 * t + 2 * (threadIdx.x % 4)), high = __ldg(bias + 8 * t + 2 * (threadIdx.x % 4) + 1);
#pragma unroll
    for (int r = 0; r < ROWS; ++r) sums[r][t][0] = sums[r][t][2] = low, sums[r][t][1] = sums[r][t][3] = high;
  }
}

// ROWS rows of 16 pixels of a convolution that is not the last.
template <int CIN, int TAPS, int ROWS>
__device__ __forceinline__ void convolve_strip(const Tile& tile, const char* from, char* to, int x, int y, const u8* weights,
                                               float least, bool add) {
  const float* bias = (const float*)(weights + TAPS * CIN * CHANNELS * 2);
#pragma unroll 1
  for (int pass = 0; pass < PASSES; ++pass) {
    float sums[ROWS][PASS_TILES][4];
    begin<PASS_TILES, ROWS>(sums, bias + pass * PASS_TILES * 8);
    const u32* part = (const u32*)weights + pass * TAPS * (CIN / 16) * PASS_TILES * 64;
    accumulate<CIN, TAPS, PASS_TILES, ROWS>(sums, from, y * PITCH + x, part);
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
#pragma unroll
      for (int side = 0; side < 2; ++side) {
        const int column = x + 8 * side + threadIdx.x % 32 / 4;
        const bool inside = tile.holds(column, y + r);
#pragma unroll
        for (int t = 0; t < PASS_TILES; ++t) {
          char* slot = to + place<CHANNELS>((y + r) * PITCH + column, pass * PASS_TILES + t) + 4 * (threadIdx.x % 4);
          float low = sums[r][t][2 * side], high = sums[r][t][2 * side + 1];
          if (add) {
            float old_low, old_high;
            unpack(*(const u32*)slot, old_low, old_high);
            low += old_low, high += old_high;
          }
          low = fminf(fmaxf(low, least), LARGEST), high = fminf(fmaxf(high, least), LARGEST);
          *(u32*)slot = inside ? pack(low, high) : 0;
        }
      }
    }
  }
}

// A convolution of all columns and the rows from `first` on, which are an even number.
template <int CIN, int TAPS>
__device__ __forceinline__ void convolve(const Tile& tile, const char* from, char* to, int first, int rows, const u8* weights,
                                         bool relu, bool add) {
  const float least = relu ? 0.0f : -LARGEST;
  constexpr int strips = PITCH / 16;
  const int fours = rows / 4, units = strips * (fours + rows % 4 / 2);
  for (int unit = threadIdx.x / 32; unit < units; unit += WARPS) {
    const int x = unit % strips * 16, y = first + unit / strips * 4;
    if (unit / strips < fours) {
      convolve_strip<CIN, TAPS, 4>(tile, from, to, x, y, weights, least, add);
    } else {
      convolve_strip<CIN, TAPS, 2>(tile, from, to, x, y, weights, least, add);
    }
  }
}

#if TWIN
// Lanczos-3 of the codec, for phases of a sample: weights of the seven samples around, in 1/128.
#if SCALE == 2
__device__ const short PHASES[2][7] = {{1, -9, 35, 114, -17, 4, 0}, {0, 4, -17, 114, 35, -9, 1}};
#elif SCALE == 3
__device__ const short PHASES[3][7] = {{2, -12, 49, 104, -19, 4, 0}, {0, 0, 0, 128, 0, 0, 0}, {0, 4, -19, 104, 49, -12, 2}};
#else
__device__ const short PHASES[4][7] = {{2, -13, 56, 98, -19, 4, 0}, {0, -4, 15, 125, -11, 3, 0},
                                        {0, 3, -11, 125, 15, -4, 0}, {0, 4, -19, 98, 56, -13, 2}};
#endif

// In 1/16 grey level, rounded as the codec rounds it.
__device__ int lanczos(const u8* low, int width, int height, int x, int y, int across, int down) {
  int sum = (1 << 9) + (128 << 14);
  for (int j = 0; j < 7; ++j) {
    const u8* row = low + min(max(y + j - 3, 0), height - 1) * width;
    int line = 0;
    for (int i = 0; i < 7; ++i) line += PHASES[across][i] * (row[min(max(x + i - 3, 0), width - 1)] - 128);
    sum += PHASES[down][j] * line;
  }
  return sum >> 10;
}
#endif

// ROWS rows of 16 pixels of the last convolution, unfolded to HR samples.
template <int ROWS>
__device__ __forceinline__ void finish_strip(const Tile& tile, const Group& group, const char* from, float* scratch, int x, int y,
                                             const u8* weights) {
  const int lane = threadIdx.x % 32;
  float sums[ROWS][OUT_TILES][4];
  begin<OUT_TILES, ROWS>(sums, (const float*)(weights + 9 * CHANNELS * OUTPUTS * 2));
  accumulate<CHANNELS, 9, OUT_TILES, ROWS>(sums, from, y * PITCH + x, (const u32*)weights);
  const size_t picture = (size_t)blockIdx.z * group.width * group.height;
#pragma unroll
  for (int r = 0; r < ROWS; ++r) {
#pragma unroll
    for (int t = 0; t < OUT_TILES; ++t) {
#pragma unroll
      for (int n = 0; n < 4; ++n) scratch[(lane / 4 + n / 2 * 8) * (OUTPUTS + 1) + 8 * t + 2 * (lane % 4) + n % 2] = sums[r][t][n];
    }
    __syncwarp();
    const int low_y = tile.y + y + r;
    for (int i = lane; i < 16 * SCALE * SCALE; i += 32) {
      const int down = i / (16 * SCALE), pixel = i % (16 * SCALE) / SCALE, across = i % SCALE;
      const int column = x + pixel, low_x = tile.x + column;
      if (column < group.margin || column >= PITCH - group.margin || low_x >= group.width || low_y >= group.height) continue;
      const float* channels = scratch + pixel * (OUTPUTS + 1) + down * SCALE + across;
      const size_t at = picture * SCALE * SCALE + ((size_t)low_y * SCALE + down) * group.width * SCALE + low_x * SCALE + across;
      float value = channels[0];
#if TWIN
      const int base = lanczos(group.low + picture, group.width, group.height, low_x, low_y, across, down);
      value += (group.twin[at] - base * (1.0f / 16.0f)) / (1.0f + __expf(-channels[SCALE * SCALE]));
#endif
      group.residual[at] = (short)__float2int_rn(fminf(fmaxf(value * 64.0f, -32768.0f), 32767.0f));
    }
    __syncwarp();
  }
}

__device__ __forceinline__ void finish(const Tile& tile, const Group& group, const char* from, float* scratch, const u8* weights) {
  constexpr int strips = PITCH / 16;
  const int rows = group.rows - 2 * group.margin, fours = rows / 4, units = strips * (fours + rows % 4 / 2);
  for (int unit = threadIdx.x / 32; unit < units; unit += WARPS) {
    const int x = unit % strips * 16, y = group.margin + unit / strips * 4;
    if (unit / strips < fours) {
      finish_strip<4>(tile, group, from, scratch, x, y, weights);
    } else {
      finish_strip<2>(tile, group, from, scratch, x, y, weights);
    }
  }
}

// A sample as the first convolution takes it: an odd number of up to nine bits, exact in half precision; its weights
// make up for the factor. Zero outside of the picture.
__device__ __forceinline__ float sample(const u8* plane, int stride, int x, int y, bool inside) {
  return inside ? (2 * (int)__ldg(plane + (size_t)y * stride + x) - 255) * (1.0f / 512.0f) : 0.0f;
}

// Puts the input of the first convolution into a buffer of HEAD_INPUTS channels: luma's nine neighbours, or luma and
// the twin's samples.
__device__ __forceinline__ void load_pictures(const Tile& tile, const Group& group, char* to) {
  const size_t picture = (size_t)blockIdx.z * group.width * group.height;
  for (int pixel = threadIdx.x; pixel < group.rows * PITCH; pixel += THREADS) {
    const int column = pixel % PITCH, row = pixel / PITCH, x = tile.x + column, y = tile.y + row;
#pragma unroll
    for (int chunk = 0; chunk < HEAD_INPUTS / 8; ++chunk) {
      float values[8];
#pragma unroll
      for (int n = 0; n < 8; ++n) {
        const int channel = 8 * chunk + n;
        values[n] = 0.0f;
        if (HEAD_CHANNELS == 0) {
          const int dx = channel % 3 - 1, dy = channel / 3 - 1;
          if (channel < 9) values[n] = sample(group.low + picture, group.width, x + dx, y + dy, tile.holds(column + dx, row + dy));
        } else if (channel == 0) {
          values[n] = sample(group.low + picture, group.width, x, y, tile.holds(column, row));
        } else if (channel <= SCALE * SCALE) {
          const int across = (channel - 1) % SCALE, down = (channel - 1) / SCALE;
          values[n] = sample(group.twin + picture * SCALE * SCALE, group.width * SCALE, x * SCALE + across, y * SCALE + down,
                             tile.holds(column, row));
        }
      }
      *(uint4*)(to + place<HEAD_INPUTS>(pixel, chunk)) =
          make_uint4(pack(values[0], values[1]), pack(values[2], values[3]), pack(values[4], values[5]), pack(values[6], values[7]));
    }
  }
}

__device__ __forceinline__ void load_features(const Tile& tile, const Group& group, const uint4* from, char* to) {
  for (int i = threadIdx.x; i < group.rows * PITCH * CHUNKS; i += THREADS) {
    const int pixel = i / CHUNKS, chunk = i % CHUNKS, column = pixel % PITCH, row = pixel / PITCH;
    const size_t at = ((size_t)blockIdx.z * group.height + tile.y + row) * group.width + tile.x + column;
    const bool inside = tile.holds(column, row);
    copy(to + place<CHANNELS>(pixel, chunk), from + (inside ? at * CHUNKS + chunk : 0), inside);
  }
  wait_for_copies();
}

// The pixels of a tile that are its own, to memory.
__device__ __forceinline__ void store_features(const Tile& tile, const Group& group, const char* from, uint4* to) {
  const int columns = PITCH - 2 * group.margin, rows = group.rows - 2 * group.margin;
  for (int i = threadIdx.x; i < rows * columns * CHUNKS; i += THREADS) {
    const int chunk = i % CHUNKS, column = group.margin + i / CHUNKS % columns, row = group.margin + i / CHUNKS / columns;
    const size_t at = ((size_t)blockIdx.z * group.height + tile.y + row) * group.width + tile.x + column;
    if (tile.holds(column, row)) to[at * CHUNKS + chunk] = *(const uint4*)(from + place<CHANNELS>(row * PITCH + column, chunk));
  }
}

__device__ __forceinline__ u32 add_packed(u32 a, u32 b) {
  float a_low, a_high, b_low, b_high;
  unpack(a, a_low, a_high);
  unpack(b, b_low, b_high);
  const float low = fminf(fmaxf(a_low + b_low, -LARGEST), LARGEST), high = fminf(fmaxf(a_high + b_high, -LARGEST), LARGEST);
  return pack(low, high);
}

__device__ __forceinline__ void add_skip(const Tile& tile, const Group& group, char* to) {
  for (int i = threadIdx.x; i < group.rows * PITCH * CHUNKS; i += THREADS) {
    const int pixel = i / CHUNKS, chunk = i % CHUNKS, column = pixel % PITCH, row = pixel / PITCH;
    if (!tile.holds(column, row)) continue;
    const size_t at = ((size_t)blockIdx.z * group.height + tile.y + row) * group.width + tile.x + column;
    uint4* slot = (uint4*)(to + place<CHANNELS>(pixel, chunk));
    const uint4 old = *slot, more = __ldg(group.skip + at * CHUNKS + chunk);
    *slot = make_uint4(add_packed(old.x, more.x), add_packed(old.y, more.y), add_packed(old.z, more.z), add_packed(old.w, more.w));
  }
}

template <bool HEAD, bool TAIL>
__device__ __forceinline__ void run(const Group& group) {
  SHARED(memory);
  const int size = (group.rows * PITCH + 2 * GUARD) * WIDEST * 2;
  // A wider input begins at its own guard.
  char* features = memory + GUARD * CHANNELS * 2;
  char* other = memory + size + GUARD * CHANNELS * 2;
  char* const input = memory + size + GUARD * HEAD_INPUTS * 2;
  const Tile tile = {(int)blockIdx.x * (PITCH - 2 * group.margin) - group.margin,
                     (int)blockIdx.y * (group.rows - 2 * group.margin) - group.margin, group.width, group.height};
  const u8* const network = (const u8*)__ldg((const unsigned long long*)group.weights + blockIdx.z);
  int shrunk = 0;
  if constexpr (HEAD) {
    load_pictures(tile, group, input);
    __syncthreads();
    shrunk = HEAD_TAPS == 9;
    convolve<HEAD_INPUTS, HEAD_TAPS>(tile, input, features, shrunk, group.rows - 2 * shrunk, network, !BLOCKS, false);
    __syncthreads();
    if (group.head_out) store_features(tile, group, features, group.head_out);
  } else {
    load_features(tile, group, group.features_in, features);
    __syncthreads();
  }
  const u8* weights = network + HEAD_BYTES + (size_t)(group.first - 1) * BODY_BYTES;
#if !BODY_GROUP
#pragma unroll 1
  for (int n = group.first; n < group.first + group.count; ++n, weights += BODY_BYTES) {
    ++shrunk;
    const bool closes = BLOCKS && n % 2 == 0;
    convolve<CHANNELS, 9>(tile, closes ? other : features, closes ? features : other, shrunk, group.rows - 2 * shrunk, weights,
                          !closes, closes);
    __syncthreads();
    if (!BLOCKS) {
      char* const before = features;
      features = other, other = before;
    }
  }
#endif
  if (group.skip) {
    add_skip(tile, group, features);
    __syncthreads();
  }
  if constexpr (TAIL) {
    float* scratch = (float*)(memory + 2 * size) + threadIdx.x / 32 * SCRATCH;
    finish(tile, group, features, scratch, weights);
  } else {
    store_features(tile, group, features, group.features_out);
  }
}

#define KERNEL(name, head, tail)                                                                                      \
  extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT) name(const Group group) { run<head, tail>(group); } \
  ENTRY(name)

#if FIRST_GROUP
KERNEL(first_group, true, false)
#endif
#if MIDDLE_GROUP
KERNEL(middle_group, false, false)
#endif
#if LAST_GROUP
KERNEL(last_group, false, true)
#endif
#if ONLY_GROUP
KERNEL(only_group, true, true)
#endif
