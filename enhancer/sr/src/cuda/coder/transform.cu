// One level of the forward 9/7 transform: windlass-htj2k's `wavelet::forward`, bit for bit.
//
// A block takes a tile of the level's input with what its lifting steps reach beyond it, lifts it along columns and then
// along rows in shared memory, and writes it apart: low bands of both directions for the next level, the others to where
// the codec has them in the plane (rows stay where they are, columns go to their band). Lifting is the same at the edge
// of the picture, where the input is mirrored, and at the edge of a tile, where it is computed twice: every value comes
// from the same additions and multiplications in the same order as on the CPU, none of them fused.

constexpr int TILE_COLUMNS = 64, TILE_ROWS = 32;  // of the input
constexpr int BEFORE = 4, AFTER = 3;              // that the steps reach, from even samples on
constexpr int ACROSS = BEFORE + TILE_COLUMNS + AFTER, DOWN = BEFORE + TILE_ROWS + AFTER;
constexpr int TRANSFORM_THREADS = 256;

constexpr float HIGH_1 = -1.5861343f, LOW_1 = -0.05298012f, HIGH_2 = 0.8829111f, LOW_2 = 0.44350685f;
constexpr float K = 1.2301741f, BY_K = 1.0f / K;

// What a launch is given; mod.rs has the same.
struct Level {
  const i16* samples;  // of all pictures, for the first level
  const float* input;  // for the others: the low bands that the level before wrote
  float* low;          // the low bands for the next level; none for the last one, whose go to the plane, too
  float* planes;       // of all pictures
  int width, height;   // of a picture
  int columns, rows;   // of the level's input
  int depth;           // the level, from 0
  int least, most;     // of a sample, which are clamped to it
  int middle;          // of a sample, which is taken off
};

// Where the sample is that stands for one beyond the edge.
__device__ __forceinline__ int mirrored(int at, int length) {
  if ((u32)at < (u32)length) return at;
  if (length == 1) return 0;
  const int period = 2 * (length - 1);
  at %= period;
  if (at < 0) at += period;
  return at < length ? at : period - at;
}

// A step of lifting along columns, or rows: every second sample from `first` on. What is
// within `first` of the tile's edges serves no later step.
__device__ __forceinline__ void lift_columns(float* tile, int first, float factor) {
  const int steps = (DOWN - 2 * first + 1) / 2;
  for (int i = threadIdx.x; i < steps * ACROSS; i += TRANSFORM_THREADS) {
    float* const at = tile + (first + 2 * (i / ACROSS)) * ACROSS + i % ACROSS;
    *at = __fadd_rn(*at, __fmul_rn(factor, __fadd_rn(at[-ACROSS], at[ACROSS])));
  }
  __syncthreads();
}

__device__ __forceinline__ void lift_rows(float* tile, int first, float factor) {
  const int steps = (ACROSS - 2 * first + 1) / 2;
  for (int i = threadIdx.x; i < steps * TILE_ROWS; i += TRANSFORM_THREADS) {
    float* const at = tile + (BEFORE + i / steps) * ACROSS + first + 2 * (i % steps);
    *at = __fadd_rn(*at, __fmul_rn(factor, __fadd_rn(at[-1], at[1])));
  }
  __syncthreads();
}

extern "C" __global__ void __launch_bounds__(TRANSFORM_THREADS) transform(const Level level) {
  SHARED(memory);
  float* const tile = (float*)memory;
  const int left = TILE_COLUMNS * (int)blockIdx.x, top = TILE_ROWS * (int)blockIdx.y;
  const size_t area = (size_t)level.columns * level.rows;
  for (int i = threadIdx.x; i < ACROSS * DOWN; i += TRANSFORM_THREADS) {
    const int x = mirrored(left - BEFORE + i % ACROSS, level.columns), y = mirrored(top - BEFORE + i / ACROSS, level.rows);
    const size_t at = blockIdx.z * area + (size_t)y * level.columns + x;
    tile[i] = level.samples ? (float)(max(level.least, min(level.most, (int)level.samples[at])) - level.middle) : level.input[at];
  }
  __syncthreads();
  if (level.rows > 1) {
    lift_columns(tile, 1, HIGH_1);
    lift_columns(tile, 2, LOW_1);
    lift_columns(tile, 3, HIGH_2);
    lift_columns(tile, 4, LOW_2);
    for (int i = threadIdx.x; i < TILE_ROWS * ACROSS; i += TRANSFORM_THREADS) {
      float* const at = tile + BEFORE * ACROSS + i;
      *at = __fmul_rn(*at, i / ACROSS % 2 ? K : BY_K);
    }
    __syncthreads();
  }
  if (level.columns > 1) {
    lift_rows(tile, 1, HIGH_1);
    lift_rows(tile, 2, LOW_1);
    lift_rows(tile, 3, HIGH_2);
    lift_rows(tile, 4, LOW_2);
  }
  const int low_columns = (level.columns + 1) / 2, low_rows = (level.rows + 1) / 2;
  // Low samples side by side, then high ones, as they lie in memory.
  for (int i = threadIdx.x; i < TILE_ROWS * TILE_COLUMNS; i += TRANSFORM_THREADS) {
    const int high = i % TILE_COLUMNS / (TILE_COLUMNS / 2), row = i / TILE_COLUMNS;
    const int column = 2 * (i % (TILE_COLUMNS / 2)) + high;
    const int x = left + column, y = top + row;
    if (x >= level.columns || y >= level.rows) continue;
    float value = tile[(BEFORE + row) * ACROSS + BEFORE + column];
    if (level.columns > 1) value = __fmul_rn(value, high ? K : BY_K);
    if (level.low && !high && y % 2 == 0) {
      level.low[((size_t)blockIdx.z * low_rows + y / 2) * low_columns + x / 2] = value;
    } else {
      const size_t line = (size_t)blockIdx.z * level.height + ((size_t)y << level.depth);
      level.planes[line * level.width + (high ? low_columns : 0) + x / 2] = value;
    }
  }
}

ENTRY(transform)

