// What transform.cu and blocks.cu begin with; the three are one program.

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

