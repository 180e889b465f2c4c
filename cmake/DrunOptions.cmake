# Warnings and sanitizers as an INTERFACE target that every target of ours links PRIVATE.
add_library(drun_options INTERFACE)
target_include_directories(drun_options INTERFACE ${PROJECT_SOURCE_DIR})
if(DRUN_RUNTIME_ONLY)
  target_compile_features(drun_options INTERFACE cxx_std_17)
else()
  target_compile_features(drun_options INTERFACE cxx_std_20)
endif()
target_compile_options(drun_options INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual -Wimplicit-fallthrough
  -Wduplicated-cond -Wlogical-op
  $<$<BOOL:${DRUN_WARNINGS_AS_ERRORS}>:-Werror>)
if(DRUN_SANITIZE)
  target_compile_options(drun_options INTERFACE -fsanitize=${DRUN_SANITIZE} -fno-omit-frame-pointer)
  target_link_options(drun_options INTERFACE -fsanitize=${DRUN_SANITIZE})
  if(DRUN_SANITIZE MATCHES thread)
    target_compile_options(drun_options INTERFACE -Wno-tsan)
  endif()
endif()

find_program(DRUN_CCACHE ccache)
if(DRUN_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}
    CCACHE_NOHASHDIR=1 CCACHE_SLOPPINESS=time_macros ${DRUN_CCACHE})
endif()
