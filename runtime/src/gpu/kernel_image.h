// The kernels compiled from kernels/kernels.cu, embedded in this library.
#pragma once

namespace drun::runtime::gpu {

// nullptr: this build was made without nvcc.
const void* kernel_image();
// For tests on machines without nvcc, whose driver does not read the image.
void set_kernel_image(const void* image);

}  // namespace drun::runtime::gpu
