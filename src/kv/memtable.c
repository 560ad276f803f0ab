/*
 * A generation in memory: a B+tree from key to a chain of versions, one writer, readers that never
 * block. The node is that of Masstree (Mao, Kohler, Morris, EuroSys 2012, section 4.6).
 *
 * Vocabulary
 *   slot         a place in a node: the first bytes of a key, the entry, in an inner node the child
 *   permutation  one 64-bit word: count (4 bits), then 15 x 4 bits, the slots in key order
 *   fences       the bounds [lower, upper) of all keys that a node can ever hold
 *   skip         length of the fences' common prefix; every key of the node begins with it, so the
 *                slots keep the 16 bytes behind it, as two big-endian words
 *   separator    in an inner node, the lower fence of the child at its right
 *
 *        word 0                    slots 0..14, filled in order of arrival
 *     +---------------+     +--------------------------------------------------+
 *     | n i0 i1 .. i14|     | hi lo entry [child] | hi lo entry [child] | ...  |
 *     +---------------+     +--------------------------------------------------+
 *
 * Insert: the writer fills a free slot, then publishes the word. Split: the full node is copied
 * into two new ones; the parent first gets the right one as a new slot, then the child pointer of
 * the left one is swapped. The old node stays as it is until the memtable goes, so a reader in it
 * goes on undisturbed. When the new key is above all of a full node, the left copy stays full and
 * the right one holds the new key alone: ascending keys fill nodes completely.
 *
 * Entries written last, and directories' attributes, are found without a descent: `recent` has a
 * place for each by a hash of its key. A command often comes back to a key (a directory's counters,
 * a row read before it is put). What is there is checked against the whole key, so a place may hold
 * anything or nothing, and any thread may put something there.
 *
 * A command mostly looks for keys that are not there: a new name, in every generation. The filter
 * (a word and four bits of it for each key, Putze, Sanders, Singler 2007) says so with one cache
 * miss instead of a descent; it may say "perhaps" for a key that is not there, never "no" for one
 * that is.
 *
 * Invariants
 *   M1  A slot that the permutation names never changes, but for a child pointer.
 *   M2  A reader that loads a child pointer and finds the permutation unchanged afterwards has a
 *       child whose fences hold its key: the swap comes after the word that names the right half.
 *   M3  Separators and fences are keys of entries, which live as long as the memtable.
 *   M4  Versions of an entry descend strictly in `ts` along `older`.
 *   M5  A version and the delta on top of it change inside one seqlock section.
 *   M6  What `recent` names is in the tree.
 *   M7  The bits of a key are in the filter before its entry is in the tree, so whoever may see the
 *       entry by its stamp sees the bits.
 *
 * Threads: the writer is the shard's reactor. A reader needs the memtable to stay, by an RCU
 * section or by a reference; it needs nothing for single nodes or entries.
 */
#include "kv/memtable.h"
#include "base/assert.h"
#include "base/checksum.h"
#include "base/codec.h"
#include "base/limits.h"
#include "base/memory.h"
#include "base/rcu.h"

#include <sched.h>
#include <stdlib.h>

#define SLOTS 15u
#define RECENT 512u
#define DEPTH_MAX 24u
#define FILTER_BYTES_A_WORD 1024u /* a word for five entries or so, 1/128 of them */
#define SLAB_MIN (16u * 1024u)
#define SLAB_MAX (1024u * 1024u)

struct delta_cell {
    _Atomic uint64_t turn; /* seqlock: odd while the writer is inside */
    _Atomic bool present;
    _Atomic int64_t children, mtime, ctime;
    _Atomic uint64_t last;
};

struct kv_mem_entry {
    _Atomic(struct kv_version *) newest;
    _Atomic(struct delta_cell *) delta; /* NULL until the first delta; then for good */
    uint16_t key_size;
    _Atomic bool born_here;
    uint8_t key[];
};
_Static_assert(UINT16_MAX > 4 * LIMIT_KEY_BYTES, "a key's size fits its field");

struct node {
    _Atomic uint64_t perm;
    uint16_t skip;
    uint8_t level; /* 0 = leaf */
    uint64_t hi[SLOTS], lo[SLOTS];
    struct kv_mem_entry *entry[SLOTS]; /* inner: separator; NULL in the leftmost slot of a level */
};

struct inner {
    struct node base;
    _Atomic(struct node *) child[SLOTS];
};

struct slab {
    struct slab *next;
    uint8_t data[];
};

