# Packages of what install.cmake installs:
#
#   sh cmake/dev.sh packages      writes to build/packages/
#
#   gentables-VERSION-SYSTEM-PROCESSOR.tar.gz   runs from any folder; bin/gentables doctor lists what it lacks
#   gentables_VERSION_ARCHITECTURE.deb          on Debian and Ubuntu, with dpkg-shlibdeps; it depends on the
#                                               packages of the libraries that the programs were linked with,
#                                               and on that of mpirun
#
# They run without a compiler, on machines with the libraries of the machine that builds. Parts that are left
# out of the build, for lack of a library, are missing in the packages, too; dev.sh installs all libraries
# first.
if(NOT TARGET gentables)
  return()
endif()

set(CPACK_GENERATOR TGZ)
find_program(DPKG_SHLIBDEPS dpkg-shlibdeps)
if(DPKG_SHLIBDEPS AND EXISTS /etc/debian_version)
  list(APPEND CPACK_GENERATOR DEB)
endif()
set(CPACK_PACKAGE_NAME gentables)
set(CPACK_PACKAGE_VENDOR "the authors of gentables")
set(CPACK_PACKAGE_CONTACT ${CPACK_PACKAGE_VENDOR})
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "measures collectives and writes tables of the best ones")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/packaging/copyright)
set(CPACK_PACKAGE_FILE_NAME
    gentables-${PROJECT_VERSION}-${CMAKE_SYSTEM_NAME}-${CMAKE_SYSTEM_PROCESSOR})
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_BINARY_DIR}/packages)
set(CPACK_STRIP_FILES ON)

set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
if(TARGET gentables-bench)
  set(CPACK_DEBIAN_PACKAGE_DEPENDS openmpi-bin)
endif()
# Pictures; GEMMs; convolutions; regret of a header.
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "gnuplot-nox, libopenblas0-pthread")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "libdnnl2 | libdnnl3, gcc, libc6-dev")
include(CPack)

# Unlike CPack's own target `package` it builds no tests.
add_custom_target(
  packages
  COMMAND ${CMAKE_CPACK_COMMAND} --config ${PROJECT_BINARY_DIR}/CPackConfig.cmake
  DEPENDS ${programs} gentables-modules
  COMMENT "Packing gentables ${PROJECT_VERSION}"
  USES_TERMINAL VERBATIM)
