# Compile options that every target of the project shares.
# Reductions must not change with the optimiser: contraction of a*b+c is off everywhere, fma is explicit.
add_library(grok_options INTERFACE)
target_compile_options(grok_options INTERFACE
  -Wall -Wextra -Werror -Wno-unused-parameter -ffp-contract=off
  $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor>)
target_include_directories(grok_options INTERFACE ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR})
if(GROK_SANITIZE)
  target_compile_options(grok_options INTERFACE -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(grok_options INTERFACE -fsanitize=address,undefined)
endif()

find_package(Threads REQUIRED)
find_package(nlohmann_json 3.11 REQUIRED)
find_package(absl REQUIRED)

# grok_add_library(NAME SOURCES... LINK_LIBS...): a static library with the project's options.
function(grok_add_library name)
  cmake_parse_arguments(ARG "" "" "LINK_LIBS" ${ARGN})
  add_library(${name} STATIC ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PUBLIC grok_options ${ARG_LINK_LIBS})
endfunction()

# grok_add_tool(NAME SOURCES... LINK_LIBS...): a program in bin/.
function(grok_add_tool name)
  cmake_parse_arguments(ARG "" "" "LINK_LIBS" ${ARGN})
  add_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE grok_options ${ARG_LINK_LIBS})
endfunction()
