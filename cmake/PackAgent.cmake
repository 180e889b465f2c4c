cmake_minimum_required(VERSION 3.25)

# cmake -DPROGRAM=FILE -DFORMATS="gz;zst" -P PackAgent.cmake: writes FILE.HASH.gz and, if zstd is installed, FILE.HASH.zst,
# where HASH is the first 16 digits of the SHA-256 of FILE. By the name drun knows that they hold this FILE
# (launcher/connect/bootstrap.h).
file(GLOB old "${PROGRAM}.*.gz" "${PROGRAM}.*.zst")
if(old)
  file(REMOVE ${old})
endif()
file(SHA256 "${PROGRAM}" hash)
string(SUBSTRING ${hash} 0 16 hash)
if("gz" IN_LIST FORMATS)
  execute_process(COMMAND gzip -9nc "${PROGRAM}" OUTPUT_FILE "${PROGRAM}.${hash}.gz" COMMAND_ERROR_IS_FATAL ANY)
endif()
find_program(zstd zstd)
if(zstd AND "zst" IN_LIST FORMATS)
  execute_process(COMMAND ${zstd} -19 -q -f -o "${PROGRAM}.${hash}.zst" "${PROGRAM}" COMMAND_ERROR_IS_FATAL ANY)
endif()
