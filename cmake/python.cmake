# The Python package: build/<preset>/python/roofcast, from python/ and the library's targets. ROOFCAST_PYTHON is ON if
# pybind11 and a Python with headers are found. Debian's own Python takes precedence over others on PATH, because its
# pybind11, numpy and headers belong to it. -DROOFCAST_PYTHON_EXECUTABLE=... names another one.
if(CMAKE_CROSSCOMPILING)
  message(STATUS "SKIPPED: the Python package, which is built on the machine that runs it")
  return()
endif()
find_program(ROOFCAST_PYTHON_EXECUTABLE NAMES python3 PATHS /usr/bin NO_DEFAULT_PATH)
if(ROOFCAST_PYTHON_EXECUTABLE)
  set(Python_EXECUTABLE ${ROOFCAST_PYTHON_EXECUTABLE})
endif()
find_package(Python 3.9 COMPONENTS Interpreter Development.Module QUIET)
set(PYBIND11_FINDPYTHON ON)
find_package(pybind11 CONFIG QUIET)
set(found OFF)
if(Python_Interpreter_FOUND AND Python_Development.Module_FOUND AND pybind11_FOUND AND NOT ROOFCAST_ASAN AND NOT ROOFCAST_TSAN)
  set(found ON)
endif()
option(ROOFCAST_PYTHON "the Python package" ${found})
if(NOT ROOFCAST_PYTHON)
  message(STATUS "SKIPPED: the Python package (it needs pybind11-dev, python3-dev, and a build without sanitizers)")
  return()
endif()
message(STATUS "Python package for ${Python_EXECUTABLE} (${Python_VERSION})")

set(package ${PROJECT_BINARY_DIR}/python/roofcast)
file(GLOB sources CONFIGURE_DEPENDS python/*.cpp)
pybind11_add_module(roofcast_python MODULE NO_EXTRAS ${sources})
# In a wheel the shared libraries are beside the module. RPATH, not RUNPATH, so that they also find each other there.
set_target_properties(roofcast_python PROPERTIES OUTPUT_NAME _core LIBRARY_OUTPUT_DIRECTORY ${package}
                      BUILD_RPATH "$ORIGIN/lib")
target_link_options(roofcast_python PRIVATE -Wl,--disable-new-dtags)
target_include_directories(roofcast_python PRIVATE ${PROJECT_SOURCE_DIR})
target_compile_options(roofcast_python PRIVATE -Wno-conversion)  # pybind11's own headers
target_link_libraries(roofcast_python PRIVATE roofcast_answers)

# The Python files, and the classes of results, generated from the schemas.
file(GLOB schemas CONFIGURE_DEPENDS docs/schemas/*.json)
file(GLOB modules CONFIGURE_DEPENDS python/roofcast/*)
set(outputs "")
foreach(file ${modules})
  get_filename_component(name ${file} NAME)
  add_custom_command(OUTPUT ${package}/${name} COMMAND ${CMAKE_COMMAND} -E copy ${file} ${package}/${name} DEPENDS ${file})
  list(APPEND outputs ${package}/${name})
endforeach()
add_custom_command(OUTPUT ${package}/results.py
                   COMMAND ${Python_EXECUTABLE} ${PROJECT_SOURCE_DIR}/python/make_results.py ${PROJECT_SOURCE_DIR}/docs/schemas
                           ${package}/results.py
                   DEPENDS ${schemas} python/make_results.py)
add_custom_target(roofcast_python_package ALL DEPENDS ${outputs} ${package}/results.py)
add_dependencies(roofcast_python_package roofcast_python)

add_custom_target(roofcast_wheel
                  COMMAND ${Python_EXECUTABLE} ${PROJECT_SOURCE_DIR}/python/make_wheel.py ${package}
                          ${PROJECT_SOURCE_DIR}/configs ${PROJECT_VERSION} ${PROJECT_SOURCE_DIR}/build/wheel
                  DEPENDS roofcast_python_package VERBATIM)
