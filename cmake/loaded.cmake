# Libraries of clusters: their headers are needed to build; they are loaded when a program first uses
# a cluster (src/core/library.h), by the names that the libraries here say they have.

# leat_loaded(NAME LIBRARY LIST): LIST.c loads LIBRARY by LEAT_<NAME>_SONAME, of the Debian package
# LEAT_<NAME>_PACKAGE, and <NAME>_names.h has a macro for each function that LIST.inc names, which
# calls through the struct leat_<NAME>.
function(leat_loaded name library list)
  execute_process(COMMAND ${CMAKE_OBJDUMP} -p ${library} OUTPUT_VARIABLE dynamic ERROR_QUIET)
  if(NOT dynamic MATCHES "SONAME +((lib[a-z]+)\\.so\\.([0-9]+))")
    message(FATAL_ERROR "${library} is not a shared library with a version: "
            "run scripts/deps libgrpc-dev libssl-dev, or build with -DLEAT_CLUSTER=OFF")
  endif()
  string(TOUPPER ${name} prefix)
  set_source_files_properties(${list}.c PROPERTIES COMPILE_DEFINITIONS
    "LEAT_${prefix}_SONAME=\"${CMAKE_MATCH_1}\";LEAT_${prefix}_PACKAGE=\"${CMAKE_MATCH_2}${CMAKE_MATCH_3}\"")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${list}.inc)
  file(STRINGS ${list}.inc rows REGEX "^X\\(")
  set(names "/* Made by cmake/loaded.cmake from ${list}.inc. */\n")
  foreach(row ${rows})
    string(REGEX REPLACE "^X\\(([A-Za-z0-9_]+)\\)$" "#define \\1 leat_${name}.\\1\n" line "${row}")
    string(APPEND names "${line}")
  endforeach()
  file(GENERATE OUTPUT ${CMAKE_BINARY_DIR}/proto/${name}_names.h CONTENT "${names}")
endfunction()

find_path(GRPC_INCLUDE grpc/grpc.h REQUIRED)
find_library(GRPC_LIBRARY grpc REQUIRED)
leat_loaded(grpc ${GRPC_LIBRARY} src/cluster/grpc/library)
set_source_files_properties(src/cluster/grpc/tuning.c PROPERTIES COMPILE_DEFINITIONS
  "LEAT_GRPC_TUNING=$<BOOL:${LEAT_GRPC_TUNING}>")

find_path(OPENSSL_INCLUDE openssl/ssl.h REQUIRED)
find_library(OPENSSL_LIBRARY ssl REQUIRED)
leat_loaded(openssl ${OPENSSL_LIBRARY} src/cluster/socket/openssl)

# Sanitizers do not know the thread-local memory of a library that is loaded by a running program:
# LeakSanitizer may crash in it when the program ends. OpenSSL comes with gRPC.
if(LEAT_SANITIZE)
  add_link_options(LINKER:--no-as-needed ${GRPC_LIBRARY})
endif()
