#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""F: O_DIRECT on a mount is what it is in a local directory of the same file system: same bytes,
same counts, same errors, from 512 bytes to 8 MiB, aligned or not; and what is large travels
in requests of 1 MiB.

    tests/interop/f_direct.py --brick ours --client ours

Two things the kernel does for every FUSE file before a server hears of it. It copies the caller's
memory, so that memory is as good aligned as not. And it cuts at 1 MiB: of a larger call, the MiB
before the first that is refused (one that does not end aligned; or where a hole ends, in which
alignment does not matter) are done, a short count instead of EINVAL. There the mount may do so; the
data must be right.
"""
import errno
import glob
import mmap
import os
import re
import signal
import time

import common           # noqa: F401 (finds the harness)
import harness

MIB = 1 << 20
SIZES = [512 << n for n in range(15)]           # 512 B to 8 MiB
FILE_BYTES = 20 * MIB
ODD = [1, 511, 513, 4095, 12345, MIB - 1, MIB + 512, 3 * MIB + 4096]
DUMPS = "/var/run/gluster"


def story(test):
    brick = test.brick(test.args.brick)
    mount = test.mount(test.args.client, brick)
    pair = Pair(test, mount.dir, test.fresh_dir("local"))
    for piece in (pair.aligned, pair.misaligned_offsets, pair.misaligned_lengths,
                  pair.misaligned_memory, pair.ends, pair.append, pair.mixed_with_buffered):
        with test.step(piece.__name__, limit=120):
            piece()
    with test.step("random", limit=600):
        pair.random(test.number(check=400, soak=8000))
    if test.args.brick == test.args.client == "ours":
        with test.step("1 MiB travels as such", limit=60):
            travels_whole(test, brick, mount)
    pair.close()


class Memory:
    """A page-aligned piece of memory, to be used from an offset on."""

    def __init__(self, size):
        self.map = mmap.mmap(-1, size + 2 * mmap.PAGESIZE)

    def at(self, offset, size):
        return memoryview(self.map)[offset:offset + size]


class Pair:
    """The same file twice; every operation is done on both and compared."""

    def __init__(self, test, mount, local):
        self.test = test
        self.request_bytes = MIB if test.args.client == "ours" else 128 << 10
        self.paths = [os.path.join(place, "file") for place in (mount, local)]
        self.memory = Memory(9 * MIB)
        block = test.random.randbytes(FILE_BYTES)
        for path in self.paths:
            with open(path, "wb") as out:
                out.write(block)
        self.fds = [os.open(path, os.O_RDWR | os.O_DIRECT) for path in self.paths]

    def close(self):
        for fd in self.fds:
            os.close(fd)

    # -- one operation on one file

    def write(self, fd, offset, size, memory, data):
        view = self.memory.at(memory, size)
        view[:] = data
        return attempt(os.pwrite, fd, view, offset)

    def read(self, fd, offset, size, memory):
        view = self.memory.at(memory, size)
        view[:] = bytes(size)
        result = attempt(os.preadv, fd, [view], offset)
        return result, bytes(view[:result]) if isinstance(result, int) else b""

    # -- on both

    def compare(self, what, size, got, expected, lenient):
        """lenient: where the local one refuses for the memory's sake, the mount may succeed."""
        is_cut = isinstance(got, int) and 0 < got < size and got % self.request_bytes == 0
        if expected == "EINVAL" and (is_cut or lenient and got == size):
            self.test.ok(what + ": more than local")
            return True
        return self.test.equal(got, expected, what)

    def both_write(self, offset, size, memory=0, lenient=False):
        what = "write %d at %d, memory at %d" % (size, offset, memory)
        data = self.test.random.randbytes(size)
        got, expected = (self.write(fd, offset, size, memory, data) for fd in self.fds)
        self.compare(what, size, got, expected, lenient)
        if got != expected:         # the files are to stay the same
            for path in self.paths:
                with open(path, "r+b") as out:
                    out.seek(offset)
                    out.write(data)

    def both_read(self, offset, size, memory=0, lenient=False):
        what = "read %d at %d, memory at %d" % (size, offset, memory)
        got, expected = (self.read(fd, offset, size, memory) for fd in self.fds)
        if not self.compare(what, size, got[0], expected[0], lenient):
            return
        if got[0] != expected[0]:
            with open(self.paths[1], "rb") as local:
                expected = got[0], os.pread(local.fileno(), got[0], offset)
        self.test.check(got[1] == expected[1], what + ": same bytes")

    def same_content(self, what):
        contents = []
        for path in self.paths:
            with open(path, "rb") as data:
                contents.append(data.read())
        self.test.check(contents[0] == contents[1], what + ": same content of both files")

    # -- the cases

    def aligned(self):
        for size in SIZES:
            for offset in (0, size, 4096, 8 * MIB):
                self.both_write(offset, size)
                self.both_read(offset, size)
        self.same_content("aligned")

    def misaligned_offsets(self):
        for size in (512, 4096, 65536, MIB, 2 * MIB):
            for offset in (1, 256, 511, 512, 1024, 4097, MIB + 7, MIB + 512):
                self.both_write(offset, size)
                self.both_read(offset, size)
        self.same_content("misaligned offsets")

    def misaligned_lengths(self):
        for size in ODD:
            for offset in (0, 4096, 4 * MIB):
                self.both_write(offset, size)
                self.both_read(offset, size)
        self.same_content("misaligned lengths")

    def misaligned_memory(self):
        for size in (512, 4096, 65536, MIB, 8 * MIB):
            for memory in (1, 4, 256, 512, 4095):
                self.both_write(4096, size, memory, lenient=True)
                self.both_read(4096, size, memory, lenient=True)
        self.same_content("misaligned memory")

    def ends(self):
        """At, over and beyond the end of the file, which need not be aligned itself."""
        for length in (FILE_BYTES, FILE_BYTES - 512, FILE_BYTES - 100, 5000):
            for path in self.paths:
                os.truncate(path, length)
            down = length // 4096 * 4096
            for offset in (down - 4096, down, down + 4096, down + MIB):
                for size in (4096, MIB):
                    self.both_read(offset, size)
        self.both_write(MIB, 4096)          # leaves a hole
        self.both_read(0, 2 * MIB)
        self.same_content("ends")
        for path in self.paths:
            os.truncate(path, FILE_BYTES)

    def append(self):
        paths = [path + ".append" for path in self.paths]
        fds = [os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_DIRECT)
               for path in paths]
        for size in (4096, 512, 4096, 1000, 65536, MIB, 3 * MIB):
            view = self.memory.at(0, size)
            view[:] = bytes([size % 251]) * size
            got, expected = (attempt(os.write, fd, view) for fd in fds)
            self.test.equal(got, expected, "append %d" % size)
        for fd in fds:
            os.close(fd)
        with open(paths[0], "rb") as one, open(paths[1], "rb") as two:
            self.test.check(one.read() == two.read(), "appended: same content")

    def mixed_with_buffered(self):
        """What a buffered descriptor wrote is what a direct one reads, and the other way round."""
        for number in range(20):
            offset, data = number * 4096 * 3, self.test.random.randbytes(4096)
            for index, path in enumerate(self.paths):
                with open(path, "r+b", buffering=0) as out:
                    out.seek(offset)
                    out.write(data)
                    result, found = self.read(self.fds[index], offset, 4096, 0)
                    self.test.check(result == 4096 and found == data, "direct reads buffered")
                    changed = data[::-1]
                    self.write(self.fds[index], offset, 4096, 0, changed)
                    out.seek(offset)
                    self.test.check(out.read(4096) == changed, "buffered reads direct")
        self.same_content("mixed")

    def random(self, rounds):
        draw = self.test.random
        for _ in range(rounds):
            size = draw.choice(SIZES) // draw.choice((1, 1, 2, 3)) // 512 * 512 or 512
            offset = draw.randrange(FILE_BYTES - size) // 512 * 512
            if draw.random() < 0.1:
                offset += draw.randrange(512)
            if draw.random() < 0.1:
                size += draw.randrange(-300, 300)
            draw.choice((self.both_write, self.both_read))(offset, size)
        self.same_content("random")


