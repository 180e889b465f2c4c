# Packages by cpack: the Debian packages drun and libdrun-dev (-G DEB), and one archive that runs from any folder (-G TGZ).
# docs/packaging.md.
set(DRUN_MAINTAINER "drun maintainers <maintainers@drun.invalid>" CACHE STRING "Maintainer named by the packages")

# Documents of both packages. The date is that of SOURCE_DATE_EPOCH, if it is set.
set(documents ${PROJECT_BINARY_DIR}/documents)
string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC)
set(package_of_drun drun)
set(package_of_development libdrun-dev)
foreach(component drun development)
  set(package ${package_of_${component}})
  file(CONFIGURE OUTPUT ${documents}/${package}/changelog CONTENT
"@package@ (@PROJECT_VERSION@) stable; urgency=medium

  * The changes are in /usr/share/doc/drun/CHANGELOG.md.

 -- @DRUN_MAINTAINER@  @date@
" @ONLY)
  execute_process(COMMAND gzip -9nkf ${documents}/${package}/changelog COMMAND_ERROR_IS_FATAL ANY)
  set(folder ${CMAKE_INSTALL_DATADIR}/doc/${package})
  install(FILES ${documents}/${package}/changelog.gz DESTINATION ${folder} COMPONENT ${component})
  install(FILES ${PROJECT_SOURCE_DIR}/packaging/debian/copyright DESTINATION ${folder} COMPONENT ${component})
endforeach()
install(FILES ${PROJECT_SOURCE_DIR}/CHANGELOG.md ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/drun COMPONENT drun)
install(FILES ${PROJECT_SOURCE_DIR}/packaging/debian/lintian-overrides DESTINATION ${CMAKE_INSTALL_DATADIR}/lintian/overrides
  COMPONENT drun RENAME drun)
if(DRUN_PORTABLE)
  install(FILES ${DRUN_PORTABLE}/versions.tsv DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/drun COMPONENT drun)
  install(DIRECTORY ${DRUN_PORTABLE}/licenses DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/drun COMPONENT drun)
endif()

set(CPACK_PACKAGE_CONTACT ${DRUN_MAINTAINER})
set(CPACK_STRIP_FILES ON)
set(CPACK_THREADS 0)
set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/packaging/set_times.cmake)
set(CPACK_COMPONENTS_ALL drun agents runtime development)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY ${PROJECT_DESCRIPTION})

set(CPACK_PROJECT_CONFIG_FILE ${PROJECT_SOURCE_DIR}/packaging/generator.cmake)
set(CPACK_ARCHIVE_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING ONE_PER_GROUP)
set(CPACK_PACKAGE_FILE_NAME drun-${PROJECT_VERSION}-linux-${CMAKE_SYSTEM_PROCESSOR})

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_PACKAGE_SECTION net)
if(CMAKE_CROSSCOMPILING)
  # dpkg-shlibdeps knows this machine's libraries. A portable build needs one only.
  set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE arm64)
  set(CPACK_DEBIAN_PROGRAMS_PACKAGE_DEPENDS "libc6 (>= 2.28)")
else()
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
endif()
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)

set(CPACK_DEBIAN_PROGRAMS_PACKAGE_NAME drun)
set(CPACK_DEBIAN_PROGRAMS_PACKAGE_RECOMMENDS "openssh-client")
set(CPACK_DEBIAN_PROGRAMS_PACKAGE_SUGGESTS "python3")
set(CPACK_DEBIAN_PROGRAMS_PACKAGE_CONTROL_EXTRA
  ${PROJECT_SOURCE_DIR}/packaging/debian/prerm ${PROJECT_SOURCE_DIR}/packaging/debian/shlibs
  ${PROJECT_SOURCE_DIR}/packaging/debian/triggers)
set(CPACK_DEBIAN_PROGRAMS_DESCRIPTION
"drun starts the workers of a distributed program over ssh, finds the network
that the hosts have in common, and hands out ranks. Its library libdrun does
collectives between the workers, on CPUs and GPUs, for C, C++ and Python.")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libdrun-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "drun (= ${PROJECT_VERSION})")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_RECOMMENDS "libsodium-dev")
set(CPACK_DEBIAN_DEVELOPMENT_DESCRIPTION
"Headers and the static library of libdrun, which does collectives between the
workers of a job of drun, on CPUs and GPUs.")

include(CPack)
cpack_add_component_group(programs)
cpack_add_component_group(development)
cpack_add_component(drun GROUP programs)
cpack_add_component(agents GROUP programs)
cpack_add_component(runtime GROUP programs)
cpack_add_component(development GROUP development)