#define SLAB_HEAD (sizeof(struct slab) + 16) /* 16: for the alignment of the first */

struct recent {
    _Atomic uint32_t tag;
    _Atomic(struct kv_mem_entry *) entry;
};

struct kv_memtable {
    _Atomic uint32_t refs;
    _Atomic(struct node *) root;
    struct recent recent[RECENT];
    _Atomic uint64_t *filter; /* NULL: none */
    uint32_t filter_words;
    /* writer */
    struct slab *slabs;
    uint8_t *free_from, *free_to;
    size_t slab_size, counted; /* counted: under MEMORY_MEMTABLES */
    /* published for statistics */
    _Atomic size_t byte_count;
    _Atomic uint64_t entry_count;
};

/* -- memory ----------------------------------------------------------------------------------- */

static void slab_add(struct kv_memtable *m, size_t at_least)
{
    size_t usual = m->slab_size - SLAB_HEAD; /* with it, what allocators hand out without waste */
    size_t size = at_least > usual ? at_least : usual;
    struct slab *s = malloc(SLAB_HEAD + size);

    ASSERT(s != NULL);
    s->next = m->slabs;
    m->slabs = s;
    m->free_from = s->data;
    m->free_to = (uint8_t *)s + SLAB_HEAD + size;
    m->counted += SLAB_HEAD + size;
    memory_count(MEMORY_MEMTABLES, (ptrdiff_t)(SLAB_HEAD + size));
    if (m->slab_size < SLAB_MAX)
        m->slab_size *= 2;
    atomic_store_explicit(&m->byte_count,
                          atomic_load_explicit(&m->byte_count, memory_order_relaxed) + SLAB_HEAD +
                              size,
                          memory_order_relaxed);
}

static void *slab_alloc(struct kv_memtable *m, size_t size)
{
    uintptr_t at = ((uintptr_t)m->free_from + 15) & ~(uintptr_t)15;

    if (m->slabs == NULL || at + size > (uintptr_t)m->free_to) {
        slab_add(m, size);
        at = ((uintptr_t)m->free_from + 15) & ~(uintptr_t)15;
    }
    m->free_from = (uint8_t *)at + size;
    return (void *)at;
}

static void memtable_free(void *arg)
{
    struct kv_memtable *m = arg;

    for (struct slab *s = m->slabs, *next; s != NULL; s = next) {
        next = s->next;
        free(s);
    }
    memory_count(MEMORY_MEMTABLES, -(ptrdiff_t)m->counted);
    free((void *)m->filter);
    free(m);
}

/* -- permutation words ------------------------------------------------------------------------ */

static unsigned perm_count(uint64_t perm)
{
    return (unsigned)(perm & 15);
}

static unsigned perm_slot(uint64_t perm, unsigned at)
{
    return (unsigned)(perm >> (4 + 4 * at)) & 15;
}

static uint64_t perm_insert(uint64_t perm, unsigned at, unsigned slot)
{
    uint64_t order = perm >> 4, below = (1ull << (4 * at)) - 1;

    order = (order & below) | (uint64_t)slot << (4 * at) | (order & ~below) << 4;
    return order << 4 | (perm_count(perm) + 1);
}

static uint64_t perm_load(const struct node *n)
{
    return atomic_load_explicit(&n->perm, memory_order_acquire); /* pairs with perm_publish */
}

static void perm_publish(struct node *n, uint64_t perm)
{
    atomic_store_explicit(&n->perm, perm, memory_order_release); /* pairs with perm_load */
}

/* The lines of a node come from memory together instead of one after the other. */
static void node_prefetch(const struct node *n)
{
    for (size_t at = 0; at < sizeof *n; at += 64)
        __builtin_prefetch((const char *)n + at);
}

static struct node *child_load(const struct node *n, unsigned slot)
{
    const struct inner *in = (const struct inner *)n;
    struct node *child = atomic_load_explicit(&in->child[slot], memory_order_acquire);

    node_prefetch(child);
    return child;
}

/* -- keys in nodes ---------------------------------------------------------------------------- */

static bytes entry_key(const struct kv_mem_entry *e)
{
    return bytes_make(e->key, e->key_size);
}

/* The 16 bytes of KEY from SKIP on, padded with zeros. */
struct words {
    uint64_t hi, lo;
};

static struct words words_at(bytes key, size_t skip)
{
    uint8_t pad[16] = {0};
    const uint8_t *p = key.data + skip;

