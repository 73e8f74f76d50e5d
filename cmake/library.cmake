# roofcast::roofcast: one archive of the targets from base to reports, behind the headers of include/roofcast.
file(GLOB sources CONFIGURE_DEPENDS library/*.cpp)
# These sources do not depend on the public headers, because the Python module uses them, too.
set(answers ${PROJECT_SOURCE_DIR}/library/answers.cpp ${PROJECT_SOURCE_DIR}/library/validation_answer.cpp
            ${PROJECT_SOURCE_DIR}/library/grid.cpp)
list(REMOVE_ITEM sources ${answers})
add_library(roofcast_answers STATIC ${answers})
target_link_libraries(roofcast_answers PUBLIC roofcast_reports)
add_library(roofcast_library STATIC ${sources})
add_library(roofcast::roofcast ALIAS roofcast_library)
set_target_properties(roofcast_library PROPERTIES OUTPUT_NAME roofcast EXPORT_NAME roofcast)
target_compile_features(roofcast_library PUBLIC cxx_std_20)
target_include_directories(roofcast_library PRIVATE ${PROJECT_SOURCE_DIR} PUBLIC
                           $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_compile_definitions(roofcast_library PRIVATE ROOFCAST_VERSION="${PROJECT_VERSION}")
foreach(box base hw model step serve plan reports answers)
  target_sources(roofcast_library PRIVATE $<TARGET_OBJECTS:roofcast_${box}>)
endforeach()
# Also listed in cmake/roofcastConfig.cmake.in. The last two are header-only; users of the archive do not need them.
target_link_libraries(roofcast_library PRIVATE LibYaml::LibYaml fmt::fmt TBB::tbb SQLite::SQLite3 NLopt::nlopt
                      $<BUILD_INTERFACE:nlohmann_json::nlohmann_json> $<BUILD_INTERFACE:Eigen3::Eigen>)

if(PROJECT_IS_TOP_LEVEL)
  include(CMakePackageConfigHelpers)
  set(package ${CMAKE_INSTALL_LIBDIR}/cmake/roofcast)
  configure_package_config_file(cmake/roofcastConfig.cmake.in ${PROJECT_BINARY_DIR}/roofcastConfig.cmake
                                INSTALL_DESTINATION ${package})
  write_basic_package_version_file(${PROJECT_BINARY_DIR}/roofcastConfigVersion.cmake COMPATIBILITY SameMinorVersion)
  set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME library)
  install(TARGETS roofcast_library EXPORT roofcast)
  install(EXPORT roofcast NAMESPACE roofcast:: FILE roofcastTargets.cmake DESTINATION ${package})
  install(FILES ${PROJECT_BINARY_DIR}/roofcastConfig.cmake ${PROJECT_BINARY_DIR}/roofcastConfigVersion.cmake
                cmake/FindLibYaml.cmake
          DESTINATION ${package})
  install(DIRECTORY include/roofcast DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  install(DIRECTORY configs DESTINATION ${CMAKE_INSTALL_DATADIR}/roofcast COMPONENT program)
endif()
