# The dependencies of a portable build, all from the folder DRUN_PORTABLE of packaging/libraries: static libraries, and
# headers alone. Their targets have the names of those that DrunDependencies.cmake finds in the distribution.
add_library(drun_portable INTERFACE)
target_include_directories(drun_portable SYSTEM INTERFACE ${DRUN_PORTABLE}/include)
set(DRUN_EXPECTED_INCLUDE_DIR ${DRUN_PORTABLE}/include)
set(DRUN_TOML_INCLUDE_DIR ${DRUN_PORTABLE}/include)
set(SODIUM_INCLUDE_DIRS ${DRUN_PORTABLE}/include)
set(DRUN_SODIUM_STATIC ${DRUN_PORTABLE}/lib/libsodium.a)
find_package(Threads REQUIRED)
if(NOT DRUN_BUILD_AGENTS)
  # GCC's default, but not that of zig.
  add_link_options($<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:-pie>)
endif()

foreach(headers Boost::headers CLI11::CLI11 nlohmann_json::nlohmann_json spdlog::spdlog)
  add_library(${headers} INTERFACE IMPORTED)
  target_link_libraries(${headers} INTERFACE drun_portable)
endforeach()
# Without macros these two would need libraries of their own.
target_compile_definitions(spdlog::spdlog INTERFACE SPDLOG_FMT_EXTERNAL FMT_HEADER_ONLY)

add_library(PkgConfig::SODIUM INTERFACE IMPORTED)
target_link_libraries(PkgConfig::SODIUM INTERFACE drun_portable ${DRUN_SODIUM_STATIC})
add_library(PkgConfig::YAML INTERFACE IMPORTED)
target_link_libraries(PkgConfig::YAML INTERFACE drun_portable ${DRUN_PORTABLE}/lib/libyaml.a)
add_library(ssh INTERFACE IMPORTED)
target_compile_definitions(ssh INTERFACE LIBSSH_STATIC)
target_link_libraries(ssh INTERFACE drun_portable ${DRUN_PORTABLE}/lib/libssh.a ${DRUN_PORTABLE}/lib/libcrypto.a
  ${DRUN_PORTABLE}/lib/libz.a Threads::Threads)
