# Configures a project that takes the library by add_subdirectory, and compiles the examples in it.
# cmake -DROOT=... -DWORK=... -DCXX=... -DGENERATOR=... -P subdirectory.cmake
include(${CMAKE_CURRENT_LIST_DIR}/run.cmake)

file(REMOVE_RECURSE ${WORK})
file(WRITE ${WORK}/CMakeLists.txt "cmake_minimum_required(VERSION 3.25)
project(consumer CXX)
set(CMAKE_CXX_STANDARD 23)
add_compile_options(-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror)
add_subdirectory(${ROOT} roofcast EXCLUDE_FROM_ALL)
add_library(consumer OBJECT ${ROOT}/examples/batches.cpp ${ROOT}/examples/cheapest.cpp)
# Its headers alone: linking would build the whole library.
target_include_directories(consumer PRIVATE $<TARGET_PROPERTY:roofcast::roofcast,INTERFACE_INCLUDE_DIRECTORIES>)
")
run(${CMAKE_COMMAND} -S ${WORK} -B ${WORK}/build -G ${GENERATOR} -DCMAKE_CXX_COMPILER=${CXX})
run(${CMAKE_COMMAND} --build ${WORK}/build --target help)
if(NOT output MATCHES "roofcast_library" OR output MATCHES "test_|doctest|explore|calibrate|cuda_backend")
  message(FATAL_ERROR "the targets of the consumer:\n${output}")
endif()
run(${CMAKE_COMMAND} --build ${WORK}/build --target consumer)
file(REMOVE_RECURSE ${WORK})
