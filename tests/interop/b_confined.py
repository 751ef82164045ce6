#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""B: the work of A on a hardened host: the brick runs as an ordinary user that keeps the
capabilities of storage-posix.md, may lock 64 KiB of memory, and is refused io_uring by a seccomp
filter; so is the client, which has to be root to mount.

    tests/interop/b_confined.py

Nobody tells them ($MORTAR_ENV is unset): they find out, say so in one line of their logs, and go
on with epoll and system calls. (With MORTAR_ENV=plain, a_volfiles.py itself is run.)
"""
import os
import pwd
import re
import subprocess

import a_volfiles
import common
import harness
import trees

UID = 1001
MEMLOCK = 65536
FOUND_OUT = "io_uring is not to be had here: using epoll and system calls"


class Confined:
    """Mixed into a daemon: its program is run by tests/tools/confine."""

    def confine(self, args):
        self.args, self.argv0 = args, self.program
        self.program = self.test.tool("confine")
        self.env.pop("MORTAR_ENV", None)

    def spawn(self, argv):
        super().spawn(self.args + [self.argv0] + argv)

    def detach(self, argv, **more):
        super().detach(self.args + [self.argv0] + argv, **more)


class ConfinedBrick(Confined, harness.Brick):
    def __init__(self, test, **more):
        super().__init__(test, "ours", **more)
        self.confine(["--uid", str(UID), "--memlock", str(MEMLOCK), "--no-io-uring"])
        for top in (self.dir, self.home):
            subprocess.run(["chown", "-R", "%d:%d" % (UID, UID), top], check=True)


class ConfinedMount(Confined, harness.Mount):
    def __init__(self, test, brick, **more):
        super().__init__(test, "ours", brick, **more)
        self.confine(["--memlock", str(MEMLOCK), "--no-io-uring"])


def story(test):
    source = test.fresh_dir("source")
    trees.fill(source, test.random, files=test.number(check=150, soak=1500))
    a_volfiles.make_repository(test, source + "/repository")
    with test.step("the user", limit=10):
        check_user(test)
    for stack in test.number(check=("s4",), soak=("s4", "s4-perf")):
        brick = ConfinedBrick(test, stack="s4").start_detached()
        mount = ConfinedMount(test, brick, stack=stack,
                              extra_args=a_volfiles.s4_flags("ours")).mount_detached()
        with test.step(stack + ": confined", limit=30):
            check_confined(test, brick, UID)
            check_confined(test, mount, 0)
        work = a_volfiles.Work(test, source, mount.dir, test.fresh_dir("local"))
        for piece in (work.dd, work.dd_direct, work.cp, work.rsync, work.tar, work.git,
                      work.compile):
            with test.step("%s: %s" % (stack, piece.__name__), limit=300):
                piece()
        with test.step(stack + ": the end", limit=120):
            common.compare_trees(test, mount.dir, work.local, "all of it", ["mtime"])
            mount.umount()
            brick.stop()
            common.check_brick(test, brick, stack)


def check_user(test):
    """The number must not be somebody with rights of his own; that it has no name is fine."""
    try:
        name = pwd.getpwuid(UID).pw_name
    except KeyError:
        name = "nobody's"
    test.check(UID != 0 and name != "root", "uid %d is %s" % (UID, name))


def status_of(pid):
    with open("/proc/%d/status" % pid, encoding="ascii", errors="replace") as lines:
        return dict(line.rstrip("\n").split(":\t", 1) for line in lines if ":\t" in line)


def check_confined(test, daemon, uid):
    """It is what the test says it is; and it noticed."""
    status = status_of(daemon.pid)
    test.equal(status["Uid"].split()[0], str(uid), daemon.name + ": its user")
    test.equal(status["Seccomp"], "2", daemon.name + ": under a filter")
    test.equal(status["NoNewPrivs"], "1", daemon.name + ": no new privileges")
    with open("/proc/%d/limits" % daemon.pid, encoding="ascii") as lines:
        memlock = [line for line in lines if line.startswith("Max locked memory")][0].split()
    test.equal(memlock[3], str(MEMLOCK), daemon.name + ": memory it may lock")
    with open(daemon.log, encoding="utf-8", errors="replace") as lines:
        log = lines.read()
    said = [line for line in log.splitlines() if FOUND_OUT in line]
    test.equal(len(said), 1, daemon.name + ": one line says that it goes without io_uring")
    if said:
        test.check(re.search(r"\] [ID] \[", said[0]) or " I " in said[0],
                   daemon.name + ": and that line is no warning: " + said[0])
    rings = [os.readlink("/proc/%d/fd/%s" % (daemon.pid, fd))
             for fd in os.listdir("/proc/%d/fd" % daemon.pid)]
    test.check(not any("io_uring" in ring for ring in rings), daemon.name + ": it has no ring")


if __name__ == "__main__":
    harness.main(story, __doc__)
