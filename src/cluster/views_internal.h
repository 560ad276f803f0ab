/* cluster/views_internal.h — shared by the views_*.c files. */
#ifndef CLUSTER_VIEWS_INTERNAL_H
#define CLUSTER_VIEWS_INTERNAL_H

#include "cluster/shard.h"
#include "cluster/views.h"

typedef void cl_emit(void *arg, const struct kv_datum *values);

struct kv_datum cl__text(const char *s); /* NULL becomes NULL */
struct kv_datum cl__count(uint64_t v);
/* The key columns of KEY, printable, with a slash between them. In A. */
struct kv_datum cl__key_text(struct arena *a, bytes key);

#define CL__shards_COUNT 18
#define CL__replicas_COUNT 15
#define CL__memtables_COUNT 16
#define CL__peers_COUNT 17
#define CL__log_COUNT 8
#define CL__stages_COUNT 7
#define CL__delete_density_COUNT 10
#define CL__compactions_COUNT 11
#define CL__store_COUNT 2
extern const struct cl_view_column cl__shards_columns[CL__shards_COUNT];
extern const struct cl_view_column cl__replicas_columns[CL__replicas_COUNT];
extern const struct cl_view_column cl__memtables_columns[CL__memtables_COUNT];
extern const struct cl_view_column cl__peers_columns[CL__peers_COUNT];
extern const struct cl_view_column cl__log_columns[CL__log_COUNT];
extern const struct cl_view_column cl__stages_columns[CL__stages_COUNT];
extern const struct cl_view_column cl__delete_density_columns[CL__delete_density_COUNT];
extern const struct cl_view_column cl__compactions_columns[CL__compactions_COUNT];
extern const struct cl_view_column cl__store_columns[CL__store_COUNT];
void cl__shards_rows(struct cl_node *n, cl_emit *emit, void *arg);
void cl__replicas_rows(struct cl_node *n, cl_emit *emit, void *arg);
void cl__memtables_rows(struct cl_node *n, cl_emit *emit, void *arg);
void cl__peers_rows(struct cl_node *n, cl_emit *emit, void *arg);
void cl__log_rows(struct cl_node *n, cl_emit *emit, void *arg);
void cl__stages_rows(struct cl_node *n, cl_emit *emit, void *arg);
void cl__delete_density_rows(struct cl_node *n, cl_emit *emit, void *arg);
void cl__compactions_rows(struct cl_node *n, cl_emit *emit, void *arg);
void cl__store_rows(struct cl_node *n, cl_emit *emit, void *arg);

#endif
