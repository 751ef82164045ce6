#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Serves a directory, mounts it, runs fio on the directory itself and on the mount, prints the table.
Everything happens in namespaces of its own and is gone afterwards."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "tests", "lib"))
import harness  # noqa: E402
import fio      # noqa: E402

ROWS = [fio.Row("randread", "4k", 1), fio.Row("randread", "4k", 4), fio.Row("randwrite", "4k", 1),
        fio.Row("randwrite", "4k", 4), fio.Row("read", "64k", 1), fio.Row("write", "64k", 1),
        fio.Row("read", "1m", 4), fio.Row("write", "1m", 4)]
SECONDS, FILE_MIB = 3, 256


def story(test):
    with test.step("serve a directory and mount it", limit=90):
        brick = test.brick("ours", stack="brick")
        mount = test.mount("ours", brick)
        print("brick: glusterfsd on %s, TCP port %d" % (brick.dir, brick.port))
        print("mount: %s" % open("/proc/mounts").read().splitlines()[-1])
        paths = {"local": fio.prepare(test.fresh_dir("local"), FILE_MIB),
                 "FUSE": fio.prepare(mount.dir, FILE_MIB)}
    with test.step("fio, O_DIRECT, synchronous jobs", limit=150):
        table = fio.Table(ROWS, ["local", "FUSE"])
        table.run(paths, SECONDS, rounds=1)
        print()
        table.show("local")
        print()
        test.ok("measured")
    with test.step("clean up", limit=60):
        test.stop_all()
        test.check(not os.path.ismount(mount.dir), "the mount is gone")


harness.main(story, __doc__)
