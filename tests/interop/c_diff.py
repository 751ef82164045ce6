#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""C: random operations on a mount and on a local directory come to the same, in results, errnos,
data and attributes; and leave a sound brick.

    tests/interop/c_diff.py --brick ours --client genuine
"""
import common
import harness

OPS_CHECK, OPS_SOAK = 6000, 200000
OPS_A_SECOND_MIN = 60


def story(test):
    ops = test.args.ops or test.number(check=OPS_CHECK, soak=OPS_SOAK)
    runs = common.runs_of_fsdiff(test.args)
    for number, without in enumerate(runs):
        run(test, ops // len(runs), test.seed + number, without)


def run(test, ops, seed, without):
    brick = test.brick(test.args.brick, stack=test.args.stack)
    mount = test.mount(test.args.client, brick, stack=test.args.client_stack)
    limit = 60 + ops // OPS_A_SECOND_MIN
    with test.step("%d operations, seed %d, %s" % (ops, seed, common.pair(test)), limit):
        result = test.run([test.tool("fsdiff"), "--seed", str(seed), "--ops", str(ops), "--without",
                           ",".join(without), mount.dir, test.fresh_dir("local")],
                          limit - 5, ok=None)
        test.check(result.status == 0, "no difference (left out: %s)\n%s"
                   % (", ".join(without) or "nothing", result.text))
    with test.step("the brick", limit=120):
        mount.umount()
        brick.stop()
        common.check_brick(test, brick, "after %d operations" % ops,
                           common.marks_of_genuine([test.args.brick]))


def add_arguments(parser):
    parser.add_argument("--ops", type=int, help="how many")
    parser.add_argument("--stack", default="brick", help="server stack of volfiles.py")
    parser.add_argument("--client-stack", default="plain", help="client stack of volfiles.py")


if __name__ == "__main__":
    harness.main(story, __doc__, add_arguments)
