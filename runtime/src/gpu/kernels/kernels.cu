// The kernels, by name: operations of training on memory of a GPU. Every kernel computes the same bits as the host's
// loop that it replaces (drun/training/), whatever the number of blocks. docs/gpu.md.
#include <cstdint>

#include "runtime/src/gpu/kernels/adasum.h"
#include "runtime/src/gpu/kernels/block.h"
#include "runtime/src/gpu/kernels/elements.h"
#include "runtime/src/gpu/kernels/halves.h"
#include "runtime/src/gpu/kernels/pieces.h"
#include "runtime/src/gpu/kernels/scatter.h"
#include "runtime/src/gpu/kernels/take.h"
#include "runtime/src/gpu/kernels/top_k.h"

namespace drun::runtime::gpu {

// By bytes per element.
DRUN_KERNEL(drun_pack_1, PieceArguments, pack<std::uint8_t>)
DRUN_KERNEL(drun_pack_2, PieceArguments, pack<std::uint16_t>)
DRUN_KERNEL(drun_pack_4, PieceArguments, pack<std::uint32_t>)
DRUN_KERNEL(drun_pack_8, PieceArguments, pack<std::uint64_t>)
DRUN_KERNEL(drun_unpack_1, PieceArguments, unpack<std::uint8_t>)
DRUN_KERNEL(drun_unpack_2, PieceArguments, unpack<std::uint16_t>)
DRUN_KERNEL(drun_unpack_4, PieceArguments, unpack<std::uint32_t>)
DRUN_KERNEL(drun_unpack_8, PieceArguments, unpack<std::uint64_t>)

DRUN_KERNEL(drun_narrow_f32_f16, PieceArguments, narrow<float, Float16>)
DRUN_KERNEL(drun_narrow_f32_bf16, PieceArguments, narrow<float, Bfloat16>)
DRUN_KERNEL(drun_narrow_f64_f16, PieceArguments, narrow<double, Float16>)
DRUN_KERNEL(drun_narrow_f64_bf16, PieceArguments, narrow<double, Bfloat16>)
DRUN_KERNEL(drun_widen_f32_f16, PieceArguments, widen<float, Float16>)
DRUN_KERNEL(drun_widen_f32_bf16, PieceArguments, widen<float, Bfloat16>)
DRUN_KERNEL(drun_widen_f64_f16, PieceArguments, widen<double, Float16>)
DRUN_KERNEL(drun_widen_f64_bf16, PieceArguments, widen<double, Bfloat16>)

DRUN_KERNEL(drun_scale_f16, ElementArguments, scale_half<Float16>)
DRUN_KERNEL(drun_scale_bf16, ElementArguments, scale_half<Bfloat16>)
DRUN_KERNEL(drun_scale_f32, ElementArguments, scale<float>)
DRUN_KERNEL(drun_scale_f64, ElementArguments, scale<double>)
DRUN_KERNEL(drun_divide_f32, ElementArguments, divide<float>)
DRUN_KERNEL(drun_divide_f64, ElementArguments, divide<double>)
DRUN_KERNEL(drun_add_f32, ElementArguments, add<float>)
DRUN_KERNEL(drun_add_f64, ElementArguments, add<double>)

DRUN_KERNEL(drun_begin_selection, SelectArguments, begin_selection)
DRUN_KERNEL(drun_guess_pivot_f32, SelectArguments, guess_pivot<float>)
DRUN_KERNEL(drun_guess_pivot_f64, SelectArguments, guess_pivot<double>)
DRUN_KERNEL(drun_collect_f32, SelectArguments, collect<float>)
DRUN_KERNEL(drun_collect_f64, SelectArguments, collect<double>)
DRUN_KERNEL(drun_find_digit_f32, SelectArguments, find_digit<float>)
DRUN_KERNEL(drun_find_digit_f64, SelectArguments, find_digit<double>)
DRUN_KERNEL(drun_count_tiles_f32, SelectArguments, count_tiles<float>)
DRUN_KERNEL(drun_count_tiles_f64, SelectArguments, count_tiles<double>)
DRUN_KERNEL(drun_take_f32_u32, SelectArguments, take<float, std::uint32_t>)
DRUN_KERNEL(drun_take_f32_u64, SelectArguments, take<float, std::uint64_t>)
DRUN_KERNEL(drun_take_f64_u32, SelectArguments, take<double, std::uint32_t>)
DRUN_KERNEL(drun_take_f64_u64, SelectArguments, take<double, std::uint64_t>)

DRUN_KERNEL(drun_scatter_add_f32_u32, ScatterArguments, scatter_add<float, std::uint32_t>)
DRUN_KERNEL(drun_scatter_add_f32_u64, ScatterArguments, scatter_add<float, std::uint64_t>)
DRUN_KERNEL(drun_scatter_add_f64_u32, ScatterArguments, scatter_add<double, std::uint32_t>)
DRUN_KERNEL(drun_scatter_add_f64_u64, ScatterArguments, scatter_add<double, std::uint64_t>)
DRUN_KERNEL(drun_scatter_zero_f32_u32, ScatterArguments, scatter_zero<float, std::uint32_t>)
DRUN_KERNEL(drun_scatter_zero_f32_u64, ScatterArguments, scatter_zero<float, std::uint64_t>)
DRUN_KERNEL(drun_scatter_zero_f64_u32, ScatterArguments, scatter_zero<double, std::uint32_t>)
DRUN_KERNEL(drun_scatter_zero_f64_u64, ScatterArguments, scatter_zero<double, std::uint64_t>)

DRUN_KERNEL(drun_dots_f32, DotsArguments, dots<float>)
DRUN_KERNEL(drun_dots_f64, DotsArguments, dots<double>)
DRUN_KERNEL(drun_add_dots, DotsArguments, add_dots)
DRUN_KERNEL(drun_adasum_f32, DotsArguments, adasum<float>)
DRUN_KERNEL(drun_adasum_f64, DotsArguments, adasum<double>)

}  // namespace drun::runtime::gpu
