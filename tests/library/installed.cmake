# Installs to a prefix of its own, then builds and runs the examples against that as a project of its own.
# cmake -DBUILD=... -DEXAMPLES=... -DWORK=... -DCXX=... -DGENERATOR=... -P installed.cmake
include(${CMAKE_CURRENT_LIST_DIR}/run.cmake)

file(REMOVE_RECURSE ${WORK})
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/prefix)
run(${CMAKE_COMMAND} -S ${EXAMPLES} -B ${WORK}/build -G ${GENERATOR} -DCMAKE_PREFIX_PATH=${WORK}/prefix
    -DCMAKE_CXX_COMPILER=${CXX} -DCMAKE_CXX_FLAGS=${CXX_FLAGS} -DCMAKE_EXE_LINKER_FLAGS=${LINKER_FLAGS})
run(${CMAKE_COMMAND} --build ${WORK}/build)
run(${WORK}/build/batches)
if(NOT output MATCHES "batch   16: .*under load: 200 requests.*refused: parallelism.tp: ")
  message(FATAL_ERROR "the example prints:\n${output}")
endif()
run(${WORK}/build/cheapest)
if(NOT output MATCHES "1 x [^\n]* USD/h.*no answer: no deployment .*nearest: .*refused: [^\n]*unknown gpu 'h100-sxn'; nearest is 'h100-sxm'")
  message(FATAL_ERROR "the example of a plan prints:\n${output}")
endif()
run(${WORK}/prefix/bin/roofcast gpus h100-sxm)
file(REMOVE_RECURSE ${WORK})
