# The texts that the library contains: OpenCL C, which is compiled where it runs. Sets embedded_sources.
# Run as a script (cmake -DIN=... -DOUT=... -DNAME=... -P embed.cmake), it makes one of them: the
# leat_cl_text leat_cl_text_NAME.
if(CMAKE_SCRIPT_MODE_FILE)
  file(READ ${IN} bytes HEX)
  string(LENGTH "${bytes}" digits)
  math(EXPR size "${digits} / 2")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
  string(REGEX REPLACE "((0x[0-9a-f][0-9a-f],)(0x[0-9a-f][0-9a-f],)(0x[0-9a-f][0-9a-f],)(0x[0-9a-f][0-9a-f],))" "\\1\n" bytes "${bytes}")
  get_filename_component(file ${IN} NAME)
  file(WRITE ${OUT} "/* Made from ${file}. */
#include \"kernels/opencl/opencl.h\"

static const unsigned char bytes[] = {
${bytes}0};
const leat_cl_text leat_cl_text_${NAME} = {\"${file}\", (const char *)bytes, ${size}};
")
  return()
endif()

file(GLOB texts CONFIGURE_DEPENDS src/kernels/opencl/*.cl)
list(APPEND texts ${CMAKE_SOURCE_DIR}/src/kernels/cpu/training_rules.inc)
set(embedded_sources)
foreach(text ${texts})
  get_filename_component(name ${text} NAME_WE)
  set(out ${CMAKE_BINARY_DIR}/embedded/${name}.c)
  add_custom_command(OUTPUT ${out} DEPENDS ${text} cmake/embed.cmake
    COMMAND ${CMAKE_COMMAND} -DIN=${text} -DOUT=${out} -DNAME=${name} -P ${CMAKE_SOURCE_DIR}/cmake/embed.cmake)
  list(APPEND embedded_sources ${out})
endforeach()
