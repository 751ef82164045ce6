#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""C: the POSIX cases, on a mount.

    tests/interop/c_posix.py --brick genuine --client ours [--only GLOB]
"""
import re

import common
import harness

LIMIT_S = 1200


def story(test):
    brick = test.brick(test.args.brick, stack=test.args.stack)
    mount = test.mount(test.args.client, brick, stack=test.args.client_stack,
                       extra_args=test.args.flags.split())
    argv = [test.tool("posix-cases"), "--timeout", "60", "--control", test.fresh_dir("control")]
    argv += ["--only", test.args.only] if test.args.only else []
    for glob, reason in common.cases_genuine_fails(test.args):
        argv += ["--skip", glob]
        test.skip("%s: %s" % (glob, reason))
    with test.step("cases, %s" % common.pair(test), LIMIT_S):
        result = test.run(argv + [mount.dir], LIMIT_S - 10, ok=None)
        count(test, result)


def count(test, result):
    """Takes over the cases' own verdicts."""
    lines = result.text.splitlines()
    totals = re.match(r"(\d+) passed, (\d+) failed, (\d+) skipped", lines[-1] if lines else "")
    test.require(totals, "posix-cases ends with its totals\n" + result.text[-2000:])
    print("\n".join(lines[:-1]))
    passed, failed, skipped = map(int, totals.groups())
    test.passed += passed
    test.skipped += skipped
    test.check(failed == 0 and result.status == 0, "%d cases failed" % failed)
    test.check(passed >= (1 if test.args.only else 300), "%d cases passed" % passed)


def add_arguments(parser):
    parser.add_argument("--only", help="cases, as posix-cases takes them")
    parser.add_argument("--flags", default="", help="more arguments for glusterfs")
    parser.add_argument("--stack", default="brick", help="server stack of volfiles.py")
    parser.add_argument("--client-stack", default="plain", help="client stack of volfiles.py")


if __name__ == "__main__":
    harness.main(story, __doc__, add_arguments)
