"""Streams of the two servers as messages, in a form in which equal means equal to a client.

EXPLAINED is the whole list of differences that are none.
"""
import re
import socket
import struct

# What may differ, and why.
EXPLAINED = [
    ("RowDescription: table and column numbers", "metadb says 0: drivers then do not ask the catalogues for the table's columns"),
    ("BackendKeyData, NotificationResponse: numbers", "process ids and secrets are each server's own"),
    ("ParameterStatus server_version", "each names itself behind the major version"),
    ("DataRow, CopyData, DETAIL: values of seq", "versions are drawn by the server; both sides draw 19 digits that begin with 1"),
    ("ErrorResponse, NoticeResponse: fields F, L, R", "the place in each server's own source"),
    ("ErrorResponse 23502: DETAIL", "metadb refuses the value before there is a row; PostgreSQL shows the row"),
    ("ErrorResponse 23505 in COPY: CONTEXT", "rows are written in batches: the line is not known any more"),
    ("EXECUTE of a statement that executes itself", "PostgreSQL goes down to its stack's limit, metadb has no EXECUTE of EXECUTE"),
    ("Execute of the unnamed portal in a failed block: 55000, 25P02 or 34000", "PostgreSQL keeps what a failed Query ran under that name"),
    ("FunctionCall", "metadb refuses it, as docs/wire.md says; PostgreSQL knows no such function either"),
]

ERROR_FIELDS_IGNORED = "FLR"
VERSION_TEXT = re.compile(rb"(?<!\d)1\d{18}(?!\d)")
VERSIONS = range(10**18, 2 * 10**18)
EXECUTE_ITSELF = {("54001", "stack depth limit exceeded"), ("0A000", "EXECUTE of an EXECUTE statement is not supported")}
NO_PORTAL = {("55000", 'portal "" cannot be run'), ("34000", 'portal "" does not exist')}
NO_UNNAMED = "(no unnamed portal)"
FUNCTION_CALL = re.compile(r"^(function call messages are not supported|function with OID \d+ does not exist)$")


class Message(tuple):
    """(type, fields as text)"""
    __slots__ = ()

    def __str__(self):
        return "%s %s" % self


def cstring(body, at):
    end = body.index(b"\0", at)
    return body[at:end].decode("utf-8", "backslashreplace"), end + 1


def row_description(body):
    count, at, columns = struct.unpack_from("!H", body)[0], 2, []
    for _ in range(count):
        name, at = cstring(body, at)
        _, _, oid, size, modifier, form = struct.unpack_from("!IhIhih", body, at)
        at += 18
        columns.append((name, oid, size, modifier, form))
    assert at == len(body), "RowDescription is not exact"
    return columns


def without_version(value):
    """A value of a row in text or binary form, with a version in it made anonymous."""
    if len(value) == 8 and struct.unpack("!q", value)[0] in VERSIONS:
        return b"(seq)"
    return VERSION_TEXT.sub(b"(seq)", value)


def data_row(body):
    count, at, values = struct.unpack_from("!H", body)[0], 2, []
    for _ in range(count):
        size = struct.unpack_from("!i", body, at)[0]
        at += 4
        value = None
        if size >= 0:
            value = without_version(body[at:at + size])
            at += size
        values.append(value)
    assert at == len(body), "DataRow is not exact"
    return values


def fields(body):
    out = {}
    at = 0
    while body[at:at + 1] != b"\0":
        key = chr(body[at])
        text, at = cstring(body, at + 1)
        out[key] = VERSION_TEXT.sub(b"(seq)", text.encode()).decode()
    for key in ERROR_FIELDS_IGNORED:
        out.pop(key, None)
    if out.get("C") == "23505" and out.get("W", "").startswith("COPY "):
        out.pop("W")
    if out.get("C") == "23502":
        out.pop("D", None)
    if FUNCTION_CALL.match(out.get("M", "")):
        out = {"S": out["S"], "M": "(function call refused)"}
    if (out.get("C"), out.get("M")) in EXECUTE_ITSELF:
        out = {"S": out["S"], "M": "(EXECUTE of itself)"}
    if (out.get("C"), out.get("M")) in NO_PORTAL:
        out = {"S": out["S"], "M": NO_UNNAMED}
    return sorted(out.items())


class Reader:
    """Reads one connection's stream to its end, message by message."""

    def __init__(self, sock):
        self.sock = sock
        self.buffer = b""
        self.messages = []
        self.ready = 0      # ReadyForQuery so far
        self.ended = False

    def _take(self):
        if len(self.buffer) < 5:
            return None
        size = struct.unpack_from("!I", self.buffer, 1)[0]
        if len(self.buffer) < 1 + size:
            return None
        kind, body = chr(self.buffer[0]), self.buffer[5:1 + size]
        self.buffer = self.buffer[1 + size:]
        return kind, body

    def _describe(self, kind, body):
        if kind == "T":
            return row_description(body)
        if kind == "D":
            return data_row(body)
        if kind == "d":
            return without_version(body)
        if kind in "EN":
            return fields(body)
        if kind == "S":
            name, at = cstring(body, 0)
            value, _ = cstring(body, at)
            return (name, value.split(".")[0] if name == "server_version" else value)
        if kind == "K":
            return len(body)
        if kind == "A":
            channel, at = cstring(body, 4)
            return (channel, cstring(body, at)[0])
        return body

    def next(self):
        """The next message's type, None at the end."""
        while not self.ended:
            taken = self._take()
            if taken is not None:
                kind, body = taken
                self.messages.append(Message((kind, self._describe(kind, body))))
                self.ready += kind == "Z"
                return kind
            try:
                piece = self.sock.recv(1 << 16)
            except ConnectionResetError:
                piece = b""
            except socket.timeout:
                self.messages.append(Message(("hang", "no answer and no end")))
                piece = b""
            self.buffer += piece
            if not piece:
                self.ended = True
                if self.buffer:
                    self.messages.append(Message(("rest", self.buffer)))
        return None

    def until_ready(self):
        """To the next ReadyForQuery, CopyInResponse or the end."""
        while True:
            kind = self.next()
            if kind is None or kind in "ZG":
                return kind

    def until_end(self):
        while self.next() is not None:
            pass


def same(theirs, ours):
    """PostgreSQL looks at what a failed Query left under the unnamed portal's name: whether that may run in a failed
    block comes first."""
    if theirs == ours:
        return True
    return (theirs[0] == ours[0] == "E" and ("C", "25P02") in theirs[1] and ("M", NO_UNNAMED) in ours[1])


def first_difference(a, b):
    """Index of the first message in which metadb's stream B differs from PostgreSQL's A, None where there is none."""
    for i in range(max(len(a), len(b))):
        if i >= len(a) or i >= len(b) or not same(a[i], b[i]):
            return i
    return None
