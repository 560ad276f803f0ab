"""The servers of a benchmark: started on free loopback ports, never as root, stopped by process id."""
import ctypes
import glob
import os
import pwd
import shutil
import signal
import socket
import subprocess
import time

POSTGRESQL_CONF = """
listen_addresses = '127.0.0.1'
max_connections = 1100
shared_buffers = 1GB
effective_cache_size = 8GB
maintenance_work_mem = 256MB
fsync = on
synchronous_commit = on
full_page_writes = on
wal_sync_method = fdatasync
wal_compression = lz4
wal_buffers = 64MB
min_wal_size = 1GB
max_wal_size = 8GB
checkpoint_timeout = 15min
random_page_cost = 1.1
jit = off
"""


def free_port():
    s = socket.socket()
    s.bind(("127.0.0.1", 0))
    port = s.getsockname()[1]
    s.close()
    return port


def other_user():
    """Arguments of Popen for a user without rights; empty where we are none with rights."""
    if os.geteuid() != 0:
        return {}
    for name in ("postgres", "nobody"):
        try:
            p = pwd.getpwnam(name)
            return {"user": p.pw_uid, "group": p.pw_gid, "extra_groups": []}
        except KeyError:
            continue
    return {}


def environment():
    """Ours without METADB_...: the server takes those for settings, and the tests' are none."""
    return {k: v for k, v in os.environ.items() if not k.startswith("METADB_")}


def make_folder(path):
    os.mkdir(path, 0o700)
    user = other_user()
    if user:
        os.chown(path, user["user"], user["group"])
    return path


def remove(path):
    shutil.rmtree(path, ignore_errors=True)


class Process:
    """A server process that ends when this program does."""

    stop_signal = signal.SIGTERM

    def spawn(self, argv, log):
        libc = ctypes.CDLL(None)
        stop = self.stop_signal
        with open(log, "ab") as f:
            self.process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=f, stderr=f, cwd="/", start_new_session=True, env=environment(),
                                            preexec_fn=lambda: libc.prctl(1, stop, 0, 0, 0), **other_user())
        self.log = log

    @property
    def pid(self):
        return self.process.pid

    def wait_for(self, ready, seconds=30):
        end = time.monotonic() + seconds
        while not ready():
            if self.process.poll() is not None or time.monotonic() > end:
                with open(self.log, encoding="utf-8", errors="replace") as f:
                    raise RuntimeError("%s did not start: %s" % (type(self).__name__, f.read()[-2000:]))
            time.sleep(0.05)

    def answers(self):
        try:
            socket.create_connection(("127.0.0.1", self.port), 1).close()
            return True
        except OSError:
            return False

    def loaded(self):
        """After data for reads has been loaded."""

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(self.stop_signal)
            try:
                self.process.wait(60)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


def metadb_binary(build):
    for folder in ("", "src"):
        path = os.path.join(build, folder, "metadb")
        if os.path.isfile(path):
            return path
    raise RuntimeError("no metadb in %s: make build" % build)


class Metadb(Process):
    def __init__(self, args, own_settings):
        binary = metadb_binary(args.build)
        work = os.path.join(args.work, "metadb" + own_settings)
        os.mkdir(work, 0o711)
        self.binary = os.path.join(work, "metadb")
        shutil.copy(binary, self.binary)
        self.port = free_port()
        folder = make_folder(os.path.join(work, "data"))
        config = os.path.join(work, "metadb.conf")
        with open(config, "w", encoding="utf-8") as f:
            f.write("max_connections = 12000\n")
            f.writelines("%s = %s\n" % tuple(s.split("=", 1)) for s in args.metadb_setting)
            f.writelines("%s = %s\n" % tuple(s.split("=", 1)) for s in own_settings.split(",") if s)
        self.spawn([self.binary, "start", "--data", folder, "--listen", "127.0.0.1:%d" % self.port, "--config", config],
                   os.path.join(work, "log"))
        self.wait_for(lambda: self.psql("SELECT 1") == "1")

    def psql(self, sql):
        p = subprocess.run(["psql", "-XAtq", "-h", "127.0.0.1", "-p", str(self.port), "-U", "metadb", "metadb", "-c", sql],
                           capture_output=True, text=True)
        return p.stdout.strip()

    def version(self):
        p = subprocess.run([self.binary, "--version"], capture_output=True, text=True)
        return p.stdout.strip()

    def load_arguments(self):
        return ["--peer", "metadb", "--port", str(self.port)]


def postgresql_tool(name):
    found = sorted(glob.glob("/usr/lib/postgresql/15/bin/" + name))
    return found[-1] if found else shutil.which(name)


