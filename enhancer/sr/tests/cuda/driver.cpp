// A CUDA driver and NVRTC that run kernels on the CPU, for tests of the host's side without a GPU: emulate.h compiles
// and runs them. One library stands for both; streams do their work at once, graphs record launches and copies.
//
// From the environment: EMULATED_DEVICES, EMULATED_SLICES (machine.h: which devices there are, and NVML), EMULATED_SHARED, EMULATED_SHARED_SM (bytes of shared memory of a block and of a multiprocessor),
// EMULATED_ARCH (80), EMULATED_MEMORY (bytes that can be allocated), EMULATED_LOST (a file; while it exists, everything
// fails as after the device's loss; with a device's number at its end, of that device alone), EMULATED_HANG (a file; while it exists,
// nobody who waits for a device gets an answer), EMULATED_FULL (a file; while it exists, nobody is given memory), EMULATED_INCLUDE (where emulate.h is), EMULATED_KERNELS (where compiled kernels are kept), EMULATED_DRIVER (the driver's version), EMULATED_STUB (it is the toolkit's stub), EMULATED_WRONG (products are a little too large),
// EMULATED_SKIP (a kernel that does nothing, so that `windlass-lab bench gpu` can be tried: `multiply_only` takes hours).

#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <functional>
#include <ctime>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unistd.h>
#include <vector>

#include "machine.h"

namespace {

enum { SUCCESS = 0, INVALID = 1, OUT_OF_MEMORY = 2, STUB_LIBRARY = 34, NO_DEVICE = 100, NOT_FOUND = 500, ILLEGAL_ADDRESS = 700 };

std::mutex lock;
std::map<uintptr_t, size_t> memory;
size_t allocated = 0;

size_t number(const char* name, size_t otherwise) {
  const char* value = getenv(name);
  return value ? strtoull(value, nullptr, 10) : otherwise;
}

// The calling thread's device.
thread_local int current = 0;

bool lost(int device = current) {
  const char* file = getenv("EMULATED_LOST");
  return file && (access(file, F_OK) == 0 || access((file + std::to_string(device)).c_str(), F_OK) == 0);
}

bool full() {
  const char* file = getenv("EMULATED_FULL");
  return file && access(file, F_OK) == 0;
}

void hang() {
  const char* file = getenv("EMULATED_HANG");
  while (file && access(file, F_OK) == 0) usleep(10000);
}

struct Function { bool skipped; const unsigned long* bytes; void (*entry)(void**); int (*launch)(void (*)(void**), void**, unsigned, unsigned, unsigned, unsigned, unsigned); };
struct Stream { std::vector<std::function<int()>>* captured = nullptr; };
using Graph = std::vector<std::function<int()>>;

int submit(void* stream, std::function<int()> work) {
  if (lost()) return ILLEGAL_ADDRESS;
  Stream* on = (Stream*)stream;
  if (on && on->captured) {
    on->captured->push_back(work);
    return SUCCESS;
  }
  std::lock_guard<std::mutex> guard(lock);
  return work();
}

bool inside(uintptr_t at, size_t bytes) {
  auto after = memory.upper_bound(at);
  if (after == memory.begin()) return false;
  --after;
  return at + bytes <= after->first + after->second;
}

}  // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))

// What this process was shown when it first asked.
static const std::vector<machine::Entity>& shown() {
  static const auto all = machine::visible();
  return all;
}

