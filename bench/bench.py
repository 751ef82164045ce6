#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Mortar against GlusterFS 10.3 and the local file system, in one run: FUSE over TCP, and the memory
of both daemons. Ratios are medians of the rounds' own ratios; rates of one machine mean nothing
elsewhere. --rounds N, --seconds N."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "tests", "lib"))
import harness  # noqa: E402
import fio      # noqa: E402

ROWS = [fio.Row(rw, bs, jobs)
        for bs in ("4k", "64k", "1m") for rw in ("randread", "randwrite") for jobs in (1, 4)]
SECONDS = int(os.environ.get("MORTAR_BENCH_SECONDS", "2"))
ROUNDS = int(os.environ.get("MORTAR_BENCH_ROUNDS", "3"))
FILE_MIB = 256


def rss_kib(pid):
    with open("/proc/%d/status" % pid, encoding="ascii") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:"))


def transport(mount):
    with open("/sys/module/fuse/parameters/enable_uring", encoding="ascii") as state:
        switched_on = state.read().strip() == "Y"
    return "FUSE over io_uring" if switched_on else "/dev/fuse, cloned descriptors"


def show_memory(title, daemons):
    print(title)
    for name, daemon in daemons.items():
        print("  %-18s %8d KiB" % (name, rss_kib(daemon.pid)))


def story(test):
    with test.step("serve and mount, both kinds", limit=120):
        bricks = {kind: test.brick(kind, stack="brick", name="brick-" + kind)
                  for kind in harness.KINDS}
        mounts = {kind: test.mount(kind, bricks[kind], name="mount-" + kind)
                  for kind in harness.KINDS}
        daemons = {"brick, " + kind: bricks[kind] for kind in harness.KINDS}
        daemons.update({"client, " + kind: mounts[kind] for kind in harness.KINDS})
        print("transport of our mount: " + transport(mounts["ours"]))
        show_memory("memory, idle:", daemons)
        paths = {kind: fio.prepare(mounts[kind].dir, FILE_MIB) for kind in harness.KINDS}
        paths["local"] = fio.prepare(test.fresh_dir("local"), FILE_MIB)
    limit = len(ROWS) * 3 * ROUNDS * (SECONDS + 3) + 60
    with test.step("fio, O_DIRECT, synchronous jobs", limit=limit):
        table = fio.Table(ROWS, ["local", "genuine", "ours"])
        table.run(paths, SECONDS, ROUNDS)
        print()
        table.show("local")
        print("\n%-26s%22s" % ("", "ours / genuine"))
        for row in ROWS:
            print("%-26s%22s" % (row.name, "%.2f" % table.ratio(row, "ours", "genuine")))
        print()
        show_memory("memory, after the load:", daemons)
        test.ok("measured")
    with test.step("clean up", limit=90):
        test.stop_all()


harness.main(story, __doc__)
