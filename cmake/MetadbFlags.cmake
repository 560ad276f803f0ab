# Every target of ours links metadb_flags: language, warnings, definitions, include root.
add_library(metadb_flags INTERFACE)
target_include_directories(metadb_flags INTERFACE ${PROJECT_SOURCE_DIR}/src)
target_compile_definitions(metadb_flags INTERFACE _GNU_SOURCE
                                                  METADB_VERSION="${PROJECT_VERSION}")
target_compile_options(
  metadb_flags
  INTERFACE -Wall
            -Wextra
            -Wshadow
            -Wconversion
            -Wstrict-prototypes
            -Wvla
            -Wswitch-enum
            -Wformat=2
            -fno-strict-aliasing
            -fno-omit-frame-pointer)
if(METADB_WERROR)
  target_compile_options(metadb_flags INTERFACE -Werror)
endif()
if(CMAKE_C_COMPILER_ID MATCHES "Clang")
  target_compile_options(metadb_flags INTERFACE -Wthread-safety)
endif()
if(METADB_FAULTS)
  target_compile_definitions(metadb_flags INTERFACE METADB_FAULTS)
endif()
if(METADB_SLOW_CHECKS)
  target_compile_definitions(metadb_flags INTERFACE METADB_SLOW_CHECKS)
endif()
if(METADB_SANITIZE)
  target_compile_options(metadb_flags INTERFACE -fsanitize=${METADB_SANITIZE}
                                                -fno-sanitize-recover=all)
  target_link_options(metadb_flags INTERFACE -fsanitize=${METADB_SANITIZE})
endif()
