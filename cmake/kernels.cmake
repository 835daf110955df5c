# The CPU's kernels, compiled once for each level of the processor (src/kernels/levels.c says why and
# how one is chosen). Sets kernel_targets and kernel_objects; leat_level_tests() runs tests at each.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  set(levels_known x86-64 x86-64-v3 x86-64-v4)
else()
  set(levels_known ${CMAKE_SYSTEM_PROCESSOR})
endif()
set(LEAT_CPU_LEVELS "${levels_known}" CACHE STRING "instruction sets (-march) that the kernels are compiled for")

foreach(level ${LEAT_CPU_LEVELS})
  if(NOT level IN_LIST levels_known)
    message(FATAL_ERROR "LEAT_CPU_LEVELS: ${level} is none of ${levels_known}")
  endif()
endforeach()
set(levels) # from the lowest to the highest
foreach(level ${levels_known})
  if(level IN_LIST LEAT_CPU_LEVELS)
    list(APPEND levels ${level})
  endif()
endforeach()

file(GLOB kernel_sources CONFIGURE_DEPENDS src/kernels/cpu/*.c)
# Instrumented for fuzzing at -O3, or inlined by force, the products of matrices take clang minutes.
set(LEAT_KERNEL_OPTIMIZATION $<IF:$<BOOL:${LEAT_FUZZ}>,-O1,-O3> CACHE STRING "how the compiler optimises kernels")
if(LEAT_FUZZ)
  set_source_files_properties(src/kernels/cpu/gemm.c PROPERTIES COMPILE_DEFINITIONS LEAT_INSTRUMENTED)
endif()
set(kernel_options ${LEAT_KERNEL_OPTIMIZATION} -fno-trapping-math -fno-semantic-interposition -Wno-type-limits)
# TensorFlow rounds after each multiplication of a pixel and its weight, or of a quantized number and its scale: no fused multiply-add, so that values are equal to the bit.
file(GLOB image_sources CONFIGURE_DEPENDS src/kernels/cpu/image_*.c src/kernels/cpu/quantize.c)
set_source_files_properties(${image_sources} PROPERTIES COMPILE_OPTIONS -ffp-contract=off)
list(LENGTH levels level_count)
set(kernel_targets)
set(kernel_objects)
set(level_rows)
foreach(level ${levels})
  string(MAKE_C_IDENTIFIER ${level} id)
  set(target leat_kernels_${id})
  add_library(${target} OBJECT ${kernel_sources})
  target_compile_options(${target} PRIVATE ${kernel_options})
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    target_compile_options(${target} PRIVATE -march=${level})
  endif()
  target_compile_definitions(${target} PRIVATE LEAT_CPU_LEVEL=${id})
  list(APPEND kernel_targets ${target})
  string(APPEND level_rows "X(${id},\"${level}\")")
  if(level_count EQUAL 1)
    list(APPEND kernel_objects $<TARGET_OBJECTS:${target}>)
    continue()
  endif()
  # One object a level, whose symbols are local but for its leat_cpu_kernels.
  set(object ${CMAKE_BINARY_DIR}/${target}.o)
  add_custom_command(OUTPUT ${object}
    COMMAND ${CMAKE_LINKER} -r -o ${object} $<TARGET_OBJECTS:${target}>
    COMMAND ${CMAKE_OBJCOPY} --keep-global-symbol=leat_cpu_kernels_${id} ${object}
    DEPENDS ${target} $<TARGET_OBJECTS:${target}>
    COMMENT "Joining the kernels for ${level}" COMMAND_EXPAND_LISTS VERBATIM)
  set_source_files_properties(${object} PROPERTIES EXTERNAL_OBJECT TRUE GENERATED TRUE)
  list(APPEND kernel_objects ${object})
endforeach()
set_source_files_properties(src/kernels/levels.c PROPERTIES COMPILE_DEFINITIONS "LEAT_CPU_LEVELS=${level_rows}")

# Tests that are run at each level, if there are several.
set(tests_by_level)
if(NOT level_count EQUAL 1)
  set(tests_by_level vectors_test reduce_test row2_test fuse_cwise_test)
endif()

# gemm_test calls functions that the library keeps to itself: it gets the objects of each level. Tests
# of a level that this machine's processor lacks are skipped: `leat devices` fails and says so.
function(leat_level_tests)
  foreach(level ${levels})
    string(MAKE_C_IDENTIFIER ${level} id)
    set(gemm gemm_test_${id})
    add_executable(${gemm} tests/kernels/gemm_test.c $<FILTER:$<TARGET_OBJECTS:leat_kernels_${id}>,INCLUDE,/gemm>)
    target_include_directories(${gemm} PRIVATE src tests)
    target_link_libraries(${gemm} PRIVATE leat_static)
    set_target_properties(${gemm} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
    add_test(NAME ${gemm} COMMAND ${gemm})
    set(level_tests ${gemm})
    foreach(t ${tests_by_level})
      add_test(NAME ${t}_${id} COMMAND sh -c "$<TARGET_FILE:leat> devices >/dev/null && exec $<TARGET_FILE:${t}>")
      list(APPEND level_tests ${t}_${id})
    endforeach()
    set_tests_properties(${level_tests} PROPERTIES TIMEOUT 600 ENVIRONMENT LEAT_CPU=${level}
                         SKIP_REGULAR_EXPRESSION "which this CPU lacks")
  endforeach()
endfunction()
