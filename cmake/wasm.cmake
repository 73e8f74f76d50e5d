# roofcast.js and roofcast.wasm: the engine behind one function, with embedded configs (docs/wasm.md).
roofcast_box(explore explore)
target_link_libraries(roofcast_explore PUBLIC roofcast_reports)
add_executable(roofcast_wasm explore/wasm/entry.cpp)
set_target_properties(roofcast_wasm PROPERTIES OUTPUT_NAME roofcast SUFFIX .js)
target_link_libraries(roofcast_wasm PRIVATE roofcast_explore)
target_link_options(roofcast_wasm PRIVATE -O2 --no-entry "SHELL:--embed-file ${PROJECT_SOURCE_DIR}/configs@/configs"
  -sMODULARIZE=1 -sEXPORT_NAME=createRoofcast -sENVIRONMENT=web,worker,node -sALLOW_MEMORY_GROWTH=1
  -sINITIAL_MEMORY=64MB -sTOTAL_STACK=4MB -sFILESYSTEM=1 -sEXPORTED_RUNTIME_METHODS=ccall,FS
  -sEXPORTED_FUNCTIONS=_roofcast_ask,_roofcast_status,_roofcast_command,_malloc,_free)
file(GLOB_RECURSE configs CONFIGURE_DEPENDS configs/*)
set_target_properties(roofcast_wasm PROPERTIES LINK_DEPENDS "${configs}")
# The page as static files. It sends its requests to a worker instead of the server.
set(site ${PROJECT_BINARY_DIR}/site)
set(site_files explore/wasm/api.js explore/wasm/worker.js explore/page/explore.css explore/page/explore.js explore/page/charts.js
               explore/page/question.js explore/page/canvases.js explore/page/lessons.js explore/page/ask.js explore/page/plan.js reports/page/plot.js)
list(TRANSFORM site_files PREPEND ${PROJECT_SOURCE_DIR}/)
file(READ explore/page/index.html index)
string(REPLACE "data-engine=\"server\"" "data-engine=\"wasm\"" index "${index}")
string(REPLACE "<meta charset=\"utf-8\">" "<meta charset=\"utf-8\">\n<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; connect-src 'self'; worker-src 'self'; img-src 'self' data:\">" index "${index}")
string(REPLACE "<script src=\"ask.js\" defer>" "<script src=\"first.js\" defer></script>\n<script src=\"ask.js\" defer>" index "${index}")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS explore/page/index.html)
file(CONFIGURE OUTPUT site/index.html CONTENT "${index}" @ONLY)
find_file(ROOFCAST_CHART_JS_FILE NAMES chart.min.js PATHS /usr/share/javascript/chart.js NO_DEFAULT_PATH NO_CMAKE_FIND_ROOT_PATH)
if(ROOFCAST_CHART_JS_FILE)
  list(APPEND site_files ${ROOFCAST_CHART_JS_FILE})
endif()
add_custom_command(OUTPUT ${site}/stamp
  COMMAND ${CMAKE_COMMAND} -E copy ${site_files} ${PROJECT_BINARY_DIR}/roofcast.js ${PROJECT_BINARY_DIR}/roofcast.wasm ${site}
  COMMAND node ${PROJECT_SOURCE_DIR}/explore/wasm/first_answers.js ${site}
  COMMAND ${CMAKE_COMMAND} -E touch ${site}/stamp
  DEPENDS roofcast_wasm ${site_files} ${PROJECT_SOURCE_DIR}/explore/wasm/first_answers.js VERBATIM)
# The engine for other pages, which `roofcast report` embeds.
add_custom_command(OUTPUT ${PROJECT_BINARY_DIR}/engine.html
  COMMAND node ${PROJECT_SOURCE_DIR}/explore/wasm/one_file.js --engine ${site} ${PROJECT_BINARY_DIR}/engine.html
  DEPENDS ${site}/stamp ${PROJECT_SOURCE_DIR}/explore/wasm/one_file.js ${PROJECT_SOURCE_DIR}/explore/wasm/unpack.js VERBATIM)
add_custom_target(roofcast_site ALL DEPENDS ${site}/stamp ${PROJECT_BINARY_DIR}/engine.html)
# A Node.js that is not Debian's own does not search the folder of Debian's acorn.
set_property(TARGET roofcast_wasm PROPERTY RULE_LAUNCH_LINK "${CMAKE_COMMAND} -E env NODE_PATH=/usr/share/nodejs")
