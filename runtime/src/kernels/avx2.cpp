#define DRUN_KERNELS kAvx2Kernels
#include "runtime/src/kernels/loops.inc"
