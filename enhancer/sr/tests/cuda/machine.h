// The machine of the emulated driver: its cards, the slices that the first is cut into (MIG), what CUDA_VISIBLE_DEVICES lets
// CUDA see of them, and NVML (libnvidia-ml.so.1), which sees all.
//
// From the environment: EMULATED_DEVICES (cards, 1), EMULATED_SLICES (slices of the first card, 0: it is whole). As CUDA does
// under MIG, a process sees the first slice that it may see and nothing beside it; the first name that is none ends the list.

#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace machine {

struct Entity { int card, slice; };  // slice: -1 of a card as a whole

inline int cards() { const char* said = getenv("EMULATED_DEVICES"); return said ? atoi(said) : 1; }
inline int slices(int card) { const char* said = getenv("EMULATED_SLICES"); return said && card == 0 ? atoi(said) : 0; }

inline void bytes(Entity of, unsigned char* to) {
  memset(to, of.slice < 0 ? 0xca : 0x51, 16);
  to[14] = (unsigned char)of.card, to[15] = (unsigned char)(of.slice + 1);
}
inline std::string uuid(Entity of) {
  unsigned char all[16];
  bytes(of, all);
  std::string text = of.slice < 0 ? "GPU" : "MIG";
  for (int n = 0; n < 16; ++n) {
    char two[4];
    snprintf(two, sizeof two, "%s%02x", n == 0 || n == 4 || n == 6 || n == 8 || n == 10 ? "-" : "", all[n]);
    text += two;
  }
  return text;
}
inline std::string name(Entity of) { return of.slice < 0 ? "emulated" : "emulated MIG 1g.1gb"; }

// What CUDA shows this process.
inline std::vector<Entity> visible() {
  std::vector<Entity> usable, chosen;
  for (int card = 0; card < cards(); ++card) {
    for (int slice = 0; slice < slices(card); ++slice) usable.push_back({card, slice});
    if (!slices(card)) usable.push_back({card, -1});
  }
  if (const char* said = getenv("CUDA_VISIBLE_DEVICES")) {
    const std::string list = said;
    for (size_t at = 0; at <= list.size();) {
      const size_t end = list.find(',', at) == std::string::npos ? list.size() : list.find(',', at);
      const std::string one = list.substr(at, end - at);
      const Entity* found = nullptr;
      for (auto& each : usable) {
        const bool ordinal = !one.empty() && one.find_first_not_of("0123456789") == std::string::npos && atoi(one.c_str()) == each.card;
        if (!found && (ordinal || (one.size() > 4 && uuid(each).compare(0, one.size(), one) == 0))) found = &each;
      }
      if (!found) break;
      chosen.push_back(*found), at = end + 1;
    }
  } else {
    chosen = usable;
  }
  for (auto& each : chosen)
    if (each.slice >= 0) return {each};
  return chosen;
}

inline int text(const std::string& said, char* to, unsigned size) {
  if (said.size() >= size) return 7;  // too small
  strcpy(to, said.c_str());
  return 0;
}

}  // namespace machine

// NVML. A handle is 1 + 1000 × card, and of a slice 2 more than its number on top.

#define NVML extern "C" __attribute__((visibility("default")))

namespace machine {
inline void* handle(Entity of) { return (void*)(intptr_t)(1 + 1000 * of.card + of.slice + 1); }
inline Entity entity(void* handle) { const int n = (int)(intptr_t)handle - 1; return {n / 1000, n % 1000 - 1}; }
struct Memory { unsigned long long total, free, used; };
struct Pci { char legacy[16]; unsigned domain, bus, device, id, subsystem; char bus_id[32]; };
}

NVML int nvmlInit_v2() { return getenv("EMULATED_NOT_LOADED") ? 9 : 0; }
NVML int nvmlShutdown() { return 0; }
NVML const char* nvmlErrorString(int code) { return code == 3 ? "Not Supported" : "emulated error"; }
NVML int nvmlSystemGetDriverVersion(char* to, unsigned size) { return machine::text("999.9", to, size); }
NVML int nvmlDeviceGetCount_v2(unsigned* count) { *count = (unsigned)machine::cards(); return 0; }
NVML int nvmlDeviceGetHandleByIndex_v2(unsigned n, void** to) { *to = machine::handle({(int)n, -1}); return (int)n < machine::cards() ? 0 : 2; }
NVML int nvmlDeviceGetName(void* of, char* to, unsigned size) { return machine::text(machine::name(machine::entity(of)), to, size); }
NVML int nvmlDeviceGetUUID(void* of, char* to, unsigned size) { return machine::text(machine::uuid(machine::entity(of)), to, size); }
NVML int nvmlDeviceGetMemoryInfo(void*, machine::Memory* to) { *to = {1ull << 30, 1ull << 30, 0}; return 0; }
NVML int nvmlDeviceGetPciInfo_v3(void* of, machine::Pci* to) {
  *to = {};
  snprintf(to->bus_id, sizeof to->bus_id, "00000000:%02X:00.0", 16 + machine::entity(of).card);
  return 0;
}
NVML int nvmlDeviceGetMigMode(void* of, unsigned* now, unsigned* next) {
  const machine::Entity card = machine::entity(of);
  if (card.card > 0) return 3;
  *now = *next = machine::slices(0) > 0;
  return 0;
}
// As of real cards, more places than there are slices.
NVML int nvmlDeviceGetMaxMigDeviceCount(void*, unsigned* most) { *most = 7; return 0; }
NVML int nvmlDeviceGetMigDeviceHandleByIndex(void* of, unsigned n, void** to) {
  const int card = machine::entity(of).card;
  *to = machine::handle({card, (int)n});
  return (int)n < machine::slices(card) ? 0 : 6;
}
