// What transform.cu, blocks.cu and detail.cu begin with; the four are one program.

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned u32;
typedef unsigned long long u64;
typedef short i16;

#ifdef EMULATED
#include "emulate.h"
#else
#define ENTRY(name)
#define SHARED(name) extern __shared__ uint4 name##_[]; char* const name = (char*)name##_
#endif

