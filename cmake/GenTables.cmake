# gentables_add(): the targets of gentables in a CMake project, and the umbrella targets over all calls.
#
# The source tree, add_subdirectory() and the installed package use this file. Its targets run the program
# GenTables::gentables; without the program (no Lua) the committed tables are used. gentables_trtllm(), for
# the build of TensorRT-LLM, is in GenTablesTrtllm.cmake.
include_guard(GLOBAL)
include(${CMAKE_CURRENT_LIST_DIR}/GenTablesTrtllm.cmake)

#[==[
gentables_add(
  NAME name          the targets' names begin with it
  ARCH arch          the arch of the table: host, host-NAME, sm90, ...
  DATA_DIR dir       the folder of the rows, benchmark.tp{N}.{ARCH}.csv, and of spec.lua, which lists what to
                     sweep; without spec.lua there is no sweep
  [TABLES dir]       the folder of the committed tables; default: DATA_DIR
  [FORMATS f...]     the formats to render; default: all formats of the arch
  [HISTORY file]     the history that gets the rows of each sweep, if gentables was built with SQLite;
                     default: history.db in the build tree
  [SWEEP_GPUS])      for sm90, sm90-loopback, ...: the targets also sweep, on the GPUs of this machine;
                     without it they render rows that were measured elsewhere

Adds one table to the project. Relative paths start at the current source folder. The targets are

  name          INTERFACE library: its users #include "allreduce_table.h", or, if one target uses several
                tables, "name/allreduce_table.h". The header is rendered from the rows into the build tree;
                without the program, or without rows, the header in TABLES is used
  name-render   writes the tables to TABLES, from the existing rows; files that do not change keep their dates
  name-check    fails if TABLES differs from what the rows give, and prints the difference and the command
                that updates TABLES
  name-sweep    measures the missing rows (only for host archs or with SWEEP_GPUS, with a bench and a spec)
  name-gen      name-sweep, then name-render; if cells cannot be measured, it renders the others and fails
  name-refine   like name-gen, but continues a sweep that its budget ended (only with name-sweep)
  name-report   report.html, a workbook and pictures, in gentables/name-report of the build tree

They are also part of render-tables, check-tables, sweep-tables, gen-tables, refine-tables and report-tables.
None of these is part of `all`; only name-sweep, name-gen and name-refine measure. Ninja measures one table
after another, and so does Make without -j; with -j Make runs sweeps at once, which disturbs their
measurements.

  find_package(GenTables REQUIRED)
  gentables_add(NAME allreduce ARCH sm90 DATA_DIR tables/sm90)
  target_link_libraries(server PRIVATE allreduce)
]==]
function(gentables_add)
  cmake_parse_arguments(PARSE_ARGV 0 arg "SWEEP_GPUS" "NAME;ARCH;DATA_DIR;TABLES;HISTORY" "FORMATS")
  _gentables_check_arguments("${arg_UNPARSED_ARGUMENTS}" "${arg_KEYWORDS_MISSING_VALUES}")
  foreach(required NAME ARCH DATA_DIR)
    if(NOT DEFINED arg_${required})
      message(FATAL_ERROR "gentables_add: ${required} is missing; it needs NAME name ARCH arch DATA_DIR dir")
    endif()
  endforeach()
  foreach(path DATA_DIR TABLES HISTORY)
    if(DEFINED arg_${path})
      cmake_path(ABSOLUTE_PATH arg_${path} BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} NORMALIZE)
    endif()
  endforeach()
  if(NOT DEFINED arg_TABLES)
    set(arg_TABLES ${arg_DATA_DIR})
  endif()
  if(NOT DEFINED arg_HISTORY)
    set(arg_HISTORY ${CMAKE_BINARY_DIR}/history.db)
  endif()

  add_library(${arg_NAME} INTERFACE)
  _gentables_add_header(${arg_NAME} ${arg_ARCH} ${arg_DATA_DIR} ${arg_TABLES})
  if(TARGET GenTables::gentables)
    _gentables_bench_of(bench ${arg_ARCH} ${arg_DATA_DIR} ${arg_SWEEP_GPUS})
    _gentables_add_verbs(${arg_NAME} ${arg_ARCH} ${arg_DATA_DIR} ${arg_TABLES} "${arg_FORMATS}" "${bench}"
                         ${arg_HISTORY})
  endif()
endfunction()

# Ends the configuration if gentables_add has unknown arguments, or arguments without a value.
function(_gentables_check_arguments unknown without_value)
  if(NOT unknown STREQUAL "")
    list(JOIN unknown " " unknown)
    message(FATAL_ERROR "gentables_add: unknown: ${unknown}; valid: "
                        "NAME ARCH DATA_DIR TABLES FORMATS HISTORY SWEEP_GPUS")
  endif()
  if(NOT without_value STREQUAL "")
    list(JOIN without_value ", " without_value)
    message(FATAL_ERROR "gentables_add: without a value: ${without_value}")
  endif()
