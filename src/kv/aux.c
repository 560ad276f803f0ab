/*
 * kv/aux.c — quota and index items as bytes.
 *
 *   kind(1) namespace(v) | QUOTA: uid(z) files(z) dirs(z) size(z)
 *                        | INDEX: fid(z) pid(z) id(z) name(bytes)
 *
 * A queue record is items one after the other, without a count.
 */
#include "kv/aux.h"
#include "base/codec.h"

void kv_item_encode(const struct kv_item *item, struct obuf *out)
{
    put_u8(out, (uint8_t)item->kind);
    put_varint(out, item->ns);
    if (item->kind == KV_ITEM_QUOTA) {
        put_zigzag(out, item->uid);
        put_zigzag(out, item->files);
        put_zigzag(out, item->dirs);
        put_zigzag(out, item->size);
    } else {
        put_zigzag(out, item->fid);
        put_zigzag(out, item->pid);
        put_zigzag(out, item->id);
        put_bytes(out, item->name);
    }
}

status kv_item_decode(struct reader *in, struct kv_item *out)
{
    unsigned kind = get_u8(in);
    uint64_t ns = get_varint(in);
    if (in->bad || kind < KV_ITEM_QUOTA || kind > KV_ITEM_INDEX_DELETE || ns > UINT32_MAX)
        return ST_CORRUPT;
    *out = (struct kv_item){.kind = (enum kv_item_kind)kind, .ns = (uint32_t)ns};
    if (out->kind == KV_ITEM_QUOTA) {
        out->uid = get_zigzag(in);
        out->files = get_zigzag(in);
        out->dirs = get_zigzag(in);
        out->size = get_zigzag(in);
    } else {
        out->fid = get_zigzag(in);
        out->pid = get_zigzag(in);
        out->id = get_zigzag(in);
        out->name = get_bytes(in);
    }
    return in->bad ? ST_CORRUPT : ST_OK;
}

unsigned kv_items_destinations(bytes items)
{
    struct reader in = reader_make(items);
    struct kv_item item;
    unsigned tables = 0;
    while (in.next < in.end && kv_item_decode(&in, &item) == ST_OK)
        tables |= item.kind == KV_ITEM_QUOTA ? KV_ITEMS_QUOTA : KV_ITEMS_INDEX;
    return tables;
}
