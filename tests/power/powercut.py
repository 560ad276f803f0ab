"""Take back what a loss of power could take back, from the journal of powerdisk.c.

Data: of the writes to a file since its last sync any subset survives, each perhaps only in some of
its 512-byte sectors, or with its length and no content.  Names: creations, renames and unlinks whose directory was not synced after
them survive up to a random point in their order.  Everything else stays.
"""
import os
import shutil
import struct

HEAD = struct.Struct("=IIQQQIIIIII")      # struct record with its tail padding
MAGIC = 0x70776473
WRITE, SIZE, SYNC, DIRSYNC, CREATE, RENAME, UNLINK, MKDIR, RMDIR = range(1, 10)
NAMES = (CREATE, RENAME, UNLINK, MKDIR, RMDIR)


def records(path):
    with open(path, "rb") as f:
        data = f.read()
    at = 0
    while at + HEAD.size <= len(data):
        magic, kind, ino, offset, old_size, np, np2, ng, nold, nnew, _ = HEAD.unpack_from(data, at)
        if magic != MAGIC:
            raise RuntimeError("journal of the disk is damaged at %d" % at)
        end = at + HEAD.size + np + np2 + ng + nold + nnew
        if end > len(data):
            return                        # cut by the kill, before the change itself
        at += HEAD.size
        parts = []
        for n in (np, np2, ng, nold, nnew):
            parts.append(data[at:at + n])
            at += n
        yield dict(kind=kind, ino=ino, offset=offset, old_size=old_size, path=parts[0].decode(), path2=parts[1].decode(),
                   grave=parts[2].decode(), old=parts[3], new=parts[4])


def fates(rng, count):
    """What becomes of COUNT unsynced writes, in their order."""
    way = rng.choice(["mixed", "mixed", "none", "first", "last"])
    if way == "mixed":          # the disk took them in any order
        return [rng.choice(["drop", "drop", "keep", "tear", "tear", "blank"]) for _ in range(count)]
    if way == "none":
        return ["drop"] * count
    whole = rng.randint(0, count)
    if way == "first":          # in order, one under way
        return (["keep"] * whole + ["tear"] + ["drop"] * count)[:count]
    return (["drop"] * whole + ["keep"] * count)[:count]


def power_cut(root, grave, journal, rng):
    """Returns counts of what was done."""
    log = list(records(journal))
    synced, dir_synced = {}, {}
    for i, r in enumerate(log):
        if r["kind"] == SYNC:
            synced[r["ino"]] = i
        elif r["kind"] == DIRSYNC:
            dir_synced[r["ino"]] = i
    done = dict(dropped=0, kept=0, torn=0, blank=0, names=0)
    names = [r for i, r in enumerate(log) if r["kind"] in NAMES and dir_synced.get(r["offset"], -1) < i]
    data = [r for i, r in enumerate(log) if r["kind"] in (WRITE, SIZE) and synced.get(r["ino"], -1) < i]
    paths = {}
    for top in (root, grave):
        for folder, _, files in os.walk(top):
            for n in files:
                p = os.path.join(folder, n)
                paths[os.stat(p).st_ino] = p
    for r in reversed(data):
        p = paths.get(r["ino"])
        if p:
            undo_data(p, r)
    for r, fate in zip(data, fates(rng, len(data))):
        p = paths.get(r["ino"])
        if p:
            redo_data(p, r, fate, rng, done)
    keep = rng.choice([0, rng.randint(0, len(names))])
    for r in reversed(names[keep:]):
        undo_name(r)
        done["names"] += 1
    return done


def undo_data(path, r):
    fd = os.open(path, os.O_RDWR)
    if r["old"]:
        os.pwrite(fd, r["old"], r["offset"])
    os.ftruncate(fd, r["old_size"])
    os.close(fd)


def redo_data(path, r, fate, rng, done):
    if r["kind"] == SIZE:
        if fate == "keep":
            os.truncate(path, r["offset"])
        return
    if fate == "drop":
        done["dropped"] += 1
        return
    fd = os.open(path, os.O_RDWR)
    end = r["offset"] + len(r["new"])
    if fate == "keep":
        os.pwrite(fd, r["new"], r["offset"])
        done["kept"] += 1
    elif fate == "blank":
        if os.fstat(fd).st_size < end:
            os.ftruncate(fd, end)
        done["blank"] += 1
    else:
        at = 0
        while at < len(r["new"]):
            n = 512 - (r["offset"] + at) % 512
            if rng.random() < 0.5:
                os.pwrite(fd, r["new"][at:at + n], r["offset"] + at)
            at += n
        done["torn"] += 1
    os.close(fd)


def undo_name(r):
    if r["kind"] == MKDIR:
        if os.path.isdir(r["path"]) and os.stat(r["path"]).st_ino == r["ino"]:
            shutil.rmtree(r["path"])
    elif r["kind"] == RMDIR:
        os.makedirs(r["path"], exist_ok=True)
    elif r["kind"] == CREATE:
        if os.path.exists(r["path"]) and os.stat(r["path"]).st_ino == r["ino"]:
            os.unlink(r["path"])
    elif r["kind"] == RENAME:
        if os.path.exists(r["path2"]) and os.stat(r["path2"]).st_ino == r["ino"]:
            os.rename(r["path2"], r["path"])
            if r["grave"] and os.path.exists(r["grave"]):
                os.link(r["grave"], r["path2"])
    elif r["kind"] == UNLINK and r["grave"] and not os.path.exists(r["path"]):
        os.link(r["grave"], r["path"])
