# Installs the programs, their Lua files and templates, loadable modules, completions, man pages, and the
# CMake package.
#
# The program finds its files in ../share/gentables and ../lib/gentables, and the package finds the program in
# ../../../bin. So the folders below the prefix are fixed, and the installed tree may be moved.
include(CMakePackageConfigHelpers)

set(programs "")
foreach(program gentables gentables-bench gentables-bench-cuda gentables-bench-cuda-mpi gentables-replay
                gentables-workload)
  if(TARGET ${program})
    list(APPEND programs ${program})
  endif()
endforeach()
if(programs)
  install(TARGETS ${programs} EXPORT GenTablesTargets RUNTIME DESTINATION bin)
  get_property(modules GLOBAL PROPERTY GENTABLES_MODULES)
  install(TARGETS ${modules} LIBRARY DESTINATION lib/gentables/core)
  if(TARGET gentables-allreduce-watch)
    install(TARGETS gentables-allreduce-watch LIBRARY DESTINATION lib/gentables)
  endif()
  install(EXPORT GenTablesTargets NAMESPACE GenTables:: DESTINATION lib/cmake/GenTables)
endif()
install(DIRECTORY generator/ DESTINATION share/gentables/generator FILES_MATCHING PATTERN "*.lua")
install(DIRECTORY templates/ DESTINATION share/gentables/templates)
install(DIRECTORY workloads/ DESTINATION share/gentables/workloads)
install(FILES tables/gpu/spec.lua DESTINATION share/gentables/tables/gpu)
install(FILES python/gentables_thresholds.py DESTINATION share/gentables/python)
install(FILES tables/host/spec.lua DESTINATION share/gentables/tables/host)
install(FILES CHANGELOG.md packaging/copyright DESTINATION share/doc/gentables)

# Completions and man pages. The program renders them while it is installed, so no build spends time on them.
if(TARGET gentables)
  install(CODE [[
    get_filename_component(share "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/share" ABSOLUTE)
    function(install_completion shell path)
      get_filename_component(folder "${share}/${path}" DIRECTORY)
      file(MAKE_DIRECTORY "${folder}")
      message(STATUS "Installing: ${share}/${path}")
      execute_process(COMMAND "$<TARGET_FILE:gentables>" completion ${shell}
                      OUTPUT_FILE "${share}/${path}" COMMAND_ERROR_IS_FATAL ANY)
    endfunction()
    install_completion(bash bash-completion/completions/gentables)
    install_completion(zsh zsh/site-functions/_gentables)
    install_completion(zsh zsh/vendor-completions/_gentables) # Debian's folder
    install_completion(fish fish/vendor_completions.d/gentables.fish)
    message(STATUS "Installing: ${share}/man/man1")
    execute_process(COMMAND "$<TARGET_FILE:gentables>" manual --out "${share}/man/man1"
                    OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
  ]])
endif()

configure_package_config_file(
  cmake/GenTablesConfig.cmake.in ${PROJECT_BINARY_DIR}/GenTablesConfig.cmake
  INSTALL_DESTINATION lib/cmake/GenTables)
write_basic_package_version_file(
  ${PROJECT_BINARY_DIR}/GenTablesConfigVersion.cmake
  VERSION ${PROJECT_VERSION} COMPATIBILITY SameMinorVersion
  ARCH_INDEPENDENT) # its programs run on the machine that compiles
install(
  FILES ${PROJECT_BINARY_DIR}/GenTablesConfig.cmake ${PROJECT_BINARY_DIR}/GenTablesConfigVersion.cmake
        cmake/GenTables.cmake cmake/GenTablesTrtllm.cmake cmake/sweep_then_generate.sh
  DESTINATION lib/cmake/GenTables)
