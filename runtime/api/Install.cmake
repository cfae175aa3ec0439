# What is installed: one archive with the whole runtime in it, Abseil's and
# OpenSSL's parts included, so that a program needs nothing else; the header;
# and the package for find_package(grokrt).
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# Appends to VARIABLE the archives of `target` and of everything it links.
function(grok_collect_archives target variable)
  set(pending ${target})
  set(seen)
  set(archives)
  while(pending)
    list(POP_FRONT pending item)
    string(REGEX REPLACE "^\\$<LINK_ONLY:(.*)>$" "\\1" item "${item}")
    if(item IN_LIST seen OR item MATCHES "^-|\\$<")
      continue()
    endif()
    list(APPEND seen "${item}")
    if(NOT TARGET ${item})
      if(item MATCHES "\\.a$")
        list(APPEND archives ${item})
      endif()
      continue()
    endif()
    get_target_property(type ${item} TYPE)
    get_target_property(imported ${item} IMPORTED)
    if(type STREQUAL "STATIC_LIBRARY" OR (imported AND type STREQUAL "SHARED_LIBRARY"))
      list(APPEND archives $<TARGET_FILE:${item}>)
    endif()
    get_target_property(links ${item} INTERFACE_LINK_LIBRARIES)
    if(links)
      list(APPEND pending ${links})
    endif()
  endwhile()
  set(${variable} ${archives} PARENT_SCOPE)
endfunction()

set(GROKRT_ARCHIVE ${PROJECT_BINARY_DIR}/lib/libgrokrt.a)
set(script ${CMAKE_CURRENT_BINARY_DIR}/merge.mri)
grok_collect_archives(grokrt archives)
list(TRANSFORM archives PREPEND "addlib " OUTPUT_VARIABLE lines)
list(JOIN lines "\n" lines)
file(GENERATE OUTPUT ${script} CONTENT "create ${GROKRT_ARCHIVE}\n${lines}\nsave\nend\n")
add_custom_command(
  OUTPUT ${GROKRT_ARCHIVE}
  COMMAND ${CMAKE_COMMAND} -E make_directory ${PROJECT_BINARY_DIR}/lib
  COMMAND ${CMAKE_COMMAND} -E rm -f ${GROKRT_ARCHIVE}
  COMMAND ${CMAKE_AR} -M < ${script}
  DEPENDS grokrt ${script} ${archives}
  COMMENT "Joining the runtime's archives")
add_custom_target(grokrt_archive ALL DEPENDS ${GROKRT_ARCHIVE})

file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/grokrtConfig.cmake.in [=[
@PACKAGE_INIT@
include(CMakeFindDependencyMacro)
find_dependency(Threads)
if(NOT TARGET grokrt::grokrt)
  add_library(grokrt::grokrt STATIC IMPORTED)
  set_target_properties(grokrt::grokrt PROPERTIES
    IMPORTED_LOCATION "@PACKAGE_CMAKE_INSTALL_LIBDIR@/libgrokrt.a"
    INTERFACE_INCLUDE_DIRECTORIES "@PACKAGE_CMAKE_INSTALL_INCLUDEDIR@"
    INTERFACE_LINK_LIBRARIES "Threads::Threads;stdc++;m;${CMAKE_DL_LIBS}")
endif()
check_required_components(grokrt)
]=])
set(package ${CMAKE_INSTALL_LIBDIR}/cmake/grokrt)
configure_package_config_file(
  ${CMAKE_CURRENT_BINARY_DIR}/grokrtConfig.cmake.in ${CMAKE_CURRENT_BINARY_DIR}/grokrtConfig.cmake
  INSTALL_DESTINATION ${package}
  PATH_VARS CMAKE_INSTALL_LIBDIR CMAKE_INSTALL_INCLUDEDIR)
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/grokrtConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)

install(FILES ${GROKRT_ARCHIVE} DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(FILES ${PROJECT_SOURCE_DIR}/runtime/include/grokrt.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/grokrtConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/grokrtConfigVersion.cmake
  DESTINATION ${package})
