// Runs CUDA kernels on the CPU, for tests: the threads of a block are fibers, switched by turns at every instruction of
// a warp and at barriers. Threads of a warp that meet different ones abort. Shared memory begins as garbage. A warp runs
// to the block's barrier before the next one begins, the last one first with EMULATED_BACKWARDS: what lacks a barrier reads
// what is not yet there, or no longer. With EMULATED_WRONG defined, products are a little too large.

#pragma once
#include <csetjmp>
#include <cstddef>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ucontext.h>
#include <utility>
#include <vector>

#define __device__
#define __global__
#define __constant__ static const
#define __forceinline__ inline
#define __launch_bounds__(...)
template <class T> T parameter_of(void (*kernel)(T));
#define ENTRY(name)                                                                                               \
  extern "C" void name##_entry(void** parameters) { name(*(decltype(parameter_of(name))*)parameters[0]); }       \
  extern "C" const unsigned long name##_bytes;                                                                    \
  const unsigned long name##_bytes = sizeof(decltype(parameter_of(name)));
#define SHARED(name) char* const name = emulated::shared

struct uint2 { u32 x, y; };
struct alignas(16) uint4 { u32 x, y, z, w; };
struct Index { unsigned x, y, z; };
static Index threadIdx, blockIdx;

inline uint4 make_uint4(u32 x, u32 y, u32 z, u32 w) { return {x, y, z, w}; }
template <class T> T __ldg(const T* at) { return *at; }
inline int min(int a, int b) { return a < b ? a : b; }
inline int max(int a, int b) { return a > b ? a : b; }
inline u32 min(u32 a, u32 b) { return a < b ? a : b; }
inline int __popc(u32 v) { return __builtin_popcount(v); }
inline int __clz(int v) { return v ? __builtin_clz((u32)v) : 32; }
inline int __ffs(int v) { return __builtin_ffs(v); }
inline u32 atomicOr(u32* at, u32 bits) { const u32 old = *at; *at |= bits; return old; }
// Compilers fuse what they see; they do not see through these.
inline float seen(float v) { __asm__("" : "+m"(v)); return v; }
#ifdef EMULATED_WRONG
constexpr float FACTOR = 1.02f;
#else
constexpr float FACTOR = 1.0f;
#endif
inline float __fmul_rn(float a, float b) { return seen(FACTOR * (a * b)); }
inline float __fadd_rn(float a, float b) { return seen(a + b); }
inline float __expf(float v) { return expf(v); }
inline int __float2int_rn(float v) { return (int)nearbyintf(v); }

