# metadb_unit_test(NAME FILE LIBS...): one cmocka executable and one ctest of that name.
function(metadb_unit_test name file)
  add_executable(${name} ${file})
  target_link_libraries(${name} PRIVATE metadb_flags ${ARGN} metadb::cmocka)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(
    ${name}
    PROPERTIES
      TIMEOUT 300
      ENVIRONMENT
      "ASAN_OPTIONS=detect_stack_use_after_return=1;UBSAN_OPTIONS=print_stacktrace=1;LSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/tests/lsan.supp:print_suppressions=0;TSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/tests/tsan.supp"
  )
endfunction()

# metadb_fuzz_target(NAME FILE LIBS...): a libFuzzer executable, in the fuzz preset only.
function(metadb_fuzz_target name file)
  if(NOT METADB_FUZZ)
    return()
  endif()
  add_executable(${name} ${file})
  target_link_libraries(${name} PRIVATE metadb_flags ${ARGN})
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
endfunction()