    ASSERT_SLOW(key.size >= skip);
    if (key.size - skip < sizeof pad) {
        memcpy(pad, p, key.size - skip);
        p = pad;
    }
    return (struct words){load_be64(p), load_be64(p + 8)};
}

static int slot_cmp(const struct node *n, unsigned slot, bytes key, struct words w)
{
    bytes have;

    if (n->hi[slot] != w.hi)
        return n->hi[slot] < w.hi ? -1 : 1;
    if (n->lo[slot] != w.lo)
        return n->lo[slot] < w.lo ? -1 : 1;
    /* Equal words are equal bytes, or differ in padding alone; the whole keys decide. */
    have = entry_key(n->entry[slot]);
    return bytes_cmp(bytes_make(have.data + n->skip, have.size - n->skip),
                     bytes_make(key.data + n->skip, key.size - n->skip));
}

/* How many slots from FIRST on, in order, are below KEY (with OR_EQUAL, not above it), plus FIRST.
 * KEY is inside the node's fences. *FOUND tells whether the slot of KEY itself was met. */
static unsigned node_rank(const struct node *n, uint64_t perm, unsigned first, bytes key,
                          bool or_equal, bool *found)
{
    struct words w = words_at(key, n->skip);
    unsigned low = first, high = perm_count(perm);

    *found = false;
    while (low < high) {
        unsigned middle = (low + high) / 2;
        int c = slot_cmp(n, perm_slot(perm, middle), key, w);

        if (c == 0) {
            *found = true;
            return or_equal ? middle + 1 : middle;
        }
        if (c < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The same for a KEY that may be the node's upper fence: it need not begin with the prefix. */
static unsigned node_rank_below(const struct node *n, uint64_t perm, unsigned first, bytes key)
{
    unsigned count = perm_count(perm);
    bool found;

    if (n->skip > 0 && count > 0) {
        bytes prefix = bytes_make(n->entry[perm_slot(perm, 0)]->key, n->skip);

        if (!bytes_has_prefix(key, prefix))
            return count;
    }
    return node_rank(n, perm, first, key, false, &found);
}

/* -- entries written last --------------------------------------------------------------------- */

struct place_of_key {
    unsigned at;
    uint32_t tag; /* 0: the key has no place */
};

static struct place_of_key recent_place(bytes key)
{
    uint64_t a, b;

    if (key.size < 16)
        return (struct place_of_key){.tag = 0};
    memcpy(&a, key.data + key.size - 16, 8);
    memcpy(&b, key.data + key.size - 8, 8);
    a = (a ^ (b << 29 | b >> 35)) * 0x9e3779b97f4a7c15ull;
    return (struct place_of_key){.at = (unsigned)(a >> 32) % RECENT,
                                 .tag = (uint32_t)(a >> 41) | 1};
}

static struct kv_mem_entry *recent_find(const struct kv_memtable *m, bytes key)
{
    struct place_of_key p = recent_place(key);
    const struct recent *r = &m->recent[p.at];
    struct kv_mem_entry *e;

    if (p.tag == 0 || atomic_load_explicit(&r->tag, memory_order_relaxed) != p.tag)
        return NULL;
    e = atomic_load_explicit(&r->entry, memory_order_acquire); /* pairs with recent_put */
    return e != NULL && bytes_eq(entry_key(e), key) ? e : NULL;
}

static void recent_put(struct kv_memtable *m, struct kv_mem_entry *e)
{
    struct place_of_key p = recent_place(entry_key(e));
    struct recent *r = &m->recent[p.at];

    if (p.tag == 0)
        return;
    atomic_store_explicit(&r->tag, p.tag, memory_order_relaxed);
    atomic_store_explicit(&r->entry, e, memory_order_release); /* pairs with recent_find */
}

/* -- the filter ------------------------------------------------------------------------------- */

struct bits {
    uint32_t word;
    uint64_t mask;
};

static struct bits filter_bits(const struct kv_memtable *m, bytes key)
{
    uint64_t h = checksum64(key, 0);

    return (struct bits){.word = (uint32_t)((h >> 32) * m->filter_words >> 32),
                         .mask = UINT64_C(1) << (h & 63) | UINT64_C(1) << (h >> 6 & 63) |
                                 UINT64_C(1) << (h >> 12 & 63) | UINT64_C(1) << (h >> 18 & 63)};
}

static void filter_add(struct kv_memtable *m, bytes key)
{
    struct bits b;
    uint64_t word;

    if (m->filter == NULL)
        return;
    b = filter_bits(m, key);
    word = atomic_load_explicit(&m->filter[b.word], memory_order_relaxed);
    atomic_store_explicit(&m->filter[b.word], word | b.mask, memory_order_relaxed);
}

static bool filter_excludes(const struct kv_memtable *m, bytes key)
{
    struct bits b;

    if (m->filter == NULL)
        return false;
    b = filter_bits(m, key);
    return (atomic_load_explicit(&m->filter[b.word], memory_order_relaxed) & b.mask) != b.mask;
}

/* -- descending, as readers do ---------------------------------------------------------------- */

/* A leaf and the separators around it as the descent met them: NULL = no bound. */
struct place {
    const struct node *leaf;
    const struct kv_mem_entry *lower, *upper;
    const struct node *parent; /* NULL: the leaf is the root */
    uint64_t parent_perm;
    unsigned at; /* position of the leaf in it */
    const struct kv_mem_entry *parent_upper;
};

/* The leaf that holds KEY, or with BEFORE the keys just below it. */
static struct place descend(const struct kv_memtable *m, bytes key, bool before)
{
    struct place p = {.lower = NULL, .upper = NULL, .parent = NULL};
    const struct node *n = atomic_load_explicit(&m->root, memory_order_acquire);

    while (n->level > 0) {
        uint64_t perm = perm_load(n);
        unsigned at, slot;
        const struct node *child;
        bool found;

        at =
            (before ? node_rank_below(n, perm, 1, key) : node_rank(n, perm, 1, key, true, &found)) -
            1;
        slot = perm_slot(perm, at);
        child = child_load(n, slot);
        if (perm_load(n) != perm)
            continue; /* M2: at most SLOTS times, a node only grows */
        p.parent = n;
        p.parent_perm = perm;
        p.at = at;
        p.parent_upper = p.upper;
        if (at > 0)
            p.lower = n->entry[slot];
        if (at + 1 < perm_count(perm))
            p.upper = n->entry[perm_slot(perm, at + 1)];
        n = child;
    }
    p.leaf = n;
    return p;
}

void kv_mem_entry_prefetch(const struct kv_mem_entry *e)
{
    __builtin_prefetch(e);
    __builtin_prefetch((const char *)e + 64);
    __builtin_prefetch((const char *)e - 64); /* its first version was made just before it */
    __builtin_prefetch((const char *)e - 128);
}

const struct kv_mem_entry *kv_memtable_find(const struct kv_memtable *m, bytes key)
{
    const struct kv_mem_entry *recent = recent_find(m, key);
    const struct node *leaf;
    uint64_t perm;
    bool found;
    unsigned at;

    if (recent != NULL)
        return recent;
    if (filter_excludes(m, key))
        return NULL;
    leaf = descend(m, key, false).leaf;
    perm = perm_load(leaf);
    at = node_rank(leaf, perm, 0, key, false, &found);
    return found ? leaf->entry[perm_slot(perm, at)] : NULL;
}

/* The leaf to the right under the same parent. An old parent, split since, leads to leaves as they
 * were then: they lack only what came after the walk began. */
static bool next_sibling(struct place *p)
{
    unsigned count = perm_count(p->parent_perm), slot;
    const struct node *child;

    if (p->parent == NULL || p->at + 1 == count)
        return false;
    slot = perm_slot(p->parent_perm, p->at + 1);
    child = child_load(p->parent, slot);
    if (perm_load(p->parent) != p->parent_perm)
        return false; /* M2 */
    p->leaf = child;
    p->at++;
    p->lower = p->parent->entry[slot];
    p->upper = p->at + 1 < count ? p->parent->entry[perm_slot(p->parent_perm, p->at + 1)]
                                 : p->parent_upper;
    return true;
}

/* Up to COUNT entries of P's leaf from position AT on, below UPPER; *ENDED if that was met. */
static unsigned leaf_take(const struct place *p, uint64_t perm, unsigned at, bytes upper,
                          const struct kv_mem_entry **out, unsigned count, bool *ended)
{
    unsigned end = perm_count(perm), got = 0;
    const struct kv_mem_entry *last;
    bool all_below, all_own;

    if (at == end)
        return 0;
    last = p->leaf->entry[perm_slot(perm, end - 1)];
    all_below = upper.size == 0 || bytes_cmp(entry_key(last), upper) < 0;
    /* A leaf split since holds keys that the next step finds again. */
    all_own = p->upper == NULL || bytes_cmp(entry_key(last), entry_key(p->upper)) < 0;
    for (; at < end && got < count; at++) {
        const struct kv_mem_entry *e = p->leaf->entry[perm_slot(perm, at)];

        if (!all_below && bytes_cmp(entry_key(e), upper) >= 0) {
            *ended = true;
            break;
        }
        if (!all_own && bytes_cmp(entry_key(e), entry_key(p->upper)) >= 0)
            break;
        out[got++] = e;
    }
    return got;
}

const struct kv_mem_entry *kv_memtable_find_often(struct kv_memtable *m, bytes key)
{
    const struct kv_mem_entry *e = kv_memtable_find(m, key);

    if (e != NULL)
        recent_put(m, (struct kv_mem_entry *)(uintptr_t)e);
    return e;
}

static unsigned walk(const struct kv_memtable *m, bytes from, bool after, bytes upper,
                     const struct kv_mem_entry **out, unsigned count)
{
    unsigned got = 0;
    bool ended = false, found;

    while (got < count && !ended) {
        struct place p = descend(m, from, false);
        uint64_t perm = perm_load(p.leaf);
        unsigned at = node_rank(p.leaf, perm, 0, from, after, &found);

        got += leaf_take(&p, perm, at, upper, out + got, count - got, &ended);
        while (got < count && !ended && next_sibling(&p)) {
            perm = perm_load(p.leaf);
            got += leaf_take(&p, perm, 0, upper, out + got, count - got, &ended);
        }
        if (p.upper == NULL)
            break;
        from = entry_key(p.upper);
        after = false;
    }
    return got;
}

unsigned kv_memtable_walk(const struct kv_memtable *m, bytes from, bytes upper,
                          const struct kv_mem_entry **out, unsigned count)
{
    return walk(m, from, false, upper, out, count);
}

unsigned kv_memtable_walk_after(const struct kv_memtable *m, bytes after, bytes upper,
                                const struct kv_mem_entry **out, unsigned count)
{
    return walk(m, after, true, upper, out, count);
}

unsigned kv_memtable_walk_back(const struct kv_memtable *m, bytes before, bytes lower,
                               const struct kv_mem_entry **out, unsigned count)
{
    unsigned got = 0;

    while (got < count) {
        struct place p = descend(m, before, true);
        uint64_t perm = perm_load(p.leaf);
        unsigned at = node_rank_below(p.leaf, perm, 0, before);

        while (at > 0 && got < count) {
            const struct kv_mem_entry *e = p.leaf->entry[perm_slot(perm, --at)];

            if (bytes_cmp(entry_key(e), lower) < 0)
                return got;
            out[got++] = e;
        }
        if (got == count || p.lower == NULL)
            break;
        before = entry_key(p.lower);
    }
    return got;
}

/* -- inserting -------------------------------------------------------------------------------- */

struct step {
    struct node *node;
    unsigned at; /* inner: position of the child taken; leaf: where the key belongs */
    const struct kv_mem_entry *lower, *upper;
};

struct item {
    struct kv_mem_entry *entry;
    struct node *child;
};

static size_t common_prefix(bytes a, bytes b)
{
    size_t n = 0, max = a.size < b.size ? a.size : b.size;

    while (n < max && a.data[n] == b.data[n])
        n++;
    return n;
}

static void slot_fill(struct node *n, unsigned slot, struct item item)
{
    struct words w = {0, 0};

    if (item.entry != NULL)
        w = words_at(entry_key(item.entry), n->skip);
    n->hi[slot] = w.hi;
    n->lo[slot] = w.lo;
    n->entry[slot] = item.entry;
    if (n->level > 0)
        atomic_store_explicit(&((struct inner *)n)->child[slot], item.child, memory_order_release);
}

/* A private node of ITEMS in order, for keys inside [LOWER, UPPER). */
static struct node *node_build(struct kv_memtable *m, uint8_t level,
                               const struct kv_mem_entry *lower, const struct kv_mem_entry *upper,
                               const struct item *items, unsigned count)
{
    struct node *n = slab_alloc(m, level > 0 ? sizeof(struct inner) : sizeof(struct node));
    uint64_t perm = 0;

    n->level = level;
    n->skip = 0;
    if (lower != NULL && upper != NULL)
        n->skip = (uint16_t)common_prefix(entry_key(lower), entry_key(upper));
    for (unsigned i = 0; i < count; i++) {
        slot_fill(n, i, items[i]);
        perm = perm_insert(perm, i, i);
    }
    atomic_init(&n->perm, perm);
    return n;
}

/* The path of KEY from the root (step 0) to its leaf; returns the number of steps. */
static unsigned path_of(const struct kv_memtable *m, bytes key, struct step *path, bool *found)
{
    struct node *n = atomic_load_explicit(&m->root, memory_order_relaxed);
    const struct kv_mem_entry *lower = NULL, *upper = NULL;
    unsigned depth = 0;

    for (;; depth++) {
        uint64_t perm = atomic_load_explicit(&n->perm, memory_order_relaxed);

        ASSERT(depth < DEPTH_MAX);
        path[depth] = (struct step){.node = n, .lower = lower, .upper = upper};
        if (n->level == 0) {
            path[depth].at = node_rank(n, perm, 0, key, false, found);
            return depth + 1;
        }
        path[depth].at = node_rank(n, perm, 1, key, true, found) - 1;
        if (path[depth].at > 0)
            lower = n->entry[perm_slot(perm, path[depth].at)];
        if (path[depth].at + 1 < perm_count(perm))
            upper = n->entry[perm_slot(perm, path[depth].at + 1)];
        n = child_load(n, perm_slot(perm, path[depth].at));
    }
}

/* What a split leaves for the parent: RIGHT begins at SEPARATOR, LEFT replaces the old node. */
struct split {
    struct kv_mem_entry *separator;
    struct node *left, *right;
};

/* Puts ADD at AT into the full node of S. For an inner node the child before AT becomes LEFT. */
static struct split node_split(struct kv_memtable *m, const struct step *s, unsigned at,
                               struct item add, struct node *left)
{
    struct item items[SLOTS + 1];
    uint64_t perm = atomic_load_explicit(&s->node->perm, memory_order_relaxed);
    uint8_t level = s->node->level;
    unsigned middle = at == SLOTS ? SLOTS : (SLOTS + 1) / 2;
    struct split out;

    for (unsigned i = 0, from = 0; i <= SLOTS; i++) {
        unsigned slot;

        if (i == at) {
            items[i] = add;
            continue;
        }
        slot = perm_slot(perm, from++);
        items[i].entry = s->node->entry[slot];
        items[i].child = level > 0 ? child_load(s->node, slot) : NULL;
    }
    if (level > 0)
        items[at - 1].child = left;
    out.separator = items[middle].entry;
    out.left = node_build(m, level, s->lower, out.separator, items, middle);
    out.right = node_build(m, level, out.separator, s->upper, items + middle, SLOTS + 1 - middle);
    return out;
}

/* Adds an entry that the tree does not hold; PATH leads to its leaf. */
static void tree_insert(struct kv_memtable *m, struct step *path, unsigned depth,
                        struct kv_mem_entry *e)
{
    struct item add = {.entry = e};
    struct node *left = NULL;

    while (depth-- > 0) {
        struct step *s = &path[depth];
        struct node *n = s->node;
        uint64_t perm = atomic_load_explicit(&n->perm, memory_order_relaxed);
        unsigned at = n->level > 0 ? s->at + 1 : s->at;
        struct split split;

        if (perm_count(perm) < SLOTS) {
            slot_fill(n, perm_count(perm), add);
            perm_publish(n, perm_insert(perm, at, perm_count(perm)));
            if (left != NULL) /* M2: only after the word that names the right half */
                atomic_store_explicit(&((struct inner *)n)->child[perm_slot(perm, s->at)], left,
                                      memory_order_release);
            return;
        }
        split = node_split(m, s, at, add, left);
        add = (struct item){.entry = split.separator, .child = split.right};
        left = split.left;
    }
    struct item top[2] = {{.entry = NULL, .child = left}, add};
    struct node *root = atomic_load_explicit(&m->root, memory_order_relaxed);

    root = node_build(m, (uint8_t)(root->level + 1), NULL, NULL, top, 2);
    atomic_store_explicit(&m->root, root, memory_order_release);
}

static struct kv_mem_entry *entry_new(struct kv_memtable *m, bytes key)
{
    struct kv_mem_entry *e = slab_alloc(m, sizeof *e + key.size);

    ASSERT(key.size <= UINT16_MAX);
    atomic_init(&e->newest, NULL);
    atomic_init(&e->delta, NULL);
    atomic_init(&e->born_here, false);
    e->key_size = (uint16_t)key.size;
    memcpy(e->key, key.data, key.size);
    return e;
}

/* A version filled but for `older`. */
static struct kv_version *version_new(struct kv_memtable *m, hlc_ts ts, bool deleted, bool fresh,
                                      bytes row)
{
    struct kv_version *v = slab_alloc(m, sizeof *v + row.size);

    v->ts = ts;
    v->older = NULL;
    v->size = (uint32_t)row.size;
    v->deleted = deleted;
    v->fresh = fresh;
    if (row.size > 0)
        memcpy(v->data, row.data, row.size);
    return v;
}

/* -- deltas ----------------------------------------------------------------------------------- */

/* Stores inside a section are release, so that a reader that saw one of them sees the odd turn. */
static void delta_store(struct delta_cell *c, const struct kv_delta *d)
{
    atomic_store_explicit(&c->children, d->children, memory_order_release);
    atomic_store_explicit(&c->mtime, d->mtime, memory_order_release);
    atomic_store_explicit(&c->ctime, d->ctime, memory_order_release);
    atomic_store_explicit(&c->last, d->last, memory_order_release);
    atomic_store_explicit(&c->present, d->present, memory_order_release);
}

static void delta_turn(struct delta_cell *c, memory_order order)
{
    uint64_t turn = atomic_load_explicit(&c->turn, memory_order_relaxed);

    atomic_store_explicit(&c->turn, turn + 1, order);
}

static struct kv_delta delta_load(const struct delta_cell *c)
{
    return (struct kv_delta){
        .children = atomic_load_explicit(&c->children, memory_order_acquire),
        .mtime = atomic_load_explicit(&c->mtime, memory_order_acquire),
        .ctime = atomic_load_explicit(&c->ctime, memory_order_acquire),
        .last = atomic_load_explicit(&c->last, memory_order_acquire),
        .present = atomic_load_explicit(&c->present, memory_order_acquire),
    };
}

static const struct kv_delta no_delta = {.mtime = INT64_MIN, .ctime = INT64_MIN};

static struct delta_cell *delta_cell_of(struct kv_memtable *m, struct kv_mem_entry *e)
{
    struct delta_cell *c = atomic_load_explicit(&e->delta, memory_order_relaxed);

    if (c == NULL) {
        c = slab_alloc(m, sizeof *c);
        atomic_init(&c->turn, 0);
        delta_store(c, &no_delta);
        atomic_store_explicit(&e->delta, c, memory_order_release);
    }
    return c;
}

/* -- public ----------------------------------------------------------------------------------- */

struct kv_memtable *kv_memtable_new(size_t expected)
{
    struct kv_memtable *m = calloc(1, sizeof *m);
    size_t words = expected / FILTER_BYTES_A_WORD;

    ASSERT(m != NULL);
    m->counted = sizeof *m;
    if (words > 0) {
        m->filter_words = words < UINT32_MAX ? (uint32_t)words : UINT32_MAX;
        m->filter = calloc(m->filter_words, sizeof *m->filter);
        ASSERT(m->filter != NULL);
        m->counted += m->filter_words * sizeof *m->filter;
    }
    memory_count(MEMORY_MEMTABLES, (ptrdiff_t)m->counted);
    atomic_init(&m->byte_count, m->counted);
    m->slab_size = SLAB_MIN;
    atomic_init(&m->refs, 1);
    atomic_init(&m->root, node_build(m, 0, NULL, NULL, NULL, 0));
    return m;
}

struct kv_memtable *kv_memtable_ref(struct kv_memtable *m)
{
    atomic_fetch_add_explicit(&m->refs, 1, memory_order_relaxed);
    return m;
}

void kv_memtable_unref(struct kv_memtable *m)
{
    if (m != NULL && atomic_fetch_sub_explicit(&m->refs, 1, memory_order_acq_rel) == 1)
        rcu_defer(memtable_free, m);
}

size_t kv_memtable_bytes(const struct kv_memtable *m)
{
    return atomic_load_explicit(&m->byte_count, memory_order_relaxed);
}

uint64_t kv_memtable_entries(const struct kv_memtable *m)
{
    return atomic_load_explicit(&m->entry_count, memory_order_relaxed);
}

static void entry_count_add(struct kv_memtable *m)
{
    uint64_t n = atomic_load_explicit(&m->entry_count, memory_order_relaxed);

    atomic_store_explicit(&m->entry_count, n + 1, memory_order_relaxed);
}

/* The entry of KEY, or NULL with the PATH to where it belongs. */
static struct kv_mem_entry *writer_find(const struct kv_memtable *m, bytes key, struct step *path,
                                        unsigned *depth)
{
    struct kv_mem_entry *recent = recent_find(m, key);
    const struct step *last;
    bool found;

    if (recent != NULL)
        return recent;
    *depth = path_of(m, key, path, &found);
    last = &path[*depth - 1];
    return found ? last->node->entry[perm_slot(
                       atomic_load_explicit(&last->node->perm, memory_order_relaxed), last->at)]
                 : NULL;
}

static void entry_add(struct kv_memtable *m, struct step *path, unsigned depth,
                      struct kv_mem_entry *e)
{
    filter_add(m, entry_key(e)); /* M7 */
    tree_insert(m, path, depth, e);
    entry_count_add(m);
    recent_put(m, e); /* M6 */
}

void kv_memtable_put(struct kv_memtable *m, bytes key, hlc_ts ts, bool deleted, bool fresh,
                     bytes row)
{
    struct step path[DEPTH_MAX];
    unsigned depth = 0;
    struct kv_mem_entry *e = writer_find(m, key, path, &depth);
    struct kv_version *v = version_new(m, ts, deleted, fresh, row), *old;
    struct delta_cell *c;

    if (e == NULL) {
        e = entry_new(m, key);
        atomic_init(&e->born_here, fresh);
        atomic_init(&e->newest, v);
        entry_add(m, path, depth, e);
        return;
    }
    recent_put(m, e);
    old = atomic_load_explicit(&e->newest, memory_order_relaxed);
    if (old == NULL)
        atomic_store_explicit(&e->born_here, fresh, memory_order_relaxed);
    ASSERT_INV("M4", old == NULL || old->ts <= ts);
    v->older = old != NULL && old->ts == ts ? old->older : old;
    c = atomic_load_explicit(&e->delta, memory_order_relaxed);
    if (c == NULL) {
        atomic_store_explicit(&e->newest, v, memory_order_release);
        return;
    }
    delta_turn(c, memory_order_relaxed); /* M5 */
    atomic_store_explicit(&e->newest, v, memory_order_release);
    delta_store(c, &no_delta);
    delta_turn(c, memory_order_release);
}

void kv_memtable_delta(struct kv_memtable *m, bytes key, int64_t children, int64_t mtime,
                       int64_t ctime, hlc_ts ts)
{
    struct step path[DEPTH_MAX];
    unsigned depth = 0;
    struct kv_mem_entry *e = writer_find(m, key, path, &depth);
    bool found = e != NULL;
    struct delta_cell *c;
    struct kv_delta d;

    if (found)
        recent_put(m, e);
    else
        e = entry_new(m, key);
    c = delta_cell_of(m, e);
    d = delta_load(c);
    d.present = true;
    d.children += children;
    d.mtime = d.mtime > mtime ? d.mtime : mtime;
    d.ctime = d.ctime > ctime ? d.ctime : ctime;
    d.last = ts;
    delta_turn(c, memory_order_relaxed);
    delta_store(c, &d);
    delta_turn(c, memory_order_release);
    if (!found)
        entry_add(m, path, depth, e);
}

bytes kv_mem_entry_key(const struct kv_mem_entry *e)
{
    return entry_key(e);
}

const struct kv_version *kv_mem_entry_newest(const struct kv_mem_entry *e)
{
    return atomic_load_explicit(&e->newest, memory_order_acquire);
}

bool kv_mem_entry_born_here(const struct kv_mem_entry *e)
{
    return atomic_load_explicit(&e->born_here, memory_order_relaxed);
}

void kv_mem_entry_read(const struct kv_mem_entry *e, const struct kv_version **v,
                       struct kv_delta *d)
{
    const struct delta_cell *c = atomic_load_explicit(&e->delta, memory_order_acquire);

    if (c == NULL) {
        *d = no_delta;
        *v = kv_mem_entry_newest(e);
        return;
    }
    for (unsigned tries = 1;; tries++) {
        uint64_t turn = atomic_load_explicit(&c->turn, memory_order_acquire);

        *v = kv_mem_entry_newest(e);
        *d = delta_load(c);
        if (!(turn & 1) && atomic_load_explicit(&c->turn, memory_order_relaxed) == turn)
            return;
        if (tries % 64 == 0)
            sched_yield(); /* the writer lost its core inside a section of six stores */
    }
}
