# CUDA, if there is nvcc. nvcc compiles the GPU kernels for all architectures into one file, which is embedded in
# libdrun. libdrun links no CUDA library: the driver loads the kernels.
set(DRUN_CUDA AUTO CACHE STRING "Kernels for GPUs: AUTO (if there is an nvcc that can), ON or OFF")
set_property(CACHE DRUN_CUDA PROPERTY STRINGS AUTO ON OFF)
set(DRUN_CUDA_ARCHITECTURES "" CACHE STRING
  "Numbers such as 80;90, the last also for GPUs to come. Default: 60;61;70;75;80;86;89;90;100;120 as far as nvcc has them; in Debug 75 alone, which drivers compile for any GPU")

set(DRUN_KERNELS "" CACHE FILEPATH "A file of scripts/build-kernels, to embed in place of nvcc's kernels")

# -fmad=false: results are bit-identical to the host's.
set(DRUN_NVCC_OPTIONS -std=c++17 -fmad=false -I${PROJECT_SOURCE_DIR} -I${PROJECT_SOURCE_DIR}/runtime/include)

# Checks that nvcc can compile our kernels: it may be too old, or not support the host's compiler. Tries our C++
# compiler as host compiler, then nvcc's default.
function(drun_try_nvcc)
  foreach(host_compiler "-ccbin;${CMAKE_CXX_COMPILER}" "")
    execute_process(
      COMMAND ${DRUN_NVCC} ${DRUN_NVCC_OPTIONS} ${host_compiler} -fatbin -gencode arch=compute_75,code=compute_75
              -o ${CMAKE_BINARY_DIR}/CMakeFiles/try.fatbin ${PROJECT_SOURCE_DIR}/runtime/src/gpu/kernels/kernels.cu
      RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
    if(status EQUAL 0)
      set(DRUN_NVCC_HOST "${host_compiler}" CACHE INTERNAL "what nvcc is told of the host's compiler")
      set(DRUN_NVCC_WORKS ${DRUN_NVCC} CACHE INTERNAL "the nvcc that was tried")
      return()
    endif()
  endforeach()
  string(REGEX MATCH "[^\n]*error[^\n]*" reason "${output}")
  set(DRUN_NVCC_WHY_NOT "${DRUN_NVCC} can't compile them: ${reason}" PARENT_SCOPE)
endfunction()

set(DRUN_NVCC_WHY_NOT "")
if(NOT DRUN_CUDA)
  set(DRUN_NVCC_WHY_NOT "DRUN_CUDA is ${DRUN_CUDA}")
elseif(CMAKE_CROSSCOMPILING)
  set(DRUN_NVCC_WHY_NOT "this is a build for another machine")
else()
  find_program(DRUN_NVCC nvcc HINTS ENV CUDA_HOME ENV CUDA_PATH PATHS /usr/local/cuda PATH_SUFFIXES bin)
  if(NOT DRUN_NVCC)
    set(DRUN_NVCC_WHY_NOT "there is no nvcc in PATH, CUDA_HOME or /usr/local/cuda")
  elseif(NOT DRUN_NVCC_WORKS STREQUAL DRUN_NVCC)
    drun_try_nvcc()
  endif()
endif()
set(DRUN_HAS_NVCC TRUE)
if(DRUN_NVCC_WHY_NOT)
  set(DRUN_HAS_NVCC FALSE)
  if(DRUN_CUDA AND NOT DRUN_CUDA STREQUAL "AUTO")
    message(FATAL_ERROR "DRUN_CUDA is ${DRUN_CUDA}, but: ${DRUN_NVCC_WHY_NOT}")
  endif()
  if(NOT DRUN_KERNELS)
    message(STATUS "libdrun is built without kernels for GPUs: ${DRUN_NVCC_WHY_NOT}")
  endif()
endif()

# NVIDIA's table of minor version compatibility: the first driver that loads code of a major version of CUDA.
if(DRUN_HAS_NVCC AND NOT DRUN_KERNELS)
  execute_process(COMMAND ${DRUN_NVCC} --version OUTPUT_VARIABLE output ERROR_QUIET)
  string(REGEX MATCH "release ([0-9]+)" matched "${output}")
  set(first_driver_11 450)
  set(first_driver_12 525)
  set(first_driver_13 580)
  if(DEFINED first_driver_${CMAKE_MATCH_1})
    message(STATUS "Kernels for GPUs by nvcc of CUDA ${CMAKE_MATCH_1}: for drivers from ${first_driver_${CMAKE_MATCH_1}} on")
  endif()
endif()

# Sets `result` to nvcc's options for the GPU architectures.
function(drun_cuda_codes result)
  set(architectures ${DRUN_CUDA_ARCHITECTURES})
  if(NOT architectures AND CMAKE_BUILD_TYPE STREQUAL "Debug")
    set(${result} -gencode arch=compute_75,code=compute_75 PARENT_SCOPE)
    return()
  endif()
  if(NOT architectures)
    execute_process(COMMAND ${DRUN_NVCC} --list-gpu-arch OUTPUT_VARIABLE known ERROR_QUIET)
    foreach(architecture 60 61 70 75 80 86 89 90 100 120)  # before 75 only nvcc of CUDA 12
      if(known MATCHES "compute_${architecture}\n")
        list(APPEND architectures ${architecture})
      endif()
    endforeach()
    if(NOT architectures)
      set(architectures 75)
    endif()
  endif()
  set(codes "")
  foreach(architecture IN LISTS architectures)
    list(APPEND codes -gencode arch=compute_${architecture},code=sm_${architecture})
  endforeach()
  list(GET architectures -1 newest)
  list(APPEND codes -gencode arch=compute_${newest},code=compute_${newest})
  set(${result} ${codes} PARENT_SCOPE)
endfunction()

# drun_embed_kernels(KERNELS IMAGE): compiles KERNELS, a .cu file, with nvcc and embeds the result, or the file
# DRUN_KERNELS, in the source file IMAGE.
function(drun_embed_kernels kernels image)
  if(DRUN_KERNELS)
    if(NOT EXISTS ${DRUN_KERNELS})
      message(FATAL_ERROR "DRUN_KERNELS: there is no ${DRUN_KERNELS}: scripts/build-kernels ${DRUN_KERNELS}")
    endif()
    set_source_files_properties(${image} PROPERTIES
      COMPILE_DEFINITIONS DRUN_KERNEL_IMAGE="${DRUN_KERNELS}" OBJECT_DEPENDS ${DRUN_KERNELS})
    return()
  endif()
  if(NOT DRUN_HAS_NVCC)
    return()
  endif()
  drun_cuda_codes(codes)
  set(fatbin ${CMAKE_CURRENT_BINARY_DIR}/kernels.fatbin)
  add_custom_command(OUTPUT ${fatbin}
    COMMAND ${DRUN_NVCC} ${DRUN_NVCC_OPTIONS} ${DRUN_NVCC_HOST} ${codes} -fatbin -Xfatbin=-compress-all -MD -MF ${fatbin}.d
            -o ${fatbin} ${CMAKE_CURRENT_SOURCE_DIR}/${kernels}
    DEPENDS ${kernels} DEPFILE ${fatbin}.d
    COMMENT "Building kernels for GPUs"
    VERBATIM)
  set_source_files_properties(${image} PROPERTIES
    COMPILE_DEFINITIONS DRUN_KERNEL_IMAGE="${fatbin}" OBJECT_DEPENDS ${fatbin})
endfunction()

# drun_add_cuda_program(TARGET SOURCE): a program of one .cu file and the sources added to it, linked with CUDA's
# static runtime. Does nothing if nvcc or the static runtime is missing.
function(drun_add_cuda_program target source)
  if(NOT DRUN_HAS_NVCC)
    return()
  endif()
  file(REAL_PATH ${DRUN_NVCC} nvcc)
  cmake_path(GET nvcc PARENT_PATH bin)
  find_library(DRUN_CUDART NAMES libcudart_static.a HINTS ${bin}/../lib64 ${bin}/../lib ${bin}/../targets/x86_64-linux/lib
    ${bin}/../targets/sbsa-linux/lib)
  if(NOT DRUN_CUDART)
    message(STATUS "No libcudart_static.a: ${target} is not built")
    return()
  endif()
  drun_cuda_codes(codes)
  set(object ${CMAKE_CURRENT_BINARY_DIR}/${target}.cu.o)
  add_custom_command(OUTPUT ${object}
    COMMAND ${DRUN_NVCC} ${DRUN_NVCC_OPTIONS} ${DRUN_NVCC_HOST} ${codes} -c -O2 -Xcompiler=-fPIC -MD -MF ${object}.d
            -o ${object} ${CMAKE_CURRENT_SOURCE_DIR}/${source}
    DEPENDS ${source} DEPFILE ${object}.d
    COMMENT "Building ${source}"
    VERBATIM)
  add_executable(${target} ${object})
  set_target_properties(${target} PROPERTIES LINKER_LANGUAGE CXX)
  target_link_libraries(${target} PRIVATE ${DRUN_CUDART} ${CMAKE_DL_LIBS} rt)
endfunction()
