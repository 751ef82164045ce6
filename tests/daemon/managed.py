#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""A mount whose volume file comes from a genuine management daemon: fetched, kept up with as
`gluster volume set` changes it, and through the daemon's own restart."""
import contextlib
import os
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import harness

GLUSTERD_PID = "/run/gluster/glusterd-test.pid"


def read(path):
    with open(path, encoding="utf-8", errors="backslashreplace") as data:
        return data.read()


def gluster(test, *words):
    return test.run(["gluster", "--mode=script", *words], limit=90).text


def glusterd_start(test):
    test.run(["glusterd", "-p", GLUSTERD_PID], limit=60)
    test.require(harness.wait_for(lambda: subprocess.run(
        ["gluster", "--mode=script", "pool", "list"], capture_output=True,
        check=False).returncode == 0, 60)[0], "glusterd answers")


def brick_pids():
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            words = read("/proc/%s/cmdline" % pid).split("\0")
            if os.path.basename(words[0]) == "glusterfsd" and "--brick-name" in words:
                found.append((int(pid), words))
    return found


def brick_takes_over(test, brick, target, home):
    """With the words that the management daemon gives a brick, but for its own socket."""
    (pid, words), = brick_pids()
    os.kill(pid, signal.SIGKILL)
    test.require(harness.wait_for(lambda: not brick_pids(), 10)[0], "the genuine brick is dead")
    words = words[1:-1]
    words[words.index("-S"):words.index("-S") + 2] = []
    words[words.index("-l") + 1] = home + "/brick.log"
    words[words.index("-p") + 1] = home + "/brick.pid"
    test.run([harness.program_path("ours", "glusterfsd"), *words], limit=60)
    second = test.fresh_dir("second")
    test.run(["glusterfs", "-s", harness.ADDRESS, "--volfile-id=/v", "-l", home + "/genuine.log",
              second], limit=60)
    test.equal(read(second + "/f"), "hello", "a genuine mount finds our brick, and the file on it")
    with open(second + "/g", "w", encoding="ascii") as out:
        out.write("through ours")
    test.equal(read(brick + "/g"), "through ours", "and writes")
    test.check(harness.wait_for(lambda: os.path.exists(target + "/g"), 20)[0],
               "our mount found its way back too")
    test.run(["umount", second])
    os.kill(int(read(home + "/brick.pid")), signal.SIGTERM)
    test.check(harness.wait_for(lambda: not os.path.exists(home + "/brick.pid"), 30)[0],
               "our brick ends")


def story(test):
    brick, target, home = (test.fresh_dir(name) for name in ("brick", "target", "home"))
    log = home + "/log"
    program = harness.program_path("ours", "glusterfs")

    def logged(text):
        return harness.wait_for(lambda: text in read(log), 20)[0]

    with test.step("a volume of the genuine daemon", limit=180):
        glusterd_start(test)
        gluster(test, "volume", "create", "v", "%s:%s" % (harness.ADDRESS, brick), "force")
        gluster(test, "volume", "start", "v")
    with test.step("mount", limit=90):
        test.run([program, "-s", harness.ADDRESS, "--volfile-id=/v", "-l", log,
                  "-p", home + "/pid", target], limit=60)
        pid = int(read(home + "/pid"))
        test.check(harness.is_mount_point(target), "the mount is there")
        with open(target + "/f", "w", encoding="ascii") as out:
            out.write("hello")
        test.equal(read(brick + "/f"), "hello", "the brick has the file")
        mounts = read("/proc/mounts")
        test.check("%s:/v %s fuse.glusterfs " % (harness.ADDRESS, target) in mounts,
                   "the mount table\n" + mounts)
    with test.step("an option changes", limit=120):
        gluster(test, "volume", "set", "v", "performance.md-cache-timeout", "7")
        test.check(logged("option md-cache-timeout becomes 7"), "it is told, and taken over")
        gluster(test, "volume", "set", "v", "performance.write-behind", "off")
        test.check(logged("the volume file has other volumes now"), "another shape is told")
    with test.step("the daemon is away for a while", limit=180):
        os.kill(int(read(GLUSTERD_PID)), signal.SIGKILL)
        test.check(logged("the management daemon on %s is gone" % harness.ADDRESS), "it is missed")
        test.equal(read(target + "/f"), "hello", "the mount works without it")
        glusterd_start(test)
        gluster(test, "volume", "set", "v", "performance.write-behind", "on")
        gluster(test, "volume", "set", "v", "performance.md-cache-timeout", "9")
        test.check(logged("option md-cache-timeout becomes 9"), "it is heard again")
    with test.step("our brick in the place of the genuine one", limit=120):
        brick_takes_over(test, brick, target, home)
    with test.step("the end", limit=90):
        os.kill(pid, signal.SIGTERM)
        test.check(harness.wait_for(lambda: not harness.is_mount_point(target), 30)[0],
                   "unmounted")
        done = test.run([program, "-s", harness.ADDRESS, "--volfile-id=none", "-l", log, target],
                        ok=None)
        test.equal(done.status, 1, "a volume that is not there: exit status")
        test.check("failed to fetch volume file 'none' from %s: No such file or directory"
                   % harness.ADDRESS in done.text, "a volume that is not there: " + done.text)
        gluster(test, "volume", "stop", "v")


harness.main(story, __doc__)
