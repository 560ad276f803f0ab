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
WRITE, SIZE, SYNC, DIRSYNC, CREATE, RENAME, UNLINK, MKDIR, RMDIR, LOST, FAILED, DONE = range(1, 13)
NAMES = (CREATE, RENAME, UNLINK, MKDIR, RMDIR)


def whole_records(data):
    """(at, end) of each record; what the kill cut comes before the change itself, so it does not count."""
    at = 0
    while at + HEAD.size <= len(data):
        fields = HEAD.unpack_from(data, at)
        if fields[0] != MAGIC:
            raise RuntimeError("journal of the disk is damaged at %d" % at)
        end = at + HEAD.size + sum(fields[5:10])
        if end > len(data):
            return
        yield at, end
        at = end


def drop_cut_record(path):
    """A kill leaves part of a large record at the end; the next process would write behind it."""
    with open(path, "rb+") as f:
        end = 0
        for _, end in whole_records(f.read()):
            pass
        f.truncate(end)


def records(path):
    with open(path, "rb") as f:
        data = f.read()
    for at, _ in whole_records(data):
        _, kind, ino, offset, old_size, np, np2, ng, nold, nnew, _ = HEAD.unpack_from(data, at)
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


def durable_marks(log):
    """For each record of data or of a name: is it on the disk for certain?"""
    durable = [False] * len(log)
    flights = {}
    pending = {}                # file or directory -> its records since the last sync
    for i, r in enumerate(log):
        if r["kind"] == WRITE and r["path"]:     # durable by its own completion, not by a sync
            flights[r["path"]] = i
        elif r["kind"] == DONE:
            durable[flights.pop(r["path"])] = True
        elif r["kind"] in (WRITE, SIZE):
            pending.setdefault(r["ino"], []).append(i)
        elif r["kind"] in NAMES:
            pending.setdefault(r["offset"], []).append(i)
        elif r["kind"] in (SYNC, DIRSYNC):
            for k in pending.pop(r["ino"], []):
                durable[k] = True
        elif r["kind"] == LOST:     # the kernel has forgotten that they were dirty
            pending.pop(r["ino"], None)
    return durable


def files_below(*tops):
    paths = {}
    for top in tops:
        for folder, _, files in os.walk(top):
            for n in files:
                p = os.path.join(folder, n)
                paths[os.stat(p).st_ino] = p
    return paths


def power_cut(root, grave, journal, rng):
    """Returns counts of what was done."""
    log = list(records(journal))
    durable = durable_marks(log)
    done = dict(dropped=0, kept=0, torn=0, blank=0, names=0)
    paths = files_below(root, grave)
    # From a file's first write in doubt on all is undone; then what is durable is done again.
    doubtful, data = set(), []
    for i, r in enumerate(log):
        if r["kind"] in (WRITE, SIZE) and r["ino"] in paths:
            if not durable[i]:
                doubtful.add(r["ino"])
            if r["ino"] in doubtful:
                data.append((r, durable[i]))
    for r, _ in reversed(data):
        undo_data(paths[r["ino"]], r)
    chance = iter(fates(rng, sum(not d for _, d in data)))
    for r, d in data:
        redo_data(paths[r["ino"]], r, "sure" if d else next(chance), rng, done)
    loose = [r for i, r in enumerate(log) if r["kind"] in NAMES and not durable[i]]
    for r in reversed(loose[rng.choice([0, rng.randint(0, len(loose))]):]):
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
        if fate in ("sure", "keep"):
            os.truncate(path, r["offset"])
        return
    if fate == "drop":
        done["dropped"] += 1
        return
    fd = os.open(path, os.O_RDWR)
    end = r["offset"] + len(r["new"])
    if fate in ("sure", "keep"):
        os.pwrite(fd, r["new"], r["offset"])
        done["kept"] += fate == "keep"
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