endfunction()

# Adds the header to the INTERFACE library: rendered if possible, else the committed one.
function(_gentables_add_header name arch data_dir tables)
  file(GLOB rows CONFIGURE_DEPENDS ${data_dir}/benchmark.tp*.${arch}.csv)
  if(rows AND TARGET GenTables::gentables)
    _gentables_render_header(${name} ${arch} ${data_dir})
    return()
  endif()
  if(rows)
    set(why "no generator")
  else()
    set(why "no rows for ${arch} in ${data_dir} yet")
  endif()
  if(EXISTS ${tables}/allreduce_table.h)
    message(STATUS "gentables: ${name}: ${why}; uses the committed ${tables}/allreduce_table.h")
    _gentables_header_folder(folder ${name})
    configure_file(${tables}/allreduce_table.h ${folder}/allreduce_table.h COPYONLY)
    target_include_directories(${name} INTERFACE ${folder} ${folder}/..)
  else()
    message(STATUS "gentables: ${name}: ${why}, and no ${tables}/allreduce_table.h: "
                   "the library has no header")
  endif()
endfunction()

# Renders the header into the build tree. The output is a stamp, because the program does not touch a header
# that does not change: otherwise Make would render it in every build, or compile everything again.
function(_gentables_render_header name arch data_dir)
  _gentables_header_folder(folder ${name})
  set(stamp ${CMAKE_CURRENT_BINARY_DIR}/gentables/${name}.stamp)
  file(GLOB inputs CONFIGURE_DEPENDS ${data_dir}/benchmark.tp*.${arch}.* ${data_dir}/spec.lua)
  list(FILTER inputs INCLUDE REGEX "\\.(csv|json|lua)$")
  # A removed input, or a new one with an old date, changes this list.
  file(CONFIGURE OUTPUT ${stamp}.inputs CONTENT "${inputs}\n")
  _gentables_own_files(own)
  file(MAKE_DIRECTORY ${folder})
  add_custom_command(
    OUTPUT ${stamp}
    BYPRODUCTS ${folder}/allreduce_table.h
    COMMAND $<TARGET_FILE:GenTables::gentables> generate
            --data-dir ${data_dir} --arch ${arch} --out ${folder} --formats c
    COMMAND ${CMAKE_COMMAND} -E touch ${stamp}
    DEPENDS GenTables::gentables ${stamp}.inputs ${inputs} ${own}
    COMMENT "Rendering the table ${name} for ${arch}"
    VERBATIM)
  add_custom_target(${name}-header DEPENDS ${stamp})
  target_include_directories(${name} INTERFACE ${folder} ${folder}/..)
  add_dependencies(${name} ${name}-header)
endfunction()

# Sets `out` to the folder of the header for users of the library `name`.
function(_gentables_header_folder out name)
  set(${out} ${CMAKE_CURRENT_BINARY_DIR}/gentables/${name}-include/${name} PARENT_SCOPE)
endfunction()

