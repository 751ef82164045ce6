# SPDX-License-Identifier: LGPL-2.1-or-later
"""What the scenarios of this directory share: where genuine 10.3 itself differs from a local file
system, and a few ways to fill and to compare trees."""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))
sys.path.insert(0, os.path.join(HERE, "..", "tools"))

import harness          # noqa: E402
import treedump         # noqa: E402
import trees            # noqa: E402


def compare_trees(test, got, expected, what, without=()):
    """What a user sees of two trees, inode numbers apart; `without` names more to leave out."""
    left_out = ("ino", *without)
    lines = trees.differences(trees.snapshot(got, False, left_out),
                              trees.snapshot(expected, False, left_out))
    test.check(not lines, "%s: same tree\n%s" % (what, "\n".join(lines)))


def check_brick(test, brick, what, tolerate=()):
    """Every invariant of a brick's tree; the brick is stopped, or quiet."""
    violations = treedump.Tree(brick.dir, tolerate).check()
    test.check(not violations, "%s: a sound brick\n%s" % (what, "\n".join(violations[:20])))


def pair(test):
    return "brick %s, client %s" % (test.args.brick, test.args.client)


def differences_of_genuine(args):
    """What fsdiff leaves out, for genuine 10.3 does not do as a local file system does (all seen
    with genuine on both sides): names for fsdiff --without."""
    left_out = set()
    if args.client == "genuine":
        left_out |= {"rename-flags", "zero", "flock", "orphan-attributes"}
    if args.brick == "genuine":
        left_out |= {"read-append", "setid", "list-unreadable"}
    return sorted(left_out)


def cases_genuine_fails(args):
    """(glob, reason) for posix-cases --skip, found with genuine on both sides."""
    return [] if "genuine" not in (args.brick, args.client) else []


def marks_of_genuine(kinds):
    """What genuine leaves in a brick, for treedump's `tolerate`: the gfid2path of a name that a
    rename replaced stays on a file that has other names."""
    return ["stale"] if "genuine" in kinds else []
