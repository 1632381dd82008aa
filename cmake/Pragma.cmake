# The one interface target that carries the language standard, the warnings and the sanitizers,
# and pragma_library(), which each folder calls once with an explicit list of sources.

add_library(pragma_options INTERFACE)
target_compile_features(pragma_options INTERFACE cxx_std_20)
target_compile_options(pragma_options INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict> # false alarms on "text" + std::string in GCC 12 (gcc.gnu.org/PR105651)
  # Where headers are precompiled, GCC 12 takes what it inlines of std::string for the program's own code, with false alarms of the same kind.
  $<$<AND:$<CXX_COMPILER_ID:GNU>,$<BOOL:${PRAGMA_PRECOMPILED_HEADERS}>>:-Wno-stringop-overflow;-Wno-array-bounds>
  $<$<BOOL:${PRAGMA_WERROR}>:-Werror>)
target_include_directories(pragma_options INTERFACE ${CMAKE_SOURCE_DIR})
if(PRAGMA_SANITIZE)
  target_compile_options(pragma_options INTERFACE -fsanitize=address,undefined -fno-omit-frame-pointer -fno-sanitize-recover=undefined)
  target_link_options(pragma_options INTERFACE -fsanitize=address,undefined)
endif()

# Parsed once instead of in each of some three hundred files: JSON and the standard library, which nearly all rooms include.
add_library(pragma_common_headers OBJECT ${CMAKE_SOURCE_DIR}/cmake/empty.cpp)
target_link_libraries(pragma_common_headers PRIVATE pragma_options nlohmann_json::nlohmann_json)
target_include_directories(pragma_common_headers SYSTEM PRIVATE ${TL_EXPECTED_INCLUDE_DIR})
if(PRAGMA_PRECOMPILED_HEADERS)
  target_precompile_headers(pragma_common_headers PRIVATE <nlohmann/json.hpp> <tl/expected.hpp> <algorithm> <atomic> <chrono> <filesystem>
    <functional> <map> <memory> <mutex> <optional> <set> <span> <sstream> <string> <thread> <vector>)
endif()
function(pragma_precompiled target)
  if(PRAGMA_PRECOMPILED_HEADERS)
    target_precompile_headers(${target} REUSE_FROM ${ARGN})
  endif()
endfunction()

# Most rooms walk small structures and text: the optimiser's time, half of a build, buys nothing there. Rooms that work through tensors,
# vectors or large pages say NUMERIC.
set(CMAKE_CXX_FLAGS_RELEASE "-O1 -DNDEBUG")

# pragma_library(NAME [NUMERIC] [TOGETHER n] SOURCES a.cpp b.cpp DEPENDS pragma_base CURL::libcurl)
# TOGETHER: n sources are compiled as one, in half the time, since most of it goes into what all of them include. Their unnamed namespaces are one then. records.cpp
# stays alone: its header has to come before the room's.
function(pragma_library name)
  cmake_parse_arguments(arg "NUMERIC" "TOGETHER" "SOURCES;DEPENDS" ${ARGN})
  add_library(pragma_${name} STATIC ${arg_SOURCES})
  target_link_libraries(pragma_${name} PUBLIC pragma_options ${arg_DEPENDS})
  if(arg_TOGETHER)
    set_target_properties(pragma_${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${arg_TOGETHER})
    if("records.cpp" IN_LIST arg_SOURCES)
      set_source_files_properties(records.cpp PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
    endif()
  endif()
  if(arg_NUMERIC) # GCC 12 crashes on headers that were precompiled at another level of optimisation
    target_compile_options(pragma_${name} PRIVATE $<$<CONFIG:Release>:-O2>)
  else()
    pragma_precompiled(pragma_${name} pragma_common_headers)
  endif()
endfunction()
