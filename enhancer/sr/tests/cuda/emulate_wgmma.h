// Hopper's products of warpgroups on the CPU, as PTX 9.7.15 has them: asynchronous, operands described by 64 bits. What they
// read is read, and what they sum is written, only when it is waited for; until then the registers hold what nobody may
// see, and a register that is written meanwhile aborts. They read shared memory as it was at the last `fence.proxy.async`.
// Warps of a warpgroup that meet different products abort, as do products without a fence before them, descriptors of
// layouts that are not emulated, and what lies outside of shared memory.

#pragma once
#include <utility>
#include <vector>

namespace emulated {

constexpr u32 IN_FLIGHT = 0x7fc0dead;

// A product that is not done, and how to do it.
struct Product {
  void (*run)(float (*d)[4], u64 a, u64 b);
  float (*d)[4];
  u64 a, b;
  bool operator!=(const Product& other) const { return run != other.run || a != other.a || b != other.b; }
};

struct Thread {
  bool fenced;
  size_t issued;
  std::vector<Product> products;
  std::vector<std::pair<float*, float>> registers;
};
static Thread threads[MAX_THREADS];
// Of each warpgroup what its first thread issued.
static std::vector<Product> issued[MAX_THREADS / 128];
// Shared memory as the asynchronous proxy sees it.
static std::vector<char> seen_by_products;

static void begin_warpgroups() {
  seen_by_products.assign(shared_size, (char)0xff);
  for (auto& thread : threads) thread = {};
  for (auto& all : issued) all.clear();
}

static void finish_warpgroups(int count) {
  for (current = 0; current < count; ++current) {
    if (!threads[current].products.empty()) fail("products that nobody waits for");
    if (threads[current].issued != issued[current / 128].size()) fail("warps of a warpgroup meet different products");
  }
}

static const bool warpgroups_hooked = (begin_block = begin_warpgroups, finish_block = finish_warpgroups, true);

inline u32 bits_of(float value) {
  u32 bits;
  memcpy(&bits, &value, 4);
  return bits;
}

// 16 bytes of a matrix: of a row, and half of K.
inline const char* row_of(u64 descriptor, int row, int half) {
  if (descriptor & 0x3ffec000c000c000) fail("a descriptor with bits that mean nothing, or a base offset");
  if (descriptor >> 62) fail("a descriptor of a swizzled layout");
  const auto bytes = [&](int at) { return (size_t)(descriptor >> at & 0x3fff) * 16; };
  const size_t at = bytes(0) + half * bytes(16) + row / 8 * bytes(32) + row % 8 * 16;
  if (at + 16 > seen_by_products.size()) fail("a product reads outside of shared memory");
  return &seen_by_products[at];
}

// A row's numbers in order of K.
inline void read_row(u64 descriptor, int row, float (&to)[16]) {
  for (int half = 0; half < 2; ++half) {
    const char* from = row_of(descriptor, row, half);
    for (int n = 0; n < 8; ++n) {
      unsigned short word;
      memcpy(&word, from + 2 * n, 2);
      to[8 * half + n] = emulated::half(word);
    }
  }
}

// A thread's part of a product: rows l / 4 and l / 4 + 8 of its warp's sixteen, of each eight columns 2 (l % 4) and the next.
template <int TILES>
void run_product(float (*d)[4], u64 a, u64 b) {
  const int lane = current % 32, warp = current / 32 % 4;
  float rows[2][16], column[16];
  for (int n = 0; n < 2; ++n) read_row(a, 16 * warp + lane / 4 + 8 * n, rows[n]);
  for (int tile = 0; tile < TILES; ++tile) {
    for (int n = 0; n < 2; ++n) {
      read_row(b, 8 * tile + 2 * (lane % 4) + n, column);
      for (int side = 0; side < 2; ++side) {
        float sum = d[tile][2 * side + n];
        for (int k = 0; k < 16; ++k) sum += rows[side][k] * column[k];
        d[tile][2 * side + n] = sum;
      }
    }
  }
}

}  // namespace emulated

inline u32 shared_address(const char* at) {
  using namespace emulated;
  if (at < shared || at >= shared + shared_size) fail("an address outside of shared memory");
  if ((at - shared) % 16) fail("a matrix that is not aligned");
  return (u32)(at - shared);
}

template <int TILES>
inline void multiply_async(float (&d)[TILES][4], u64 a, u64 b) {
  using namespace emulated;
  Thread& thread = threads[current];
  if (!thread.fenced) fail("products without wgmma.fence");
  const Product product = {run_product<TILES>, d, a, b};
  auto& all = issued[current / 128];
  if (thread.issued == all.size()) all.push_back(product);
  if (all[thread.issued++] != product) fail("warps of a warpgroup meet different products");
  for (auto& tile : d) {
    for (float& sum : tile) {
      if (bits_of(sum) == IN_FLIGHT) continue;
      thread.registers.push_back({&sum, sum});
      memcpy(&sum, &IN_FLIGHT, 4);
    }
  }
  thread.products.push_back(product);
}

template <int TILES>
inline void hold(float (&)[TILES][4]) {}

inline void begin_products() { emulated::threads[emulated::current].fenced = true; }

inline void finish_products() {
  using namespace emulated;
  Thread& thread = threads[current];
  for (auto& [at, value] : thread.registers) {
    if (bits_of(*at) != IN_FLIGHT) fail("a sum was written while products were under way");
    *at = value;
  }
  for (const Product& product : thread.products) product.run(product.d, product.a, product.b);
  thread.products.clear(), thread.registers.clear();
  thread.fenced = false;
}

// Stricter than the device in nothing, laxer in one thing: a warp's fence is one for what other warps have written so far.
inline void show_products() {
  using namespace emulated;
  yield(WARP);
  if (current % 32 == 0) memcpy(seen_by_products.data(), shared, shared_size);
}
