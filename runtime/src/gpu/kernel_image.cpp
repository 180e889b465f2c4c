#include "runtime/src/gpu/kernel_image.h"

#ifdef DRUN_KERNEL_IMAGE
// The unchanged file that nvcc made. The driver requires alignment.
asm(".section .rodata\n"
    ".balign 16\n"
    ".hidden drun_embedded_kernels\n"
    ".globl drun_embedded_kernels\n"
    "drun_embedded_kernels:\n"
    ".incbin \"" DRUN_KERNEL_IMAGE
    "\"\n"
    ".byte 0\n"
    ".previous\n");
extern "C" const unsigned char drun_embedded_kernels[];
#endif

namespace drun::runtime::gpu {
namespace {

#ifdef DRUN_KERNEL_IMAGE
const void* image = drun_embedded_kernels;
#else
const void* image = nullptr;
#endif

}  // namespace

const void* kernel_image() { return image; }
void set_kernel_image(const void* other) { image = other; }

}  // namespace drun::runtime::gpu
