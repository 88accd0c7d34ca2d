# What the build makes for itself: the kernels and headers that gentables renders, and hashes.
include_guard(GLOBAL)

# _gentables_keep(output comment COMMAND command... DEPENDS file...) Makes `output` with a command that leaves
# it as old as it is if nothing in it changes, so that nothing is compiled from it again. Its users depend on
# a custom target of `output`.stamp, which is as new as the last run: without a stamp Make would run the
# command in every build.
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

# _gentables_render(output template [NAME=VALUE...] [DEPENDS file...]) Renders a template, which sees the
# lists of the generator and the values, with `output`.stamp as above. It is rendered again after an edit of
# the program, the template, or a file that is named.
function(_gentables_render output template)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "" "DEPENDS")
  cmake_path(ABSOLUTE_PATH template BASE_DIRECTORY ${PROJECT_SOURCE_DIR}/templates)
  cmake_path(GET output FILENAME name)
  set(generator ${PROJECT_SOURCE_DIR}/generator)
  _gentables_keep(
    ${output} "Rendering ${name}"
    COMMAND gentables template ${template} ${arg_UNPARSED_ARGUMENTS} --out ${output}
    DEPENDS gentables ${template} ${generator}/lists/lists.lua ${generator}/codec/template.lua ${arg_DEPENDS})
endfunction()
