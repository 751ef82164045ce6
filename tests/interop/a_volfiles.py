#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""A: the volfiles of 2009 (seed S4) load as they are, directory, addresses and ports apart, and
serve what people do with a file system; then with the translators that they have in comments.

    tests/interop/a_volfiles.py --brick ours --client ours

Each piece of work is done on the mount and in a local directory, and the two are compared.
"""
import os
import shutil

import common
import harness
import trees

COMPILED_FILES = 12


def story(test):
    source = test.fresh_dir("source")
    trees.fill(source, test.random, files=test.number(check=150, soak=1500))
    make_repository(test, source + "/repository")
    for stack in ("s4", "s4-perf"):
        brick = harness.Brick(test, test.args.brick, stack="s4").start_detached()
        mount = harness.Mount(test, test.args.client, brick, stack=stack,
                              extra_args=s4_flags(test.args.client)).mount_detached()
        work = Work(test, source, mount.dir, test.fresh_dir("local"))
        if stack == "s4-perf" and test.args.client == "genuine":
            work.without = ["mtime"]        # its write-behind writes after utimes, now and then
        for piece in (work.dd, work.dd_direct, work.cp, work.rsync, work.tar, work.git,
                      work.compile):
            with test.step("%s: %s" % (stack, piece.__name__), limit=300):
                piece()
        with test.step("%s: the end" % stack, limit=120):
            common.compare_trees(test, mount.dir, work.local, "all of it", ["mtime"])
            mount.umount()
            brick.stop()
            common.check_brick(test, brick, stack, common.marks_of_genuine([test.args.brick]))


def s4_flags(kind):
    """The user's command; genuine 10.3 has forgotten the log level NORMAL."""
    return ["--log-level=NORMAL"] if kind == "ours" else []


def make_repository(test, path):
    os.mkdir(path)
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@localhost", "-C", path]
    test.run(git + ["init", "-q"])
    for number in range(8):
        for name in range(10):
            harness.write_text("%s/%d.txt" % (path, name), "%d\n" % (number * name) * 500)
        test.run(git + ["add", "-A"])
        test.run(git + ["commit", "-q", "-m", "change %d" % number])


class Work:
    """What is done, each on the mount and in the local directory."""

    def __init__(self, test, source, mount, local):
        self.test, self.source, self.mount, self.local = test, source, mount, local
        self.without = []

    def both(self, argv, name):
        """argv with DIR for the place; then the places are compared."""
        for place in (self.mount, self.local):
            self.test.run([word.replace("DIR", place) for word in argv], limit=240, cwd=place)
        got, expected = os.path.join(self.mount, name), os.path.join(self.local, name)
        if os.path.isdir(expected):
            common.compare_trees(self.test, got, expected, name, self.without)
        else:
            self.test.run(["cmp", got, expected], limit=60)
            self.test.ok(name + ": same content")

    def dd(self):
        random = os.path.join(self.source, "random")
        self.test.run(["dd", "if=/dev/urandom", "of=" + random, "bs=1M", "count=24"])
        for size in ("4k", "128k", "1M"):
            self.both(["dd", "if=" + random, "of=DIR/dd-" + size, "bs=" + size], "dd-" + size)
        self.both(["dd", "if=DIR/dd-1M", "of=DIR/dd-back", "bs=3000"], "dd-back")

    def dd_direct(self):
        random = os.path.join(self.source, "random")
        for size in ("4k", "64k", "1M", "8M"):
            name = "direct-" + size
            self.both(["dd", "if=" + random, "of=DIR/" + name, "bs=" + size, "count=8",
                       "oflag=direct", "iflag=fullblock"], name)
            self.both(["dd", "if=DIR/" + name, "of=DIR/%s-back" % name, "bs=" + size,
                       "iflag=direct"], name + "-back")

    def cp(self):
        self.both(["cp", "-a", self.source + "/tree", "DIR/cp"], "cp")
        self.both(["cp", "-a", "DIR/cp", "DIR/cp-again"], "cp-again")

    def rsync(self):
        self.both(["rsync", "-aHX", self.source + "/tree/", "DIR/rsync/"], "rsync")
        trees.change(self.source + "/tree", self.test.random, changes=40)
        self.both(["rsync", "-aHX", "--delete", "--no-whole-file", "--modify-window=-1",
                   self.source + "/tree/", "DIR/rsync/"], "rsync")

    def tar(self):
        self.both(["sh", "-c", "tar -C %s -cf DIR/t.tar tree && mkdir -p DIR/tar && "
                   "tar -C DIR/tar -xpf DIR/t.tar" % self.source], "tar")

    def git(self):
        self.both(["git", "clone", "-q", "--no-hardlinks", self.source + "/repository", "DIR/git"],
                  "git/1.txt")
        for place in (self.mount, self.local):
            clone = os.path.join(place, "git")
            self.test.run(["git", "-C", clone, "fsck", "--full", "--strict"])
            status = self.test.run(["git", "-C", clone, "status", "--porcelain"])
            self.test.equal(status.text, "", "nothing is modified in the clone")
            shutil.rmtree(clone)

    def compile(self):
        for place in (self.mount, self.local):
            write_program(os.path.join(place, "program"))
            self.test.run(["make", "-j2", "-C", os.path.join(place, "program")], limit=200)
            result = self.test.run([os.path.join(place, "program", "sum")])
            self.test.equal(result.text, "%d\n" % sum(range(COMPILED_FILES)), "the program's sum")
        self.both(["true"], "program/sum")


def write_program(path):
    """A few sources and a Makefile: headers, objects, an archive, a program that is run."""
    os.mkdir(path)
    names = ["part%d" % number for number in range(COMPILED_FILES)]
    harness.write_text(path + "/parts.h", "".join("int %s(void);\\n" % name for name in names)
                       .replace("\\n", "\n"))
    for number, name in enumerate(names):
        harness.write_text("%s/%s.c" % (path, name), '#include "parts.h"\n#include <stdio.h>\n'
                           "int %s(void)\n{\n    return %d;\n}\n" % (name, number))
    harness.write_text(path + "/main.c", '#include "parts.h"\n#include <stdio.h>\nint main(void)\n'
                       '{\n    return printf("%%d\\n", %s) < 0;\n}\n'
                       % " + ".join(name + "()" for name in names))
    harness.write_text(path + "/Makefile", "sum: main.o libparts.a\n\tcc -o $@ main.o libparts.a\n"
                       "libparts.a: %s\n\tar rcD $@ $^\n" % " ".join(name + ".o" for name in names))


if __name__ == "__main__":
    harness.main(story, __doc__)
