// The convolutions between a network's first and last by Hopper's products of warpgroups: `wgmma`, asynchronous, of 64 pixels.
//
// A warpgroup works alone: it goes down a strip of 64 columns row by row, BODY_GROUP convolutions (1 or 2) at once, the second
// a row behind the first. So no row is computed twice but where strips' segments begin, a strip's margin is `margin` columns
// on each side, shared memory holds a few rows, and warpgroups of a block share nothing but the weights: while one
// writes what it has summed, others compute.
//
// M are the 64 pixels of a row, K 16 input channels of one column of taps, N the outputs of the three taps above
// each other, 96 for 32 channels, which is wide enough for the full rate. A row of pixels counts for three rows of outputs,
// whose sums are in registers, at slot (row % 3). A product takes all three, so that its registers are always the same: what
// turns is the order of the taps in the weights, which lie in memory as rows of taps 2, 1, 0, 2, 1 and are read from another
// one on in each phase. After a row's products the sums of the row above are complete: they are written, and their slot
// begins anew.
//
// Both operands are read from shared memory by descriptors without swizzle: a matrix of 8 pixels (or outputs) by 16 bytes is
// 128 bytes in line, a row's pixels follow each other at 16 bytes, so that a column of taps is but another address. Pixels
// beyond a row's ends are a neighbour's or none; they count for useless columns only.
//
// Of a convolution the weights are followed by the biases.

#if BODY_GROUP

constexpr int WARPGROUPS = BODY_WARPS / 4;
constexpr int STEPS = CHANNELS / 16;                        // of K
constexpr int HALF_STEP = 5 * PASS_TILES * 128;             // of weights: 16 bytes of inputs for all rows of taps of a pass
constexpr int WEIGHT_BYTES = PASSES * 3 * STEPS * 2 * HALF_STEP;
static_assert(WEIGHT_BYTES + CHANNELS * 4 == BODY_BYTES, "as pack.rs has it");
constexpr int RING = 4;                                     // rows of features, a power of two
constexpr int COLUMNS = 64;
// Planes of 16 bytes of each pixel, with a pixel before and after. They are not a multiple of 128 bytes, so that a pixel's
// channels, which lie side by side in memory, go to banks of their own.
constexpr int RING_PLANE = (RING * COLUMNS + 2) * 16;
constexpr int ROW_PLANE = (COLUMNS + 2) * 16;
constexpr int ROW_BUFFER = CHUNKS * ROW_PLANE;
constexpr int OWN_BYTES = CHUNKS * RING_PLANE + (BODY_GROUP == 2) * ROW_BUFFER;  // of a warpgroup

#ifdef EMULATED
#include "emulate_wgmma.h"
#else

__device__ __forceinline__ u32 shared_address(const char* at) { return (u32)__cvta_generic_to_shared(at); }

// d += a × b, both described; d is of 64 pixels by 8 TILES outputs.
template <int TILES>
__device__ __forceinline__ void multiply_async(float (&d)[TILES][4], u64 a, u64 b);

#define SUM(d, t) "+f"(d[t][0]), "+f"(d[t][1]), "+f"(d[t][2]), "+f"(d[t][3])
#define NAMES_9                                                                                                           \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, " \
  "%25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35"