def attempt(call, *args):
    """Its result, or the name of its errno."""
    try:
        return call(*args)
    except OSError as error:
        return errno.errorcode[error.errno]


# ---------------------------------------------------------------- how it travels

def block_counts(brick):
    """{size class: (reads, writes)} of the brick's io-stats, from a fresh statedump."""
    before = set(glob.glob(DUMPS + "/*.dump.*"))
    brick.signal(signal.SIGUSR1)
    due = time.monotonic() + 10
    while True:
        new = [path for path in set(glob.glob(DUMPS + "/*.dump.*")) - before
               if ".%d.dump." % brick.pid in path]
        if new:
            break
        if time.monotonic() > due:
            raise harness.Failed("no statedump within 10 s")
        time.sleep(0.05)
    with open(new[0], encoding="utf-8", errors="replace") as lines:
        text = lines.read()
    os.unlink(new[0])
    return {int(size): (int(reads), int(writes)) for size, reads, writes in
            re.findall(r"^block_(\d+)b=reads:(\d+) writes:(\d+)$", text, re.MULTILINE)}


def travels_whole(test, brick, mount):
    memory = Memory(8 * MIB)
    path = os.path.join(mount.dir, "whole")
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_DIRECT)
    before = block_counts(brick)
    for size, count in ((MIB, 6), (8 * MIB, 2)):
        for number in range(count):
            view = memory.at(0, size)
            test.equal(os.pwrite(fd, view, number * size), size, "written")
            test.equal(os.preadv(fd, [view], number * size), size, "read")
    after = block_counts(brick)
    os.close(fd)
    done = {size: [after[size][way] - before.get(size, (0, 0))[way] for way in (0, 1)]
            for size in after}
    test.equal({size: counts for size, counts in done.items() if counts != [0, 0]},
               {MIB: [22, 22]}, "the brick saw 22 reads and 22 writes, of 1 MiB each")


if __name__ == "__main__":
    harness.main(story, __doc__)