# Sets `out` to the Lua files and templates that render tables: beside this file's folder in the sources, in
# share/gentables in an installed tree.
function(_gentables_own_files out)
  foreach(home .. ../../../share/gentables)
    set(home ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/${home})
    if(EXISTS ${home}/generator/verbs.lua)
      file(GLOB_RECURSE files CONFIGURE_DEPENDS ${home}/generator/*.lua ${home}/templates/tables/*)
      set(${out} ${files} PARENT_SCOPE)
      return()
    endif()
  endforeach()
  message(FATAL_ERROR "gentables: no generator/verbs.lua near ${CMAKE_CURRENT_FUNCTION_LIST_FILE}; "
                      "install all of gentables")
endfunction()

# Sets `out` to `path`, relative to the project's sources if it is below them, so that verbs print short
# paths.
function(_gentables_shorten out path)
  file(RELATIVE_PATH short ${CMAKE_SOURCE_DIR} ${path})
  if(short STREQUAL "" OR short MATCHES "^\\.\\.|^-")
    set(short ${path})
  endif()
  set(${out} ${short} PARENT_SCOPE)
endfunction()

# Sets `out` to whether gentables has an optional module, such as xlsx, in this build or as installed.
function(_gentables_has_module out module)
  set(${out} FALSE PARENT_SCOPE)
  set(installed ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/../../gentables/core)
  if(TARGET gentables-${module} OR EXISTS ${installed}/${module}.so)
    set(${out} TRUE PARENT_SCOPE)
  endif()
endfunction()

# Sets `out` to the program that measures an arch in a build; "": the build does not measure it.
function(_gentables_bench_of out arch data_dir sweeps_gpus)
  set(bench "")
  if(arch MATCHES "^host(-|$)")
    set(bench GenTables::gentables-bench)
  elseif(arch MATCHES "^sm[0-9]" AND sweeps_gpus)
    set(bench GenTables::gentables-bench-cuda)
    if(NOT TARGET ${bench})
      message(WARNING "gentables_add: SWEEP_GPUS for ${arch}, and there is no gentables-bench-cuda, which is "
                      "built where nvcc of CUDA 12.4 or later is found: ${arch} is not measured")
    endif()
  endif()
  if(NOT TARGET "${bench}" OR NOT EXISTS ${data_dir}/spec.lua)
    set(bench "")
  endif()
  set(${out} "${bench}" PARENT_SCOPE)
endfunction()

# Makes the targets that run a verb for one table, in the folder of the sources, and the umbrellas over them.
# bench: the program that measures it, or "".
function(_gentables_add_verbs name arch data_dir tables formats bench history)
  _gentables_shorten(data_dir ${data_dir})
  _gentables_shorten(tables ${tables})
  set(gentables $<TARGET_FILE:GenTables::gentables>)
  set(options "")
  if(formats)
    list(JOIN formats "," formats)
    set(options --formats ${formats})
  endif()
  set(generate ${gentables} generate --data-dir ${data_dir} --arch ${arch} --out ${tables} ${options})
  set(mend "cmake --build ${CMAKE_BINARY_DIR} --target ${name}-render")
  set(check ${gentables} check --data-dir ${data_dir} --arch ${arch} --tables ${tables} ${options}
      --mend ${mend})
  set(spec ${data_dir}/spec.lua)
  set(sweep ${gentables} sweep ${spec} --out ${data_dir} --arch ${arch})
  _gentables_has_module(has_sqlite sqlite)
  if(has_sqlite)
    list(APPEND sweep --history ${history})
  else()
    set(history none) # a list would lose an empty element
  endif()
  set(script sh ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/sweep_then_generate.sh)
  # With nothing to measure, rendering would take most of the time of these targets; the stamp avoids it.
  set(stamp --stamp ${CMAKE_CURRENT_BINARY_DIR}/gentables/${name}-tables.stamp)
  set(gen ${gentables} ${spec} ${data_dir} ${arch} "${history}" --out ${tables} ${options} ${stamp})
  set(program GenTables::gentables)
  _gentables_add_target(${name} render ${program} "Rendering the tables of ${name}" COMMAND ${generate})
  _gentables_add_target(${name} check ${program} "Checking the tables of ${name}" COMMAND ${check})
  _gentables_add_report(${name} ${arch} ${data_dir})
  if(bench)
    set(programs ${program} ${bench})
    set(comment "Measuring the missing rows of ${name}")
    _gentables_add_target(${name} sweep "${programs}" "${comment}" COMMAND ${sweep} USES_TERMINAL)
    _gentables_add_target(${name} gen "${programs}" "${comment}, then rendering"
                          COMMAND ${script} ${gen} USES_TERMINAL)
    _gentables_add_target(${name} refine "${programs}" "Continuing the sweep of ${name}, then rendering"
                          COMMAND ${script} --refine ${gen} USES_TERMINAL)
    if(TARGET gentables-sqlite) # which only these targets load
      foreach(verb sweep gen refine)
        add_dependencies(${name}-${verb} gentables-sqlite)
      endforeach()
    endif()
  else()
    _gentables_add_target(${name} gen ${program} "Rendering the tables of ${name}" COMMAND ${generate})
  endif()
endfunction()

# The target NAME-report: a page, a workbook (if the program can write one) and all pictures, in the build
# tree. The pictures come last, because only they need gnuplot.
function(_gentables_add_report name arch data_dir)
  set(xlsx "")
  _gentables_has_module(has_xlsx xlsx)
  if(has_xlsx)
    set(xlsx --xlsx)
  endif()
  set(rows --data-dir ${data_dir} --arch ${arch} --out ${CMAKE_CURRENT_BINARY_DIR}/gentables/${name}-report)
  _gentables_add_target(
    ${name} report GenTables::gentables "Reports and pictures of ${name}"
    COMMAND $<TARGET_FILE:GenTables::gentables> report ${rows} ${xlsx}
    COMMAND $<TARGET_FILE:GenTables::gentables> plot ${rows} --kinds all
    USES_TERMINAL)
  foreach(module sheet_text xlsx) # only this target loads them
    if(TARGET gentables-${module})
      add_dependencies(${name}-report gentables-${module})
    endif()
  endforeach()
endfunction()

# _gentables_add_target(name verb programs comment COMMAND ...): makes the target NAME-VERB, which depends on
# the programs, and adds it to the umbrella VERB-tables, which the first call makes.
function(_gentables_add_target name verb programs comment)
  add_custom_target(
    ${name}-${verb} ${ARGN}
    WORKING_DIRECTORY ${CMAKE_SOURCE_DIR}
    COMMENT ${comment}
    VERBATIM)
  add_dependencies(${name}-${verb} ${programs})
  if(NOT TARGET ${verb}-tables)
    add_custom_target(${verb}-tables)
  endif()
  add_dependencies(${verb}-tables ${name}-${verb})
endfunction()