EXPORT int cuInit(unsigned) { return number("EMULATED_STUB", 0) ? STUB_LIBRARY : lost() ? ILLEGAL_ADDRESS : shown().empty() ? NO_DEVICE : SUCCESS; }
EXPORT int cuDriverGetVersion(int* version) { *version = (int)number("EMULATED_DRIVER", 12090); return SUCCESS; }
EXPORT int cuDeviceGetCount(int* count) { *count = (int)shown().size(); return SUCCESS; }
EXPORT int cuDeviceGet(int* device, int ordinal) { *device = ordinal; return ordinal < (int)shown().size() ? SUCCESS : INVALID; }
EXPORT int cuDeviceGetName(char* name, int size, int device) { snprintf(name, size, "%s", machine::name(shown()[device]).c_str()); return SUCCESS; }
EXPORT int cuDeviceGetUuid(void* to, int device) { machine::bytes({shown()[device].card, -1}, (unsigned char*)to); return SUCCESS; }
EXPORT int cuDeviceGetUuid_v2(void* to, int device) { machine::bytes(shown()[device], (unsigned char*)to); return SUCCESS; }
EXPORT int cuDeviceGetPCIBusId(char* name, int size, int device) { snprintf(name, size, "0000:%02X:00.0", 16 + shown()[device].card); return SUCCESS; }
EXPORT int cuDeviceTotalMem_v2(size_t* bytes, int) { *bytes = 1ull << 30; return SUCCESS; }
EXPORT int cuDeviceGetAttribute(int* value, int attribute, int) {
  const int arch = (int)number("EMULATED_ARCH", 80);
  switch (attribute) {
    case 16: *value = 2; break;                                                // multiprocessors
    case 75: *value = arch / 10; break;                                        // compute capability
    case 76: *value = arch % 10; break;
    case 81: *value = (int)number("EMULATED_SHARED_SM", 233472); break;        // shared memory of a multiprocessor
    case 97: *value = (int)number("EMULATED_SHARED", 232448); break;           // of a block that asks for it
    default: return INVALID;
  }
  return SUCCESS;
}
EXPORT int cuDevicePrimaryCtxSetFlags_v2(int, unsigned) { return SUCCESS; }
EXPORT int cuDevicePrimaryCtxRetain(void** context, int device) { *context = (void*)(intptr_t)(device + 1); return lost(device) ? ILLEGAL_ADDRESS : SUCCESS; }
EXPORT int cuDevicePrimaryCtxRelease_v2(int) { return SUCCESS; }
EXPORT int cuCtxSetCurrent(void* context) { current = (int)(intptr_t)context - 1; return SUCCESS; }
EXPORT int cuCtxSynchronize() { return lost() ? ILLEGAL_ADDRESS : SUCCESS; }
EXPORT int cuGetErrorName(int error, const char** name) { *name = error == ILLEGAL_ADDRESS ? "CUDA_ERROR_ILLEGAL_ADDRESS" : "CUDA_ERROR"; return SUCCESS; }
EXPORT int cuGetErrorString(int error, const char** text) { *text = error == OUT_OF_MEMORY ? "out of memory" : error == ILLEGAL_ADDRESS ? "an illegal memory access was encountered" : "emulated error"; return SUCCESS; }

EXPORT int cuMemAlloc_v2(uint64_t* at, size_t bytes) {
  std::lock_guard<std::mutex> guard(lock);
  if (lost()) return ILLEGAL_ADDRESS;
  if (full() || allocated + bytes > number("EMULATED_MEMORY", 1ull << 30)) return OUT_OF_MEMORY;
  void* block = aligned_alloc(256, (bytes + 255) / 256 * 256);
  memset(block, 0xff, bytes);
  memory[(uintptr_t)block] = bytes, allocated += bytes;
  *at = (uintptr_t)block;
  return SUCCESS;
}
EXPORT int cuMemFree_v2(uint64_t at) {
  std::lock_guard<std::mutex> guard(lock);
  auto found = memory.find(at);
  if (found == memory.end()) return INVALID;
  allocated -= found->second, memory.erase(found);
  free((void*)at);
  return SUCCESS;
}
EXPORT int cuMemHostAlloc(void** at, size_t bytes, unsigned) {
  if (full()) return OUT_OF_MEMORY;
  *at = aligned_alloc(256, (bytes + 255) / 256 * 256);
  return SUCCESS;
}
EXPORT int cuMemFreeHost(void* at) { free(at); return SUCCESS; }
EXPORT int cuMemcpyHtoDAsync_v2(uint64_t to, const void* from, size_t bytes, void* stream) {
  return submit(stream, [=] { if (!inside(to, bytes)) return (int)ILLEGAL_ADDRESS; memcpy((void*)to, from, bytes); return (int)SUCCESS; });
}
EXPORT int cuMemcpyDtoHAsync_v2(void* to, uint64_t from, size_t bytes, void* stream) {
  return submit(stream, [=] { if (!inside(from, bytes)) return (int)ILLEGAL_ADDRESS; memcpy(to, (void*)from, bytes); return (int)SUCCESS; });
}
EXPORT int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, void* stream) {
  return submit(stream, [=] { memcpy((void*)to, (void*)from, bytes); return (int)SUCCESS; });
}

