"""Start and stop a metadb server of the test's own: loopback, a free port, ended by its process id."""
import ctypes
import os
import select
import signal
import socket
import subprocess
import time


def free_port():
    s = socket.socket()
    s.bind(("127.0.0.1", 0))
    port = s.getsockname()[1]
    s.close()
    return port


def clean_env(**more):
    """The environment without METADB_...: the server takes those for settings of its own."""
    full = {k: v for k, v in os.environ.items() if not k.startswith("METADB_")}
    full.update(more)
    return full


PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None)


def end_with_test():
    """In the server's process: the kernel kills it when the test is gone, however that ended.  Servers are started
    by the test's main thread, whose end is the test's."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Server:
    """One process.  READY is what the server itself says on standard output."""

    def __init__(self, binary, data, *settings, env=None, log=None, wrap=(), port=None):
        self.port = port or free_port()
        self.log = open(log or os.devnull, "ab")
        argv = [*wrap, binary, "start", "--data", data, "--listen", "127.0.0.1:%d" % self.port, *settings]
        full = clean_env(**(env or {}))
        self.process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self.log, env=full,
                                        start_new_session=True, preexec_fn=end_with_test)
        self.output = b""

    def wait_ready(self, seconds=120):
        """True once it serves; False when it ended first."""
        end = time.monotonic() + seconds
        fd = self.process.stdout.fileno()
        while b"ready" not in self.output:
            left = end - time.monotonic()
            if left <= 0:
                raise RuntimeError("server not ready after %d s" % seconds)
            if select.select([fd], [], [], min(left, 1.0))[0]:
                piece = os.read(fd, 4096)
                if not piece:
                    self.process.wait(30)
                    return False
                self.output += piece
        return True

    @property
    def pid(self):
        return self.process.pid

    def alive(self):
        return self.process.poll() is None

    def kill(self):
        if self.alive():
            self.process.send_signal(signal.SIGKILL)
        return self.wait()

    def stop(self, seconds=60):
        if self.alive():
            self.process.send_signal(signal.SIGTERM)
        return self.wait(seconds)

    def wait(self, seconds=60):
        code = self.process.wait(seconds)
        self.process.stdout.close()
        self.log.close()
        return code
