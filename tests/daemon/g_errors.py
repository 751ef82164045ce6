#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What is wrong is said: one clear message on stderr, the right exit status, nothing left behind.
Wrong volfiles, wrong flags, a missing or unfit brick directory, a busy port, no /dev/fuse, no root,
no brick to connect to."""
import os
import socket
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import harness

USER = 1000


def posix(directory):
    return "volume p\n type storage/posix\n option directory %s\nend-volume\n" % directory


class Case:
    """Runs our daemon until it says no."""

    def __init__(self, test):
        self.test = test
        self.home = test.fresh_dir("errors")
        os.chmod(self.home, 0o777)
        self.count = 0

    def file(self, text):
        self.count += 1
        path = os.path.join(self.home, "v%d.vol" % self.count)
        with open(path, "wb") as out:
            out.write(text if isinstance(text, bytes) else text.encode())
        return path

    def run(self, program, argv, limit=40, prefix=()):
        self.count += 1
        log = os.path.join(self.home, "log%d" % self.count)
        more = [] if any(word.startswith("-l") for word in argv) else ["-l", log]
        done = subprocess.run(list(prefix) + [harness.program_path("ours", program)] + more + argv,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=limit, text=True, cwd=self.home,
                              errors="backslashreplace", check=False)
        return done

    def refused(self, what, done, status, said, lines=1):
        self.test.equal(done.returncode, status, "%s: exit status" % what)
        self.test.check(said in done.stderr, "%s: stderr says %r\n%s" % (what, said, done.stderr))
        count = len(done.stderr.strip().split("\n"))
        self.test.check(count <= lines, "%s: in %d line(s)\n%s" % (what, lines, done.stderr))
        self.test.equal(done.stdout, "", "%s: stdout" % what)
        self.test.check(not our_processes(), "%s: no process is left" % what)

    def volfile(self, what, text, said, lines=1):
        path = self.file(text)
        self.refused(what, self.run("glusterfsd", ["-f", path]), 1, said, lines)
        self.refused(what + ", -N", self.run("glusterfsd", ["-N", "-f", path]), 1, said, lines)


def our_processes():
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/stat" % pid, encoding="ascii", errors="replace") as data:
                name, rest = data.read().split("(", 1)[1].rsplit(")", 1)
            if name in ("glusterfs", "glusterfsd") and rest.split()[0] != "Z":
                found.append(pid)
        except OSError:
            pass
    return found


def wrong_volfiles(case, brick):
    base = posix(brick)
    case.volfile("an unknown type", base + "volume a\n type cluster/foo\n subvolumes p\nend-volume",
                 "Volume 'a', line 6: type 'cluster/foo' is not valid or not found on this machine")
    case.volfile("a type of a later issue",
                 base + "volume a\n type features/shard\n subvolumes p\nend-volume",
                 "type 'features/shard' cannot be loaded: it is not in this version")
    case.volfile("a mount in a volfile", "volume a\n type mount/fuse\n option x y\nend-volume",
                 "fuse xlator cannot be specified in volume file")
    case.volfile("a missing subvolume",
                 base + "volume a\n type debug/trace\n subvolumes q\nend-volume",
                 "Volume 'a', line 7: subvolume 'q' is not defined prior to usage", lines=2)
    case.volfile("a volume over itself",
                 base + "volume a\n type debug/trace\n subvolumes a\nend-volume",
                 "Volume 'a', line 7: has 'a' itself as subvolume", lines=2)
    case.volfile("a cycle", base + "volume a\n type debug/trace\n subvolumes b\nend-volume\n"
                 "volume b\n type debug/trace\n subvolumes a\nend-volume",
                 "Volume 'a', line 7: subvolume 'b' is not defined prior to usage", lines=2)
    case.volfile("a duplicate", base + base, "Line 5: volume 'p' defined again")
    case.volfile("a bad value", base + "volume a\n type performance/io-threads\n"
                 " option thread-count lots\n subvolumes p\nend-volume",
                 "a: validation failed: invalid number format \"lots\" in option \"thread-count\"")
    case.volfile("a value out of range", base + "volume a\n type performance/io-threads\n"
                 " option thread-count 65\n subvolumes p\nend-volume",
                 "'65' in 'option thread-count 65' is out of range [1 - 64]")
    case.volfile("no end", "volume a\n type storage/posix\n option directory /x\n",
                 "syntax error: line 4 (volume 'a'): \"\"")
    case.volfile("an empty file", "", "syntax error in line 1: \"\"")
    case.volfile("a command in back-quotes", "volume a\n type `id`\nend-volume",
                 "line (2), column (7): commands in back-quotes are never run")
    with open("/bin/ls", "rb") as junk:
        case.volfile("binary junk", junk.read(30000), "line 1: a NUL byte: this is no volume file")
    case.volfile("text junk", bytes(range(1, 32)), "syntax error in line")
    case.volfile("what cannot be switched on",
                 base + "volume a\n type features/worm\n option worm on\n subvolumes p\nend-volume",
                 "files cannot be made write-once in this version")


def an_unknown_option(test, case, brick):
    """Is no error: a line at DEBUG, and on it goes."""
    path = case.file(posix(brick).replace("end-volume", " option never-heard-of x\nend-volume"))
    log = os.path.join(case.home, "unknown.log")
    done = case.run("glusterfsd", ["-f", path, "-L", "DEBUG", "-l" + log, "-p",
                                   os.path.join(case.home, "pid")])
    test.equal(done.returncode, 0, "an unknown option: exit status")
    test.equal(done.stderr, "", "an unknown option: stderr")
    with open(log, encoding="utf-8") as data:
        test.check("0-p: option 'never-heard-of' is not recognized" in data.read(),
                   "an unknown option: a line in the log")
    for pid in our_processes():
        os.kill(int(pid), 15)
    test.check(harness.wait_for(lambda: not our_processes(), 20)[0], "it ends at SIGTERM")


def missing_files(case):
    nothing = os.path.join(case.home, "nothing.vol")
    said = "loading volume file failed [{volume_file=%s}, {errno=2}" % nothing
    case.refused("no volfile", case.run("glusterfsd", ["-f", nothing]), 1, said)
    case.refused("no volfile, -N", case.run("glusterfsd", ["-N", "-f", nothing]), 250, said)
    case.refused("no default volfile", case.run("glusterfs", ["/tmp"]), 255,
                 "USAGE: glusterfs [options] [mountpoint]")


def bricks(test, case, brick):
    case.volfile("no brick directory", posix(case.home + "/missing"),
                 "brick directory %s/missing does not exist" % case.home)
    case.volfile("a brick that is a file", posix(case.file("x")), "is not a directory")
    case.volfile("no xattrs", posix("/proc/self"),
                 "lies on a file system without extended attributes")
    case.volfile("no directory option", "volume p\n type storage/posix\n option x y\nend-volume",
                 "p: validation failed: option 'directory' is missing")
    with socket.socket() as one:
        one.bind(("0.0.0.0", test.fresh_port()))
        one.listen()
        port = one.getsockname()[1]
        case.volfile("a busy port", posix(brick) + "volume s\n type protocol/server\n"
                     " option transport-type tcp\n option transport.socket.listen-port %d\n"
                     " option auth.addr.p.allow *\n subvolumes p\nend-volume" % port,
                     "cannot listen on 0.0.0.0:%d" % port)


def mounts(test, case, brick):
    path = case.file(posix(brick))
    target = test.fresh_dir("target")

    def refused(what, done, said):
        case.refused(what, done, 1, said)
        test.check(not harness.is_mount_point(target), what + ": nothing is mounted")

    refused("no mount point", case.run("glusterfs", ["-f", path, case.home + "/missing"]),
            "cannot mount on %s/missing: there is no such directory" % case.home)
    refused("a mount point that is a file", case.run("glusterfs", ["-f", path, path]),
            "cannot mount on %s: it is not a directory" % path)
    refused("no /dev/fuse", case.run("glusterfs", ["-f", path, target], prefix=[
        "unshare", "-m", "sh", "-c", "mount -t tmpfs none /dev && exec \"$@\"", "sh"]),
            "/dev/fuse is missing")
    as_user = ["setpriv", "--reuid=%d" % USER, "--regid=%d" % USER, "--clear-groups"]
    user_brick = test.fresh_dir("user-brick")
    os.chown(user_brick, USER, USER)
    done = case.run("glusterfs", ["-f", case.file(posix(user_brick)), target], prefix=as_user)
    test.equal(done.returncode, 1, "not root: exit status")
    test.check("CAP_SYS_ADMIN" in done.stderr or "root" in done.stderr,
               "not root: stderr says what is needed\n" + done.stderr)
    test.check(not our_processes(), "not root: no process is left")


def no_brick(test, case):
    client = ("volume c\n type protocol/client\n option transport-type tcp\n option remote-host %s\n"
              " option remote-port %d\n option remote-subvolume brick\nend-volume\n"
              % (harness.ADDRESS, test.fresh_port()))
    target = test.fresh_dir("target")
    began = time.monotonic()
    done = case.run("glusterfs", ["-f", case.file(client), target], limit=60)
    test.check(time.monotonic() - began < 40, "no brick: told within 40 s")
    case.refused("no brick", done, 1, "no brick could be reached", lines=2)
    test.check(not harness.is_mount_point(target), "no brick: nothing is mounted")
    case.refused("no management daemon",
                 case.run("glusterfs", ["-s", harness.ADDRESS, "--volfile-id=v", target]), 1,
                 "failed to fetch volume file 'v' from %s: Connection refused" % harness.ADDRESS)


FLAGS = [
    (["--log-level=FOO"], "unknown log level FOO"),
    (["--log-format=x"], "unknown log format x"),
    (["--logger=x"], "unknown logger x"),
    (["--log-buf-size=33"], "Invalid log buf size 33. Valid range: [0,20]"),
    (["--log-flush-timeout=1"], "Invalid log flush timeout 1. Valid range: [30,300]"),
    (["--oom-score-adj=9999"], "unknown oom_score_adj value 9999"),
    (["--direct-io-mode=foo"], "unknown direct I/O mode setting \"foo\""),
    (["--negative-timeout=-1"], "unknown negative timeout -1"),
    (["--entry-timeout=abc"], "unknown entry timeout abc"),
    (["--gid-timeout=x"], "unknown group list timeout x"),
    (["--lru-limit=abc"], "unknown LRU limit option abc"),
    (["--invalidate-limit=x"], "unknown invalidate limit option x"),
    (["--background-qlen=x"], "unknown background qlen option x"),
    (["--congestion-threshold=x"], "unknown congestion threshold option x"),
    (["--reader-thread-count=99"], "Invalid reader thread count 99. Valid range: [\"1, 64\"]"),
    (["--attr-times-granularity=2000000000"],
     "Invalid attribute times granularity value 2000000000. Valid range: [\"0, 1000000000\"]"),
    (["--volfile-server-port=x"], "unknown volfile server port x"),
    (["--brick-port=x"], "unknown brick (listen) port x"),
    (["--client-pid=x"], "unknown client pid x"),
    (["--use-readdirp=x"], "unknown use-readdirp setting \"x\""),
    (["--event-history=x"], "unknown event-history setting \"x\""),
    (["--kernel-writeback-cache=x"], "unknown kernel writeback cache setting \"x\""),
    (["--fopen-keep-cache=x"], "unknown cache setting \"x\""),
    (["--mac-compat=x"], "invalid value \"x\" for mac-compat"),
    (["--global-threading=x"], "Invalid value for global threading \"x\""),
    (["--secure-mgmt=x"], "unknown secure-mgmt setting \"x\""),
    (["--user-map-root=nosuchuser"], "user nosuchuser does not exist"),
    (["--subdir-mount=abc"], "expect '/abc', provided just \"abc\""),
    (["--xlator-option=a.b"], "invalid xlator option  a.b"),
    (["--xlator-option=ab=c"], "invalid xlator option  ab=c"),
    (["--worm"], "not be made write-once in this version"),
    (["--aux-gfid-mount"], "not in this version"),
    (["--brick-mux"], "in this version"),
    (["--thin-client"], "in this version"),
    (["-S", "/x.socket"], "in this version"),
]


def flags(test, case, brick):
    path = case.file(posix(brick))
    for argv, said in FLAGS:
        case.refused(" ".join(argv), case.run("glusterfs", ["-f", path] + argv), 255,
                     "glusterfs: " + said if not said.endswith("version") else said)
    done = case.run("glusterfsd", ["--bla"])
    case.refused("an unknown flag", done, 64, "unrecognized option '--bla'", lines=2)
    case.refused("two mount points", case.run("glusterfs", ["-f", path, "/a", "/b"]), 64,
                 "Usage: glusterfs [OPTION...]", lines=4)
    case.refused("an empty mount point", case.run("glusterfs", ["-f", path, ""]), 64,
                 "Usage: glusterfs [OPTION...]", lines=4)
    case.refused("a server without an id", case.run("glusterfs", ["-s", "h", "/mnt"]), 255,
                 "USAGE: glusterfs [options] [mountpoint]", lines=2)
    done = case.run("glusterfsd", ["-f", path, "-l/proc/nowhere/log"])
    case.refused("a log that cannot be", done, 1, "failed to open logfile \"/proc/nowhere/log\"")
    test.check(os.listdir(brick) == [], "no wrong start has touched the brick")


def story(test):
    case, brick = Case(test), test.fresh_dir("brick")
    with test.step("wrong flags", limit=60):
        flags(test, case, brick)
    with test.step("wrong volfiles", limit=60):
        wrong_volfiles(case, test.fresh_dir("brick"))
        missing_files(case)
    with test.step("an unknown option is none", limit=60):
        an_unknown_option(test, case, test.fresh_dir("brick"))
    with test.step("wrong bricks", limit=60):
        bricks(test, case, test.fresh_dir("brick"))
    with test.step("wrong mounts", limit=60):
        mounts(test, case, test.fresh_dir("brick"))
    with test.step("nobody to connect to", limit=90):
        no_brick(test, case)


harness.main(story, __doc__)
