#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""D: kill -9 of a brick in the middle of a storm of creations and removals; then the other kind
serves what is there: every name can be read, listed and removed, and all that was acknowledged
is there.

    tests/interop/d_crash.py --brick ours --client genuine [--other ours]

Each worker has a directory and its own idea of it, which it changes after an answer. Its last
call, the one that the crash cut off, may have happened or not.
"""
import errno
import json
import os
import random
import shutil
import signal
import stat
import time

import common
import harness

KILLS_CHECK, KILLS_SOAK = 6, 80
WORKERS = 4
YOUNG_S = 1.2       # a name without a gfid is not there until it is a second old
LOST = {errno.ENOTCONN, errno.ECONNABORTED, errno.ECONNRESET, errno.ESTALE, errno.EIO,
        errno.ETIMEDOUT, errno.EBADFD}


def story(test):
    other = test.args.other or ("genuine" if test.args.brick == "ours" else "ours")
    brick_dir = test.fresh_dir("brick.dir")
    for number in range(test.number(check=KILLS_CHECK, soak=KILLS_SOAK)):
        with test.step("kill %d, %s, then %s" % (number, common.pair(test), other), limit=120):
            ideas = storm(test, brick_dir, "round%d" % number)
            verify(test, brick_dir, other, ideas)
        test.stop_all()


# ---------------------------------------------------------------- the storm

def storm(test, brick_dir, name):
    """Starts all, kills the brick at a random moment; returns {directory: idea of it}."""
    brick = test.brick(test.args.brick, dir=brick_dir, stack=test.args.stack)
    mount = test.mount(test.args.client, brick, stack=test.args.client_stack)
    os.mkdir(os.path.join(mount.dir, name))
    workers = [start_worker(test, mount.dir, "%s/%d" % (name, number))
               for number in range(WORKERS)]
    ready, _ = harness.wait_for(lambda: all(os.path.exists(log) for _, log, _ in workers), 20)
    test.require(ready, "the workers are at work")
    time.sleep(test.random.uniform(0.01, 0.5))
    brick.kill9()
    umount_dead(mount)
    return {directory: end_worker(test, pid, log) for pid, log, directory in workers}


def umount_dead(mount):
    """Workers may wait in it: whoever does, gets an error and goes."""
    mount.expected = {0, signal.SIGTERM, -signal.SIGTERM}
    mount.signal(signal.SIGTERM)
    mount.await_end()
    mount.test.run(["umount", "-l", mount.dir], ok=None)


def start_worker(test, root, directory):
    log = os.path.join(test.scratch, "worker." + directory.replace("/", "."))
    seed = test.random.randrange(1 << 30)
    pid = os.fork()
    if pid == 0:
        try:
            Worker(os.path.join(root, directory), seed, log, lost_errors(test)).work()
        finally:
            os._exit(1)
    return pid, log, directory


def lost_errors(test):
    """What a call may say when its brick is gone; genuine's client also says ENOENT."""
    return LOST | ({errno.ENOENT} if test.args.client == "genuine" else set())


def end_worker(test, pid, log):
    """Its idea of its directory, as of its last line."""
    ended, _ = harness.wait_for(lambda: os.waitpid(pid, os.WNOHANG)[0], 30)
    if not ended:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        test.fail("a worker hangs")
    with open(log, encoding="ascii") as lines:
        complete = [line for line in lines if line.endswith("\n")]
    test.check(len(complete) > 1, "the worker did something before the crash")
    return replayed([json.loads(line) for line in complete])


class Worker:
    """Makes, links, renames, removes; writes to its log what it will do, and what was done."""

    def __init__(self, root, seed, log, lost):
        self.root, self.random, self.names, self.count = root, random.Random(seed), {}, 0
        self.lost = lost
        self.log = open(log + ".new", "a", encoding="ascii", buffering=1)
        os.mkdir(root)
        os.rename(log + ".new", log)

    def work(self):
        while True:
            step = self.choose()
            self.log.write(json.dumps({"will": step}) + "\n")
            try:
                act(self.root, step)
            except OSError as error:
                if error.errno not in self.lost:
                    self.log.write(json.dumps({"error": "%s: %s" % (step, error)}) + "\n")
                return
            apply(self.names, step)
            self.log.write(json.dumps({"done": step}) + "\n")

    def choose(self):
        """[action, name, more...]"""
        self.count += 1
        new, action = "n%d" % self.count, self.random.randrange(10)
        of = {kind: sorted(name for name, what in self.names.items() if what[0] == kind)
              for kind in ("file", "dir", "symlink", "fifo")}
        old = sorted(set(self.names) - set(of["dir"]))
        if action == 0 and old:
            return ["unlink", self.random.choice(old)]
        if action == 1 and of["file"]:
            return ["link", self.random.choice(of["file"]), new]
        if action == 2 and self.names:
            return ["rename", self.random.choice(sorted(self.names)), new]
        if action == 3 and len(old) > 1:
            return ["rename", *self.random.sample(old, 2)]
        if action == 4 and of["dir"]:
            return ["rmdir", self.random.choice(of["dir"])]
        return [self.random.choice(["create", "mkdir", "symlink", "mkfifo", "write"]), new]


