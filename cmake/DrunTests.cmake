# Functions that add tests. docs/testing.md says which test runs in which build, and why.
#
# A test has the label of its kind (unit, integration, python, e2e), and a label `in-BUILD` for each build of
# `scripts/test --ci` that runs it: in-asan, in-tsan, in-release. The target `tests-in-BUILD` builds what they need.
# Every preset has every test that it can run, with these labels: `ctest` there, and `scripts/test --full`, run them all.
include(GoogleTest)

foreach(build asan tsan release)
  add_custom_target(tests-in-${build})
endforeach()

# Results of single cases, read by scripts/test: RESULTS/PREFIX/NAME.json from GoogleTest, RESULTS/NAME.jsonl from
# Python.
set(DRUN_TEST_RESULTS ${PROJECT_BINARY_DIR}/results)

# Headers that nearly every test includes.
drun_precompile(gtest <map> <string> <vector> <gtest/gtest.h> <gmock/gmock.h> FOR_PROGRAMS
  OPTIONS drun_test_options LIBS GTest::gmock)
drun_precompile(gtest_computes <map> <string> <vector> <gtest/gtest.h> <gmock/gmock.h> FOR_PROGRAMS
  OPTIONS drun_test_options LIBS GTest::gmock)
if(TARGET drun_precompiled_gtest_computes)
  drun_computes(drun_precompiled_gtest_computes)
endif()

# drun_test_needs(TARGETS TARGET... IN BUILD...): the tests of these builds use the targets.
function(drun_test_needs)
  cmake_parse_arguments(ARG "" "" "TARGETS;IN" ${ARGN})
  foreach(build IN LISTS ARG_IN)
    add_dependencies(tests-in-${build} ${ARG_TARGETS})
  endforeach()
endfunction()

# drun_gtest_entries(TARGET [LABEL unit] [PREFIX p.] [IN asan...] [TIMEOUT 60] [SHARDS 1] [FILTER f] [ENVIRONMENT
# e...] [SERIAL]): adds the cases of a GoogleTest program as ctest entries. May be called several times with different prefixes
# and environments. SERIAL: no other test runs beside them. Names are LABEL.PREFIXSuite.Case. With sanitizers, where programs start slowly, the program is one
# entry, or SHARDS entries, and TIMEOUT is ten times as long.
function(drun_gtest_entries target)
  cmake_parse_arguments(ARG "SERIAL" "LABEL;PREFIX;TIMEOUT;SHARDS;FILTER" "IN;ENVIRONMENT" ${ARGN})
  foreach(default "LABEL unit" "TIMEOUT 60" "SHARDS 1" "IN asan" "FILTER *")
    separate_arguments(default)
    list(POP_FRONT default option)
    if(NOT ARG_${option})
      set(ARG_${option} ${default})
    endif()
  endforeach()
  drun_test_needs(TARGETS ${target} IN ${ARG_IN})
  list(TRANSFORM ARG_IN PREPEND in- OUTPUT_VARIABLE labels)
  list(PREPEND labels ${ARG_LABEL})
  if(NOT DRUN_SANITIZE)
    # Lists don't survive gtest_discover_tests(): at most one label and one variable.
    set(label ${ARG_LABEL})
    if(release IN_LIST ARG_IN)
      set(label in-release)
    endif()
    list(LENGTH ARG_ENVIRONMENT n_variables)
    if(n_variables GREATER 1)
      message(FATAL_ERROR "${target}: only one variable in ENVIRONMENT")
    elseif(n_variables EQUAL 1)
      list(PREPEND ARG_ENVIRONMENT ENVIRONMENT)
    endif()
    gtest_discover_tests(${target} NO_PRETTY_TYPES NO_PRETTY_VALUES TEST_PREFIX "${ARG_LABEL}.${ARG_PREFIX}" TEST_FILTER "${ARG_FILTER}"
      TEST_LIST ${target}_${ARG_PREFIX}tests DISCOVERY_TIMEOUT 60
      PROPERTIES LABELS ${label} TIMEOUT ${ARG_TIMEOUT} RUN_SERIAL ${ARG_SERIAL} ${ARG_ENVIRONMENT})
    return()
  endif()
  math(EXPR last "${ARG_SHARDS} - 1")
  math(EXPR timeout "${ARG_TIMEOUT} * 10")
  foreach(shard RANGE ${last})
    set(name ${target})
    set(environment ${ARG_ENVIRONMENT})
    if(last GREATER 0)
      set(name ${target}.${shard})
      list(APPEND environment GTEST_TOTAL_SHARDS=${ARG_SHARDS} GTEST_SHARD_INDEX=${shard})
    endif()
    list(APPEND environment GTEST_OUTPUT=json:${DRUN_TEST_RESULTS}/${ARG_LABEL}.${ARG_PREFIX}/${name}.json)
    add_test(NAME ${ARG_LABEL}.${ARG_PREFIX}${name} COMMAND ${target} --gtest_filter=${ARG_FILTER})
    set_tests_properties(${ARG_LABEL}.${ARG_PREFIX}${name} PROPERTIES
      LABELS "${labels}" TIMEOUT ${timeout} RUN_SERIAL ${ARG_SERIAL} ENVIRONMENT "${environment}")
  endforeach()
