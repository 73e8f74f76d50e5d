# Compiles the sources of a target in groups of about eight, because most of their compile time goes into headers that
# they share. A source's group follows from its name: a new source changes only one group, until the target needs twice
# as many groups. Sources whose local names clash with others (APART) are compiled alone. So are hw/ and sim/model,
# where each kernel and layer has its own `Constants` or `kBf16Bytes`.
option(ROOFCAST_UNITY "compile several sources at once, which makes a full build shorter" ON)

function(roofcast_join target)  # [APART all|file...]
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "APART")
  if(NOT ROOFCAST_UNITY OR EMSCRIPTEN OR arg_APART STREQUAL all)
    return()
  endif()
  get_target_property(sources ${target} SOURCES)
  list(LENGTH sources count)
  set(groups 1)
  while(count GREATER 8)
    math(EXPR groups "${groups} * 2")
    math(EXPR count "(${count} + 1) / 2")
  endwhile()
  foreach(source ${sources})
    get_filename_component(name ${source} NAME)
    cmake_path(IS_PREFIX PROJECT_BINARY_DIR ${source} made)
    if(made OR name IN_LIST arg_APART)
      continue()
    endif()
    string(MD5 hash ${name})
    string(SUBSTRING ${hash} 0 4 hash)
    math(EXPR group "0x${hash} % ${groups}")
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${group})
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
endfunction()
