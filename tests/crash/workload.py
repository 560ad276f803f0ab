"""A worker that knows exactly what the database must hold after any crash.

Each worker owns its keys: two directories, names with its prefix in a directory shared by all, its
uid, its file ids, its kv keys.  Before a statement goes out its effect is noted as pending; the
answer makes it certain or void.  When the connection is lost the pending effect may be there as a
whole or not at all, and that is what verify() accepts.
"""
import random

from pgclient import Client, Lost, PgError

HOT = 900
# How often each kind of statement comes; at FULL rows a worker mostly removes.
KINDS = dict(create=(30, 5), many=(5, 1), block=(8, 8), undo=(3, 3), mkdir=(6, 1), rmdir=(4, 10), remove=(12, 40),
             remove_range=(1, 2), remove_tree=(0, 0), rename=(12, 12), replace=(4, 6), exchange=(4, 4), add=(12, 12),
             upsert=(12, 12), kv_delete=(4, 4), put=(6, 2), delete=(3, 6))
FULL = 120
UNKNOWN = {"40003", "57P01", "57P03", "53100", "53200"}


class Worker:
    def __init__(self, number, seed):
        self.n = number
        self.rng = random.Random(seed * 1000 + number)
        self.dirs = [1000 + number * 10, 1001 + number * 10]
        self.uid = 5000 + number
        # ("meta", pid, name) -> (type, id, size, fid); ("kv", key) -> value; ("object", key) -> size
        self.model = {}
        self.pending = None   # the same, None = absent
        self.serial = 0
        self.acked = 0
        self.maybe = 0
        self.problem = None
        self.void = {"40001"} # first committer wins
        self.trees = False    # removes whole trees, which are reclaimed later
        self.refused = 0      # other errors of self.void
        self.gone = set()     # fids that entries had and lost since the last recount

    # -- setup -------------------------------------------------------------------------------
    def prepare(self, c):
        for d in self.dirs:
            c.query("INSERT INTO meta (pid, name, id, type, uid) VALUES (0, 'w%d', %d, 'd', %d) ON CONFLICT DO NOTHING"
                    % (d, d, self.uid))

    # -- one statement -----------------------------------------------------------------------
    def name(self):
        self.serial += 1
        return "w%d_%06d" % (self.n, self.serial)

    def all_dirs(self):
        """Every directory that this worker made and that is there."""
        return self.dirs + [v[1] for k, v in self.model.items() if k[0] == "meta" and v[0] == "d"]

    def entries(self, kinds):
        return [k for k, v in self.model.items() if k[0] == "meta" and v[0] in kinds]

    def step(self, c):
        r = self.rng
        what = r.choices(list(KINDS), [w[len(self.model) >= FULL] for w in KINDS.values()])[0]
        if self.trees and r.random() < 0.02:
            what = "remove_tree"
        change, sql = getattr(self, "do_" + what)()
        if not sql:
            return
        self.pending = change
        try:
            for s in sql:
                c.query(s)
        except PgError as e:
            if e.state in self.void:    # nothing was done
                self.refused += e.state != "40001"
                self.pending = None
                if c.status != "I":
                    c.query("ROLLBACK")
                return
            if e.state in UNKNOWN:
                raise Lost(str(e))
            raise
        self.gone |= {self.model[k][3] for k in change if k[0] == "meta" and k in self.model}
        self.gone.discard(None)
        self.model.update(change)
        for k in [k for k, v in change.items() if v is None]:
            self.model.pop(k, None)
        self.pending = None
        self.acked += 1

    def new_file(self, pid):
        name = self.name()
        ident = self.n * 10**9 + self.serial
        size = self.rng.randrange(100)
        fid = ident if self.rng.random() < 0.5 else None
        row = "(%d, '%s', %d, 'f', %d, %d, %s)" % (pid, name, ident, self.uid, size, fid if fid is not None else "NULL")
        return ("meta", pid, name), ("f", ident, size, fid), row

    def insert(self, rows):
        return "INSERT INTO meta (pid, name, id, type, uid, size, fid) VALUES " + ", ".join(rows)

    def parent(self):
        return self.rng.choice([HOT, *self.all_dirs()])

    def do_create(self):
        k, v, row = self.new_file(self.parent())
        return {k: v}, [self.insert([row])]

    def do_many(self):
        change, rows = {}, []
        for _ in range(5):
            k, v, row = self.new_file(self.parent())
            change[k] = v
            rows.append(row)
        return change, [self.insert(rows)]

    def do_block(self):
        change, sql = {}, ["BEGIN"]
        for d in self.dirs:
            k, v, row = self.new_file(d)
            change[k] = v
            sql.append(self.insert([row]))
        victims = self.entries("f")
        if victims:
            k = self.rng.choice(victims)
            change[k] = None
            sql.append("DELETE FROM meta WHERE pid = %d AND name = '%s'" % (k[1], k[2]))
        return change, sql + ["COMMIT"]

    def do_undo(self):
        k, v, row = self.new_file(HOT)
        return {}, ["BEGIN", self.insert([row]), "ROLLBACK"]

    def do_mkdir(self):
        pid, name = self.parent(), self.name()
        ident = 10**12 + self.n * 10**9 + self.serial
        return ({("meta", pid, name): ("d", ident, None, None)},
                ["INSERT INTO meta (pid, name, id, type, uid) VALUES (%d, '%s', %d, 'd', %d)" % (pid, name, ident, self.uid)])

    def do_rmdir(self):
        parents = {k[1] for k in self.model if k[0] == "meta"}
        victims = [k for k in self.entries("d") if self.model[k][1] not in parents]
        if not victims:
            return {}, []
        k = self.rng.choice(victims)
        return {k: None}, ["DELETE FROM meta WHERE pid = %d AND name = '%s' AND type = 'd'" % (k[1], k[2])]

    def below(self, pid):
        """Keys of everything below directory PID."""
        out = [k for k in self.model if k[0] == "meta" and k[1] == pid]
        for k in list(out):
            if self.model[k][0] == "d":
                out += self.below(self.model[k][1])
        return out

    def do_remove_tree(self):
        victims = self.entries("d")
        if not victims:
            return {}, []
        k = self.rng.choice(victims)
        change = dict.fromkeys([k, *self.below(self.model[k][1])])
        return change, ["SELECT remove_tree(%d, '%s')" % (k[1], k[2])]

    def do_remove_range(self):
        """A directory in the range would be an error; the name of one ends the range."""
        pid = self.rng.choice(self.all_dirs())
        names = sorted(k[2] for k in self.model if k[0] == "meta" and k[1] == pid)
        kinds = {k[2]: v[0] for k, v in self.model.items() if k[0] == "meta" and k[1] == pid}
        take = []
        for n in names[self.rng.randrange(len(names)):] if names else []:
            if kinds[n] == "d" or len(take) == 10:
                break
            take.append(n)
        if not take:
            return {}, []
        return ({("meta", pid, n): None for n in take},
                ["DELETE FROM meta WHERE pid = %d AND name >= '%s' AND name < '%s\x01'" % (pid, take[0], take[-1])])

    def do_remove(self):
        victims = self.entries("f")
        if not victims:
            return {}, []
        k = self.rng.choice(victims)
        return {k: None}, ["DELETE FROM meta WHERE pid = %d AND name = '%s'" % (k[1], k[2])]

    def do_rename(self):
        victims = self.entries("fd")
        if not victims:
            return {}, []
        k = self.rng.choice(victims)
        # A directory goes to the top only, where it cannot get below itself.
        to = ("meta", self.parent() if self.model[k][0] == "f" else self.rng.choice([HOT, *self.dirs]), self.name())
        return ({k: None, to: self.model[k]},
                ["UPDATE meta SET pid = %d, name = '%s' WHERE pid = %d AND name = '%s'" % (to[1], to[2], k[1], k[2])])

    def two_files(self):
        victims = self.entries("f")
        return self.rng.sample(victims, 2) if len(victims) > 1 else (None, None)

    def do_replace(self):
        a, b = self.two_files()
        if not a:
            return {}, []
        return ({a: None, b: self.model[a]},
                ["SELECT move(%d, '%s', %d, '%s', 'replace')" % (a[1], a[2], b[1], b[2])])

    def do_exchange(self):
        a, b = self.two_files()
        if not a:
            return {}, []
        return ({a: self.model[b], b: self.model[a]},
                ["SELECT move(%d, '%s', %d, '%s', 'exchange')" % (a[1], a[2], b[1], b[2])])

    def do_put(self):
        key = "k%d" % self.rng.randrange(30)
        self.serial += 1
        return ({("object", key): self.serial},
                ["INSERT INTO object (bucket, key, size) VALUES ('w%d', '%s', %d) "
                 "ON CONFLICT (bucket, key) DO UPDATE SET size = excluded.size" % (self.n, key, self.serial)])

    def do_delete(self):
        keys = [k for k in self.model if k[0] == "object"]
        if not keys:
            return {}, []
        k = self.rng.choice(keys)
        return {k: None}, ["DELETE FROM object WHERE bucket = 'w%d' AND key = '%s'" % (self.n, k[1])]

    def do_add(self):
        victims = self.entries("f")
        if not victims:
            return {}, []
        k = self.rng.choice(victims)
        t, ident, size, fid = self.model[k]
        return ({k: (t, ident, size + 7, fid)},
                ["UPDATE meta SET size = size + 7 WHERE pid = %d AND name = '%s'" % (k[1], k[2])])

    def do_upsert(self):
        key = "w%d/%d" % (self.n, self.rng.randrange(40))
        self.serial += 1
        value = "v%d" % self.serial
        return ({("kv", key): value},
                ["INSERT INTO kv (key, value) VALUES ('%s', '%s') ON CONFLICT (key) DO UPDATE SET value = excluded.value" % (key, value)])

    def do_kv_delete(self):
        keys = [k for k in self.model if k[0] == "kv"]
        if not keys:
            return {}, []
        k = self.rng.choice(keys)
        return {k: None}, ["DELETE FROM kv WHERE key = '%s'" % k[1]]

    def run(self, port, stop):
        """Until STOP is set or the server goes away."""
        try:
            c = Client(port)
            while not stop.is_set():
                self.step(c)
            c.close()
        except Lost:
            if self.pending is not None:
                self.maybe += 1
        except PgError as e:
            # A server that is stopping refuses a new session; nothing was sent then.
            if e.state not in UNKNOWN:
                self.problem = "worker %d: unexpected error %s" % (self.n, e)

    # -- after the restart ---------------------------------------------------------------------
    def observe(self, c):
        seen = {}
        number = lambda s: None if s is None else int(s)
        own = "name >= 'w%d_' AND name < 'w%d`'" % (self.n, self.n)
        level = [(HOT, own)] + [(d, "name <> '_attr_'") for d in self.dirs]
        while level:
            found = []
            for some in [level[i:i + 100] for i in range(0, len(level), 100)]:
                found += c.rows("; ".join("SELECT pid, name, type, id, size, fid FROM meta WHERE pid = %d AND %s"
                                          % one for one in some))
            level = []
            for pid, name, t, ident, size, fid in found:
                seen[("meta", int(pid), name)] = (t, int(ident), number(size), number(fid))
                if t == "d":
                    level.append((int(ident), "name <> '_attr_'"))
        for key, value in c.rows("SELECT key, value FROM kv WHERE key LIKE 'w%d/%%' ORDER BY key" % self.n):
            seen[("kv", key)] = bytes.fromhex(value[2:]).decode()
        for key, size in c.rows("SELECT key, size FROM object WHERE bucket = 'w%d' ORDER BY key" % self.n):
            seen[("object", key)] = int(size)
        return seen

    def verify(self, c):
        """Returns a list of what is wrong, and takes over what is there."""
        seen = self.observe(c)
        wrong = self.differences(self.model, seen)
        if wrong and self.pending is not None:
            other = dict(self.model)
            for k, v in self.pending.items():
                if v is None:
                    other.pop(k, None)
                else:
                    other[k] = v
            if not self.differences(other, seen):
                wrong = []
        self.gone |= {v[3] for k, v in self.model.items() if k[0] == "meta" and v[3] is not None}
        self.model, self.pending = seen, None
        return ["worker %d: %s" % (self.n, w) for w in wrong]

    @staticmethod
    def differences(want, seen):
        out = []
        for k in sorted(set(want) | set(seen), key=str):
            if want.get(k) != seen.get(k):
                out.append("%s: expected %s, found %s" % (k, want.get(k), seen.get(k)))
        return out[:10]

    def recount(self, c):
        """Quota and index against this worker's own count: what differs at present."""
        files = [v for k, v in self.model.items() if k[0] == "meta" and v[0] == "f"]
        dirs = [v for k, v in self.model.items() if k[0] == "meta" and v[0] == "d"]
        want = {"#FILE": len(files), "#SIZE": sum(v[2] for v in files), "#DIR": len(dirs) + len(self.dirs)}
        got = {n: int(v) for n, v in c.rows("SELECT name, value FROM quota WHERE uid = %d" % self.uid)}
        out = []
        for k, v in want.items():
            if got.get(k, 0) != v:
                out.append("worker %d: quota %s is %s, a recount gives %s" % (self.n, k, got.get(k), v))
        fids = {v[3]: (str(k[1]), k[2]) for k, v in self.model.items() if k[0] == "meta" and v[3] is not None}
        gone = self.gone - set(fids)
        asked = sorted(set(fids) | gone)
        found = {}
        for some in [asked[i:i + 100] for i in range(0, len(asked), 100)]:
            sql = "; ".join("SELECT fid, pid, name FROM secondary_index WHERE fid = %d" % f for f in some)
            for fid, pid, name in c.rows(sql):
                found.setdefault(int(fid), []).append((pid, name))
        for fid in asked:
            want = [fids[fid]] if fid in fids else []
            if found.get(fid, []) != want:
                out.append("worker %d: index of fid %d is %s, expected %s" % (self.n, fid, found.get(fid), want))
        if not out:
            self.gone = set()
        return out[:10]