EXPORT int cuStreamCreate(void** stream, unsigned) { *stream = new Stream; return SUCCESS; }
EXPORT int cuStreamDestroy_v2(void* stream) { delete (Stream*)stream; return SUCCESS; }
EXPORT int cuStreamSynchronize(void*) { hang(); return lost() ? ILLEGAL_ADDRESS : SUCCESS; }
EXPORT int cuStreamBeginCapture_v2(void* stream, int) { ((Stream*)stream)->captured = new Graph; return SUCCESS; }
EXPORT int cuStreamEndCapture(void* stream, void** graph) {
  *graph = ((Stream*)stream)->captured, ((Stream*)stream)->captured = nullptr;
  return SUCCESS;
}
EXPORT int cuGraphInstantiateWithFlags(void** made, void* graph, unsigned long long) { *made = new Graph(*(Graph*)graph); return SUCCESS; }
EXPORT int cuGraphDestroy(void* graph) { delete (Graph*)graph; return SUCCESS; }
EXPORT int cuGraphExecDestroy(void* graph) { delete (Graph*)graph; return SUCCESS; }
EXPORT int cuGraphLaunch(void* graph, void* stream) {
  for (auto& work : *(Graph*)graph)
    if (int error = submit(stream, work)) return error;
  return SUCCESS;
}
EXPORT int cuEventCreate(void** event, unsigned) { *event = new double(0); return SUCCESS; }
EXPORT int cuEventDestroy_v2(void* event) { delete (double*)event; return SUCCESS; }
EXPORT int cuEventRecord(void* event, void*) {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  *(double*)event = 1e3 * (double)now.tv_sec + 1e-6 * (double)now.tv_nsec;
  return SUCCESS;
}
EXPORT int cuEventSynchronize(void*) { return lost() ? ILLEGAL_ADDRESS : SUCCESS; }
EXPORT int cuEventElapsedTime(float* ms, void* from, void* to) { *ms = (float)(*(double*)to - *(double*)from); return SUCCESS; }
EXPORT int cuEventElapsedTime_v2(float* ms, void* from, void* to) { return cuEventElapsedTime(ms, from, to); }

EXPORT int cuModuleLoadData(void** module, const void* image) {
  if (memcmp(image, "EMULATED", 8)) return INVALID;
  *module = dlopen((const char*)image + 8, RTLD_NOW | RTLD_LOCAL);
  if (!*module) fprintf(stderr, "%s\n", dlerror());
  return *module ? SUCCESS : NOT_FOUND;
}
EXPORT int cuModuleUnload(void*) { return SUCCESS; }
EXPORT int cuModuleGetFunction(void** function, void* module, const char* name) {
  auto made = new Function;
  *(void**)&made->entry = dlsym(module, (std::string(name) + "_entry").c_str());
  *(const void**)&made->bytes = dlsym(module, (std::string(name) + "_bytes").c_str());
  *(void**)&made->launch = dlsym(module, "emulated_launch");
  made->skipped = getenv("EMULATED_SKIP") && !strcmp(getenv("EMULATED_SKIP"), name);
  *function = made;
  return made->entry && made->bytes && made->launch ? SUCCESS : NOT_FOUND;
}
EXPORT int cuFuncSetAttribute(void*, int attribute, int value) {
  return attribute == 8 && (size_t)value > number("EMULATED_SHARED", 232448) ? INVALID : SUCCESS;
}
EXPORT int cuLaunchKernel(void* function, unsigned x, unsigned y, unsigned z, unsigned bx, unsigned by, unsigned bz, unsigned shared,
                          void* stream, void** parameters, void**) {
  if (by != 1 || bz != 1 || y > 65535 || z > 65535 || shared > number("EMULATED_SHARED", 232448)) return INVALID;
  // As the driver does, take a copy of the parameters; all kernels here have one.
  auto copy = std::make_shared<std::vector<char>>(*((Function*)function)->bytes);
  memcpy(copy->data(), parameters[0], copy->size());
  return submit(stream, [=] {
    void* one[] = {copy->data()};
    auto kernel = (Function*)function;
    if (kernel->skipped) return (int)SUCCESS;
    return kernel->launch(kernel->entry, one, x, y, z, bx, shared) ? (int)INVALID : (int)SUCCESS;
  });
}

