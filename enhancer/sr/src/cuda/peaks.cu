// The tensor cores' own speed, by the instruction that network.cu uses: independent products in registers, nothing else.

typedef unsigned char u8;
typedef unsigned u32;

#ifdef EMULATED
#include "emulate.h"
#else

#define ENTRY(name)

__device__ __forceinline__ void multiply(float (&d)[4], const u32 (&a)[4], const u32 (&b)[2]) {
#if __CUDA_ARCH__ >= 800
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
  for (int k = 0; k < 2; ++k)
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a[2 * k]), "r"(a[2 * k + 1]), "r"(b[k]));
#endif
}

#endif

// What a launch is given; peaks.rs has the same.
struct Group {
  float* out;  // a number for each thread, so that nothing is left out
  int rounds;
};

extern "C" __global__ void multiply_only(const Group group) {
  constexpr int CHAINS = 8;
  u32 a[4], b[CHAINS][2];
  float sums[CHAINS][4];
  // Small numbers of many bits: the cores take less power, and run faster, on zeros.
  const u32 seed = threadIdx.x * 2654435761u + blockIdx.x;
  for (int n = 0; n < 4; ++n) a[n] = (seed >> n & 0x03ff03ff) | 0x20002000;
  for (int chain = 0; chain < CHAINS; ++chain) {
    for (int n = 0; n < 2; ++n) b[chain][n] = (seed >> (chain + n) & 0x03ff03ff) | (n ? 0xa0002000 : 0x2000a000);
    for (int n = 0; n < 4; ++n) sums[chain][n] = 0.0f;
  }
#pragma unroll 1
  for (int round = 0; round < group.rounds; ++round) {
#pragma unroll
    for (int chain = 0; chain < CHAINS; ++chain) multiply(sums[chain], a, b[chain]);
  }
  float all = 0.0f;
  for (int chain = 0; chain < CHAINS; ++chain)
    for (int n = 0; n < 4; ++n) all += sums[chain][n];
  group.out[blockIdx.x * 256 + threadIdx.x] = all;
}

ENTRY(multiply_only)
