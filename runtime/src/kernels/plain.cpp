#define DRUN_KERNELS kPlainKernels
#include "runtime/src/kernels/loops.inc"
