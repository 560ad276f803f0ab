/*
 * frontend/row_encoder.h — rows of one result as DataRows.
 *
 * What can be told about a column from plan and formats alone is worked out once per execution, or
 * once per prepared statement; a row is then one pass over its fields, written where it stays.
 * Values are those of pl_datum_to_field, byte for byte.
 *
 * An encoder is constant after init and may be used by any thread; STYLE and the constants of the
 * columns must stay as long as it.
 */
#ifndef FRONTEND_ROW_ENCODER_H
#define FRONTEND_ROW_ENCODER_H

#include "planner/plan.h"

/* Columns of a result. */
struct fe_shape {
    const struct pl_column *columns;
    unsigned count;
    bool rows; /* false: NoData */
};

struct fe_field;
struct fe_row_encoder {
    const struct fe_field *fields;
    unsigned count;
    size_t room; /* for a row without the bytes of its texts */
    const struct pl_style *style;
};

/* FORMATS as in Bind: none, one for all, or one a column. Fields are allocated in A. */
void fe_row_encoder_init(struct fe_row_encoder *e, struct arena *a, struct fe_shape shape,
                         const int16_t *formats, unsigned format_count,
                         const struct pl_style *style);
/* Are the columns of SHAPE encoded alike in every style? */
bool fe_row_encoder_keeps(struct fe_shape shape);
/* Appends ROW to OUT. */
void fe_row_encode(const struct fe_row_encoder *e, const struct kv_row *row, struct obuf *out);
/* The format of column I. */
int16_t fe_format_of(const int16_t *formats, unsigned count, unsigned i);

#endif
