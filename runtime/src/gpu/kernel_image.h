// What nvcc made of kernels/kernels.cu, as it is a part of this library.
#pragma once

namespace drun::runtime::gpu {

// nullptr: this build was made without nvcc.
const void* kernel_image();
// For tests on machines without nvcc, whose driver does not look at it.
void set_kernel_image(const void* image);

}  // namespace drun::runtime::gpu