// NVRTC

namespace {
struct Program { std::string source, image, log; };
int programs = 0;
}

EXPORT const char* nvrtcGetErrorString(int) { return "emulated error"; }
EXPORT int nvrtcVersion(int* major, int* minor) { *major = 12, *minor = 9; return SUCCESS; }
EXPORT int nvrtcCreateProgram(void** program, const char* source, const char*, int, const char* const*, const char* const*) {
  *program = new Program{source, "", ""};
  return SUCCESS;
}
EXPORT int nvrtcDestroyProgram(void** program) { delete (Program*)*program; return SUCCESS; }
EXPORT int nvrtcCompileProgram(void* handle, int count, const char* const* options) {
  std::lock_guard<std::mutex> guard(lock);
  auto program = (Program*)handle;
  const char* folder = getenv("EMULATED_INCLUDE");
  const char* kernels = getenv("EMULATED_KERNELS");
  if (!kernels || !folder) return INVALID;
  std::string command = "c++ -std=c++17 -O2 -march=native -w -U_FORTIFY_SOURCE -shared -fPIC -DEMULATED -I" + std::string(folder);
  for (int n = 0; n < count; ++n)
    if (!strncmp(options[n], "-D", 2)) command += std::string(" ") + options[n];
  if (getenv("EMULATED_WRONG")) command += " -DEMULATED_WRONG";
  // Compiled once for all tests: the folder's name says with which compiler and headers.
  const size_t key = std::hash<std::string>{}(command + program->source);
  const std::string kept = std::string(kernels) + "/kernel-" + std::to_string(key) + ".so";
  if (access(kept.c_str(), R_OK)) {
    const std::string base = kept + "." + std::to_string(getpid()) + "-" + std::to_string(++programs);
    FILE* file = fopen((base + ".cpp").c_str(), "w");
    if (!file) return INVALID;
    fwrite(program->source.data(), 1, program->source.size(), file);
    fclose(file);
    command += " -o " + base + ".so " + base + ".cpp";
    if (system(command.c_str()) || rename((base + ".so").c_str(), kept.c_str())) return 6;
    remove((base + ".cpp").c_str());
  }
  program->image = "EMULATED" + kept;
  return SUCCESS;
}
EXPORT int nvrtcGetCUBINSize(void* program, size_t* size) { *size = ((Program*)program)->image.size() + 1; return SUCCESS; }
EXPORT int nvrtcGetCUBIN(void* program, char* to) { strcpy(to, ((Program*)program)->image.c_str()); return SUCCESS; }
EXPORT int nvrtcGetPTXSize(void* program, size_t* size) { return nvrtcGetCUBINSize(program, size); }
EXPORT int nvrtcGetPTX(void* program, char* to) { return nvrtcGetCUBIN(program, to); }
EXPORT int nvrtcGetProgramLogSize(void* program, size_t* size) { *size = 1; return SUCCESS; }
EXPORT int nvrtcGetProgramLog(void* program, char* to) { *to = 0; return SUCCESS; }
EXPORT int nvrtcGetNumSupportedArchs(int* count) { *count = 4; return SUCCESS; }
EXPORT int nvrtcGetSupportedArchs(int* archs) { const int known[] = {75, 80, 90, 100}; memcpy(archs, known, sizeof known); return SUCCESS; }
