"""A small client of PostgreSQL's protocol for tests: standard library, simple queries, no magic.

A query returns (rows, tags); rows are lists of str or None.  A server error raises PgError, a lost
connection raises Lost: after Lost nobody knows whether the statement was carried out.
"""
import socket
import struct


class PgError(Exception):
    def __init__(self, fields):
        self.fields = fields
        self.state = fields.get("C", "?????")
        super().__init__("%s %s" % (self.state, fields.get("M", "")))


class Lost(Exception):
    pass


class Client:
    def __init__(self, port, host="127.0.0.1", user="metadb", database="metadb", timeout=30.0, **settings):
        self.buffer = b""
        self.status = "?"
        try:
            self.sock = socket.create_connection((host, port), timeout)
        except OSError as e:
            raise Lost(str(e))
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        pairs = dict(user=user, database=database, **settings)
        body = struct.pack("!I", 196608)
        for k, v in pairs.items():
            body += k.encode() + b"\0" + str(v).encode() + b"\0"
        body += b"\0"
        self._send(struct.pack("!I", len(body) + 4) + body)
        self._until_ready()

    def _send(self, data):
        try:
            self.sock.sendall(data)
        except OSError as e:
            raise Lost(str(e))

    def _need(self, n):
        while len(self.buffer) < n:
            try:
                more = self.sock.recv(1 << 16)
            except OSError as e:
                raise Lost(str(e))
            if not more:
                raise Lost("closed by the server")
            self.buffer += more

    def _message(self):
        self._need(5)
        kind, size = chr(self.buffer[0]), struct.unpack("!I", self.buffer[1:5])[0]
        self._need(1 + size)
        body, self.buffer = self.buffer[5:1 + size], self.buffer[1 + size:]
        return kind, body

    def _until_ready(self):
        rows, tags, error = [], [], None
        while True:
            kind, body = self._message()
            if kind == "D":
                rows.append(self._row(body))
            elif kind == "C":
                tags.append(body[:-1].decode())
            elif kind == "E":
                error = PgError({chr(f[0]): f[1:].decode("utf-8", "replace") for f in body.split(b"\0") if f})
                if error.fields.get("V") == "FATAL":
                    raise error
            elif kind == "Z":
                self.status = chr(body[0])
                if error:
                    raise error
                return rows, tags

    @staticmethod
    def _row(body):
        count, at, out = struct.unpack("!H", body[:2])[0], 2, []
        for _ in range(count):
            size = struct.unpack("!i", body[at:at + 4])[0]
            at += 4
            if size < 0:
                out.append(None)
            else:
                out.append(body[at:at + size].decode("utf-8", "replace"))
                at += size
        return out

    def query(self, sql):
        body = sql.encode() + b"\0"
        self._send(b"Q" + struct.pack("!I", len(body) + 4) + body)
        return self._until_ready()

    def rows(self, sql):
        return self.query(sql)[0]

    def value(self, sql):
        r = self.rows(sql)
        return r[0][0] if r else None

    def close(self):
        try:
            self.sock.sendall(b"X\0\0\0\4")
        except OSError:
            pass
        self.sock.close()
