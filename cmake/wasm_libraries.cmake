# The engine in a browser has no threads, no SQLite and no NLopt. fmt and nlohmann/json are header-only; libyaml is
# compiled from its sources, which `./dev wasm` downloads.
set(not_in_a_browser
    sweep_store host_fit population_fit power_fit           # SQLite, NLopt, Eigen
    server connection guard http                            # sockets
    sweep_report sweep_verdict result_file summary charts.* ascii_chart svg_chart chart plot_files html_page html_tables
    validation_pairs perfetto openmetrics run_observers kernel_report catalog_report)  # pages of files
list(JOIN not_in_a_browser "|" not_in_a_browser)
set(not_in_a_browser "/(${not_in_a_browser})\\.cpp$")
add_compile_options(-fwasm-exceptions "SHELL:-include ${CMAKE_CURRENT_LIST_DIR}/wasm/missing.h")
add_link_options(-fwasm-exceptions)

set(ROOFCAST_LIBYAML "" CACHE PATH "folder of libyaml's sources")
if(NOT EXISTS ${ROOFCAST_LIBYAML}/src/parser.c)
  message(FATAL_ERROR "ROOFCAST_LIBYAML: expected the folder of libyaml's sources (./dev wasm fetches them), got '${ROOFCAST_LIBYAML}'")
endif()
enable_language(C)
file(GLOB yaml_sources ${ROOFCAST_LIBYAML}/src/*.c)
add_library(yaml STATIC ${yaml_sources})
add_library(LibYaml::LibYaml ALIAS yaml)
target_include_directories(yaml SYSTEM PUBLIC ${ROOFCAST_LIBYAML}/include)
file(STRINGS ${ROOFCAST_LIBYAML}/CMakeLists.txt version_lines REGEX "^set *\\(YAML_VERSION_(MAJOR|MINOR|PATCH) [0-9]+\\)")
string(REGEX REPLACE "[^0-9]*([0-9]+)[^0-9]*([0-9]+)[^0-9]*([0-9]+).*" "\\1;\\2;\\3" yaml_version "${version_lines}")
list(GET yaml_version 0 major)
list(GET yaml_version 1 minor)
list(GET yaml_version 2 patch)
target_compile_definitions(yaml PRIVATE YAML_VERSION_MAJOR=${major} YAML_VERSION_MINOR=${minor} YAML_VERSION_PATCH=${patch}
                                        YAML_VERSION_STRING="${major}.${minor}.${patch}" PUBLIC YAML_DECLARE_STATIC)

# The headers of Debian's packages (boost: one hash) without the rest of /usr/include.
set(headers ${CMAKE_BINARY_DIR}/headers)
file(MAKE_DIRECTORY ${headers})
foreach(folder boost fmt nlohmann)
  file(CREATE_LINK /usr/include/${folder} ${headers}/${folder} SYMBOLIC)
endforeach()
foreach(library fmt::fmt nlohmann_json::nlohmann_json)
  add_library(${library} INTERFACE IMPORTED)
  target_include_directories(${library} SYSTEM INTERFACE ${headers})
endforeach()
target_compile_definitions(fmt::fmt INTERFACE FMT_HEADER_ONLY)
