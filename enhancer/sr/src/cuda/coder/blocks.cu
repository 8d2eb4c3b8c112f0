// Quantises and codes blocks of 64×64 coefficients: windlass-htj2k's `BlockEncoder` (ITU-T T.814, clause 7), byte for byte.
//
// A warp codes a block, a lane one of the 32 quads of a row of quads, so that all of a row is done at once: contexts come
// from the neighbour lanes and from what the row above left in registers, codes from a table, and the place of every bit
// from a prefix sum over the lanes. Each lane puts its bits into shared memory, and the warp makes bytes of the row's bits.
//
// What is serial, and why:
// - Rows, since the bits of a row follow those of the row before. There are 32 of them at most, and blocks enough.
// - Stuffing: which bits a byte takes depends on the byte before it, but only after one of 0xff (magnitudes) or above 0x8f
//   (codes). So 32 bytes are made as if there were none, and what comes behind the first one that matters is made anew.
// - MEL, an adaptive code of the events in order. Runs of what did not happen are counted by the population of a mask, so
//   that it takes a step for each event that did happen and each full run: all lanes do the same, the first one writes.
//
// There are two passes. The first one measures, so that the second writes each byte where it belongs, without room for the
// worst case and without copying: only coded bytes and lengths leave the device.

constexpr int BLOCK_WARPS = 2;        // of a block of threads
constexpr int MAGNITUDE_WORDS = 128;  // for a row of 128 samples and what the row before left
constexpr int CODE_WORDS = 32;        // for 16 pairs of quads of 30 bits at most
constexpr u32 ALL = 0xffffffff;

// The parameters of a launch; mod.rs has the same.
struct Block {
  int x, y, step;  // first column, first row of the plane, and rows of the plane from one row to the next
  int width, height, band;
};

struct Quantiser {
  float inverse;
  u32 most;
};

struct Length {
  u32 magnitudes, all;  // bytes
};

struct Coding {
  const float* planes;          // of all pictures
  const Block* blocks;          // of a picture
  const int* pictures;          // of each job
  const Quantiser* quantisers;  // of each job, by band
  const u16* codes;             // of the first row of quads, then of the others
  Length* lengths;              // of each job's blocks: written by the first pass, read by the second
  const u64* places;            // where each job's blocks belong
  u8* bytes;
  u64 area;                     // of a plane
  int width, count, bands;      // of a plane; blocks of a picture; bands of it
};

__device__ __forceinline__ int bit_length(u32 value) { return 32 - __clz((int)value); }

// Puts bits into zeroed words.
__device__ __forceinline__ void put(u32* words, int at, u32 value, int length) {
  if (length == 0) return;
  const int shift = at % 32;
  atomicOr(&words[at / 32], value << shift);
  if (shift + length > 32) atomicOr(&words[at / 32 + 1], value >> (32 - shift));
}

// Eight bits from words.
__device__ __forceinline__ u32 byte_at(const u32* words, int at) {
  const int shift = at % 32;
  const u32 low = words[at / 32] >> shift;
  return (shift > 24 ? low | words[at / 32 + 1] << (32 - shift) : low) & 0xff;
}

// The end of a stream whose bits are yet too few for a byte.
struct Rest {
  u32 value;
  int length;
};

// Makes room for bits behind a rest.
__device__ __forceinline__ void clear(u32* words, const Rest& rest, int more, int lane) {
  for (int i = lane; 32 * i < rest.length + more; i += 32) words[i] = i ? 0 : rest.value;
}

// Keeps what is left of `have` bits.
__device__ __forceinline__ void keep(const u32* words, int at, int have, Rest& rest) {
  rest.length = have - at;
  rest.value = rest.length ? byte_at(words, at) & ((1u << rest.length) - 1) : 0;
}

// MagSgn: low bits first; after a byte of 0xff come seven bits.
template <bool WRITE>
struct Magnitudes {
  Rest rest = {0, 0};
  int count = 0, after = 0;  // after: 1 behind 0xff
  u8* out;
  int most;  // bytes; the last one may be dropped after it was made

  __device__ __forceinline__ void add(const u32* words, int have, int lane) {
    int at = 0;
    for (;;) {
      const int whole = min((have - at + after) / 8, 32);
      if (whole == 0) break;
      const u32 byte = lane >= whole ? 0 : lane ? byte_at(words, at + 8 * lane - after) : byte_at(words, at) & (0xff >> after);
      const u32 full = __ballot_sync(ALL, byte == 0xff);
      const int made = full ? __ffs((int)full) : whole;
      if (WRITE && lane < made && count + lane < most) out[count + lane] = (u8)byte;
      count += made, at += 8 * made - after, after = full != 0;
    }
    keep(words, at, have, rest);
  }