endfunction()

# drun_add_test(NAME [COMPUTES] [HEADERS] [SERIAL] SOURCES... LIBS... and the arguments of drun_gtest_entries): a GoogleTest
# program and its entries.
function(drun_add_test name)
  cmake_parse_arguments(ARG "COMPUTES;HEADERS;SERIAL" "" "SOURCES;LIBS;LABEL;PREFIX;TIMEOUT;SHARDS;FILTER;IN;ENVIRONMENT" ${ARGN})
  set(flags "")
  foreach(flag COMPUTES HEADERS)
    if(ARG_${flag})
      list(APPEND flags ${flag})
    endif()
  endforeach()
  drun_add_test_program(${name} ${flags} SOURCES ${ARG_SOURCES} LIBS ${ARG_LIBS})
  set(entries "")
  if(ARG_SERIAL)
    list(APPEND entries SERIAL)
  endif()
  foreach(option IN ITEMS LABEL PREFIX TIMEOUT SHARDS FILTER "IN" ENVIRONMENT)
    if(ARG_${option})
      list(APPEND entries ${option} ${ARG_${option}})
    endif()
  endforeach()
  drun_gtest_entries(${name} ${entries})
endfunction()

# drun_add_test_program(NAME [COMPUTES] [HEADERS] SOURCES... LIBS...): the program without entries. COMPUTES: see
# drun_computes. HEADERS: the test is about headers, so its own code is checked like the product's.
function(drun_add_test_program name)
  cmake_parse_arguments(ARG "COMPUTES;HEADERS" "" "SOURCES;LIBS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_LIBS} $<IF:$<BOOL:${ARG_HEADERS}>,drun_options,drun_test_options>
    GTest::gmock GTest::gtest_main)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  if(ARG_COMPUTES)
    drun_computes(${name})
  endif()
  if(ARG_HEADERS)
    return()
  endif()
  if(ARG_COMPUTES)
    drun_use_precompiled(gtest_computes ${name})
  else()
    drun_use_precompiled(gtest ${name})
  endif()
endfunction()

# drun_add_helper(NAME SOURCES... LIBS...): a program that tests start.
function(drun_add_helper name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LIBS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_LIBS} drun_options)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
endfunction()

# drun_add_script_test(NAME COMMAND... LABEL l [IN asan...] [TIMEOUT 120] [ENVIRONMENT e...] [PROPERTIES p...]): a
# command as a test. Exit status 77: it can't run on this machine.
function(drun_add_script_test name)
  cmake_parse_arguments(ARG "" "LABEL;TIMEOUT" "COMMAND;IN;ENVIRONMENT;PROPERTIES" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  add_test(NAME ${name} COMMAND ${ARG_COMMAND})
  list(TRANSFORM ARG_IN PREPEND in- OUTPUT_VARIABLE labels)
  set_tests_properties(${name} PROPERTIES LABELS "${ARG_LABEL};${labels}" TIMEOUT ${ARG_TIMEOUT} SKIP_RETURN_CODE 77
    ENVIRONMENT "${ARG_ENVIRONMENT};PYTHONDONTWRITEBYTECODE=1;DRUN_TEST_RESULT=${DRUN_TEST_RESULTS}/${name}.jsonl"
    ${ARG_PROPERTIES})
endfunction()