class Postgresql(Process):
    stop_signal = signal.SIGINT  # fast shutdown

    def __init__(self, args):
        self.port = free_port()
        folder = make_folder(os.path.join(args.work, "pg"))
        data = os.path.join(folder, "data")
        subprocess.run([postgresql_tool("initdb"), "-D", data, "-U", "bench", "--locale=C", "-E", "UTF8", "-A", "trust"], check=True,
                       stdout=subprocess.DEVNULL, cwd="/", **other_user())
        with open(os.path.join(data, "postgresql.conf"), "a", encoding="utf-8") as f:
            f.write(POSTGRESQL_CONF + "port = %d\nunix_socket_directories = '%s'\n" % (self.port, folder))
        self.spawn([postgresql_tool("postgres"), "-D", data], os.path.join(args.work, "pg.log"))
        self.wait_for(lambda: self.psql("-c", "SELECT 1") == "1")
        self.psql("-v", "ON_ERROR_STOP=1", "-f", os.path.join(args.root, "bench", "pg.sql"))

    def psql(self, *arguments):
        p = subprocess.run([postgresql_tool("psql"), "-XAtq", "-h", "127.0.0.1", "-p", str(self.port), "-U", "bench", "postgres", *arguments],
                           capture_output=True, text=True)
        return p.stdout.strip()

    def version(self):
        return self.psql("-c", "SELECT version()")

    def load_arguments(self):
        return ["--peer", "pg", "--port", str(self.port), "--database", "postgres", "--user", "bench"]


def redis_server(args):
    """The path of redis-server. Debian's package of that name is a link to a program that decides by its
    own name what it is, plus a service that nobody asked for; the program itself is in redis-tools."""
    found = shutil.which("redis-server")
    if found or not os.path.exists("/usr/bin/redis-check-rdb"):
        return found
    link = os.path.join(args.work, "redis-server")
    os.symlink("/usr/bin/redis-check-rdb", link)
    return link


class Redis(Process):
    def __init__(self, args, binary):
        self.binary = binary
        self.port = free_port()
        folder = make_folder(os.path.join(args.work, "redis"))
        self.spawn([binary, "--bind", "127.0.0.1", "--port", str(self.port), "--dir", folder, "--appendonly", "yes", "--appendfsync",
                    "always", "--save", "", "--maxclients", "2000", "--auto-aof-rewrite-percentage", "0"], os.path.join(args.work, "redis.log"))
        self.wait_for(self.answers)

    def version(self):
        p = subprocess.run([self.binary, "--version"], capture_output=True, text=True)
        return p.stdout.strip() + ", appendfsync always"

    def load_arguments(self):
        return ["--peer", "redis", "--port", str(self.port)]


def etcd_server(args):
    """Installed, or unpacked by `tools/deps bench`."""
    unpacked = os.path.join(args.root, "build", "bench-deps", "usr", "bin", "etcd")
    return shutil.which("etcd") or (unpacked if os.path.exists(unpacked) else None)


class Etcd(Process):
    def __init__(self, args, binary):
        self.binary = os.path.join(args.work, "etcd-server")
        shutil.copy(binary, self.binary)
        self.port, peer = free_port(), free_port()
        folder = make_folder(os.path.join(args.work, "etcd"))
        client, other = "http://127.0.0.1:%d" % self.port, "http://127.0.0.1:%d" % peer
        self.argv = [self.binary, "--name", "one", "--data-dir", folder, "--listen-client-urls", client, "--advertise-client-urls", client,
                    "--listen-peer-urls", other, "--initial-advertise-peer-urls", other, "--initial-cluster", "one=" + other,
                    "--quota-backend-bytes", "8589934592", "--log-level", "error", "--logger", "zap"]
        self.log = os.path.join(args.work, "etcd.log")
        self.start()

    def start(self):
        self.spawn(self.argv, self.log)
        self.wait_for(self.answers)
        time.sleep(0.5)  # a leader

    def loaded(self):
        """etcd 3.4 copies its write buffer, which a bulk load has made large for ever, on each read."""
        self.stop()
        self.start()

    def version(self):
        p = subprocess.run([self.binary, "--version"], capture_output=True, text=True)
        return " ".join(p.stdout.split("\n")[:1]) + ", without num_children"

    def load_arguments(self):
        return ["--peer", "etcd", "--port", str(self.port)]


def start(kind, args):
    """A running server, or None where it is not installed."""
    if kind.split(":")[0] == "metadb":
        return Metadb(args, kind.partition(":")[2])
    if kind == "pg":
        return Postgresql(args) if postgresql_tool("initdb") else None
    if kind == "redis":
        binary = redis_server(args)
        return Redis(args, binary) if binary else None
    if kind == "etcd":
        binary = etcd_server(args)
        return Etcd(args, binary) if binary else None
    return None
