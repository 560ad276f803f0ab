# Foreign libraries as targets metadb::NAME. Each is used by one door file only (src/base/README.md).
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)

# With a .pc file.
function(metadb_pkg name module)
  pkg_check_modules(METADB_PC_${name} REQUIRED IMPORTED_TARGET GLOBAL ${module})
  add_library(metadb::${name} ALIAS PkgConfig::METADB_PC_${name})
endfunction()

# Without one.
function(metadb_lib name library header)
  find_library(METADB_LIB_${name} ${library})
  find_path(METADB_INC_${name} ${header})
  if(NOT METADB_LIB_${name} OR NOT METADB_INC_${name})
    message(FATAL_ERROR "${library} or ${header} not found: run make deps")
  endif()
  add_library(metadb_lib_${name} INTERFACE)
  target_link_libraries(metadb_lib_${name} INTERFACE ${METADB_LIB_${name}})
  target_include_directories(metadb_lib_${name} SYSTEM INTERFACE ${METADB_INC_${name}})
  add_library(metadb::${name} ALIAS metadb_lib_${name})
endfunction()

metadb_pkg(urcu liburcu-qsbr)
metadb_pkg(urcu_cds liburcu-cds)
metadb_pkg(uring liburing)
metadb_pkg(xxhash libxxhash)
metadb_pkg(openssl openssl)
metadb_pkg(rocksdb rocksdb)
metadb_pkg(inih inih)
metadb_pkg(idn libidn)
metadb_pkg(protobuf_c libprotobuf-c)
metadb_pkg(microhttpd libmicrohttpd)
metadb_pkg(sqlite sqlite3)
metadb_pkg(cmocka cmocka)
metadb_pkg(libpq libpq)
metadb_lib(ev ev ev.h)
metadb_lib(pg_query_alone pg_query pg_query.h)

# libpg_query exports a vendored protobuf-c. The system's comes first, so that every protobuf_c_*
# call binds to one known copy.
add_library(metadb_lib_pg_query INTERFACE)
target_link_libraries(metadb_lib_pg_query INTERFACE -Wl,--no-as-needed metadb::protobuf_c
                                                    -Wl,--as-needed metadb::pg_query_alone)
add_library(metadb::pg_query ALIAS metadb_lib_pg_query)

# The allocator of the server binary; empty under sanitizers.
add_library(metadb_malloc INTERFACE)
if(METADB_JEMALLOC)
  metadb_pkg(jemalloc jemalloc)
  target_link_libraries(metadb_malloc INTERFACE -Wl,--no-as-needed metadb::jemalloc -Wl,--as-needed)
endif()
