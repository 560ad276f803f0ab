"""What is asked of metadb beside what a run reached, as a table of its own.

A target compares two contenders of one row pair by pair, or two rows by their medians, or looks at one
contender alone. One that was not measured is shown as such and never as met.
"""
import statistics

# row, clients, contender, at least this many times its throughput; one of several lines of a row is
# enough where the second says "or".
PEERS = [
    ("create_spread", 16, "pg", 1.8),
    ("create_spread", 64, "pg", 3.5),
    ("create_full", 64, "pg", 3.5),
    ("create_full", 64, "pg.pipe", 3.5),
    ("create_hot", 16, "pg", 9),
    ("create_hot", 64, "pg", 20),
    ("create_hot", 256, "pg", 60),
    ("create_hot", 64, "pg.delta", 2.5),
    ("create_hot", 16, "redis", 1),
    ("create_hot", 64, "redis", 1),
    ("mkdir_hot", 64, "pg", 15),
    ("delete_spread", 16, "pg", 1.5),
    ("delete_spread", 16, "or redis", 1.2),
    ("delete_hot", 16, "pg", 6),
    ("delete_hot", 16, "or redis", 1.2),
    ("rmdir_hot", 16, "pg", 6),
    ("rmdir_hot", 16, "or redis", 1.2),
    ("rename", 16, "pg", 2),
    ("dirstat", 64, "pg", 1.5),
    ("lookup", 64, "pg", 2),
    ("listdir", 16, "pg", 3),
    ("upsert_kv", 4, "pg", 1.3),
    ("upsert_kv", 64, "pg", 3),
    ("upsert_kv", 256, "pg", 3.5),
    ("upsert_kv", 1024, "pg", 7),
]
# row, clients, contender, variant of it, at least this many times the contender's throughput
VARIANTS = [
    ("create_hot", 16, "metadb", "metadb|8 per Sync", 4),
    ("lookup", 16, "metadb", "metadb|8 per Sync", 4),
    ("create_hot", 1, "metadb:log.sync_delay=5ms", "metadb:log.sync_delay=5ms|256 clients", 20),
]
# metadb's rows by themselves: row and clients, divided by row and clients, at least
ROWS = [
    ("create_hot", 64, "create_spread", 64, 0.9),
    ("upsert_kv", 1024, "upsert_kv", 64, 0.9),  # "flat"
]
TAILS = [("create_hot", 64, 3), ("lookup", 64, 3), ("upsert_kv", 64, 3)]
RATES = [("create_spread", 64, 40000), ("dirstat", 64, 70000), ("lookup", 64, 70000)]
LONE = 1.3

HEADER = ["asked of", "clients", "what", "asked", "reached", "min..max", ""]


def good(samples):
    return [s for s in samples if not s.failed]


def tails(samples):
    """p99 divided by p50 of each measurement."""
    return [s.p99 / s.p50 for s in good(samples) if s.p50]


def pair_ratios(ours, theirs):
    """Of measurements taken one after the other."""
    return [a.ops / b.ops for a, b in zip(ours, theirs) if not a.failed and not b.failed and b.ops]


def find(results, title, clients, *contenders):
    """Samples of CONTENDERS in the first row that has them all, or None."""
    for row_title, row_clients, samples in results:
        if row_title == title and row_clients == clients and all(samples.get(c) for c in contenders):
            return [samples[c] for c in contenders]
    return None


def line(title, clients, what, wanted, values, at_most=False, digits=2):
    sign = "≤" if at_most else "≥"
    cells = [title, str(clients), what, "%s %g" % (sign, wanted)]
    if not values:
        return cells + ["not measured", "", ""]
    reached = statistics.median(values)
    met = reached <= wanted if at_most else reached >= wanted
    return cells + ["%.*f" % (digits, reached), "%.*f..%.*f" % (digits, min(values), digits, max(values)), "yes" if met else "NO"]


def table(results, lone):
    """Rows of cells. RESULTS are (title, clients, samples by contender); LONE the ratios of metadb_lone."""
    rows = [HEADER]
    for title, clients, peer, wanted in PEERS:
        found = find(results, title, clients, "metadb", peer.split()[-1])
        rows.append(line(title, clients, "÷ " + peer if " " not in peer else "or ÷ " + peer.split()[-1], wanted, found and pair_ratios(*found)))
    for title, clients, plain, variant, wanted in VARIANTS:
        found = find(results, title, clients, variant, plain)
        rows.append(line(title, clients, "%s ÷ %s" % (variant.partition("|")[2], plain), wanted, found and pair_ratios(*found)))
    for title, clients, other, other_clients, wanted in ROWS:
        ours, theirs = find(results, title, clients, "metadb"), find(results, other, other_clients, "metadb")
        values = ours and theirs and good(ours[0]) and good(theirs[0]) and [
            statistics.median(s.ops for s in good(ours[0])) / statistics.median(s.ops for s in good(theirs[0]))]
        rows.append(line(title, clients, "÷ own %s %d" % (other, other_clients), wanted, values))
    for title, clients, wanted in TAILS:
        found = find(results, title, clients, "metadb")
        rows.append(line(title, clients, "p99 ÷ p50", wanted, found and tails(found[0]), at_most=True))
    for title, clients, wanted in RATES:
        found = find(results, title, clients, "metadb")
        rows.append(line(title, clients, "ops/s", wanted, found and [s.ops for s in good(found[0])], digits=0))
    rows.append(line("create", 1, "÷ (log sync + round trip)", LONE, lone, at_most=True))
    return rows
