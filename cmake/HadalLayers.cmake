# A library per folder of src/, which sees the headers of the folders that it names and no others.
#
# Includes are written from src/ ("model/model.h"). Each layer gets an include directory that holds
# just a link to its own folder, so that an include of a folder that is not a (transitive) dependency
# does not compile, and a call into it does not link.
#
#   hadal_layer(NAME SOURCES a.cpp b.cpp DEPENDS base kernels LIBRARIES fmt::fmt)
#
# The declared dependencies are kept in global properties for tests/layering.
function(hadal_layer name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS;LIBRARIES;PRIVATE_LIBRARIES" ${ARGN})
  set(view ${CMAKE_BINARY_DIR}/layers/${name})
  file(MAKE_DIRECTORY ${view})
  file(CREATE_LINK ${CMAKE_SOURCE_DIR}/src/${name} ${view}/${name} SYMBOLIC)
  add_library(hadal_${name} STATIC ${ARG_SOURCES})
  target_include_directories(hadal_${name} PUBLIC ${view})
  target_link_libraries(hadal_${name} PUBLIC ${ARG_LIBRARIES} PRIVATE hadal_flags ${ARG_PRIVATE_LIBRARIES})
  foreach(layer IN LISTS ARG_DEPENDS)
    target_link_libraries(hadal_${name} PUBLIC hadal_${layer})
  endforeach()
  set_property(GLOBAL APPEND PROPERTY HADAL_DECLARED_LAYERS ${name})
  set_property(GLOBAL PROPERTY HADAL_DEPENDS_OF_${name} "${ARG_DEPENDS}")
endfunction()
