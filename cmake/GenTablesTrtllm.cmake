# TensorRT-LLM's build: gentables_trtllm(), which makes its customAllReduceUtils.h from rows in the build
# tree. Included by GenTables.cmake, whose private functions it uses.
include_guard(GLOBAL)

#[==[
gentables_trtllm(
  TARGETS target...  what includes the header; they may be made later, in any folder
  DATA_DIR dir       the rows, benchmark.tp{N}.smXX.csv, or folders smXX of them
  [HEADER path]      the header in the source tree, which is checked in: what NAME-render writes, and what is
                     used without the program
  [NAME name])       the targets are named after it; default: trtllm-tables

To be called after setup_cuda_architectures(). It makes

  name-header   renders tensorrt_llm/common/customAllReduceUtils.h into the build tree, for the SM versions in
                CMAKE_CUDA_ARCHITECTURES_ORIG (where that is not set, all that have rows); every target waits
                for it and has its folder before all other include directories, the source root among them
  name-render   writes HEADER, with every SM version that has rows; never part of `all`
  name-check    fails, and prints the difference and what mends it, if HEADER is not what the rows give

and enters the last two into render-tables and check-tables. Building needs neither GPU nor MPI nor network,
and measures nothing. Relative paths start at the current source folder.

  setup_cuda_architectures()
  find_package(GenTables REQUIRED)
  gentables_trtllm(
    TARGETS common_src kernels_src
    DATA_DIR tensorrt_llm/tables
    HEADER tensorrt_llm/common/customAllReduceUtils.h)
]==]
function(gentables_trtllm)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "NAME;DATA_DIR;HEADER" "TARGETS")
  if(arg_UNPARSED_ARGUMENTS OR arg_KEYWORDS_MISSING_VALUES)
    message(FATAL_ERROR "gentables_trtllm: unknown or without a value: ${arg_UNPARSED_ARGUMENTS} "
                        "${arg_KEYWORDS_MISSING_VALUES}; it knows NAME DATA_DIR HEADER TARGETS")
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
    message(FATAL_ERROR "gentables_trtllm: HEADER ${arg_HEADER}: it is called customAllReduceUtils.h")
  endif()

  _gentables_trtllm_header(folder "${arg_NAME}" "${arg_DATA_DIR}" "${arg_HEADER}")
  if(TARGET GenTables::gentables AND arg_HEADER)
    _gentables_trtllm_verbs("${arg_NAME}" "${arg_DATA_DIR}" "${arg_HEADER}")
  endif()
  # The targets are looked for when the whole project has been read.
  cmake_language(EVAL CODE "
    cmake_language(DEFER DIRECTORY [[${CMAKE_SOURCE_DIR}]]
                   CALL _gentables_trtllm_attach [[${arg_NAME}]] [[${folder}]] [[${arg_TARGETS}]])")
endfunction()

# The numbers of the SM versions that are built for, as --sm has them; empty: all.
function(_gentables_trtllm_sms out)
  set(numbers "")
  foreach(arch IN LISTS CMAKE_CUDA_ARCHITECTURES_ORIG)
    if(arch MATCHES "^([0-9]+)")
      list(APPEND numbers ${CMAKE_MATCH_1})
    else()
      set(numbers "") # native, all: nobody knows which
      break()
    endif()
  endforeach()
  list(REMOVE_DUPLICATES numbers)
  list(JOIN numbers "," numbers)
  set(${out} "${numbers}" PARENT_SCOPE)
endfunction()

# Renders the header into the build tree; without the program it is the one that is checked in. Sets `out` to
# the folder that goes before the source root.
function(_gentables_trtllm_header out name data_dir header)
  set(root ${CMAKE_CURRENT_BINARY_DIR}/gentables/${name}-include)
  set(folder ${root}/tensorrt_llm/common)
  set(${out} ${root} PARENT_SCOPE)
  file(MAKE_DIRECTORY ${folder})
  file(GLOB rows CONFIGURE_DEPENDS ${data_dir}/benchmark.tp*.sm*.csv ${data_dir}/sm*/benchmark.tp*.sm*.csv)
  if(NOT TARGET GenTables::gentables)
    if(NOT EXISTS "${header}")
      message(FATAL_ERROR "gentables: ${name}: no generator here, and no HEADER that is checked in")
    endif()
    message(STATUS "gentables: ${name}: no generator here; uses the committed ${header}")
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

# Refreshing and checking the copy in the source tree.
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

# Puts the folder first among the include directories of every target, and the header before its compilation.
function(_gentables_trtllm_attach name folder targets)
  foreach(target IN LISTS targets)
    if(NOT TARGET ${target})
      message(FATAL_ERROR "gentables_trtllm: there is no target ${target}; TARGETS names what includes "
                          "the header")
    endif()
    get_target_property(type ${target} TYPE)
    if(type STREQUAL "INTERFACE_LIBRARY")
      message(FATAL_ERROR "gentables_trtllm: ${target} compiles nothing; name the targets that "
                          "include the header")
    endif()
    target_include_directories(${target} BEFORE PRIVATE ${folder})
    add_dependencies(${target} ${name}-header)
  endforeach()
endfunction()
