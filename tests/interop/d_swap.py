#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""D: a brick that one kind filled is served by the other: same listing, content, attributes, link
counts, inode numbers and gfids; the other changes it, and the first goes on.

    tests/interop/d_swap.py --brick genuine --client ours [--other ours]
"""
import common
import harness
import trees

TURNS_CHECK, TURNS_SOAK = 3, 6


def story(test):
    kinds = [test.args.brick, test.args.other or opposite(test.args.brick)]
    brick_dir, client = test.fresh_dir("brick.dir"), test.args.client
    seen = None
    for turn in range(test.number(check=TURNS_CHECK, soak=TURNS_SOAK)):
        kind = kinds[turn % len(kinds)]
        with test.step("turn %d, brick %s, client %s" % (turn, kind, client), limit=600):
            brick = test.brick(kind, dir=brick_dir, stack=test.args.stack)
            mount = test.mount(client, brick, stack=test.args.client_stack)
            if seen is not None:
                compare(test, mount, seen)
            work(test, mount, turn)
            seen = trees.snapshot(mount.dir)
            mount.remount()                     # nothing that was only in a cache
            compare(test, mount, seen)
            mount.umount()
            brick.stop()
            common.check_brick(test, brick, "after turn %d" % turn, common.marks_of_genuine(kinds))


def opposite(kind):
    return "genuine" if kind == "ours" else "ours"


def work(test, mount, turn):
    files = test.number(check=120, soak=400)
    trees.fill_named(mount.dir, "turn%d" % turn, test.random, files)
    for earlier in range(turn + 1):
        trees.change("%s/turn%d" % (mount.dir, earlier), test.random, files // 3)


def compare(test, mount, expected):
    lines = trees.differences(trees.snapshot(mount.dir), expected)
    test.check(not lines, "%d paths are as they were left\n%s" % (len(expected), "\n".join(lines)))


def add_arguments(parser):
    parser.add_argument("--other", choices=harness.KINDS, help="who takes turns with --brick")
    parser.add_argument("--stack", default="brick", help="server stack of volfiles.py")
    parser.add_argument("--client-stack", default="ctime", help="client stack of volfiles.py")


if __name__ == "__main__":
    harness.main(story, __doc__, add_arguments)
