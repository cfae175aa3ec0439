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
if(GROK_SANITIZE_THREADS)
  if(GROK_SANITIZE OR GROK_BUILD_COMPILER)
    message(FATAL_ERROR "GROK_SANITIZE_THREADS: found GROK_SANITIZE or GROK_BUILD_COMPILER, expected neither")
  endif()
  target_compile_options(grok_options INTERFACE -fsanitize=thread -fno-omit-frame-pointer)
  target_link_options(grok_options INTERFACE -fsanitize=thread)
endif()

if(GROK_FUZZ)
  target_compile_definitions(grok_options INTERFACE _GLIBCXX_ASSERTIONS) # checks indices of the library's containers
endif()

find_package(Threads REQUIRED)
find_package(nlohmann_json 3.11 REQUIRED)
find_package(absl REQUIRED)

# Debian's absl:: targets are shared libraries, but our programs must run where
# Abseil isn't installed: link the archives of the same package. They cannot go
# into a shared library: their thread-local variables are accessed as a program
# accesses its own.
get_property(GROK_IMPORTED DIRECTORY PROPERTY IMPORTED_TARGETS)
foreach(target ${GROK_IMPORTED})
  get_target_property(type ${target} TYPE)
  if(target MATCHES "^absl::" AND type STREQUAL "SHARED_LIBRARY")
    get_target_property(configs ${target} IMPORTED_CONFIGURATIONS)
    foreach(config ${configs})
      get_target_property(location ${target} IMPORTED_LOCATION_${config})
      string(REGEX REPLACE "\\.so[.0-9]*$" ".a" archive "${location}")
      if(EXISTS "${archive}")
        set_target_properties(${target} PROPERTIES
          IMPORTED_LOCATION_${config} "${archive}" IMPORTED_SONAME_${config} "" IMPORTED_NO_SONAME_${config} TRUE)
      else()
        message(FATAL_ERROR "${target}: found no ${archive} beside the shared library; install libabsl-dev")
      endif()
    endforeach()
  endif()
endforeach()

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
