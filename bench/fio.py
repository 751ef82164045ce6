# SPDX-License-Identifier: LGPL-2.1-or-later
"""fio, run the same way on every path, and the table of what it measured.

    rows = [Row("randread", "4k", 1), Row("write", "1m", 4)]
    table = Table(rows, ["local", "genuine", "ours"])
    table.run(paths, seconds=4, rounds=3)      # interleaved, so that a slow minute hits all alike
    table.show("local")
"""
import json
import os
import statistics
import subprocess


class Row:
    """One load: fio's rw, block size, synchronous jobs, O_DIRECT or page cache."""

    def __init__(self, rw, bs, jobs, direct=True):
        self.rw, self.bs, self.jobs, self.direct = rw, bs, jobs, direct

    @property
    def name(self):
        return "%s %s, %d job%s%s" % (self.rw, self.bs, self.jobs, "" if self.jobs == 1 else "s",
                                      "" if self.direct else ", buffered")


def prepare(directory, mib):
    """The file that all loads use, written whole: no load meets a hole."""
    path = os.path.join(directory, "fio.data")
    with open(path, "wb", buffering=0) as out:
        block = os.urandom(1 << 20)
        for _ in range(mib):
            out.write(block)
        os.fsync(out.fileno())
    return path


def measure(path, row, seconds):
    """Operations per second and mean completion latency in microseconds."""
    command = ["fio", "--output-format=json", "--name=x", "--filename=" + path,
               "--rw=" + row.rw, "--bs=" + row.bs, "--numjobs=%d" % row.jobs, "--thread",
               "--ioengine=psync", "--direct=%d" % row.direct, "--time_based",
               "--runtime=%d" % seconds, "--group_reporting", "--norandommap", "--randrepeat=1",
               "--fallocate=none", "--size=%d" % os.path.getsize(path)]
    done = subprocess.run(command, capture_output=True, timeout=seconds + 60, check=False,
                          cwd=os.path.dirname(path))
    if done.returncode != 0:
        raise RuntimeError("fio on %s: %s" % (path, (done.stderr or done.stdout).decode()[-500:]))
    job = json.loads(done.stdout)["jobs"][0]
    side = job["read"] if "read" in row.rw else job["write"]
    return side["iops"], side["clat_ns"]["mean"] / 1000


class Table:
    def __init__(self, rows, columns):
        self.rows, self.columns = rows, columns
        self.seen = {(row.name, column): [] for row in rows for column in columns}

    def run(self, paths, seconds, rounds, between=None):
        for number in range(rounds):
            for row in self.rows:
                for column in self.columns:
                    self.seen[row.name, column].append(measure(paths[column], row, seconds))
                    if between:
                        between(number, row, column)

    def iops(self, row, column):
        return statistics.median(one[0] for one in self.seen[row.name, column])

    def latency(self, row, column):
        return statistics.median(one[1] for one in self.seen[row.name, column])

    def ratio(self, row, column, base):
        """Median of the rounds' own ratios."""
        return statistics.median(a[0] / b[0] for a, b in zip(self.seen[row.name, column],
                                                             self.seen[row.name, base]))

    def show(self, base, out=print):
        others = [column for column in self.columns if column != base]
        head = "%-26s" % "" + "%18s" % (base + " IOPS")
        head += "".join("%22s" % (column + " / " + base) for column in others)
        out(head)
        for row in self.rows:
            line = "%-26s%18.0f" % (row.name, self.iops(row, base))
            for column in others:
                line += "%22s" % ("%.2f  (%.0f us)" % (self.ratio(row, column, base),
                                                        self.latency(row, column)))
            out(line)
