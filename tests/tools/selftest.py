#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The tools find what they are there to find, and nothing else.

fsdiff: no difference between two local directories; each planted one is found. treedump: a sound
brick, made here by hand from the format's description, has no violations; each that is made is
named. The harness: a story that breaks, hangs or dies is a failed test.
"""
import os
import sys
import uuid

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))

import harness          # noqa: E402
import treedump         # noqa: E402

PLANTS = ["byte", "size", "mode", "owner", "time", "xattr", "name", "lost", "link-text", "link"]
HASHES = {"00000000-0000-0000-0000-000000000001/f1": "5b24eafb4345038c",
          "00000000-0000-0000-0000-000000000001/sl": "af08f9354878dd7c",
          "207302a8-a86c-4d9f-bae9-749ae305d05a/f1link": "6c28902c23f6ceb9"}
GFID = {name: "%08x-0000-4000-8000-%012x" % (0xa1b2c300 + number, number)
        for number, name in enumerate(["file", "link", "dir", "dir/below"])}

# A story for each way to fail, and what the harness has to say about it.
STORIES = {"raise ValueError('x')": "the test itself broke",
           "raise harness.Failed('no way')": "FAIL  bad: no way",
           "time.sleep(60)": "over its time limit",
           "test.run(['sleep', '60'], limit=1)": "not done after 1 s",
           "test.run(['sh', '-c', 'kill -SEGV $$'])": "killed by SIGSEGV",
           "os._exit(0)": "the test process died",
           "test.equal(1, 2, 'one')": "one: got 1, expected 2"}
STORY = """
import os, sys, time
sys.path.insert(0, %r)
import harness
def story(test):
    with test.step("bad", limit=2):
        %s
harness.main(story)
"""


def story(test):
    with test.step("fsdiff finds no difference where there is none", limit=600):
        ops = test.number(check=20000, soak=500000)
        result = fsdiff(test, "--ops", str(ops), "--seed", str(test.seed))
        test.check(result.status == 0, "no difference\n" + result.text)
    with test.step("fsdiff finds what is planted", limit=300):
        for what in PLANTS:
            result = fsdiff(test, "--ops", "2000", "--seed", str(test.seed), "--plant",
                            "1999:" + what)
            test.check(result.status == 1 and "DIFFERENCE" in result.text,
                       "%s: found\n%s" % (what, result.text))
    with test.step("treedump", limit=60):
        treedump_finds(test)
    with test.step("the harness", limit=120):
        for body, message in STORIES.items():
            bad_story(test, body, message)


def fsdiff(test, *args):
    dirs = [test.fresh_dir(name) for name in ("left", "right")]
    return test.run([test.tool("fsdiff"), *args, *dirs], limit=580, ok=None)


# ---------------------------------------------------------------- treedump

def make_brick(root):
    """A file with two names, a directory with a file in it, a symlink: and all their handles."""
    own = root + "/.glusterfs"
    for number in range(256):
        os.makedirs("%s/%02x" % (own, number))
    os.makedirs(own + "/00/00")
    os.symlink("../../..", own + "/00/00/" + treedump.ROOT_GFID)
    os.setxattr(root, "trusted.gfid", uuid.UUID(treedump.ROOT_GFID).bytes)
    harness.write_text(root + "/file", "content")
    os.symlink("nowhere", root + "/link")
    os.mkdir(root + "/dir")
    harness.write_text(root + "/dir/below", "")
    os.link(root + "/file", root + "/dir/twin")
    for name, gfid in GFID.items():
        dress(root, name, gfid)
    name_xattr(root, "file", GFID["dir"], "twin")


def handle(root, gfid):
    return "%s/.glusterfs/%s/%s/%s" % (root, gfid[:2], gfid[2:4], gfid)


def dress(root, name, gfid):
    path, place = os.path.join(root, name), handle(root, gfid)
    parent = GFID.get(os.path.dirname(name), treedump.ROOT_GFID)
    os.makedirs(os.path.dirname(place), exist_ok=True)
    os.setxattr(path, "trusted.gfid", uuid.UUID(gfid).bytes, follow_symlinks=False)
    if os.path.isdir(path):
        os.symlink("../../%s/%s/%s/%s" % (parent[:2], parent[2:4], parent, name), place)
    else:
        os.link(path, place, follow_symlinks=False)
        name_xattr(root, name, parent, os.path.basename(name))


def name_xattr(root, name, parent, base):
    value = ("%s/%s" % (parent, base)).encode()
    os.setxattr(os.path.join(root, name), "trusted.gfid2path.%016x" % treedump.xxh64(value), value,
                follow_symlinks=False)


def rewrite_link(path, text):
    os.unlink(path)
    os.symlink(text, path)


BREAKS = {
    "root": lambda root: rewrite_link(handle(root, treedump.ROOT_GFID), "../.."),
    "gfid": lambda root: os.removexattr(root + "/dir/below", "trusted.gfid"),
    "handle": lambda root: os.unlink(handle(root, GFID["file"])),
    "dir-handle": lambda root: rewrite_link(handle(root, GFID["dir"]), "../../00/00/x/dir"),
    "orphan": lambda root: os.unlink(root + "/link"),
    "nlink": lambda root: os.link(root + "/file", os.path.dirname(root) + "/outside"),
    "gfid2path": lambda root: os.removexattr(
        root + "/link", next(name for name in os.listxattr(root + "/link", follow_symlinks=False)
                             if "gfid2path" in name), follow_symlinks=False),
    "stale": lambda root: name_xattr(root, "file", GFID["dir"], "gone"),
    "mdata": lambda root: os.setxattr(root + "/file", "trusted.glusterfs.mdata", b"\1" * 49),
    "leftover": lambda root: (os.mkdir(root + "/.glusterfs/unlink"),
                              harness.write_text(root + "/.glusterfs/unlink/x", "")),
}


def treedump_finds(test):
    for value, name in HASHES.items():
        test.equal("%016x" % treedump.xxh64(value.encode()), name, "XXH64 of " + value)
    sound = os.path.join(test.fresh_dir("sound"), "brick")
    make_brick(sound)
    test.equal(treedump.Tree(sound).check(), [], "no violations in a sound brick")
    for kind, break_it in BREAKS.items():
        root = os.path.join(test.fresh_dir(kind), "brick")
        make_brick(root)
        break_it(root)
        violations = treedump.Tree(root).check()
        test.check(any(one.startswith(kind + ":") for one in violations),
                   "%s: found, among %s" % (kind, violations))
        test.check(not treedump.Tree(root, treedump.KINDS).check(), kind + ": can be tolerated")


# ---------------------------------------------------------------- the harness

def bad_story(test, body, message):
    path = os.path.join(test.fresh_dir("story"), "bad.py")
    harness.write_text(path, STORY % (os.path.dirname(harness.__file__), body))
    result = test.run(harness.UNSHARE + [sys.executable, path], limit=30, ok=None,
                      env={"MORTAR_TEST_DIR": test.scratch})
    test.check(result.status == 1 and message in result.text
               and " 0 failed" not in result.text.splitlines()[-1],
               "%s is a failure\n%s" % (body, result.text))


if __name__ == "__main__":
    harness.main(story, __doc__)