namespace emulated {

enum State { WARP, WARPGROUP, BLOCK, DONE };
constexpr int MAX_THREADS = 1024, STACK = 128 << 10;

static char* shared;
static size_t shared_size;
static void (*entry)(void**);
static void** parameters;

struct Fiber {
  jmp_buf here;
  State state;
  bool begun;
  char* stack;
};
static Fiber fibers[MAX_THREADS];
static jmp_buf scheduler;
static int current;

// What else is done where a block begins and ends.
static void (*begin_block)();
static void (*finish_block)(int threads);

// Of each thread batches of copies that it has not waited for, the last of them unfinished.
struct Copy { char* to; const uint4* from; bool any; };
static std::vector<std::vector<Copy>> copies[MAX_THREADS];

inline void fail(const char* why) {
  fprintf(stderr, "emulated kernel, block %u %u %u, thread %d: %s\n", blockIdx.x, blockIdx.y, blockIdx.z, current, why);
  abort();
}

inline void yield(State state) {
  Fiber& fiber = fibers[current];
  fiber.state = state;
  if (!_setjmp(fiber.here)) _longjmp(scheduler, 1);
}

static void begin() {
  entry(parameters);
  yield(DONE);
}

static void resume(int thread) {
  Fiber& fiber = fibers[thread];
  current = thread;
  threadIdx = {(unsigned)thread, 0, 0};
  if (_setjmp(scheduler)) return;
  if (fiber.begun) _longjmp(fiber.here, 1);
  fiber.begun = true;
  ucontext_t context;
  getcontext(&context);
  if (!fiber.stack) fiber.stack = (char*)malloc(STACK);
  context.uc_stack.ss_sp = fiber.stack;
  context.uc_stack.ss_size = STACK;
  context.uc_link = nullptr;
  makecontext(&context, begin, 0);
  setcontext(&context);
}

// Runs a warp to its next barrier.
static State run_warp(int warp) {
  for (;;) {
    for (int lane = 0; lane < 32; ++lane) {
      resume(32 * warp + lane);
      if (fibers[32 * warp + lane].state != fibers[32 * warp].state) fail("threads of a warp meet different instructions");
    }
    if (fibers[32 * warp].state != WARP) return fibers[32 * warp].state;
  }
}

static const bool backwards = getenv("EMULATED_BACKWARDS");

// Runs so many of something to their next barrier, which must be the same of all.
template <class Run>
static State run_all(int count, Run run) {
  const State state = run(backwards ? count - 1 : 0);
  for (int n = 1; n < count; ++n) {
    if (run(backwards ? count - 1 - n : n) != state) fail("warps meet different barriers");
  }
  return state;
}

// Runs the warps that have barriers of their own to the next one of their block.
static State run_warpgroup(int first, int warps) {
  for (;;) {
    const State state = run_all(warps, [&](int n) { return run_warp(first + n); });
    if (state != WARPGROUP) return state;
    if (warps != 4) fail("a warpgroup's barrier in a block that has none");
  }
}

static void run_block(int threads) {
  memset(shared, 0xff, shared_size);
  for (int thread = 0; thread < threads; ++thread) fibers[thread].begun = false, copies[thread].clear();
  if (begin_block) begin_block();
  const int warps = threads / 32, together = warps % 4 ? 1 : 4;
  while (run_all(warps / together, [&](int n) { return run_warpgroup(together * n, together); }) != DONE) {}
  for (current = 0; current < threads; ++current) {
    for (auto& batch : copies[current]) if (!batch.empty()) fail("copies that nobody waits for");
  }
  if (finish_block) finish_block(threads);
}

// What the threads of a warp show each other; the halves take turns, so that nobody overwrites what another still reads.
struct Shown { const char* row[32]; float a[32][8], b[32][4]; u32 word[32]; };
static Shown shown[2][MAX_THREADS / 32];
static int turns[MAX_THREADS];

inline Shown& show() { return shown[turns[current]++ & 1][current / 32]; }

inline float half(unsigned short bits) {
  _Float16 value;
  memcpy(&value, &bits, 2);
  return (float)value;
}

inline unsigned short bits(float value) {
  const _Float16 half = (_Float16)value;
  unsigned short out;
  memcpy(&out, &half, 2);
  return out;
}

}  // namespace emulated

extern "C" int emulated_launch(void (*entry)(void**), void** parameters, unsigned x, unsigned y, unsigned z, unsigned threads,
                               unsigned shared) {
  using namespace emulated;
  if (threads > MAX_THREADS || threads % 32) return 1;
  emulated::entry = entry, emulated::parameters = parameters;
  emulated::shared = (char*)aligned_alloc(128, (shared + 128) / 128 * 128), shared_size = shared;
  for (blockIdx.z = 0; blockIdx.z < z; ++blockIdx.z)
    for (blockIdx.y = 0; blockIdx.y < y; ++blockIdx.y)
      for (blockIdx.x = 0; blockIdx.x < x; ++blockIdx.x) run_block((int)threads);
  free(emulated::shared);
  return 0;
}

inline void __syncthreads() { emulated::yield(emulated::BLOCK); }
inline void __syncwarp() { emulated::yield(emulated::WARP); }
inline void wait_for_warpgroup() { emulated::yield(emulated::WARPGROUP); }