def act(root, step):
    action, path = step[0], os.path.join(root, step[1])
    if action in ("create", "write"):
        with open(path, "xb", buffering=0) as out:
            if action == "write":
                out.write(step[1].encode())
    elif action in ("link", "rename"):
        getattr(os, action)(path, os.path.join(root, step[2]))
    elif action == "symlink":
        os.symlink(step[1], path)
    else:
        getattr(os, action)(path)


def apply(names, step):
    """The same on the idea: {name: [type, content]}, links of a file have the same list."""
    action, name = step[0], step[1]
    if action in ("unlink", "rmdir"):
        del names[name]
    elif action == "link":
        names[step[2]] = names[name]
    elif action == "rename":
        if names.get(step[2]) is not names[name]:       # else links of one file: nothing happens
            names[step[2]] = names.pop(name)
    else:
        names[name] = {"create": ["file", ""], "write": ["file", name], "mkdir": ["dir", ""],
                       "symlink": ["symlink", name], "mkfifo": ["fifo", ""]}[action]


def replayed(lines):
    """({name: what}, the step in doubt or None, an error that no crash explains or None)"""
    names, doubt, error = {}, None, None
    for line in lines:
        if "will" in line:
            doubt = line["will"]
        elif "done" in line:
            apply(names, line["done"])
            doubt = None
        else:
            error = line["error"]
    return names, doubt, error


# ---------------------------------------------------------------- afterwards

def verify(test, brick_dir, kind, ideas):
    time.sleep(YOUNG_S)
    brick = test.brick(kind, dir=brick_dir, stack=test.args.stack)
    mount = test.mount(test.args.client, brick, stack=test.args.client_stack)
    for directory, (names, doubt, error) in ideas.items():
        if kind == test.args.brick == "genuine":
            ask_by_name(os.path.join(mount.dir, directory), names, doubt)
        test.check(error is None, "no error but the crash: %s" % error)
        look(test, os.path.join(mount.dir, directory), names, doubt)
    mount.umount()
    brick.stop()
    tolerate = ["orphan", "leftover", "nlink", "gfid2path", "stale"]
    if kind == "genuine":
        tolerate.append("dir-handle")   # it mends a file's on lookup, a directory's it does not
    common.check_brick(test, brick, "after the crash and a look at all names", tolerate)
    remove(test, brick_dir, kind, ideas)


def ask_by_name(path, names, doubt):
    """Genuine mends what it left half-made when it is asked for the name, but not when a listing
    is what first shows it."""
    for name in set(names) | set(doubt[1:] if doubt else []):
        os.path.lexists(os.path.join(path, name))


def look(test, path, names, doubt):
    """Compares what is there with what must be, minus and plus the step in doubt."""
    there = {name: read(os.path.join(path, name)) for name in sorted(os.listdir(path))}
    for name, what in there.items():
        if isinstance(what, str):
            test.fail("%s/%s cannot be read: %s" % (path, name, what))
    after = dict(names)
    if doubt:
        apply(after, doubt)
    doubtful = set(doubt[1:]) if doubt else set()
    for name in sorted(set(there) | set(names) - doubtful):
        good = [idea.get(name) for idea in (names, after)] + in_between(doubt, name)
        if there.get(name) not in good:
            test.fail("%s/%s is %s, expected %s (in doubt: %s)"
                      % (path, name, there.get(name), good, doubt))
    test.ok("%d names are as acknowledged" % len(names))


def in_between(doubt, name):
    """A write that was cut off has made its file, perhaps; nothing else may show halves."""
    if doubt and doubt[0] == "write" and doubt[1] == name:
        return [["file", ""]]
    return []


def read(path):
    try:
        mode = os.lstat(path).st_mode
        if stat.S_ISREG(mode):
            with open(path, encoding="ascii") as data:
                return ["file", data.read()]
        if stat.S_ISLNK(mode):
            return ["symlink", os.readlink(path)]
        if stat.S_ISDIR(mode):
            os.listdir(path)
            return ["dir", ""]
        return ["fifo" if stat.S_ISFIFO(mode) else "%o" % mode, ""]
    except OSError as error:
        return error.strerror


def remove(test, brick_dir, kind, ideas):
    """All can be removed, too, and the names be used again."""
    brick = test.brick(kind, dir=brick_dir, stack=test.args.stack)
    mount = test.mount(test.args.client, brick, stack=test.args.client_stack)
    for directory in ideas:
        shutil.rmtree(os.path.join(mount.dir, directory))
        os.mkdir(os.path.join(mount.dir, directory))
        write_again(os.path.join(mount.dir, directory, "n1"), kind)
    test.ok("all is removed, and used again")
    mount.umount()
    brick.stop()


def write_again(path, kind):
    """Genuine, once in a while, first finds the directory that had this name before."""
    try:
        harness.write_text(path, "again")
    except OSError as error:
        if error.errno != errno.ESTALE or kind != "genuine":
            raise
        time.sleep(YOUNG_S)
        harness.write_text(path, "again")


def add_arguments(parser):
    parser.add_argument("--other", choices=harness.KINDS, help="who serves after the crash")
    parser.add_argument("--stack", default="brick", help="server stack of volfiles.py")
    parser.add_argument("--client-stack", default="ctime", help="client stack of volfiles.py")


if __name__ == "__main__":
    harness.main(story, __doc__, add_arguments)
