#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""D: a brick dies before the first, the second, ... system call with which it changes its disk for
an operation; the other kind serves what is there. Either the operation happened or it did not:
every name can be read, and everything that was there before is as it was.

    tests/interop/d_windows.py --brick ours --client ours [--other genuine]

strace(1) counts the calls and injects the SIGKILL, so the brick has to make them itself: ours runs
with MORTAR_ENV=plain here. The sweep of an operation ends when it gets through alive.
"""
import contextlib
import os
import shutil
import signal
import subprocess

import common
import d_crash
import harness

CHANGES = ("mkdir,mkdirat,mknod,mknodat,symlink,symlinkat,link,linkat,unlink,unlinkat,rmdir,rename,"
           "renameat,renameat2,setxattr,lsetxattr,fsetxattr,removexattr,lremovexattr,fremovexattr,"
           "chown,fchown,lchown,fchownat,chmod,fchmod,fchmodat,utimensat,ftruncate,creat")
WINDOWS_MAX = 40

BEFORE = [["write", "file"], ["write", "other"], ["link", "file", "twin"], ["mkdir", "dir"],
          ["mkdir", "empty"], ["symlink", "symlink"], ["mkfifo", "fifo"]]
STEPS = [["create", "new"], ["write", "new"], ["mkdir", "new"], ["symlink", "new"],
         ["mkfifo", "new"], ["link", "file", "new"], ["link", "symlink", "new"],
         ["rename", "file", "new"], ["rename", "dir", "new"], ["rename", "symlink", "new"],
         ["rename", "file", "other"], ["rename", "other", "file"], ["rename", "dir", "empty"],
         ["unlink", "other"], ["unlink", "file"], ["unlink", "symlink"], ["rmdir", "empty"]]


def story(test):
    other = test.args.other or ("genuine" if test.args.brick == "ours" else "ours")
    if not shutil.which("strace"):
        test.skip("no strace")
        return
    brick_dir = test.fresh_dir("brick.dir")
    steps = test.random.sample(STEPS, test.number(check=5, soak=len(STEPS)))
    for number, step in enumerate(steps):
        with test.step("%s, %s, then %s" % (" ".join(step), common.pair(test), other), limit=300):
            windows = 0
            while windows < WINDOWS_MAX and one(test, brick_dir, other, step,
                                                "%d.%d" % (number, windows), windows + 1):
                windows += 1
            test.check(0 < windows < WINDOWS_MAX, "%d windows" % windows)
        test.stop_all()


def one(test, brick_dir, other, step, name, count):
    """Dies before the count-th change. Returns whether there was one."""
    env = {"MORTAR_ENV": "plain"} if test.args.brick == "ours" else None
    brick = test.brick(test.args.brick, dir=brick_dir, stack=test.args.stack, env=env)
    mount = test.mount(test.args.client, brick, stack=test.args.client_stack)
    root, names = os.path.join(mount.dir, name), {}
    os.mkdir(root)
    for made in BEFORE:
        d_crash.act(root, made)
        d_crash.apply(names, made)
    d_crash.read(root)
    killed = strike(test, brick, root, step, count)
    if not killed:
        d_crash.apply(names, step)
    d_crash.umount_dead(mount)
    d_crash.verify(test, brick_dir, other, {name: (names, step if killed else None, None)})
    return killed


def strike(test, brick, root, step, count):
    """Does the step with the trap set; returns whether the brick fell into it."""
    tracer = subprocess.Popen(
        ["strace", "-f", "-qq", "-o", os.path.join(brick.home, "strace.%d" % count),
         "-e", "trace=" + CHANGES, "-e", "inject=%s:signal=KILL:when=%d" % (CHANGES, count),
         "-p", str(brick.pid)], stdin=subprocess.DEVNULL)
    harness.wait_for(lambda: is_traced(brick.pid), 10)
    brick.expected = {-signal.SIGKILL}
    pid = os.fork()
    if pid == 0:
        with contextlib.suppress(OSError):      # the crash; whether it worked is seen afterwards
            d_crash.act(root, step)
        os._exit(0)
    ended, _ = harness.wait_for(
        lambda: not brick.is_running() or os.waitpid(pid, os.WNOHANG)[0], 30)
    test.require(ended, "the step ends, or the brick")
    harness.wait_for(lambda: not brick.is_running(), 0.5)       # a dead one is not yet gone
    killed = not brick.is_running()
    brick.kill9()                           # strace has nothing left to do, and ends
    tracer.wait(30)
    return killed


def is_traced(pid):
    """Every thread of it."""
    try:
        for task in os.listdir("/proc/%d/task" % pid):
            with open("/proc/%d/task/%s/status" % (pid, task), encoding="ascii") as lines:
                if "TracerPid:\t0\n" in lines.read():
                    return False
    except OSError:
        pass
    return True


if __name__ == "__main__":
    harness.main(story, __doc__, d_crash.add_arguments)
