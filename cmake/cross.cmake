# The program in a build for another system: one that was built for this machine, or none. Without one the
# committed tables are used. There is no bench. CMAKE_PREFIX_PATH and the install prefix may have programs
# of the other system: they are not searched.
include_guard(GLOBAL)

find_program(GENTABLES_PROGRAM gentables DOC "gentables, built for the machine that compiles"
             NO_CMAKE_FIND_ROOT_PATH NO_CMAKE_PATH NO_CMAKE_ENVIRONMENT_PATH NO_CMAKE_SYSTEM_PATH)
if(GENTABLES_PROGRAM)
  add_executable(GenTables::gentables IMPORTED GLOBAL)
  set_target_properties(GenTables::gentables PROPERTIES IMPORTED_LOCATION ${GENTABLES_PROGRAM})
  message(STATUS "gentables: renders tables with ${GENTABLES_PROGRAM}")
else()
  message(STATUS "gentables: cross-compiling, and GENTABLES_PROGRAM is not set to a gentables of this "
                 "machine")
endif()
