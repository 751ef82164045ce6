#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The life of a daemon: it answers when it is ready, keeps its pid file, follows its signals, takes
over new options, and leaves nothing behind."""
import contextlib
import glob
import os
import re
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import harness

VOLFILE = """volume p
    type storage/posix
    option directory %s
end-volume

volume cache
    type performance/md-cache
    option md-cache-timeout %s
    subvolumes p
end-volume

volume top
    type debug/io-stats
%s    subvolumes cache
end-volume
"""


def read(path):
    with open(path, encoding="utf-8", errors="backslashreplace") as data:
        return data.read()


def is_gone(pid):
    """Ended; a zombie is one that nobody has asked about yet."""
    try:
        return " Z " in read("/proc/%d/stat" % pid)
    except OSError:
        return True


class Local:
    """A brick directory mounted without a network: glusterfs over storage/posix."""

    def __init__(self, test):
        self.test = test
        self.home = test.fresh_dir("life")
        self.brick, self.dir = test.fresh_dir("brick"), test.fresh_dir("target")
        self.volfile, self.log = self.home + "/v.vol", self.home + "/log"
        self.pid_file = self.home + "/pid"
        self.write("1", "")

    def write(self, timeout, more):
        with open(self.volfile, "w", encoding="utf-8") as out:
            out.write(VOLFILE % (self.brick, timeout, more))

    def argv(self, *more):
        return [harness.program_path("ours", "glusterfs"), "-f", self.volfile, "-l", self.log,
                "-p", self.pid_file, *more, self.dir]

    def start(self, *more):
        done = subprocess.run(self.argv(*more), stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=60, check=False)
        self.test.require(done.returncode == 0, "glusterfs returns 0\n" + done.stderr)
        self.test.equal(done.stdout + done.stderr, "", "it says nothing")
        return int(read(self.pid_file))

    def ended(self, pid):
        return harness.wait_for(lambda: is_gone(pid), 30)[0]

    def logged(self, text):
        return harness.wait_for(lambda: text in read(self.log), 10)[0]


def starts_and_stops(test, local):
    pid = local.start()
    test.check(harness.is_mount_point(local.dir), "the mount is there when the command returns")
    with open(local.dir + "/f", "w", encoding="ascii") as out:
        out.write("usable")
    test.equal(read(local.brick + "/f"), "usable", "and usable")
    test.equal(read("/proc/%d/comm" % pid).strip(), "glusterfs", "its name")
    test.equal(read(local.pid_file), "%d\n" % pid, "the pid file's text")
    test.equal(os.readlink("/proc/%d/fd/2" % pid), "/dev/null", "it let go of the terminal")
    test.equal(os.getsid(pid), pid, "a session of its own")
    test.equal(os.stat(local.log).st_mode & 0o7777, 0o600, "the log's mode")
    first = read(local.log).split("\n")[0]
    test.check(re.match(r"^\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{6} \+0000\] I \[MSGID: 100030\] "
                        r"\[\w+\.c:\d+:\w+\] 0-glusterfs: Started running version "
                        r"\[\{arg=glusterfs\}, \{version=10\.3\}, \{cmdlinestr=.*\}\] $", first),
               "the log's first line\n" + first)
    test.check("Final graph:\n+-----" in read(local.log), "the graph in the log")
    test.check("  2:     type storage/posix\n" in read(local.log), "with line numbers")
    test.check("performance/md-cache is empty: " in read(local.log), "what is empty says so")

    second = subprocess.run(local.argv(), stdin=subprocess.DEVNULL, capture_output=True, text=True,
                            timeout=60, check=False)
    test.equal(second.returncode, 1, "the pid file is locked: exit status")
    test.check("pidfile %s lock failed" % local.pid_file in second.stderr,
               "the pid file is locked: " + second.stderr)
    test.equal(read(local.pid_file), "%d\n" % pid, "and still the first one's")

    os.kill(pid, signal.SIGTERM)
    test.check(local.ended(pid), "SIGTERM ends it")
    test.check(not harness.is_mount_point(local.dir), "nothing is mounted any more")
    test.check(not os.path.exists(local.pid_file), "the pid file is gone")
    test.check("received signum (15), shutting down" in read(local.log), "the log says so")


def umount_ends_it(test, local):
    pid = local.start()
    test.run(["umount", local.dir])
    test.check(local.ended(pid), "umount(8) ends the process")
    test.check(not os.path.exists(local.pid_file), "cleanly")


def stops_while_in_use(test, local):
    pid = local.start()
    held = os.open(local.dir + "/open", os.O_RDWR | os.O_CREAT)
    os.write(held, b"x")
    os.kill(pid, signal.SIGINT)
    test.check(local.ended(pid), "SIGINT ends it with a file open")
    test.check(not harness.is_mount_point(local.dir), "and unmounts")
    with contextlib.suppress(OSError):
        os.close(held)


def few_descriptors_are_enough(test, local):
    """The directories that a brick holds open leave room where the limit is low."""
    poor = ["setpriv", "--bounding-set=-sys_resource", "prlimit", "--nofile=600:600"]
    done = subprocess.run(poor + local.argv(), stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=60, check=False)
    test.require(done.returncode == 0, "it starts\n" + done.stderr)
    pid = int(read(local.pid_file))
    test.check(re.search(r"Max open files\s+600\s+600", read("/proc/%d/limits" % pid)),
               "600 descriptors are all it has")
    for i in range(800):
        os.makedirs(local.dir + "/many/d%d/below" % i)
    test.equal(len(os.listdir(local.dir + "/many")), 800, "800 directories were used")
    test.run(["umount", local.dir])
    test.check(local.ended(pid), "it ends")


def follows_signals(test, local):
    pid = local.start()
    os.rename(local.log, local.log + ".1")
    local.write("600", "    option log-level DEBUG\n")
    os.kill(pid, signal.SIGHUP)
    test.check(harness.wait_for(lambda: os.path.exists(local.log), 10)[0],
               "SIGHUP opens the log anew")
    test.check(local.logged("option md-cache-timeout becomes 600"), "and takes over an option")
    test.check(local.logged("  8:     option md-cache-timeout 600"), "which the graph then shows")

    os.kill(pid, signal.SIGHUP)
    test.check(local.logged("No change in volfile,continuing"), "no change is none")
    local.write("601", "")
    os.kill(pid, signal.SIGHUP)
    test.check(local.logged("'601' in 'option md-cache-timeout 601' is out of range [0 - 600]"),
               "a wrong value is refused")
    with open(local.volfile, "a", encoding="ascii") as out:
        out.write("volume more type debug/trace subvolumes top end-volume\n")
    local_text = read(local.volfile).replace("timeout 601", "timeout 5")
    with open(local.volfile, "w", encoding="ascii") as out:
        out.write(local_text)
    os.kill(pid, signal.SIGHUP)
    test.check(local.logged("the volume file has other volumes now"), "another shape is told")
    with open(local.volfile, "w", encoding="ascii") as out:
        out.write("junk")
    os.kill(pid, signal.SIGHUP)
    test.check(local.logged("syntax error in line 1: \"junk\""), "junk is told")
    with open(local.dir + "/after", "w", encoding="ascii") as out:
        out.write("x")
    test.equal(read(local.brick + "/after"), "x", "and writes")

    os.kill(pid, signal.SIGUSR1)
    dumps = lambda: glob.glob("/var/run/gluster/glusterdump.%d.dump.*[0-9]" % pid)
    test.require(harness.wait_for(dumps, 10)[0], "SIGUSR1 writes a statedump")
    text = read(dumps()[0])
    test.check(text.startswith("DUMP-START-TIME: 2"), "its first line")
    test.check(text.rstrip().split("\n")[-1].startswith("DUMP-END-TIME: "), "its last line")
    for section in ("mallinfo", "global.callpool", "mempool", "iobuf.global", "lanes", "fibers",
                    "buffers", "leases", "storage/posix.p", "performance/md-cache.cache",
                    "debug/io-stats.top", "mount/fuse.fuse"):
        test.check("\n[%s]\n" % section in text, "section [%s]" % section)
    test.check("xlator.mount.fuse.itable.active_size=" in text, "the inode table's size")
    os.kill(pid, signal.SIGTERM)
    test.check(local.ended(pid), "SIGTERM ends it")


def a_start_can_be_given_up(test):
    """Ctrl-C at the waiting command ends the daemon that waits for its brick."""
    home, target = test.fresh_dir("giveup"), test.fresh_dir("target")
    with open(home + "/c.vol", "w", encoding="ascii") as out:
        out.write("volume c type protocol/client option remote-host %s option remote-port %d "
                  "option transport-type tcp option remote-subvolume b end-volume\n"
                  % (harness.ADDRESS, test.fresh_port()))
    waiting = subprocess.Popen([harness.program_path("ours", "glusterfs"), "-f", home + "/c.vol",
                                "-l", home + "/log", "-p", home + "/pid", target],
                               stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    test.require(harness.wait_for(lambda: os.path.exists(home + "/pid") and
                                  read(home + "/pid").endswith("\n"), 10)[0], "it started")
    pid = int(read(home + "/pid"))
    began = time.monotonic()
    waiting.send_signal(signal.SIGINT)
    test.check(waiting.wait(timeout=30) != 0, "the command fails")
    test.check(time.monotonic() - began < 10, "at once")
    test.check(harness.wait_for(lambda: is_gone(pid), 10)[0], "the daemon is gone")
    test.check(not harness.is_mount_point(target), "nothing is mounted")


def says_who_it_is(test):
    program = harness.program_path("ours", "glusterfsd")
    version = test.run([program, "--version"]).text.split("\n")
    test.equal(version[0], "glusterfs 10.3", "the version's first line")
    test.check("Mortar" in version[1], "the second says who we are")
    for flag, path in (("logdir", "/var/log/glusterfs"), ("statedumpdir", "/var/run/gluster")):
        test.equal(test.run([program, "--print-" + flag]).text, path + "\n", "--print-" + flag)
        test.equal(test.run(["glusterfsd", "--print-" + flag]).text, path + "\n", "as the genuine")
    for flag in ("xlatordir", "libexecdir"):
        test.equal(test.run([program, "--print-" + flag]).text,
                   test.run(["glusterfsd", "--print-" + flag]).text, "--print-" + flag)


def debug_runs_in_front(test, local):
    local.write("1", "")
    process = subprocess.Popen(local.argv("--debug"), stdin=subprocess.DEVNULL,
                               stderr=subprocess.PIPE, text=True)
    test.require(harness.wait_for(lambda: harness.is_mount_point(local.dir), 20)[0], "it mounts")
    test.equal(int(read(local.pid_file)), process.pid, "the same process")
    process.send_signal(signal.SIGTERM)
    _, text = process.communicate(timeout=30)
    test.equal(process.returncode, 0, "a clean end is status 0\n" + text[-3000:])
    test.check("Started running version" in text, "the log goes to stderr")


def story(test):
    local = Local(test)
    with test.step("start and stop", limit=120):
        starts_and_stops(test, local)
    with test.step("umount", limit=60):
        umount_ends_it(test, local)
    with test.step("stop while in use", limit=60):
        stops_while_in_use(test, local)
    with test.step("few descriptors", limit=60):
        few_descriptors_are_enough(test, local)
    with test.step("signals", limit=120):
        follows_signals(test, local)
    with test.step("giving up", limit=60):
        a_start_can_be_given_up(test)
    with test.step("--debug", limit=60):
        debug_runs_in_front(test, local)
    with test.step("version and directories", limit=30):
        says_who_it_is(test)


harness.main(story, __doc__)
