"""Machines of a test's own: network namespaces that end with the test, however it ends.

enter() starts the program again inside new network, mount and process namespaces.  When its first process is gone the
kernel kills what is left in them and removes their links: there is nothing to clean up and no name to collide with.
Where the kernel does not permit it the program ends with status 77 and says why.

    the test --- 10.78.N.1 -- veth -- 10.78.N.2 --- node N        clients: never disturbed
    relay.py --- link rN --- veth --- 10.77.0.N --- node N        the nodes among themselves
"""
import array
import ctypes
import fcntl
import os
import shutil
import socket
import struct
import subprocess
import sys

LIBC = ctypes.CDLL(None, use_errno=True)
CLONE_NEWNET = 0x40000000
SIOCETHTOOL = 0x8946
ETHTOOL_STXCSUM, ETHTOOL_SSG, ETHTOOL_STSO, ETHTOOL_SGSO, ETHTOOL_SGRO = 0x17, 0x19, 0x1F, 0x24, 0x2C
INSIDE = "CLUSTER_TEST_INSIDE"
SKIPPED = 77


def skip(why):
    print("skipped: %s" % why)
    sys.stdout.flush()
    sys.exit(SKIPPED)


def enter():
    """Returns inside the namespaces only."""
    if os.environ.get(INSIDE):
        return
    for tool in ("unshare", "ip"):
        if not shutil.which(tool) and not os.path.exists("/usr/sbin/" + tool):
            skip("%s is not there (util-linux, iproute2)" % tool)
    wanted = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
    if os.geteuid() != 0:
        wanted[1:1] = ["--user", "--map-root-user"]
    probe = subprocess.run(wanted + ["ip", "link", "add", "name", "probe0", "type", "veth", "peer", "name", "probe1"],
                           capture_output=True, text=True)
    if probe.returncode != 0:
        skip("this kernel gives no network namespace with a veth: %s" % probe.stderr.strip().replace("\n", "; "))
    os.environ[INSIDE] = "1"
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    os.execvp(wanted[0], wanted + [sys.executable] + sys.argv)


def run(*argv):
    done = subprocess.run(argv, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError("%s: %s" % (" ".join(argv), done.stderr.strip()))


def no_offload(link):
    """What a relay sees are packets as on a wire: with sums, and not longer than the link allows."""
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    for command in (ETHTOOL_STXCSUM, ETHTOOL_SGSO, ETHTOOL_STSO, ETHTOOL_SSG, ETHTOOL_SGRO):
        value = array.array("B", struct.pack("II", command, 0))
        try:
            fcntl.ioctl(s, SIOCETHTOOL, struct.pack("16sP", link.encode(), value.buffer_info()[0]))
        except OSError:
            pass  # a switch that this link does not have is off
    s.close()


class Machine:
    """A network namespace.  `inside` is for preexec_fn."""

    def __init__(self, number):
        self.number = number
        self.client_address = "10.78.%d.2" % number
        self.peer_address = "10.77.0.%d" % number
        self.holder = subprocess.Popen(["sleep", "infinity"], preexec_fn=lambda: LIBC.unshare(CLONE_NEWNET))
        self.path = "/proc/%d/ns/net" % self.holder.pid
        self.wait_apart()
        n = number
        self.links("c%d" % n, "clients", "02:78:00:00:00:%02x" % n)
        self.links("r%d" % n, "peers", "02:77:00:00:00:%02x" % n)
        run("ip", "addr", "add", "10.78.%d.1/24" % n, "dev", "c%d" % n)
        self.ip("addr", "add", self.client_address + "/24", "dev", "clients")
        self.ip("addr", "add", self.peer_address + "/24", "dev", "peers")
        self.ip("link", "set", "lo", "up")

    def wait_apart(self):
        """Until the holder has left our namespace: Popen returns when it has called exec."""
        if os.readlink(self.path) == os.readlink("/proc/self/ns/net"):
            raise RuntimeError("unshare(CLONE_NEWNET) did nothing")

    def links(self, here, there, mac):
        run("ip", "link", "add", "name", here, "type", "veth", "peer", "name", "x" + here)
        run("ip", "link", "set", "x" + here, "netns", str(self.holder.pid))
        self.ip("link", "set", "x" + here, "name", there, "address", mac)
        run("ip", "link", "set", here, "up")
        self.ip("link", "set", there, "up")
        no_offload(here)
        subprocess.run(["nsenter", "--net=" + self.path, sys.executable, "-c",
                        "import sys; sys.path.insert(0, %r); import isolate; isolate.no_offload(%r)"
                        % (os.path.dirname(os.path.abspath(__file__)), there)], check=True)

    def ip(self, *argv):
        run("nsenter", "--net=" + self.path, "ip", *argv)

    def end(self):
        """Its links go with it."""
        for link in ("c%d" % self.number, "r%d" % self.number):
            run("ip", "link", "del", link)
        self.holder.kill()
        self.holder.wait()

    def inside(self):
        fd = os.open(self.path, os.O_RDONLY)
        if LIBC.setns(fd, CLONE_NEWNET) != 0:
            os._exit(126)
        os.close(fd)
