# gRPC's C core: its headers are needed to build, its library is loaded when a program first uses a
# cluster (src/cluster/grpc/library.h), by the name that the library here says it has.
find_path(GRPC_INCLUDE grpc/grpc.h REQUIRED)
find_library(GRPC_LIBRARY grpc REQUIRED)
execute_process(COMMAND ${CMAKE_OBJDUMP} -p ${GRPC_LIBRARY} OUTPUT_VARIABLE grpc_dynamic ERROR_QUIET)
if(NOT grpc_dynamic MATCHES "SONAME +(libgrpc\\.so\\.([0-9]+))")
  message(FATAL_ERROR "${GRPC_LIBRARY} is not a shared library with a version: "
          "install libgrpc-dev, or build with -DLEAT_CLUSTER=OFF")
endif()
set(grpc_soname ${CMAKE_MATCH_1})
set_source_files_properties(src/cluster/grpc/library.c PROPERTIES COMPILE_DEFINITIONS
  "LEAT_GRPC_SONAME=\"${grpc_soname}\";LEAT_GRPC_PACKAGE=\"libgrpc${CMAKE_MATCH_2}\"")
set_source_files_properties(src/cluster/grpc/tuning.c PROPERTIES COMPILE_DEFINITIONS
  "LEAT_GRPC_TUNING=$<BOOL:${LEAT_GRPC_TUNING}>")

# Sanitizers do not know the thread-local memory of a library that is loaded by a running program:
# LeakSanitizer may crash in it when the program ends.
if(LEAT_SANITIZE)
  add_link_options(LINKER:--no-as-needed ${GRPC_LIBRARY})
endif()

# A macro for each function that src/cluster/grpc/library.inc names.
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS src/cluster/grpc/library.inc)
file(STRINGS src/cluster/grpc/library.inc grpc_rows REGEX "^X\\(")
set(grpc_names "/* Made by cmake/grpc.cmake from src/cluster/grpc/library.inc. */\n")
foreach(row ${grpc_rows})
  string(REGEX REPLACE "^X\\(([a-z0-9_]+)\\)$" "#define \\1 leat_grpc.\\1\n" line "${row}")
  string(APPEND grpc_names "${line}")
endforeach()
file(GENERATE OUTPUT ${CMAKE_BINARY_DIR}/proto/grpc_names.h CONTENT "${grpc_names}")
