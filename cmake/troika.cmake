# What every target of Troika is built with, and the rooms with the arrows between them.

option(TROIKA_PRECOMPILE "Precompile the headers of Asio, JSON and GoogleTest" ON)
option(TROIKA_UNITY "Compile the sources of a library or program a few at a time, as one: less than half of the work" ON)

add_library(troika_flags INTERFACE)
target_compile_options(troika_flags INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wconversion -Wshadow -Wnon-virtual-dtor -Werror>)
target_include_directories(troika_flags INTERFACE ${CMAKE_SOURCE_DIR})
target_compile_definitions(troika_flags INTERFACE
  TROIKA_VERSION="${PROJECT_VERSION}"
  BOOST_ASIO_SEPARATE_COMPILATION BOOST_ASIO_NO_DEPRECATED BOOST_BEAST_SEPARATE_COMPILATION
  BOOST_ASIO_DISABLE_CONCEPTS)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # g++ 12 raises it wrongly on Asio coroutines over TLS at -O2 (new and delete of the frame are matched).
  target_compile_options(troika_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-mismatched-new-delete>)
  if(TROIKA_UNITY)
    # Raised on every coroutine that holds a type of its own source, since that is not the main file.
    target_compile_options(troika_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-subobject-linkage>)
  endif()
endif()
if(TROIKA_SANITIZE)
  target_compile_options(troika_flags INTERFACE
    -fsanitize=${TROIKA_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  if(TROIKA_SANITIZE MATCHES "undefined")
    # clang 14 cannot put the check of function types into coroutines.
    target_compile_options(troika_flags INTERFACE $<$<CXX_COMPILER_ID:Clang>:-fno-sanitize=function>)
  endif()
  target_link_options(troika_flags INTERFACE -fsanitize=${TROIKA_SANITIZE})
  target_compile_definitions(troika_flags INTERFACE TROIKA_SANITIZED)  # sizes and times say nothing here
  if(TROIKA_SANITIZE STREQUAL "thread")
    target_compile_definitions(troika_flags INTERFACE BOOST_ASIO_DISABLE_FENCED_BLOCK)
    target_compile_options(troika_flags INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-tsan>)
  endif()
endif()

# Tests are compiled without optimization also where what they test is compiled with it: half of their build time.
add_library(troika_test_flags INTERFACE)
target_compile_options(troika_test_flags INTERFACE $<$<CONFIG:Release>:-O0>)

# Sets `out` to asio or json if one of these libraries is used, at any remove, else to none.
function(troika_heaviest_headers out)
  set(heaviest none)
  foreach(library ${ARGN})
    set(found none)
    if(library STREQUAL "troika_asio")
      set(found asio)
    elseif(library STREQUAL "nlohmann_json::nlohmann_json")
      set(found json)
    elseif(library MATCHES "^troika_" AND TARGET ${library})
      get_target_property(behind ${library} INTERFACE_LINK_LIBRARIES)
      troika_heaviest_headers(found ${behind})
    endif()
    if(found STREQUAL "asio" OR (found STREQUAL "json" AND heaviest STREQUAL "none"))
      set(heaviest ${found})
    endif()
  endforeach()
  set(${out} ${heaviest} PARENT_SCOPE)
endfunction()

# Coroutines and JSON wait for the network, the disk and people: optimizing them fully would double their build time and
# gain nothing. What computes (COMPUTES below) is compiled with -O2.
add_library(troika_waiting_flags INTERFACE)
target_compile_options(troika_waiting_flags INTERFACE $<$<CONFIG:Release>:-O1>)

# A target that uses Asio or JSON takes their headers precompiled (cmake/headers), a test GoogleTest's too. Every source
# still includes what it uses: TROIKA_PRECOMPILE=OFF builds the same.
function(troika_precompile name kind)
  if(NOT TROIKA_PRECOMPILE)
    return()
  endif()
  troika_heaviest_headers(heaviest ${ARGN})
  if(kind STREQUAL "test" AND heaviest STREQUAL "none")
    set(heaviest json)
  endif()
  if(NOT heaviest STREQUAL "none")
    target_precompile_headers(${name} REUSE_FROM troika_headers_${kind}_${heaviest})
  endif()
endfunction()

# TROIKA_UNITY=OFF and TROIKA_PRECOMPILE=OFF build the same, one source at a time.
function(troika_unity name)
  if(TROIKA_UNITY)
    set_target_properties(${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 6)
  endif()
endfunction()

# troika_room(NAME [COMPUTES] SOURCES a.cpp ... USES troika_x ... [LIBRARIES Boost::headers ...])
# A static library of one room (or a part of one). USES are Troika's own libraries (public), LIBRARIES are others'.
function(troika_room name)
  cmake_parse_arguments(ROOM "COMPUTES" "" "SOURCES;USES;LIBRARIES" ${ARGN})
  add_library(${name} STATIC ${ROOM_SOURCES})
  target_link_libraries(${name} PUBLIC troika_flags ${ROOM_USES} ${ROOM_LIBRARIES})
  if(NOT ROOM_COMPUTES)
    target_link_libraries(${name} PRIVATE troika_waiting_flags)
    troika_precompile(${name} code ${ROOM_USES} ${ROOM_LIBRARIES})
  endif()
  troika_unity(${name})
endfunction()

# troika_program(NAME [COMPUTES] SOURCES main.cpp ... USES troika_x ...)
function(troika_program name)
  cmake_parse_arguments(PROGRAM "COMPUTES" "" "SOURCES;USES;LIBRARIES" ${ARGN})
  add_executable(${name} ${PROGRAM_SOURCES})
  target_link_libraries(${name} PRIVATE troika_flags ${PROGRAM_USES} ${PROGRAM_LIBRARIES})
  if(NOT PROGRAM_COMPUTES)
    target_link_libraries(${name} PRIVATE troika_waiting_flags)
    troika_precompile(${name} code ${PROGRAM_USES} ${PROGRAM_LIBRARIES})
  endif()
  troika_unity(${name})
endfunction()

# troika_test(NAME [LABEL unit|sim|cluster] SOURCES a_test.cpp ... USES troika_x ... [TIMEOUT seconds])
# A GoogleTest program, every test of it a CTest test; under a sanitizer, where programs start slowly, the unit tests of a
# program are one.
function(troika_test name)
  cmake_parse_arguments(TEST "" "LABEL;TIMEOUT" "SOURCES;USES;LIBRARIES" ${ARGN})
  if(NOT TEST_LABEL)
    set(TEST_LABEL unit)
  endif()
  if(NOT TEST_TIMEOUT)
    set(TEST_TIMEOUT 60)
  endif()
  add_executable(${name} ${TEST_SOURCES})
  target_link_libraries(${name} PRIVATE troika_flags troika_test_flags ${TEST_USES} ${TEST_LIBRARIES} GTest::gtest_main)
  troika_precompile(${name} test ${TEST_USES} ${TEST_LIBRARIES})
  troika_unity(${name})
  if(TROIKA_SANITIZE AND TEST_LABEL STREQUAL "unit")
    add_test(NAME ${name} COMMAND ${name})
    set_tests_properties(${name} PROPERTIES LABELS unit TIMEOUT 600)
    return()
  endif()
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST
    PROPERTIES LABELS ${TEST_LABEL} TIMEOUT ${TEST_TIMEOUT})
endfunction()
