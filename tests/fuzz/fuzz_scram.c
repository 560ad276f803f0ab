/*
 * Any bytes as the messages of a login, as a kept verifier, and as a rule of access.
 *
 * The first byte chooses the client's mechanism and what was offered. What must hold: no crash, no
 * read beyond the input; nobody is let in, since no input knows the password; a refusal says why; a
 * verifier that is accepted is written as it was read.
 */
#include "base/assert.h"
#include "frontend/hba.h"
#include "frontend/scram.h"
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void exchange(uint8_t flags, bytes in)
{
    struct fe_scram *x = calloc(1, sizeof *x);
    struct obuf out;
    struct err err;
    const uint8_t *cut = in.size > 0 ? memchr(in.data, '\n', in.size) : NULL;
    bytes first = cut != NULL ? bytes_make(in.data, (size_t)(cut - in.data)) : in;
    ASSERT(x != NULL);
    obuf_init(&out);
    x->verifier = (struct fe_scram_verifier){.rounds = 4096, .salt_size = 16};
    memset(x->verifier.stored_key, 0xa5, sizeof x->verifier.stored_key);
    memcpy(x->own_nonce, "own", 4);
    x->plus = flags & 1;
    x->end_point_size = flags & 3 ? 32 : 0;
    err_clear(&err);
    status st = fe_scram_step(x, first, &out, &err);
    ASSERT(st == ST_OK || err.message[0] != '\0');
    if (st == ST_OK && cut != NULL) {
        bytes last = bytes_make(cut + 1, in.size - first.size - 1);
        st = fe_scram_step(x, last, &out, &err);
        ASSERT(st == ST_DENIED || st == ST_PROTOCOL);
        ASSERT(x->state == FE_SCRAM_FINAL);
    }
    obuf_fini(&out);
    free(x);
}

static void verifier(bytes in)
{
    struct fe_scram_verifier v, again;
    char text[FE_SCRAM_TEXT_MAX];
    if (!fe_scram_parse(in, &v))
        return;
    fe_scram_text(&v, text);
    bool same = fe_scram_parse(bytes_str(text), &again);
    ASSERT(same);
    ASSERT(memcmp(&v, &again, sizeof v) == 0);
}

static void rule(bytes in)
{
    struct fe_hba h;
    struct err err;
    char *line = strndup((const char *)in.data, in.size);
    ASSERT(line != NULL);
    fe_hba_init(&h);
    status st = fe_hba_add(&h, line, "here:1", &err);
    ASSERT(st == ST_OK || strncmp(err.message, "here:1: ", 8) == 0);
    fe_hba_fini(&h);
    free(line);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    bytes in = bytes_make(data + 1, size - 1);
    switch (data[0] % 6) {
    case 4: verifier(in); break;
    case 5: rule(in); break;
    default: exchange(data[0] % 6, in); break;
    }
    return 0;
}
