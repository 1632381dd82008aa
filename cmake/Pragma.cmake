# The one interface target that carries the language standard, the warnings and the sanitizers,
# and pragma_library(), which each folder calls once with an explicit list of sources.

add_library(pragma_options INTERFACE)
target_compile_features(pragma_options INTERFACE cxx_std_20)
target_compile_options(pragma_options INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict> # false alarms on "text" + std::string in GCC 12 (gcc.gnu.org/PR105651)
  $<$<BOOL:${PRAGMA_WERROR}>:-Werror>)
target_include_directories(pragma_options INTERFACE ${CMAKE_SOURCE_DIR})
if(PRAGMA_SANITIZE)
  target_compile_options(pragma_options INTERFACE -fsanitize=address,undefined -fno-omit-frame-pointer -fno-sanitize-recover=undefined)
  target_link_options(pragma_options INTERFACE -fsanitize=address,undefined)
endif()

# pragma_library(NAME SOURCES a.cpp b.cpp DEPENDS pragma_base CURL::libcurl)
function(pragma_library name)
  cmake_parse_arguments(arg "" "" "SOURCES;DEPENDS" ${ARGN})
  add_library(pragma_${name} STATIC ${arg_SOURCES})
  target_link_libraries(pragma_${name} PUBLIC pragma_options ${arg_DEPENDS})
endfunction()
