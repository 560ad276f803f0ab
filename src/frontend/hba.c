/*
 * frontend/hba.c — see hba.h.
 *
 * Addresses are compared as 16 bytes, IPv4 inside IPv6 (::ffff:a.b.c.d): a client that comes by
 * IPv4 to a socket of IPv6 meets the same rules.
 */
#include "frontend/hba.h"
#include "base/assert.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIELDS_MAX 8u
#define V4_BITS 96u

struct name {
    struct name *next;
    const char *text;
    bool quoted;
};

enum transport { ANY = 3, PLAIN = 1, TLS = 2, LOCAL = 0 }; /* as bits: 1 plain, 2 TLS */

struct fe_hba_rule {
    struct fe_hba_rule *next;
    enum transport transport;
    struct name *databases, *users;
    bool any_address;
    uint8_t address[16], mask[16];
    enum fe_method method;
};

void fe_hba_init(struct fe_hba *h)
{
    arena_init(&h->arena, 1024);
    h->first = NULL;
    h->last = &h->first;
    h->count = 0;
}

void fe_hba_fini(struct fe_hba *h)
{
    arena_fini(&h->arena);
}

/* -- reading ----------------------------------------------------------------------------------- */

struct reader {
    struct arena *arena;
    const char *where;
    struct err *err;
    char *fields[FIELDS_MAX];
    unsigned count;
};

static status bad(struct reader *r, const char *what, const char *value)
{
    return err_set(r->err, ST_INVALID, "%s: %s \"%s\"", r->where, what, value);
}

/* Cuts at blanks; double quotes keep blanks and commas together, and stay. */
static NODISCARD status split(struct reader *r, const char *line)
{
    char *p = arena_strdup(r->arena, bytes_str(line));
    for (;;) {
        p += strspn(p, " \t\r");
        if (*p == '\0')
            return ST_OK;
        if (r->count == FIELDS_MAX)
            return bad(r, "too many fields, from", p);
        r->fields[r->count++] = p;
        for (bool quoted = false; *p != '\0' && (quoted || strchr(" \t\r", *p) == NULL); p++)
            quoted ^= *p == '"';
        if (*p != '\0')
            *p++ = '\0';
    }
}

static NODISCARD status read_names(struct reader *r, char *field, struct name **out)
{
    while (*field != '\0') {
        struct name *n = ARENA_NEW(r->arena, struct name);
        n->quoted = *field == '"';
        char *end = n->quoted ? strchr(field + 1, '"') : field + strcspn(field, ",");
        if (end == NULL)
            return bad(r, "a quote is not closed in", field);
        n->text = arena_strdup(r->arena,
                               bytes_make(field + n->quoted, (size_t)(end - field) - n->quoted));
        field = end + n->quoted;
        if (*field != ',' && *field != '\0')
            return bad(r, "a comma is expected before", field);
        field += *field == ',';
        if (n->text[0] == '+' && !n->quoted)
            return bad(r, "roles have no members here:", n->text);
        n->next = *out;
        *out = n;
    }
    return ST_OK;
}

static bool parse_address(const char *text, uint8_t out[16], bool *v4)
{
    struct in_addr a;
    *v4 = inet_pton(AF_INET, text, &a) == 1;
    if (!*v4)
        return inet_pton(AF_INET6, text, out) == 1;
    memset(out, 0, 10);
    memset(out + 10, 0xff, 2);
    memcpy(out + 12, &a, 4);
    return true;
}

static void mask_of_bits(uint8_t mask[16], unsigned bits)
{
    for (unsigned i = 0; i < 16; i++, bits -= bits < 8 ? bits : 8)
        mask[i] = bits >= 8 ? 0xff : (uint8_t)(0xff00u >> bits);
}

/* ADDRESS/BITS, or ADDRESS and MASK; *AT moves behind what was used. */
static NODISCARD status read_address(struct reader *r, unsigned *at, struct fe_hba_rule *rule)
{
    char *text = r->fields[(*at)++];
    rule->any_address = strcmp(text, "all") == 0;
    if (rule->any_address)
        return ST_OK;
    char *slash = strchr(text, '/');
    bool v4, mask_v4;
    if (slash != NULL)
        *slash = '\0';
    if (!parse_address(text, rule->address, &v4))
        return bad(r, "invalid IP address", text);
    if (slash == NULL) {
        if (*at >= r->count || !parse_address(r->fields[*at], rule->mask, &mask_v4) ||
            mask_v4 != v4)
            return bad(r, "address/bits, or an address and a mask, are expected, not", text);
        (*at)++;
        if (v4)
            memset(rule->mask, 0xff, 12); /* what is before it in the 16 bytes is fixed */
    } else {
        char *end;
        unsigned long bits = strtoul(slash + 1, &end, 10);
        if (end == slash + 1 || *end != '\0' || bits > (v4 ? 32u : 128u))
            return bad(r, "invalid CIDR mask in address", slash + 1);
        mask_of_bits(rule->mask, (unsigned)bits + (v4 ? V4_BITS : 0));
    }
    for (unsigned i = 0; i < 16; i++)
        rule->address[i] &= rule->mask[i];
    return ST_OK;
}

static NODISCARD status read_transport(struct reader *r, struct fe_hba_rule *rule)
{
    static const struct {
        const char *name;
        enum transport transport;
    } types[] = {{"local", LOCAL}, {"host", ANY}, {"hostssl", TLS}, {"hostnossl", PLAIN}};
    for (unsigned i = 0; i < ARRAY_LEN(types); i++) {
        if (strcmp(r->fields[0], types[i].name) == 0) {
            rule->transport = types[i].transport;
            return ST_OK;
        }
    }
    return bad(r, "invalid connection type", r->fields[0]);
}

