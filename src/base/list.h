/*
 * base/list.h — an intrusive, circular, doubly linked list.
 *
 * The head is a node of its own; an empty list points at itself. A node belongs to whoever embeds
 * it; the list owns nothing. Not thread-safe.
 */
#ifndef BASE_LIST_H
#define BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct list {
    struct list *prev, *next;
};

static inline void list_init(struct list *l)
{
    l->prev = l->next = l;
}
static inline bool list_empty(const struct list *l)
{
    return l->next == l;
}
static inline void list_insert_between(struct list *node, struct list *prev, struct list *next)
{
    node->prev = prev;
    node->next = next;
    prev->next = node;
    next->prev = node;
}
static inline void list_push_back(struct list *head, struct list *node)
{
    list_insert_between(node, head->prev, head);
}
static inline void list_push_front(struct list *head, struct list *node)
{
    list_insert_between(node, head, head->next);
}
/* The node is an empty list afterwards: removing it again does nothing. */
static inline void list_remove(struct list *node)
{
    node->prev->next = node->next;
    node->next->prev = node->prev;
    list_init(node);
}
/* NULL when empty. */
static inline struct list *list_pop_front(struct list *head)
{
    struct list *node = head->next;
    if (node == head)
        return NULL;
    list_remove(node);
    return node;
}

/* The body may not remove the node it is at; LIST_FOR_EACH_SAFE allows that. */
#define LIST_FOR_EACH(it, head) for (struct list *it = (head)->next; it != (head); it = it->next)
#define LIST_FOR_EACH_SAFE(it, after, head)                                                        \
    for (struct list *it = (head)->next, *after = it->next; it != (head);                          \
         it = after, after = it->next)

#endif
