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
WEIGHTS = dict(create=30, mkdir=6, rmdir=4, remove=12, rename=12, add=12, upsert=12, many=5, block=8, kv_delete=4, undo=3)
FULL_WEIGHTS = [5, 1, 10, 40, 12, 12, 12, 1, 8, 4, 3]
FULL = 120
UNKNOWN = {"40003", "57P01", "57P03", "53100", "53200"}


class Worker:
    def __init__(self, number, seed):
        self.n = number
        self.rng = random.Random(seed * 1000 + number)
        self.dirs = [1000 + number * 10, 1001 + number * 10]
        self.uid = 5000 + number
        self.model = {}       # ("meta", pid, name) -> (type, id, size, fid); ("kv", key) -> value
        self.pending = None   # the same, None = absent
        self.serial = 0
        self.acked = 0
        self.maybe = 0
        self.problem = None
        self.void = {"40001"} # first committer wins
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
        what = r.choices(list(WEIGHTS), WEIGHTS.values() if len(self.model) < FULL else FULL_WEIGHTS)[0]
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
        self.gone |= {self.model[k][3] for k, v in change.items() if v is None and k[0] == "meta" and k in self.model}
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

    def do_create(self):
        k, v, row = self.new_file(self.rng.choice([HOT, *self.dirs]))
        return {k: v}, [self.insert([row])]

    def do_many(self):
        change, rows = {}, []
        for _ in range(5):
            k, v, row = self.new_file(self.rng.choice([HOT, *self.dirs]))
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
        pid, name = self.rng.choice([HOT, *self.dirs]), self.name()
        ident = 10**12 + self.n * 10**9 + self.serial
        return ({("meta", pid, name): ("d", ident, None, None)},
                ["INSERT INTO meta (pid, name, id, type, uid) VALUES (%d, '%s', %d, 'd', %d)" % (pid, name, ident, self.uid)])

    def do_rmdir(self):
        victims = self.entries("d")
        if not victims:
            return {}, []
        k = self.rng.choice(victims)
        return {k: None}, ["DELETE FROM meta WHERE pid = %d AND name = '%s' AND type = 'd'" % (k[1], k[2])]

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
        to = ("meta", self.rng.choice([HOT, *self.dirs]), self.name())
        return ({k: None, to: self.model[k]},
                ["UPDATE meta SET pid = %d, name = '%s' WHERE pid = %d AND name = '%s'" % (to[1], to[2], k[1], k[2])])

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
            self.problem = "worker %d: unexpected error %s" % (self.n, e)

    # -- after the restart ---------------------------------------------------------------------
    def observe(self, c):
        seen = {}
        number = lambda s: None if s is None else int(s)
        for pid in [HOT, *self.dirs]:
            where = "pid = %d AND name <> '_attr_'" % pid
            if pid == HOT:
                where = "pid = %d AND name >= 'w%d_' AND name < 'w%d`'" % (pid, self.n, self.n)
            for name, t, ident, size, fid in c.rows("SELECT name, type, id, size, fid FROM meta WHERE %s ORDER BY name" % where):
                seen[("meta", pid, name)] = (t, int(ident), number(size), number(fid))
        for key, value in c.rows("SELECT key, value FROM kv WHERE key LIKE 'w%d/%%' ORDER BY key" % self.n):
            seen[("kv", key)] = bytes.fromhex(value[2:]).decode()
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
        """Quota and index against this worker's own count.  Only when nothing is on its way."""
        files = [v for k, v in self.model.items() if k[0] == "meta" and v[0] == "f"]
        dirs = [v for k, v in self.model.items() if k[0] == "meta" and v[0] == "d"]
        want = {"#FILE": len(files), "#SIZE": sum(v[2] for v in files), "#DIR": len(dirs) + len(self.dirs)}
        got = {n: int(v) for n, v in c.rows("SELECT name, value FROM quota WHERE uid = %d" % self.uid)}
        out = []
        for k, v in want.items():
            if got.get(k, 0) != v:
                out.append("worker %d: quota %s is %s, a recount gives %s" % (self.n, k, got.get(k), v))
        fids = {v[3]: (str(k[1]), k[2]) for k, v in self.model.items() if k[0] == "meta" and v[3] is not None}
        gone, self.gone = self.gone - set(fids), set()
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
        return out[:10]