  // Fills the last byte with ones; one of ones at the end is what a decoder assumes anyway.
  __device__ __forceinline__ void finish(int lane) {
    if (rest.length) {
      const u32 byte = rest.value | ((0xffu >> after) & ~((1u << rest.length) - 1));
      if (WRITE && lane == 0 && count < most) out[count] = (u8)byte;
      ++count, after = byte == 0xff;
    }
    count -= after;
  }
};

// VLC: bytes in the order in which they are read, which is from the block's end. After a byte above 0x8f, seven set bits
// make a byte of their own. The first twelve bits are the length of MEL and VLC.
template <bool WRITE>
struct Codes {
  Rest rest = {15, 4};
  int count = 1;
  u32 last = 0xff;
  u8* end;     // of the block
  u32 length;  // of MEL and VLC, in the second pass

  __device__ __forceinline__ void write(int at, u32 byte) {
    if (WRITE) end[-1 - at] = (u8)(at == 1 ? (byte & 0xf0) | (length & 15) : byte);
  }

  __device__ __forceinline__ void add(const u32* words, int have, int lane) {
    int at = 0;
    for (;;) {
      const int whole = min((have - at) / 8, 32);
      if (whole == 0) break;
      u32 byte = lane < whole ? byte_at(words, at + 8 * lane) : 0;
      u32 before = __shfl_up_sync(ALL, byte, 1);
      if (lane == 0) before = last;
      const u32 stuffed = __ballot_sync(ALL, before > 0x8f && (byte & 0x7f) == 0x7f);
      const int made = stuffed ? __ffs((int)stuffed) : whole;
      if (stuffed && lane == made - 1) byte = 0x7f;
      if (lane < made) write(count + lane, byte);
      last = __shfl_sync(ALL, byte, made - 1);
      count += made, at += 8 * made - (stuffed != 0);
    }
    keep(words, at, have, rest);
  }
};

// MEL: an adaptive run-length code, high bits first; after a byte of 0xff come seven bits.
template <bool WRITE>
struct Mel {
  u32 pending = 0, run = 0;
  int free = 8, state = 0, count = 0;  // free: bits of the pending byte
  u8* out;

  __device__ __forceinline__ void push(u32 byte, int lane) {
    if (WRITE && lane == 0) out[count] = (u8)byte;
    ++count;
  }

  __device__ __forceinline__ void put(u32 bit, int lane) {
    pending = pending << 1 | bit;
    if (--free) return;
    push(pending, lane);
    free = pending == 0xff ? 7 : 8;
    pending = 0;
  }

  // The run lengths' exponents of the thirteen states, four bits each.
  __device__ __forceinline__ int exponent() const { return (int)(0x5433222111000ull >> (4 * state)) & 15; }

  // So many events that did not happen.
  __device__ __forceinline__ void quiet(u32 events, int lane) {
    while (events) {
      const u32 left = (1u << exponent()) - run;
      if (events < left) {
        run += events;
        return;
      }
      put(1, lane);
      run = 0, events -= left, state = min(state + 1, 12);
    }
  }

  // Events in the order of the bits of `asked`; those of `happened` did.
  __device__ __forceinline__ void add(u32 asked, u32 happened, int lane) {
    while (happened) {
      const u32 before = (happened & -happened) - 1;
      quiet(__popc(asked & before), lane);
      put(0, lane);
      for (int bit = exponent() - 1; bit >= 0; --bit) put(run >> bit & 1, lane);
      run = 0, state = max(state - 1, 0);
      asked &= ~(2 * before + 1), happened &= happened - 1;
    }
    quiet(__popc(asked), lane);
  }
};

struct Bits {
  u32 value;
  int length;

  __device__ __forceinline__ void put(u32 more, int bits) { value |= more << length, length += bits; }
};

// Codes how far the exponents of a pair of quads exceed their bounds (T.814, table 3).
__device__ __forceinline__ void put_offsets(Bits& bits, u32 a, u32 b, bool first_row) {
  bool single = false;  // the second one is known to be 1 or 2
  if (first_row && a > 2 && b > 2) {
    a -= 2, b -= 2;
  } else if (first_row && a > 2 && b > 0) {
    single = true;
  }
  const auto prefix = [](u32 offset) { return offset > 4 ? 0 : offset > 2 ? 4 : offset; };
  const auto prefix_length = [](u32 offset) { return offset > 2 ? 3 : (int)offset; };
  const auto suffix = [](u32 offset) { return offset > 4 ? offset - 5 : offset > 2 ? offset - 3 : 0; };
  const auto suffix_length = [](u32 offset) { return offset > 4 ? 5 : offset > 2 ? 1 : 0; };
  bits.put(prefix(a), prefix_length(a));
  bits.put(single ? b - 1 : prefix(b), single ? 1 : prefix_length(b));
  bits.put(suffix(a), suffix_length(a));
  if (!single) bits.put(suffix(b), suffix_length(b));
}

