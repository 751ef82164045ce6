#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What a brick pays for a cached 4 KiB read over one unix connection, 16 in flight, against a bare
prototype that answers the same messages (bench/bare_server.c), in one run. The bound is twice."""
import os
import re
import statistics
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "tests", "lib"))
import harness  # noqa: E402

VOLFILE = """\
volume posix
 type storage/posix
 option directory %(dir)s
 option health-check-interval 0
end-volume
volume brick
 type performance/io-threads
 subvolumes posix
end-volume
volume server
 type protocol/server
 option transport-type unix
 option transport.socket.listen-path %(socket)s
 option auth.addr.brick.allow *
 subvolumes brick
end-volume
"""
DEPTH, SECONDS, ROUNDS = 16, 2, 3
FOUND = re.compile(r"(\d+) operations, ([\d.]+) us")


class UnixBrick(harness.Brick):
    def start(self):
        self.socket = os.path.join(self.home, "brick.socket")
        path = os.path.join(self.home, "server.vol")
        harness.write_text(path, VOLFILE % {"dir": self.dir, "socket": self.socket})
        self.spawn(["-N", "-f", path, "-l", self.log])
        self.await_true("socket is there", lambda: os.path.exists(self.socket))
        return self


def measure(test, arguments):
    text = test.run([test.tool("read_depth")] + arguments, limit=60).text
    return float(FOUND.search(text).group(2))


def bare(test, path):
    socket = os.path.join(test.fresh_dir("bare"), "socket")
    process = subprocess.Popen([test.tool("bare_server"), socket, path])
    while not os.path.exists(socket):
        time.sleep(0.01)
    try:
        return measure(test, ["--bare", socket, "-", "-", str(DEPTH), str(SECONDS), str(process.pid)])
    finally:
        process.kill()
        process.wait()


def story(test):
    with test.step("server CPU of a cached read, depth 16", limit=120):
        brick = UnixBrick(test, "ours").start()
        mount = test.mount("ours", volfile="volume client\n type protocol/client\n"
                           " option transport-type unix\n option transport.socket.connect-path %s\n"
                           " option remote-subvolume brick\nend-volume\n" % brick.socket)
        with open(os.path.join(mount.dir, "data"), "wb") as out:
            out.write(os.urandom(64 << 20))
        mount.umount()
        pairs = [(measure(test, [brick.socket, "brick", "data", str(DEPTH), str(SECONDS),
                                 str(brick.pid)]), bare(test, os.path.join(brick.dir, "data")))
                 for _ in range(ROUNDS)]
        ratio = statistics.median(ours / base for ours, base in pairs)
        print("server CPU per read: ours %.2f us, bare %.2f us, ratio %.2f (bound 2)"
              % (statistics.median(one for one, _ in pairs),
                 statistics.median(base for _, base in pairs), ratio))
        test.ok("measured")
    with test.step("clean up", limit=60):
        test.stop_all()


harness.main(story, __doc__)
