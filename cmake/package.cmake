# What is installed with the program, and the packages that cpack builds from it (./dev package).
# Man pages and completions are written by the program; ROOFCAST_HELP_PROGRAM is used if the program itself cannot run
# here.
set(ROOFCAST_HELP_PROGRAM $<TARGET_FILE:roofcast> CACHE STRING "program that writes the man pages and completions")
set(share ${PROJECT_BINARY_DIR}/share)
add_custom_command(OUTPUT ${PROJECT_BINARY_DIR}/share.stamp
  COMMAND ${CMAKE_COMMAND} -E rm -rf ${share}
  COMMAND ${ROOFCAST_HELP_PROGRAM} help --share ${share}
  COMMAND sh -c "gzip -9n ${share}/man/man1/*.1"
  COMMAND sh -c "mkdir -p ${share}/doc/roofcast && gzip -9nc ${PROJECT_SOURCE_DIR}/CHANGELOG.md > ${share}/doc/roofcast/CHANGELOG.md.gz"
  COMMAND sh -c "gzip -9nc ${PROJECT_BINARY_DIR}/changelog > ${share}/doc/roofcast/changelog.gz"
  COMMAND ${CMAKE_COMMAND} -E touch ${PROJECT_BINARY_DIR}/share.stamp
  DEPENDS roofcast ${PROJECT_SOURCE_DIR}/CHANGELOG.md ${PROJECT_BINARY_DIR}/changelog VERBATIM)
add_custom_target(roofcast_share ALL DEPENDS ${PROJECT_BINARY_DIR}/share.stamp)

set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME program)
install(TARGETS roofcast)
install(DIRECTORY ${share}/ DESTINATION ${CMAKE_INSTALL_DATADIR} OPTIONAL)
install(FILES README.md SECURITY.md packaging/copyright DESTINATION ${CMAKE_INSTALL_DOCDIR})
if(NOT CMAKE_INSTALL_PREFIX STREQUAL /usr)  # Debian has the text of the license in one place
  install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
endif()
# The engine of live report pages, if ./dev wasm has built it.
install(FILES build/wasm/engine.html DESTINATION ${CMAKE_INSTALL_DATADIR}/roofcast OPTIONAL)
install(DIRECTORY docs/ DESTINATION ${CMAKE_INSTALL_DOCDIR}/docs FILES_MATCHING PATTERN "*.md" PATTERN "*.json" PATTERN "plan.png" PATTERN "tour.svg")
install(DIRECTORY build/docs/ DESTINATION ${CMAKE_INSTALL_DOCDIR}/html OPTIONAL)  # written by ./dev docs

include(${CMAKE_CURRENT_LIST_DIR}/version.cmake)
roofcast_version(${PROJECT_SOURCE_DIR} ${PROJECT_VERSION} CPACK_PACKAGE_VERSION)
set(CPACK_PACKAGE_NAME roofcast)
set(CPACK_PACKAGE_VENDOR roofcast)
# The contact is whoever builds the package, from Debian's own variables (dch(1)).
if(NOT "$ENV{DEBEMAIL}" STREQUAL "")
  set(CPACK_PACKAGE_CONTACT "$ENV{DEBEMAIL}")
  if(NOT "$ENV{DEBFULLNAME}" STREQUAL "")
    set(CPACK_PACKAGE_CONTACT "$ENV{DEBFULLNAME} <$ENV{DEBEMAIL}>")
  endif()
else()
  set(CPACK_PACKAGE_CONTACT "the roofcast project <roofcast@localhost>")
endif()
# Debian's changelog has one entry: this version, dated by its commit.
execute_process(COMMAND git -C ${PROJECT_SOURCE_DIR} log -1 --format=%aD OUTPUT_VARIABLE roofcast_commit_date
                OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(NOT roofcast_commit_date)
  string(TIMESTAMP roofcast_commit_date "%a, %d %b %Y %H:%M:%S +0000" UTC)
endif()
configure_file(packaging/changelog.in changelog @ONLY)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "forecasts how a large language model will serve")
set(CPACK_PACKAGE_DESCRIPTION "Latency, throughput, memory, cost and energy of a model on a machine
under a load, by a calibrated roofline under a simulation of the
serving engine. Needs no GPU.")
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_BINARY_DIR}/packages)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL program)
set(CPACK_COMPONENTS_GROUPING ALL_COMPONENTS_IN_ONE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_ARCHIVE_COMPONENT_INSTALL ON)
set(CPACK_GENERATOR DEB)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SECTION utils)
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS librsvg2-bin)  # plots as PNG
if(ROOFCAST_STATIC)
  set(CPACK_GENERATOR TGZ)
  set(CPACK_COMPONENT_INCLUDE_TOPLEVEL_DIRECTORY ON)
endif()
set(CPACK_PACKAGE_FILE_NAME roofcast-${CPACK_PACKAGE_VERSION}-linux-${CMAKE_SYSTEM_PROCESSOR})
include(CPack)
