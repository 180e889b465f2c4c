# Warnings and sanitizers as INTERFACE targets. Each of our targets links one of them, PRIVATE: drun_options, or
# drun_test_options for GoogleTest programs.
add_library(drun_warnings INTERFACE)
target_include_directories(drun_warnings INTERFACE ${PROJECT_SOURCE_DIR})
target_compile_options(drun_warnings INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual -Wimplicit-fallthrough
  $<$<CXX_COMPILER_ID:GNU>:-Wduplicated-cond> $<$<CXX_COMPILER_ID:GNU>:-Wlogical-op>
  $<$<BOOL:${DRUN_WARNINGS_AS_ERRORS}>:-Werror>)

add_library(drun_options INTERFACE)
add_library(drun_test_options INTERFACE)
# Both link the sanitizers directly: flags of a linked target come last, and an -fsanitize after the -fno-sanitize of
# drun_test_options would enable the checks again.
foreach(options drun_options drun_test_options)
  target_link_libraries(${options} INTERFACE drun_warnings)
  if(DRUN_SANITIZE)
    target_compile_options(${options} INTERFACE -fsanitize=${DRUN_SANITIZE} -fno-omit-frame-pointer)
    target_link_options(${options} INTERFACE -fsanitize=${DRUN_SANITIZE})
  endif()
  if(DRUN_SANITIZE MATCHES thread)
    target_compile_options(${options} INTERFACE -Wno-tsan)
  endif()
  # Silences GCC 12's false positives in optimized builds: C++20's std::string, variants in vectors, frames of Asio's
  # coroutines. The sanitizer builds find real errors of these kinds.
  target_compile_options(${options} INTERFACE $<$<AND:$<CXX_COMPILER_ID:GNU>,$<NOT:$<CONFIG:Debug>>>:
    -Wno-array-bounds -Wno-maybe-uninitialized -Wno-mismatched-new-delete -Wno-restrict -Wno-stringop-overflow
    -Wno-stringop-overread>)
endforeach()
target_compile_options(drun_options INTERFACE -Wconversion -Wsign-conversion)
if(NOT DRUN_SANITIZE)
  # So that the linker can leave out of the agent, which is sent to hosts, what it does not call.
  target_compile_options(drun_options INTERFACE -ffunction-sections -fdata-sections)
endif()
# Most of drun's file are line numbers. Stack traces need neither columns, nor the numbers without compression.
target_compile_options(drun_options INTERFACE $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CONFIG:RelWithDebInfo>>:-gno-column-info>)
target_link_options(drun_options INTERFACE $<$<CONFIG:RelWithDebInfo>:-Wl,--compress-debug-sections=zlib>)
if(DRUN_SANITIZE MATCHES undefined)
  # These checks cost a third of the compile time of test code. AddressSanitizer finds most of the same errors, and the
  # product keeps the checks.
  target_compile_options(drun_test_options INTERFACE -fno-sanitize=null,alignment,object-size,vptr)
endif()

# drun_computes(TARGET...): compiles targets with loops over elements at -O1 in sanitizer builds. At -O0 their tests take
# several times as long as the compilation.
function(drun_computes)
  if(DRUN_SANITIZE)
    foreach(target IN LISTS ARGN)
      target_compile_options(${target} PRIVATE -O1)
    endforeach()
  endif()
endfunction()

# libdrun and the libraries in it are C++17 in every build (drun_is_runtime), so that a build of libdrun alone has the
# same objects.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
function(drun_is_runtime)
  set_target_properties(${ARGN} PROPERTIES
    CXX_STANDARD 17 POSITION_INDEPENDENT_CODE ON CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
endfunction()
find_program(DRUN_CCACHE ccache)
if(DRUN_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # ccache requires the sloppiness for precompiled headers, whose modification times differ between build folders.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1
    CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${DRUN_CCACHE})
endif()

# drun_precompile(NAME HEADER... [FOR_PROGRAMS] [OPTIONS target] [LIBS target...]): a precompiled header for targets
# that call drun_use_precompiled(NAME TARGET...). All of these are libraries, or programs with FOR_PROGRAMS. Use only
# headers of other projects, which don't change, and base/asio.h.
option(DRUN_PRECOMPILED_HEADERS "Precompile the large headers of libraries" ON)
function(drun_precompile name)
  if(NOT DRUN_PRECOMPILED_HEADERS)
    return()
  endif()
  cmake_parse_arguments(ARG "FOR_PROGRAMS" "OPTIONS" "LIBS" ${ARGN})
  if(NOT ARG_OPTIONS)
    set(ARG_OPTIONS drun_options)
  endif()
  set(source ${CMAKE_CURRENT_BINARY_DIR}/precompiled_${name}.cpp)
  file(GENERATE OUTPUT ${source} CONTENT "")
  add_library(drun_precompiled_${name} OBJECT ${source})
  target_link_libraries(drun_precompiled_${name} PRIVATE ${ARG_OPTIONS} ${ARG_LIBS})
  target_precompile_headers(drun_precompiled_${name} PRIVATE ${ARG_UNPARSED_ARGUMENTS})
  if(DRUN_CCACHE)
    # Without CCACHE_DEPEND, ccache also looks for the preprocessed text, to which a precompiled header of an earlier
    # build contributes its old text: ccache would then take the old one for the new one. Nor may it take one that was
    # made of other comments: GCC compares the whole text of a header with that in the precompiled one.
    set_target_properties(drun_precompiled_${name} PROPERTIES
      CXX_COMPILER_LAUNCHER "${CMAKE_COMMAND};-E;env;CCACHE_DEPEND=1;${CMAKE_CXX_COMPILER_LAUNCHER}")
  endif()
  if(ARG_FOR_PROGRAMS)
    set_target_properties(drun_precompiled_${name} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
    target_compile_options(drun_precompiled_${name} PRIVATE -fPIE)
  endif()
endfunction()

function(drun_use_precompiled name)
  if(NOT DRUN_PRECOMPILED_HEADERS)
    return()
  endif()
  foreach(target IN LISTS ARGN)
    target_precompile_headers(${target} REUSE_FROM drun_precompiled_${name})
  endforeach()
endfunction()
