# gentables_trtllm(): in the build of TensorRT-LLM, renders its customAllReduceUtils.h from rows. Part of
# GenTables.cmake, which includes this file; uses private functions of that.
include_guard(GLOBAL)

#[==[
gentables_trtllm(
  TARGETS target...  the targets that include the header; they may be defined later, in any folder
  DATA_DIR dir       the folder of the rows, benchmark.tp{N}.smXX.csv, or of folders smXX with rows
  [HEADER path]      the committed header in the source tree: NAME-render writes it, and without the program
                     it is used as it is
  [NAME name])       the targets' names begin with it; default: trtllm-tables

Call it after setup_cuda_architectures(). The targets are

  name-header   renders tensorrt_llm/common/customAllReduceUtils.h into the build tree, for the SM versions in
                CMAKE_CUDA_ARCHITECTURES_ORIG (if that is not set, for all that have rows). All TARGETS depend
                on it, and its folder is the first of their include directories, before the source root
  name-render   writes HEADER, with all SM versions that have rows; never part of `all`
  name-check    fails if HEADER differs from what the rows give, and prints the difference and the command
                that updates HEADER

The last two are also part of render-tables and check-tables. The build needs neither GPU nor MPI nor network,
and measures nothing. Relative paths start at the current source folder.

  setup_cuda_architectures()
  find_package(GenTables REQUIRED)
  gentables_trtllm(
    TARGETS common_src kernels_src th_common runtime_src
    DATA_DIR tensorrt_llm/tables
    HEADER tensorrt_llm/common/customAllReduceUtils.h)
]==]
function(gentables_trtllm)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "NAME;DATA_DIR;HEADER" "TARGETS")
  if(arg_UNPARSED_ARGUMENTS OR arg_KEYWORDS_MISSING_VALUES)
    message(FATAL_ERROR "gentables_trtllm: unknown or without a value: ${arg_UNPARSED_ARGUMENTS} "
                        "${arg_KEYWORDS_MISSING_VALUES}; valid: NAME DATA_DIR HEADER TARGETS")
  endif()
  if(NOT DEFINED arg_DATA_DIR)
    message(FATAL_ERROR "gentables_trtllm: DATA_DIR is missing; it needs TARGETS target... DATA_DIR dir")
  endif()
  if(NOT DEFINED arg_NAME)
    set(arg_NAME trtllm-tables)
  endif()
  foreach(path DATA_DIR HEADER)
    if(DEFINED arg_${path})
      cmake_path(ABSOLUTE_PATH arg_${path} BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} NORMALIZE)
    endif()
  endforeach()
  if(arg_HEADER AND NOT arg_HEADER MATCHES "/customAllReduceUtils\\.h$")
    message(FATAL_ERROR "gentables_trtllm: HEADER ${arg_HEADER}: must be named customAllReduceUtils.h")
  endif()

  _gentables_trtllm_header(folder "${arg_NAME}" "${arg_DATA_DIR}" "${arg_HEADER}")
  if(TARGET GenTables::gentables AND arg_HEADER)
    _gentables_trtllm_verbs("${arg_NAME}" "${arg_DATA_DIR}" "${arg_HEADER}")
  endif()
  # When all of the project has been read, the targets exist.
  cmake_language(EVAL CODE "
    cmake_language(DEFER DIRECTORY [[${CMAKE_SOURCE_DIR}]]
                   CALL _gentables_trtllm_attach [[${arg_NAME}]] [[${folder}]] [[${arg_TARGETS}]])")
endfunction()

# Sets `out` to the SM versions of the build, for --sm; empty: all.
function(_gentables_trtllm_sms out)
  set(numbers "")
  foreach(arch IN LISTS CMAKE_CUDA_ARCHITECTURES_ORIG)
    if(arch MATCHES "^([0-9]+)")
      list(APPEND numbers ${CMAKE_MATCH_1})
    else()
      set(numbers "") # "native" and "all" have no numbers
      break()
    endif()
  endforeach()
  list(REMOVE_DUPLICATES numbers)
  list(JOIN numbers "," numbers)
  set(${out} "${numbers}" PARENT_SCOPE)
endfunction()

# Renders the header into the build tree, or, without the program, copies the committed one. Sets `out` to the
# include directory.
function(_gentables_trtllm_header out name data_dir header)
  set(root ${CMAKE_CURRENT_BINARY_DIR}/gentables/${name}-include)
  set(folder ${root}/tensorrt_llm/common)
  set(${out} ${root} PARENT_SCOPE)
  file(MAKE_DIRECTORY ${folder})
  file(GLOB rows CONFIGURE_DEPENDS ${data_dir}/benchmark.tp*.sm*.csv ${data_dir}/sm*/benchmark.tp*.sm*.csv)
  if(NOT TARGET GenTables::gentables)
    if(NOT EXISTS "${header}")
      message(FATAL_ERROR "gentables: ${name}: no generator, and no committed HEADER")
    endif()
    message(STATUS "gentables: ${name}: no generator; uses the committed ${header}")
    configure_file(${header} ${folder}/customAllReduceUtils.h COPYONLY)
    add_custom_target(${name}-header)
    return()
  endif()
  if(NOT rows)
    message(FATAL_ERROR "gentables: ${name}: no benchmark.tp{N}.smXX.csv in ${data_dir}, nor in folders smXX")
  endif()
  _gentables_trtllm_sms(sms)
  set(options "")
  if(sms)
    set(options --sm ${sms})
  endif()
  file(GLOB specs CONFIGURE_DEPENDS ${data_dir}/spec.lua ${data_dir}/sm*/spec.lua
       ${data_dir}/benchmark.tp*.json ${data_dir}/sm*/benchmark.tp*.json)
  set(stamp ${CMAKE_CURRENT_BINARY_DIR}/gentables/${name}.stamp)
  file(CONFIGURE OUTPUT ${stamp}.inputs CONTENT "${rows};${specs};${sms}\n")
  _gentables_own_files(own)
  add_custom_command(
    OUTPUT ${stamp}
    BYPRODUCTS ${folder}/customAllReduceUtils.h
    COMMAND $<TARGET_FILE:GenTables::gentables> generate --data-dir ${data_dir} --arch all --out ${folder}
            --formats trtllm-header ${options}
    COMMAND ${CMAKE_COMMAND} -E touch ${stamp}
    DEPENDS GenTables::gentables ${stamp}.inputs ${rows} ${specs} ${own}
    COMMENT "Rendering customAllReduceUtils.h"
    VERBATIM)
  add_custom_target(${name}-header DEPENDS ${stamp})
endfunction()

# Makes the targets that write and check the header in the source tree.
function(_gentables_trtllm_verbs name data_dir header)
  cmake_path(GET header PARENT_PATH folder)
  _gentables_shorten(data_dir ${data_dir})
  _gentables_shorten(folder ${folder})
  set(program GenTables::gentables)
  set(made --data-dir ${data_dir} --arch all --formats trtllm-header)
  _gentables_add_target(${name} render ${program} "Writing customAllReduceUtils.h to the sources"
                        COMMAND $<TARGET_FILE:${program}> generate ${made} --out ${folder})
  _gentables_add_target(${name} check ${program} "Checking customAllReduceUtils.h"
                        COMMAND $<TARGET_FILE:${program}> check ${made} --tables ${folder}
                        --mend "cmake --build ${CMAKE_BINARY_DIR} --target ${name}-render")
endfunction()

# Makes the folder the first include directory of every target, and makes the target depend on the header.
function(_gentables_trtllm_attach name folder targets)
  foreach(target IN LISTS targets)
    if(NOT TARGET ${target})
      message(FATAL_ERROR "gentables_trtllm: no target ${target}; TARGETS are the targets that include the "
                          "header")
    endif()
    get_target_property(type ${target} TYPE)
    if(type STREQUAL "INTERFACE_LIBRARY")
      message(FATAL_ERROR "gentables_trtllm: ${target} is an INTERFACE library, which compiles nothing; name "
                          "the targets that include the header")
    endif()
    target_include_directories(${target} BEFORE PRIVATE ${folder})
    add_dependencies(${target} ${name}-header)
  endforeach()
endfunction()
