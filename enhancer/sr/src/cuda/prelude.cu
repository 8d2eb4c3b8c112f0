// A group of consecutive convolutions of one network, fused: a block keeps a tile's features in shared memory from the
// first to the last of them. See plan.rs for which convolutions form a group, and pack.rs for the weights' order.
//
// A tile has PITCH columns and `rows` rows, of which `margin` on each side only serve what lies within: each 3×3
// convolution makes one row and column on each side useless. Rows of a tile follow each other without gaps, and all
// columns are computed, so that 16 pixels side by side always begin at a multiple of 16; useless columns read their
// neighbours' rows (or the guard before and after a buffer) and are read by useless ones only. What lies outside of
// the picture is zero after every convolution, as the network's zero padding wants it.
//
// A convolution is a product of matrices on the tensor cores: M are 16 pixels of a row, N 8 output channels, K 16 input
// channels of one tap; operands in half precision, sums in single. A warp makes ROWS rows of 16 pixels at once, so that
// it loads a fragment of pixels once for three taps, and a fragment of weights once for ROWS rows. wgmma.cu has another way
// for those between the first and the last.
//
// Defined when compiled: CHANNELS (16, 32, 48, 64), HEAD_CHANNELS (0: luma alone; 16, 32: luma and twin), OUT_TILES
// (tiles of 8 output channels of the last convolution), SCALE, TWIN, BLOCKS (residual blocks or a chain), PITCH, WARPS,
// RESIDENT (blocks that a multiprocessor should hold), and FIRST_GROUP, MIDDLE_GROUP, LAST_GROUP, ONLY_GROUP, BODY_GROUP
// (the kernels that the network needs; BODY_GROUP is how many convolutions it runs, and with it there are BODY_WARPS, in a
// block, see wgmma.cu).

typedef unsigned char u8;
typedef unsigned u32;
typedef unsigned long long u64;

#ifdef EMULATED
#include "emulate.h"
#else

#define ENTRY(name)
#define SHARED(name) extern __shared__ uint4 name##_[]; char* const name = (char*)name##_

// Four 8×8 matrices of 16-bit numbers; lane l gives the address of row l % 8 of matrix l / 8.
__device__ __forceinline__ void load_matrices(u32 (&a)[4], const char* row) {
  const u32 address = (u32)__cvta_generic_to_shared(row);
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(a[0]), "=r"(a[1]), "=r"(a[2]), "=r"(a[3]) : "r"(address) : "memory");
}

// d += a × b: 16×16 by 16×8.
__device__ __forceinline__ void multiply(float (&d)[4], const u32 (&a)[4], const u32 (&b)[2]) {
#if __CUDA_ARCH__ >= 800
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
  asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(b[0]));
  asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a[2]), "r"(a[3]), "r"(b[1]));
#endif
}

// Copies 16 bytes to shared memory, or zeros; done when `wait_for_copies` returns, for this thread.
__device__ __forceinline__ void copy(char* to, const uint4* from, bool any) {
#if __CUDA_ARCH__ >= 800
  const u32 address = (u32)__cvta_generic_to_shared(to);
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" : : "r"(address), "l"(from), "r"(any ? 16 : 0) : "memory");
#else
  *(uint4*)to = any ? __ldg(from) : make_uint4(0, 0, 0, 0);
#endif
}

__device__ __forceinline__ void wait_for_copies() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_all;" : : : "memory");
#endif
}

// Two numbers in half precision, the first in the lower bits.
__device__ __forceinline__ u32 pack(float low, float high) {
  u32 packed;
  asm("{ .reg .b16 l, h; cvt.rn.f16.f32 l, %1; cvt.rn.f16.f32 h, %2; mov.b32 %0, {l, h}; }"
      : "=r"(packed) : "f"(low), "f"(high));
  return packed;
}

__device__ __forceinline__ void unpack(u32 packed, float& low, float& high) {
  asm("{ .reg .b16 l, h; mov.b32 {l, h}, %2; cvt.f32.f16 %0, l; cvt.f32.f16 %1, h; }"
      : "=f"(low), "=f"(high) : "r"(packed));
}

#endif

// What a launch is given; engine.rs has the same in Rust.
struct Group {
  const u8* low;             // LR luma, pictures one after the other
  const u8* twin;            // the twin's HR luma, or nothing
  const uint4* features_in;  // of the group before: a pixel's channels side by side, in half precision
  const uint4* skip;         // the first convolution's output, to be added after the last block, or nothing
  uint4* head_out;           // where that output goes, or nothing
  uint4* features_out;
  short* residual;           // HR, in 1/64 grey level
  const u8* const* weights;  // of the whole network, for each picture
  int width, height;         // of the LR picture
  int rows;                  // of a tile
  int margin;
  int first, count;          // convolutions between the first and the last of the network
};

constexpr int GUARD = 16;                      // pixels before and after a buffer
constexpr int THREADS = 32 * WARPS;
constexpr int CHUNKS = CHANNELS / 8;           // 16 bytes each
constexpr int PASS_TILES = CHUNKS % 4 == 0 ? 4 : CHUNKS == 6 ? 3 : 2;
constexpr int PASSES = CHUNKS / PASS_TILES;    // a warp's sums of all channels would not fit its registers
constexpr int WIDEST = HEAD_CHANNELS > CHANNELS ? HEAD_CHANNELS : CHANNELS;
constexpr int HEAD_TAPS = HEAD_CHANNELS ? 9 : 1;
constexpr int HEAD_INPUTS = HEAD_CHANNELS ? HEAD_CHANNELS : 16;
constexpr int HEAD_BYTES = HEAD_TAPS * HEAD_INPUTS * CHANNELS * 2 + CHANNELS * 4;
#if !BODY_GROUP
constexpr int BODY_BYTES = 9 * CHANNELS * CHANNELS * 2 + CHANNELS * 4;
#else
constexpr int BODY_BYTES = 15 * CHANNELS * CHANNELS * 2 + CHANNELS * 4;
#endif
constexpr int OUTPUTS = 8 * OUT_TILES;
constexpr int SCRATCH = 16 * (OUTPUTS + 1);    // numbers of a warp
constexpr float LARGEST = 65504.0f;            // in half precision

// The byte at which 8 channels of a pixel lie. They are shuffled so that 8 pixels side by side are in all banks.
template <int CIN>
__device__ __forceinline__ int place(int pixel, int chunk) {
  constexpr int chunks = CIN / 8;
  const int turn = chunks % 8 == 0 ? pixel & 7 : chunks % 4 == 0 ? pixel >> 1 & 3 : pixel >> 2 & 1;
  return pixel * CIN * 2 + ((chunk ^ turn) << 4);
}

// Where a tile lies.
struct Tile {
  int x, y;  // of its first pixel in the picture; may be outside
  int width, height;
  __device__ bool holds(int column, int row) const {
    return (unsigned)(x + column) < (unsigned)width && (unsigned)(y + row) < (unsigned)height;
  }
};