static NODISCARD status read_method(struct reader *r, const char *text, struct fe_hba_rule *rule)
{
    static const struct {
        const char *name;
        enum fe_method method;
    } methods[] = {{"trust", FE_METHOD_TRUST},
                   {"scram-sha-256", FE_METHOD_SCRAM},
                   {"cert", FE_METHOD_CERT},
                   {"reject", FE_METHOD_REJECT}};
    for (unsigned i = 0; i < ARRAY_LEN(methods); i++)
        if (strcmp(text, methods[i].name) == 0)
            rule->method = methods[i].method;
    if (rule->method == FE_METHOD_NONE)
        return bad(r, "invalid authentication method", text);
    if (rule->method == FE_METHOD_CERT && rule->transport != TLS)
        return err_set(r->err, ST_INVALID,
                       "%s: cert authentication is only supported on hostssl connections",
                       r->where);
    return ST_OK;
}

status fe_hba_add(struct fe_hba *h, const char *line, const char *where, struct err *err)
{
    struct reader r = {.arena = &h->arena, .where = where, .err = err};
    struct fe_hba_rule *rule = ARENA_NEW(&h->arena, struct fe_hba_rule);
    ST_TRY(split(&r, line));
    if (r.count == 0)
        return err_set(err, ST_INVALID, "%s: the rule is empty", where);
    ST_TRY(read_transport(&r, rule));
    unsigned at = 3;
    if (r.count < (rule->transport == LOCAL ? 4u : 5u))
        return bad(&r, "fields are missing at the end of", line);
    ST_TRY(read_names(&r, r.fields[1], &rule->databases));
    ST_TRY(read_names(&r, r.fields[2], &rule->users));
    if (rule->transport != LOCAL)
        ST_TRY(read_address(&r, &at, rule));
    if (at >= r.count)
        return bad(&r, "a method is missing at the end of", line);
    ST_TRY(read_method(&r, r.fields[at++], rule));
    if (at < r.count)
        return bad(&r, "options are not supported:", r.fields[at]);
    *h->last = rule;
    h->last = &rule->next;
    h->count++;
    return ST_OK;
}

bool fe_hba_needs_certificates(const struct fe_hba *h)
{
    const struct fe_hba_rule *r = h->first;
    while (r != NULL && r->method != FE_METHOD_CERT)
        r = r->next;
    return r != NULL;
}

/* -- finding ----------------------------------------------------------------------------------- */

static bool name_fits(const struct name *n, const char *name, const char *same)
{
    for (; n != NULL; n = n->next) {
        if (!n->quoted && strcmp(n->text, "all") == 0)
            return true;
        if (!n->quoted && same != NULL && strcmp(n->text, "sameuser") == 0) {
            if (strcmp(name, same) == 0)
                return true;
        } else if (strcmp(n->text, name) == 0) {
            return true;
        }
    }
    return false;
}

/* False: of another family. */
static bool plain_address(const struct sockaddr_storage *a, uint8_t out[16])
{
    if (a->ss_family == AF_INET6) {
        memcpy(out, &((const struct sockaddr_in6 *)a)->sin6_addr, 16);
        return true;
    }
    memset(out, 0, 10);
    memset(out + 10, 0xff, 2);
    memcpy(out + 12, &((const struct sockaddr_in *)a)->sin_addr, 4);
    return a->ss_family == AF_INET;
}

static bool address_fits(const struct fe_hba_rule *rule, const uint8_t peer[16])
{
    unsigned difference = 0;
    for (unsigned i = 0; i < 16; i++)
        difference |= (unsigned)((peer[i] & rule->mask[i]) ^ rule->address[i]);
    return rule->any_address || difference == 0;
}

enum fe_method fe_hba_find(const struct fe_hba *h, const struct fe_hba_request *r)
{
    uint8_t peer[16];
    if (!plain_address(r->peer, peer))
        return FE_METHOD_NONE;
    for (const struct fe_hba_rule *rule = h->first; rule != NULL; rule = rule->next) {
        bool transport = ((unsigned)rule->transport & (r->tls ? TLS : PLAIN)) != 0;
        if (transport && address_fits(rule, peer) &&
            name_fits(rule->databases, r->database, r->user) &&
            name_fits(rule->users, r->user, NULL))
            return rule->method;
    }
    return FE_METHOD_NONE;
}

bool fe_address_is_loopback(const struct sockaddr_storage *a)
{
    static const uint8_t v4[13] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127};
    uint8_t peer[16];
    return plain_address(a, peer) &&
           (memcmp(peer, v4, sizeof v4) == 0 || memcmp(peer, &in6addr_loopback, 16) == 0);
}

void fe_address_text(const struct sockaddr_storage *a, char *out, size_t size)
{
    char text[INET6_ADDRSTRLEN] = "unknown";
    if (a->ss_family == AF_INET)
        (void)inet_ntop(AF_INET, &((const struct sockaddr_in *)a)->sin_addr, text, sizeof text);
    else if (a->ss_family == AF_INET6)
        (void)inet_ntop(AF_INET6, &((const struct sockaddr_in6 *)a)->sin6_addr, text, sizeof text);
    snprintf(out, size, "%s", text);
}