// Coefficients of a quad: upper left, lower left, upper right, lower right; 0 beyond the block.
struct Quad {
  float at[4];
};

__device__ __forceinline__ Quad load(const float* plane, const Block& block, int width, int row, int lane) {
  Quad quad = {{0.0f, 0.0f, 0.0f, 0.0f}};
  for (int n = 0; n < 4; ++n) {
    const int x = 2 * lane + n / 2, y = 2 * row + n % 2;
    if (x < block.width && y < block.height) quad.at[n] = plane[(size_t)(block.y + y * block.step) * width + block.x + x];
  }
  return quad;
}

// A magnitude times two, plus one when negative.
__device__ __forceinline__ u32 quantised(float value, const Quantiser& quantiser) {
  const int q = (int)__fmul_rn(value, quantiser.inverse);
  return min(q < 0 ? 0u - (u32)q : (u32)q, quantiser.most) << 1 | (u32)q >> 31;
}

template <bool WRITE>
__device__ __forceinline__ void code(const Coding& coding, u32* magnitude_words, u32* code_words, int number, int lane) {
  const Block block = coding.blocks[number];
  const int job = (int)blockIdx.y;
  const size_t place = (size_t)job * coding.count + number;
  const Quantiser quantiser = coding.quantisers[job * coding.bands + block.band];
  const float* const plane = coding.planes + coding.pictures[job] * coding.area;
  Length length = {0, 0};
  Magnitudes<WRITE> magnitudes;
  Mel<WRITE> mel;
  Codes<WRITE> codes;
  if (WRITE) {
    length = coding.lengths[place];
    if (length.all == 0) return;
    u8* const out = coding.bytes + coding.places[place];
    magnitudes.out = out, magnitudes.most = (int)length.magnitudes;
    mel.out = out + length.magnitudes;
    codes.end = out + length.all, codes.length = length.all - length.magnitudes;
  }
  const int across = (block.width + 1) / 2, down = (block.height + 1) / 2;
  // 2μ−1 of the lower samples of the quad above, 0 where insignificant.
  u32 above_left = 0, above_right = 0;
  u32 above_any = 0, any = 0;
  Quad next = load(plane, block, coding.width, 0, lane);
  for (int row = 0; row < down; ++row) {
    const Quad quad = next;
    if (row + 1 < down) next = load(plane, block, coding.width, row + 1, lane);
    u32 samples[4], odd[4], rho = 0;
    for (int n = 0; n < 4; ++n) {
      samples[n] = quantised(quad.at[n], quantiser);
      odd[n] = samples[n] ? (samples[n] | 1) - 2 : 0;
      rho |= (u32)(odd[n] != 0) << n;
    }
    const u32 row_any = __ballot_sync(ALL, rho != 0);
    if (!(row_any | above_any)) {
      mel.quiet(across, lane);
      continue;
    }
    u32 near_left = __shfl_up_sync(ALL, above_right, 1), near_right = __shfl_down_sync(ALL, above_left, 1);
    u32 left = __shfl_up_sync(ALL, rho, 1);
    if (lane == 0) near_left = 0, left = 0;
    if (lane == 31) near_right = 0;
    const bool first_row = row == 0;
    const u32 context = first_row ? left >> 1 | (left & 1)
                                  : (u32)((near_left | above_left) != 0) | (u32)((left & 12) != 0) << 1 |
                                        (u32)((above_right | near_right) != 0) << 2;
    const bool asked = lane < across && context == 0;
    const bool coded = lane < across && (context || rho);
    // How many bits the samples have, and how many they are known to have.
    const bool several = !first_row && (rho & (rho - 1));
    const int bound = several ? max(bit_length(near_left | above_left | above_right | near_right) - 1, 1) : 1;
    const int own = bit_length(odd[0] | odd[1] | odd[2] | odd[3]);
    const int exponent = max(own, bound);
    const u32 offset = coded ? exponent - bound : 0;
    u32 top = 0;
    if (offset)
      for (int n = 0; n < 4; ++n) top |= (odd[n] >> (own - 1) & 1) << n;
    const u32 code = coded ? __ldg(&coding.codes[(first_row ? 0 : 2048) + (context << 8 | rho << 4 | top)]) : 0;
    int lengths[4], sum = 0;
    for (int n = 0; n < 4; ++n) {
      lengths[n] = rho >> n & 1 ? exponent - (int)(code >> n & 1) : 0;
      sum += lengths[n];
    }
    // The codes of a pair of quads lie together, by its even lane.
    const u32 other_code = __shfl_down_sync(ALL, code, 1), other_offset = __shfl_down_sync(ALL, offset, 1);
    const bool even = lane % 2 == 0;
    Bits bits = {0, 0};
    if (even) {
      bits.put(code >> 8, code >> 4 & 15);
      bits.put(other_code >> 8, other_code >> 4 & 15);
      put_offsets(bits, offset, other_offset, first_row);
    }
    // Sums over the lanes up to this one, of both streams at once.
    const u32 own_bits = (u32)sum | (u32)bits.length << 16;
    u32 sums = own_bits;
    for (int step = 1; step < 32; step *= 2) {
      const u32 before = __shfl_up_sync(ALL, sums, step);
      if (lane >= step) sums += before;
    }
    const u32 total = __shfl_sync(ALL, sums, 31);
    sums -= own_bits;
    const int magnitude_bits = (int)(total & 0xffff), code_bits = (int)(total >> 16);
    clear(magnitude_words, magnitudes.rest, magnitude_bits, lane);
    clear(code_words, codes.rest, code_bits, lane);
    __syncwarp();
    int at = magnitudes.rest.length + (int)(sums & 0xffff);
    for (int n = 0; n < 4; ++n) {
      put(magnitude_words, at, (samples[n] - 2) & ((1u << lengths[n]) - 1), lengths[n]);
      at += lengths[n];
    }
    put(code_words, codes.rest.length + (int)(sums >> 16), bits.value, bits.length);
    __syncwarp();
    magnitudes.add(magnitude_words, magnitudes.rest.length + magnitude_bits, lane);
    codes.add(code_words, codes.rest.length + code_bits, lane);
    const u32 all_asked = __ballot_sync(ALL, asked), happened = __ballot_sync(ALL, asked && rho);
    if (first_row) {
      // Of pairs whose offsets both are positive, it is told whether both are great.
      const bool pair = even && offset && other_offset;
      const u32 pairs = __ballot_sync(ALL, pair), great = __ballot_sync(ALL, pair && offset > 2 && other_offset > 2);
      for (int n = 0; n < across; n += 2)
        mel.add((all_asked >> n & 3) | (pairs >> n & 1) << 2, (happened >> n & 3) | (great >> n & 1) << 2, lane);
    } else {
      mel.add(all_asked, happened, lane);
    }
    above_left = odd[1], above_right = odd[3];
    above_any = row_any, any |= row_any;
    // All have read the words.
    __syncwarp();
  }
  if (any) {
    magnitudes.finish(lane);
    // A run that is cut by the end may be coded as a whole one.
    if (mel.run) mel.put(1, lane);
    const u32 mel_byte = mel.pending << mel.free & 0xff, mel_mask = 0xff << mel.free & 0xff;
    const u32 code_byte = codes.rest.value, code_mask = (1u << codes.rest.length) - 1;
    if (mel_mask | code_mask) {
      // One byte can end both when neither disturbs the other's bits.
      const u32 joint = mel_byte | code_byte;
      const bool undisturbed = (((joint ^ mel_byte) & mel_mask) | ((joint ^ code_byte) & code_mask)) == 0;
      if (undisturbed && joint != 0xff && codes.count > 1) {
        mel.push(joint, lane);
      } else {
        if (lane == 0) codes.write(codes.count, code_byte);
        ++codes.count;
        mel.push(mel_byte, lane);
      }
    }
    if (WRITE && lane == 0) codes.write(0, codes.length >> 4);
  }
  if (!WRITE && lane == 0) {
    length.magnitudes = any ? magnitudes.count : 0;
    length.all = any ? magnitudes.count + mel.count + codes.count : 0;
    coding.lengths[place] = length;
  }
}

template <bool WRITE>
__device__ __forceinline__ void code_all(const Coding& coding) {
  SHARED(streams);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, number = BLOCK_WARPS * (int)blockIdx.x + warp;
  if (number >= coding.count) return;
  u32* const words = (u32*)streams + warp * (MAGNITUDE_WORDS + CODE_WORDS);
  code<WRITE>(coding, words, words + MAGNITUDE_WORDS, number, lane);
}

extern "C" __global__ void __launch_bounds__(32 * BLOCK_WARPS) measure_blocks(const Coding coding) { code_all<false>(coding); }
extern "C" __global__ void __launch_bounds__(32 * BLOCK_WARPS) write_blocks(const Coding coding) { code_all<true>(coding); }

ENTRY(measure_blocks)
ENTRY(write_blocks)
