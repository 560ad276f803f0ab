/*
 * cluster/topology.c — parses and checks the list of nodes.
 */
#include "cluster/topology.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define ENTRY_BYTES 192u
#define BLANKS " \t\r\n"

const struct cl_node_address *cl_topology_find(const struct cl_topology *t, uint64_t id)
{
    for (unsigned i = 0; i < t->count; i++) {
        if (t->nodes[i].id == id)
            return &t->nodes[i];
    }
    return NULL;
}

static status bad_entry(struct err *err, const char *entry)
{
    err_set(err, ST_INVALID, "setting \"cluster.nodes\": \"%s\" is not a node", entry);
    err_hint(err, "A node is ID=ADDRESS/ADDRESS, for the other nodes and for clients, as in "
                  "1=10.0.0.1:7433/10.0.0.1:7432.");
    return ST_INVALID;
}

static status check_address(const char *address, const char *entry, struct err *err)
{
    status st = env_address_check(address, err);
    if (st != ST_OK)
        err_detail(err, "It is part of the node \"%s\" in the setting \"cluster.nodes\".", entry);
    return st;
}

/* Two nodes, or two purposes, cannot share an address. */
static status check_unique(const struct cl_topology *t, const struct cl_node_address *n,
                           struct err *err)
{
    if (strcmp(n->peers, n->clients) == 0)
        return err_set(err, ST_INVALID,
                       "setting \"cluster.nodes\": node %" PRIu64
                       " has address %s for nodes and for clients",
                       n->id, n->peers);
    for (unsigned i = 0; i < t->count; i++) {
        const struct cl_node_address *o = &t->nodes[i];
        if (o->id == n->id)
            return err_set(err, ST_INVALID, "setting \"cluster.nodes\": node %" PRIu64 " is twice",
                           n->id);
        const char *shared =
            strcmp(o->peers, n->peers) == 0 || strcmp(o->clients, n->peers) == 0       ? n->peers
            : strcmp(o->clients, n->clients) == 0 || strcmp(o->peers, n->clients) == 0 ? n->clients
                                                                                       : NULL;
        if (shared != NULL)
            return err_set(err, ST_INVALID,
                           "setting \"cluster.nodes\": nodes %" PRIu64 " and %" PRIu64
                           " share address %s",
                           o->id, n->id, shared);
    }
    return ST_OK;
}

static status parse_entry(const char *entry, struct cl_topology *t, struct err *err)
{
    struct cl_node_address n = {0};
    char *end;
    n.id = strtoull(entry, &end, 10);
    const char *slash = strchr(entry, '/');
    if (entry[0] < '0' || entry[0] > '9' || *end != '=' || slash == NULL || n.id == 0 ||
        n.id > UINT32_MAX)
        return bad_entry(err, entry);
    size_t size = (size_t)(slash - (end + 1));
    if (size >= sizeof n.peers || strlen(slash + 1) >= sizeof n.clients)
        return bad_entry(err, entry);
    memcpy(n.peers, end + 1, size);
    memcpy(n.clients, slash + 1, strlen(slash + 1));
    ST_TRY(check_address(n.peers, entry, err));
    ST_TRY(check_address(n.clients, entry, err));
    ST_TRY(check_unique(t, &n, err));
    if (t->count == CL_NODES_MAX)
        return err_set(err, ST_INVALID, "setting \"cluster.nodes\": more than %u nodes",
                       CL_NODES_MAX);
    t->nodes[t->count++] = n;
    return ST_OK;
}

status cl_topology_parse(const char *list, uint64_t self, struct cl_topology *out, struct err *err)
{
    *out = (struct cl_topology){.self = self};
    for (const char *p = list + strspn(list, BLANKS); *p != '\0'; p += strspn(p, BLANKS)) {
        char entry[ENTRY_BYTES];
        size_t n = strcspn(p, BLANKS);
        snprintf(entry, sizeof entry, "%.*s", (int)n, p);
        if (n >= sizeof entry)
            return bad_entry(err, entry);
        ST_TRY(parse_entry(entry, out, err));
        p += n;
    }
    if (out->count == 0 || cl_topology_find(out, self) != NULL)
        return ST_OK;
    if (self == 0)
        err_set(err, ST_INVALID,
                "setting \"cluster.nodes\" lists nodes, but \"cluster.node\" does "
                "not say which of them this one is");
    else
        err_set(err, ST_INVALID,
                "setting \"cluster.node\": node %" PRIu64 " is not in \"cluster.nodes\"", self);
    return ST_INVALID;
}