namespace emulated {

// What all threads of a warp show.
inline const u32* words(u32 mask, u32 own) {
  if (mask != 0xffffffff) fail("not all threads of a warp take part");
  Shown& all = show();
  all.word[current % 32] = own;
  yield(WARP);
  return all.word;
}

}  // namespace emulated

inline u32 __ballot_sync(u32 mask, bool own) {
  const u32* all = emulated::words(mask, own);
  u32 bits = 0;
  for (int lane = 0; lane < 32; ++lane) bits |= all[lane] << lane;
  return bits;
}

inline u32 __shfl_sync(u32 mask, u32 own, int lane) { return emulated::words(mask, own)[lane % 32]; }

inline u32 __shfl_up_sync(u32 mask, u32 own, int by) {
  const u32* all = emulated::words(mask, own);
  const int lane = emulated::current % 32;
  return all[lane < by ? lane : lane - by];
}

inline u32 __shfl_down_sync(u32 mask, u32 own, int by) {
  const u32* all = emulated::words(mask, own);
  const int lane = emulated::current % 32;
  return all[lane + by > 31 ? lane : lane + by];
}

inline u32 pack(float low, float high) { return emulated::bits(low) | (u32)emulated::bits(high) << 16; }

inline void unpack(u32 packed, float& low, float& high) {
  low = emulated::half((unsigned short)packed), high = emulated::half((unsigned short)(packed >> 16));
}

inline void copy(char* to, const uint4* from, bool any) {
  auto& all = emulated::copies[emulated::current];
  if (all.empty()) all.emplace_back();
  all.back().push_back({to, from, any});
}

inline void end_copies() {
  auto& all = emulated::copies[emulated::current];
  if (all.empty()) all.emplace_back();
  all.emplace_back();
}

// Makes the copies of all batches but for the last `left` that have ended.
inline void wait_for_copies(size_t left) {
  auto& all = emulated::copies[emulated::current];
  while (all.size() > left) {
    for (const emulated::Copy& copy : all.front()) *(uint4*)copy.to = copy.any ? *copy.from : uint4{0, 0, 0, 0};
    all.erase(all.begin());
  }
}
inline void wait_for_copies() { wait_for_copies(0); }
inline void wait_for_older_copies() { wait_for_copies(2); }

inline void load_matrices(u32 (&a)[4], const char* row) {
  using namespace emulated;
  if (row < shared || row + 16 > shared + shared_size) fail("a matrix outside of shared memory");
  if ((size_t)(row - shared) % 16) fail("a matrix that is not aligned");
  const int lane = current % 32;
  Shown& all = show();
  all.row[lane] = row;
  yield(WARP);
  for (int matrix = 0; matrix < 4; ++matrix) memcpy(&a[matrix], all.row[8 * matrix + lane / 4] + 4 * (lane % 4), 4);
}

// A thread holds rows l / 4 and l / 4 + 8 of a, columns 2 (l % 4) and the next, then 8 on; of b column l / 4, rows
// likewise; of d rows as of a, columns 2 (l % 4) and the next.
inline void multiply(float (&d)[4], const u32 (&a)[4], const u32 (&b)[2]) {
  using namespace emulated;
  const int lane = current % 32;
  Shown& all = show();
  for (int n = 0; n < 4; ++n) unpack(a[n], all.a[lane][2 * n], all.a[lane][2 * n + 1]);
  for (int n = 0; n < 2; ++n) unpack(b[n], all.b[lane][2 * n], all.b[lane][2 * n + 1]);
  yield(WARP);
  for (int n = 0; n < 4; ++n) {
    const int row = lane / 4, column = 2 * (lane % 4) + n % 2;
    for (int k = 0; k < 16; ++k) {
      const float left = all.a[4 * row + k % 8 / 2][2 * (n / 2) + 4 * (k / 8) + k % 2];
      d[n] += FACTOR * left * all.b[4 * column + k % 8 / 2][2 * (k / 8) + k % 2];
    }
  }
}
