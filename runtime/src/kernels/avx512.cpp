#define DRUN_KERNELS kAvx512Kernels
#include "runtime/src/kernels/loops.inc"
