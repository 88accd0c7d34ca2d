# Generated sources of the build: kernels and headers that gentables renders, and hashes.
include_guard(GLOBAL)

# _gentables_keep(output comment COMMAND command... DEPENDS file...) Makes `output` with a command that does
# not touch it if its content does not change, so that nothing is compiled again. Its users depend on a custom
# target of `output`.stamp, which has the time of the last run; without a stamp Make would run the command in
# every build.
function(_gentables_keep output comment)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "" "COMMAND;DEPENDS")
  cmake_path(GET output PARENT_PATH folder)
  file(MAKE_DIRECTORY ${folder})
  add_custom_command(
    OUTPUT ${output}.stamp
    BYPRODUCTS ${output}
    COMMAND ${arg_COMMAND}
    COMMAND ${CMAKE_COMMAND} -E touch ${output}.stamp
    DEPENDS ${arg_DEPENDS}
    COMMENT ${comment}
    VERBATIM)
endfunction()

# _gentables_render(output template [NAME=VALUE...] [DEPENDS file...]) Renders a template with the lists of
# the generator and the values, with `output`.stamp as above. It is rendered again after a change of the
# program, the template, or a file of DEPENDS.
function(_gentables_render output template)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "" "DEPENDS")
  cmake_path(ABSOLUTE_PATH template BASE_DIRECTORY ${PROJECT_SOURCE_DIR}/templates)
  cmake_path(GET output FILENAME name)
  set(generator ${PROJECT_SOURCE_DIR}/generator)
  _gentables_keep(
    ${output} "Rendering ${name}"
    COMMAND gentables template ${template} ${arg_UNPARSED_ARGUMENTS} --out ${output}
    DEPENDS gentables ${template} ${generator}/lists/lists.lua ${generator}/lists/communication.lua
            ${generator}/lists/element_types.lua ${generator}/codec/template.lua ${arg_DEPENDS})
endfunction()
