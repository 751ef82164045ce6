#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""E: programs that ask much of a file system pass on a mount: sqlite3 with both journals, dbench,
bonnie++, fs_mark, stress-ng's file stressors.

    tests/interop/e_programs.py --brick ours --client genuine [--only sqlite]
"""
import os
import shutil
import signal
import subprocess
import sys
import time

import common
import harness

STRESSORS = ["access", "chdir", "chmod", "chown", "copy-file", "dentry", "dir", "dirdeep",
             "dirmany",
             "fallocate", "fcntl", "filename", "flock", "fpunch", "fsize", "fstat", "getdent",
             "handle", "hdd", "io", "iomix", "link", "locka", "lockf", "lockofd", "mknod", "open",
             "rename", "seek", "symlink", "sync-file", "touch", "utime", "xattr"]

# Writers of one database, some of which are killed in the middle: PATH SEED COUNT
WRITER = """
import random, sqlite3, sys
path, seed, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
random.seed(seed)
base = sqlite3.connect(path, timeout=120, isolation_level=None)
for number in range(count):
    base.execute("begin immediate")
    for part in range(5):
        base.execute("insert into t values (?, ?, ?)",
                     (seed, number * 5 + part, "x" * random.randrange(3000)))
    base.execute("commit")
    print(number, flush=True)
"""


def story(test):
    brick = test.brick(test.args.brick, stack=test.args.stack)
    mount = test.mount(test.args.client, brick, stack=test.args.client_stack)
    limit = 600 if test.rounds == "soak" else 180
    for piece in (sqlite_wal, sqlite_rollback, dbench, bonnie, fs_mark, stress):
        if test.args.only in piece.__name__:
            with test.step("%s, %s" % (piece.__name__, common.pair(test)), limit):
                directory = os.path.join(mount.dir, piece.__name__)
                os.mkdir(directory)
                piece(test, directory)
                shutil.rmtree(directory)
    with test.step("the brick", limit=120):
        mount.umount()
        brick.stop()
        common.check_brick(test, brick, "afterwards", common.marks_of_genuine([test.args.brick]))


def is_there(test, program):
    if not shutil.which(program):
        test.skip("no " + program)
    return shutil.which(program)


def sqlite_wal(test, directory):
    sqlite(test, os.path.join(directory, "base"), "wal")


def sqlite_rollback(test, directory):
    sqlite(test, os.path.join(directory, "base"), "delete")


def sqlite(test, path, journal):
    """Three writers at a time, one of them killed; what each has committed is there."""
    test.run(["sqlite3", path, "pragma journal_mode=%s; create table t (who, number, text, "
                               "primary key (who, number));" % journal])
    committed = {}
    for turn in range(test.number(check=2, soak=8)):
        count = test.number(check=15, soak=60)
        writers = {turn * 3 + i: subprocess.Popen(
            [sys.executable, "-c", WRITER, path, str(turn * 3 + i), str(count)],
            stdout=subprocess.PIPE) for i in range(3)}
        time.sleep(test.random.uniform(0.3, 1.5))
        writers[turn * 3].send_signal(signal.SIGKILL)
        for who, writer in writers.items():
            output, _ = writer.communicate(timeout=150)
            committed[who] = len(output.splitlines())
            test.check(writer.returncode in ([0, -9] if who == turn * 3 else [0]),
                       "writer %d: %s" % (who, harness.said(writer.returncode)))
        verify_base(test, path, committed)


def verify_base(test, path, committed):
    result = test.run(["sqlite3", path, "pragma integrity_check; select who, count(*) from t "
                                        "group by who order by who;"], limit=60)
    lines = result.text.split()
    test.equal(lines[:1], ["ok"], "integrity_check")
    rows = {int(who): int(count) for who, count in (line.split("|") for line in lines[1:])}
    for who, turns in committed.items():    # the last, unannounced one may be in, too
        test.check(rows.get(who, 0) in (turns * 5, turns * 5 + 5),
                   "writer %d: %d rows of %d commits" % (who, rows.get(who, 0), turns))


def dbench(test, directory):
    if is_there(test, "dbench"):
        seconds = test.number(check=8, soak=60)
        result = test.run(["dbench", "-D", directory, "-t", str(seconds), "4"], limit=seconds + 120)
        test.check("Throughput" in result.text, "dbench\n" + result.text[-1500:])


def bonnie(test, directory):
    if is_there(test, "bonnie++"):
        size = test.number(check=32, soak=256)
        test.run(["bonnie++", "-d", directory, "-s", "%dM" % size, "-r", str(size // 2), "-u",
                  "root", "-n", str(test.number(check=1, soak=4)), "-f", "-q"], limit=550)
        test.ok("bonnie++")


def fs_mark(test, directory):
    if is_there(test, "fs_mark"):
        for sync in ("0", "1"):
            test.run(["fs_mark", "-d", ".", "-n", str(test.number(check=150, soak=2000)),
                      "-s", "5000", "-t", "2", "-S", sync, "-D", "4", "-L", "2",
                      "-l", os.path.join(test.scratch, "fs_mark.log")], limit=500,
                     cwd=directory)
            test.ok("fs_mark -S %s" % sync)


def stress(test, directory):
    if not is_there(test, "stress-ng"):
        return
    names = STRESSORS if test.rounds == "soak" else test.random.sample(STRESSORS, 10)
    for name in names:
        began = time.monotonic()
        result = test.run(["stress-ng", "--temp-path", directory, "--verify", "--timeout", "3",
                           "--" + name, "2"], limit=90, ok=None)
        test.check(result.status == 0, "stress-ng --%s: status %d\n%s"
                   % (name, result.status, result.text[-1500:]))
        test.check(time.monotonic() - began < 60, "stress-ng --%s ends in time" % name)


def add_arguments(parser):
    parser.add_argument("--only", default="", help="part of a name of what is run")
    parser.add_argument("--stack", default="brick", help="server stack of volfiles.py")
    parser.add_argument("--client-stack", default="plain", help="client stack of volfiles.py")


if __name__ == "__main__":
    harness.main(story, __doc__, add_arguments)
