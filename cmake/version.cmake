# The version, with information from git: "0.1.0" at the tag v0.1.0, else "0.1.0+12.g61fc490" for 12 commits after the
# newest tag. A tarball of `git archive` has its commit in cmake/archive.txt; other sources only have VERSION.
# cmake -DSOURCE=. -DVERSION=0.1.0 -DOUT=version.cpp -P version.cmake writes it as C++, only if it changed.
function(roofcast_version source version result)
  execute_process(COMMAND git -C "${source}" rev-parse --show-toplevel --short HEAD
                  OUTPUT_VARIABLE found OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
  string(REGEX REPLACE "\n.*" "" root "${found}")
  string(REGEX REPLACE ".*\n" "" commit "${found}")
  file(REAL_PATH "${source}" folder)
  if(NOT failed AND root STREQUAL folder)  # not a checkout around an unpacked tarball
    execute_process(COMMAND git -C "${source}" describe --tags --match "v[0-9]*" --long --abbrev=7
                    OUTPUT_VARIABLE described OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    if(described MATCHES "^v(.+)-([0-9]+)-g[0-9a-f]+$")
      set(tag ${CMAKE_MATCH_1})
      set(commits ${CMAKE_MATCH_2})
    else()
      execute_process(COMMAND git -C "${source}" rev-list --count HEAD OUTPUT_VARIABLE commits
                      OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    endif()
    if(NOT (tag STREQUAL version AND commits EQUAL 0))
      string(APPEND version "+${commits}.g${commit}")
    endif()
  elseif(EXISTS "${source}/cmake/archive.txt")
    file(STRINGS "${source}/cmake/archive.txt" commit REGEX "^[0-9a-f]+$")
    if(commit)
      string(APPEND version "+g${commit}")
    endif()
  endif()
  set(${result} ${version} PARENT_SCOPE)
endfunction()

if(CMAKE_SCRIPT_MODE_FILE STREQUAL CMAKE_CURRENT_LIST_FILE)
  roofcast_version("${SOURCE}" "${VERSION}" version)
  set(text "#include \"cli/version.h\"\nconst char* const roofcast::cli::kBuildVersion = \"${version}\";\n")
  set(old "")
  if(EXISTS "${OUT}")
    file(READ "${OUT}" old)
  endif()
  if(NOT old STREQUAL text)
    file(WRITE "${OUT}" "${text}")
  endif()
endif()
