# Installs to a prefix of its own, then builds and runs the example against that as a project of its own.
# cmake -DBUILD=... -DEXAMPLES=... -DWORK=... -DCXX=... -DGENERATOR=... -P installed.cmake
function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(status)
    message(FATAL_ERROR "${ARGN}\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

file(REMOVE_RECURSE ${WORK})
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/prefix)
run(${CMAKE_COMMAND} -S ${EXAMPLES} -B ${WORK}/build -G ${GENERATOR} -DCMAKE_PREFIX_PATH=${WORK}/prefix
    -DCMAKE_CXX_COMPILER=${CXX} -DCMAKE_CXX_FLAGS=${CXX_FLAGS} -DCMAKE_EXE_LINKER_FLAGS=${LINKER_FLAGS})
run(${CMAKE_COMMAND} --build ${WORK}/build)
run(${WORK}/build/batches)
if(NOT output MATCHES "batch   16: .*under load: 200 requests.*refused: parallelism.tp: ")
  message(FATAL_ERROR "the example prints:\n${output}")
endif()
run(${WORK}/prefix/bin/roofcast gpus h100-sxm)
file(REMOVE_RECURSE ${WORK})