#define NAMES_12 NAMES_9 ", %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47"
#define SUMS_9(d) SUM(d, 0), SUM(d, 1), SUM(d, 2), SUM(d, 3), SUM(d, 4), SUM(d, 5), SUM(d, 6), SUM(d, 7), SUM(d, 8)
#define SUMS_12(d) SUMS_9(d), SUM(d, 9), SUM(d, 10), SUM(d, 11)
#define TYPES "k16.f32.f16.f16"
#define SIGNS ", 1, 1, 1, 0, 0;"
#define MULTIPLY(tiles, outputs, left, right)                                                                          \
  template <>                                                                                                          \
  __device__ __forceinline__ void multiply_async<tiles>(float (&d)[tiles][4], u64 a, u64 b) {                          \
    asm volatile("wgmma.mma_async.sync.aligned.m64n" #outputs TYPES " {" NAMES_##tiles "}, %" #left ", %" #right SIGNS \
                 : SUMS_##tiles(d) : "l"(a), "l"(b) : "memory");                                                       \
  }
#if CHANNELS == 48
MULTIPLY(9, 72, 36, 37)
#else
MULTIPLY(12, 96, 48, 49)
#endif

// Keeps the compiler from using sums before the products are done, and from moving them while they are made.
template <int TILES>
__device__ __forceinline__ void hold(float (&sums)[TILES][4]) {
#pragma unroll
  for (int t = 0; t < TILES; ++t) asm volatile("" : SUM(sums, t) : : "memory");
}

__device__ __forceinline__ void begin_products() { asm volatile("wgmma.fence.sync.aligned;" : : : "memory"); }

__device__ __forceinline__ void finish_products() {
  asm volatile("wgmma.commit_group.sync.aligned;" : : : "memory");
  asm volatile("wgmma.wait_group.sync.aligned 0;" : : : "memory");
}

// Lets products after the next barrier see what this thread has written to shared memory.
__device__ __forceinline__ void show_products() { asm volatile("fence.proxy.async.shared::cta;" : : : "memory"); }

// A barrier of a warpgroup's threads.
__device__ __forceinline__ void wait_for_warpgroup() {
  asm volatile("bar.sync %0, 128;" : : "r"(1 + threadIdx.x / 128) : "memory");
}

// Ends a batch of copies; all but the last batch are done when `wait_for_older_copies` returns, for this thread.
__device__ __forceinline__ void end_copies() { asm volatile("cp.async.commit_group;" : : : "memory"); }
__device__ __forceinline__ void wait_for_older_copies() { asm volatile("cp.async.wait_group 1;" : : : "memory"); }

#endif

// A matrix in shared memory: its halves of 16 bytes of K lie `leading` bytes apart, its rows' eights 128.
__device__ __forceinline__ u64 describe(u32 address, u32 leading) {
  return (u64)(address >> 4) | (u64)(leading >> 4) << 16 | (u64)(128 >> 4) << 32;
}

// A warpgroup's strip.
struct Strip {
  int x, y;           // of its first pixel in the picture; may be outside
  int width, height;  // of the picture
  const uint4* from;
  uint4* to;
  char* ring;

  __device__ char* ring_row(int y) const { return ring + (y & (RING - 1)) * COLUMNS * 16; }
  // What is between two convolutions.
  __device__ char* middle() const { return ring + CHUNKS * RING_PLANE; }
};

// A convolution's weights in shared memory, and what follows them. All of it is read there each time: what a compiler takes
// out of the loop of rows costs registers that there are not.
struct Weights {
  u32 address;
  const float* numbers;
};

typedef float Sums[PASSES][3 * PASS_TILES][4];

// A slot's sums begin with the bias.
template <int SLOT>
__device__ __forceinline__ void clear(Sums& sums, const float* numbers) {
#pragma unroll
  for (int pass = 0; pass < PASSES; ++pass) {
#pragma unroll
    for (int t = 0; t < PASS_TILES; ++t) {
      float (&sum)[4] = sums[pass][SLOT * PASS_TILES + t];
      const float* bias = numbers + 8 * (pass * PASS_TILES + t) + 2 * (threadIdx.x % 4);
      sum[0] = sum[2] = bias[0], sum[1] = sum[3] = bias[1];
    }
  }
}

// Adds the products of a row of pixels to the sums of three rows.
__device__ __forceinline__ void multiply_row(Sums& sums, u32 pixels, u32 plane, const Weights& weights, u32 turn) {
#pragma unroll
  for (int pass = 0; pass < PASSES; ++pass) hold(sums[pass]);
  begin_products();
#pragma unroll
  for (int pass = 0; pass < PASSES; ++pass) {
#pragma unroll
    for (int dx = 0; dx < 3; ++dx) {
#pragma unroll
      for (int k = 0; k < STEPS; ++k) {
        const u32 step = ((pass * 3 + dx) * STEPS + k) * 2 * HALF_STEP + turn;
        multiply_async(sums[pass], describe(pixels + 2 * k * plane + (dx - 1) * 16, plane),
                       describe(weights.address + step, HALF_STEP));
      }
    }
  }
  finish_products();
#pragma unroll
  for (int pass = 0; pass < PASSES; ++pass) hold(sums[pass]);
}

// Writes a slot's sums, which are row `y` of the strip, to where that begins: in half precision to the ring (WIDE), or as the next
// convolution's operands. Added to what is there, or what is less than zero left out.
template <int SLOT, bool WIDE, bool ADDS>
__device__ __forceinline__ void write_row(const Sums& sums, const Strip& strip, int y, char* to) {
  const int lane = threadIdx.x % 32;
  const bool row_inside = (unsigned)(strip.y + y) < (unsigned)strip.height;
#pragma unroll
  for (int pass = 0; pass < PASSES; ++pass) {
#pragma unroll
    for (int t = 0; t < PASS_TILES; ++t) {
      const int chunk = pass * PASS_TILES + t;
#pragma unroll
      for (int side = 0; side < 2; ++side) {
        const int column = threadIdx.x % 128 / 32 * 16 + 8 * side + lane / 4;
        const bool inside = row_inside && (unsigned)(strip.x + column) < (unsigned)strip.width;
        const float (&sum)[4] = sums[pass][SLOT * PASS_TILES + t];
        float low = sum[2 * side], high = sum[2 * side + 1];
        u32* const slot = (u32*)(to + chunk * (WIDE ? RING_PLANE : ROW_PLANE) + column * 16 + 4 * (lane % 4));
        if constexpr (ADDS) {
          float old_low, old_high;
          unpack(*slot, old_low, old_high);
          low += old_low, high += old_high;
        }
        constexpr float least = ADDS ? -LARGEST : 0.0f;
        low = fminf(fmaxf(low, least), LARGEST), high = fminf(fmaxf(high, least), LARGEST);
        *slot = inside ? pack(low, high) : 0;
      }
    }
  }
}

// Begins to copy a row of the strip to the ring; zeros from outside of the picture.
__device__ __forceinline__ void load_row(const Strip& strip, int y) {
  for (int i = threadIdx.x % 128; i < COLUMNS * CHUNKS; i += 128) {
    const int column = i / CHUNKS, chunk = i % CHUNKS;
    const bool inside = (unsigned)(strip.x + column) < (unsigned)strip.width && (unsigned)(strip.y + y) < (unsigned)strip.height;
    const size_t at = ((size_t)(strip.y + y) * strip.width + strip.x + column) * CHUNKS + chunk;
    copy(strip.ring_row(y) + chunk * RING_PLANE + column * 16, strip.from + (inside ? at : 0), inside);
  }
}

// The strip's own pixels of a row that is done, to memory.
__device__ __forceinline__ void store_row(const Strip& strip, int y) {
  for (int i = threadIdx.x % 128; i < COLUMNS * CHUNKS; i += 128) {
    const int column = i / CHUNKS, chunk = i % CHUNKS;
    const bool own = column >= BODY_GROUP && column < COLUMNS - BODY_GROUP && strip.x + column < strip.width;
    const size_t at = ((size_t)(strip.y + y) * strip.width + strip.x + column) * CHUNKS + chunk;
    if (own) strip.to[at] = *(const uint4*)(strip.ring_row(y) + chunk * RING_PLANE + column * 16);
  }
}

template <int SLOT, bool WIDE, bool ADDS>
__device__ __forceinline__ void drain(Sums& sums, const Strip& strip, int y, bool whole, const float* numbers, char* to) {
  if (whole) write_row<SLOT, WIDE, ADDS>(sums, strip, y, to);
  clear<SLOT>(sums, numbers);
}

// Writes the row whose sums are complete, if it has had all its rows, and begins the sums of the one that follows there.
// The products are there once, and only this three times: more would not be in the same registers everywhere.
template <bool WIDE, bool ADDS>
__device__ __forceinline__ void drain(int slot, Sums& sums, const Strip& strip, int y, bool whole, const float* numbers,
                                      char* to) {
  if (slot == 0) {
    drain<0, WIDE, ADDS>(sums, strip, y, whole, numbers, to);
  } else if (slot == 1) {
    drain<1, WIDE, ADDS>(sums, strip, y, whole, numbers, to);
  } else {
    drain<2, WIDE, ADDS>(sums, strip, y, whole, numbers, to);
  }
}

// The place of the rows of taps that slots 0, 1 and 2 are to get: in phase 0 rows 1, 0, 2, then 2, 1, 0, then 0, 2, 1.
__device__ __forceinline__ u32 turn(int phase) { return (phase == 0 ? 1 : phase == 1 ? 0 : 2) * PASS_TILES * 128; }

// Row `y` of the strip, counted from 0 at the first that is read.
__device__ __forceinline__ void step(const Strip& strip, int y, int rows, Sums (&sums)[BODY_GROUP],
                                     const Weights (&weights)[BODY_GROUP]) {
  const int phase = y % 3, before = phase == 0 ? 2 : phase - 1;
  wait_for_older_copies();
  show_products();
  wait_for_warpgroup();
  multiply_row(sums[0], shared_address(strip.ring_row(y)), RING_PLANE, weights[0], turn(phase));
#if BODY_GROUP == 2
  const int after = phase == 2 ? 0 : phase + 1;
  drain<false, false>(before, sums[0], strip, y - 1, y >= 2, weights[0].numbers, strip.middle());
  show_products();
  wait_for_warpgroup();
  multiply_row(sums[1], shared_address(strip.middle()), ROW_PLANE, weights[1], turn(before));
  drain<true, BLOCKS>(after, sums[1], strip, y - 2, y >= 4, weights[1].numbers, strip.ring_row(y - 2));
#else
  drain<true, false>(before, sums[0], strip, y - 1, y >= 2, weights[0].numbers, strip.ring_row(y - 1));
#endif
  wait_for_warpgroup();
  if (y >= 2 * BODY_GROUP) store_row(strip, y - BODY_GROUP);
  // A thread copies to where it has read itself, if at all.
  if (y + 2 < rows) load_row(strip, y + 2);
  end_copies();
}

extern "C" __global__ void __launch_bounds__(128 * WARPGROUPS, 1) body_group(const Group group) {
  SHARED(memory);
  const u8* const network = (const u8*)__ldg((const u64*)group.weights + blockIdx.z);
  const u8* const record = network + HEAD_BYTES + (size_t)(group.first - 1) * BODY_BYTES;
  Weights weights[BODY_GROUP];
#pragma unroll
  for (int n = 0; n < BODY_GROUP; ++n) {
    char* const to = memory + n * BODY_BYTES;
    weights[n].address = shared_address(to), weights[n].numbers = (const float*)(to + WEIGHT_BYTES);
  }
  for (int i = threadIdx.x; i < BODY_GROUP * BODY_BYTES / 16; i += 128 * WARPGROUPS) {
    copy(memory + 16 * i, (const uint4*)record + i, true);
  }
  const int warpgroup = threadIdx.x / 128;
  char* const own = memory + BODY_GROUP * BODY_BYTES + warpgroup * OWN_BYTES + 16;
  const size_t picture = (size_t)blockIdx.z * group.width * group.height * CHUNKS;
  Strip strip;
  strip.x = (int)blockIdx.x * (COLUMNS - 2 * BODY_GROUP) - BODY_GROUP;
  const int first = ((int)blockIdx.y * WARPGROUPS + warpgroup) * group.rows;
  strip.y = first - BODY_GROUP;
  strip.width = group.width, strip.height = group.height;
  strip.from = group.features_in + picture, strip.to = group.features_out + picture;
  strip.ring = own;
  wait_for_copies();
  show_products();
  __syncthreads();
  if (first >= group.height) return;
  const int rows = min(group.rows, group.height - first) + 2 * BODY_GROUP;
  load_row(strip, 0);
  end_copies();
  load_row(strip, 1);
  end_copies();
  Sums sums[BODY_GROUP];
#pragma unroll
  for (int n = 0; n < BODY_GROUP; ++n) {
    clear<0>(sums[n], weights[n].numbers);
    clear<1>(sums[n], weights[n].numbers);
    clear<2>(sums[n], weights[n].numbers);
  }
#pragma unroll 1
  for (int y = 0; y < rows; ++y) step(strip, y, rows, sums, weights);
}
ENTRY(body_group)

#endif
