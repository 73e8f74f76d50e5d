# What the engine needs in a browser: no threads, no SQLite, no NLopt. fmt and nlohmann/json are headers alone; yaml-cpp
# is compiled from its sources, which `./dev wasm` fetches.
set(not_in_a_browser
    sweep_store host_fit population_fit power_fit           # SQLite, NLopt, Eigen
    server connection guard http                            # sockets
    sweep_report sweep_verdict result_file summary charts.* ascii_chart svg_chart chart plot_files html_page html_tables
    validation_pairs perfetto openmetrics run_observers kernel_report catalog_report)  # pages of files
list(JOIN not_in_a_browser "|" not_in_a_browser)
set(not_in_a_browser "/(${not_in_a_browser})\\.cpp$")
add_compile_options(-fwasm-exceptions "SHELL:-include ${CMAKE_CURRENT_LIST_DIR}/wasm/missing.h")
add_link_options(-fwasm-exceptions)

set(ROOFCAST_YAML_CPP "" CACHE PATH "folder of yaml-cpp's sources")
if(NOT EXISTS ${ROOFCAST_YAML_CPP}/src/parser.cpp)
  message(FATAL_ERROR "ROOFCAST_YAML_CPP: expected the folder of yaml-cpp's sources (./dev wasm fetches them), got '${ROOFCAST_YAML_CPP}'")
endif()
file(GLOB yaml_sources ${ROOFCAST_YAML_CPP}/src/*.cpp)
add_library(yaml-cpp STATIC ${yaml_sources})
target_include_directories(yaml-cpp SYSTEM PUBLIC ${ROOFCAST_YAML_CPP}/include)
target_compile_definitions(yaml-cpp PUBLIC YAML_CPP_STATIC_DEFINE)

# The headers of Debian's packages (boost: one hash), without the rest of /usr/include.
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
