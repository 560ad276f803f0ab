"""Facts about the machine that a figure means nothing without."""
import os
import re
import statistics
import subprocess
import time


def first_match(path, pattern):
    try:
        with open(path, encoding="utf-8") as f:
            m = re.search(pattern, f.read(), re.M)
    except OSError:
        return "?"
    return m[1].strip() if m else "?"


def load():
    with open("/proc/loadavg", encoding="utf-8") as f:
        return f.read().strip()


def file_system(path):
    p = subprocess.run(["df", "--output=fstype,source", path], capture_output=True, text=True)
    return " ".join(p.stdout.split("\n")[1].split()) if p.returncode == 0 else "?"


def fdatasync(folder, count=200):
    """Of 4 KiB writes over a file that has been filled with zeros before."""
    path = os.path.join(folder, "fdatasync")
    block = bytes(4096)
    fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    times = []
    try:
        for i in range(count):
            os.pwrite(fd, block, i * 4096)
        os.fsync(fd)
        for i in range(count):
            begin = time.perf_counter()
            os.pwrite(fd, block, i * 4096)
            os.fdatasync(fd)
            times.append((time.perf_counter() - begin) * 1e6)
    finally:
        os.close(fd)
        os.unlink(path)
    times.sort()
    return "p50 %.0f us, p99 %.0f us" % (statistics.median(times), times[int(count * 0.99)])


def commit(root):
    p = subprocess.run(["git", "-C", root, "describe", "--always", "--dirty"], capture_output=True, text=True)
    return p.stdout.strip() or "?"


def facts(folder, root):
    yield "metadb at commit %s" % commit(root)
    yield "%d cores, %s, %s KiB memory" % (os.cpu_count(), first_match("/proc/cpuinfo", r"^model name\s*:\s*(.*)$"),
                                           first_match("/proc/meminfo", r"^MemTotal:\s*(\d+)"))
    yield "Linux %s, data on %s, fdatasync %s" % (os.uname().release, file_system(folder), fdatasync(folder))
    if file_system(folder).split()[0] in ("tmpfs", "ramfs"):
        yield "WARNING: the data is in memory: a sync costs nothing here"
    yield "load %s" % load()
