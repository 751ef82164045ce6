#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Prints a brick's tree in one canonical text, and what is wrong with it.

    treedump.py [--quiet] [--user] [--tolerate KIND]... BRICK

A line for each object, .glusterfs included, sorted by path: type, mode, uid, gid, link count, size,
rdev, link text, SHA-256 of the content, xattrs in hex. What a running brick changes by itself
(times in trusted.glusterfs.mdata, the health check's content) is left out. --user leaves out what
only the brick sees, so that the texts of two bricks with the same files are equal.

Violations go to stderr, with a kind that --tolerate names; exit status 1 if there are any:
    root      the brick's own directories and its root's handle
    gfid      an object without trusted.gfid, or with one that another has
    handle    a file's handle that is missing or wrong, or a strange name among them
    dir-handle  a directory's handle that is missing or wrong
    orphan    a handle without an object
    nlink     a file whose link count is not its names and its handle
    gfid2path names in trusted.gfid2path.* that are missing or wrong
    stale     names in trusted.gfid2path.* that are not there any more
    mdata     a trusted.glusterfs.mdata that is not one
    leftover  something in unlink/ or landfill/
"""
import argparse
import collections
import hashlib
import os
import stat
import struct
import sys
import uuid

ROOT_GFID = str(uuid.UUID(int=1))
OWN = b".glusterfs"
KINDS = ["root", "gfid", "handle", "dir-handle", "orphan", "nlink", "gfid2path", "stale", "mdata",
         "leftover"]
BRICK_ONLY = ("trusted.gfid", "trusted.glusterfs.volume-id", "trusted.gfid2path.",
              "trusted.glusterfs.mdata")
MDATA_BYTES = 57          # 1 + 8 + 3 * 16
MASK = (1 << 64) - 1
PRIMES = (0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63,
          0x27D4EB2F165667C5)


def rotated(value, bits):
    return (value << bits | value >> (64 - bits)) & MASK


def xxh64_round(lane, word):
    return rotated((lane + word * PRIMES[1]) & MASK, 31) * PRIMES[0] & MASK


def xxh64_head(data):
    """The state after the 32-byte blocks, and how many bytes those were."""
    if len(data) < 32:
        return PRIMES[4], 0
    lanes = [(PRIMES[0] + PRIMES[1]) & MASK, PRIMES[1], 0, -PRIMES[0] & MASK]
    at = 0
    while at + 32 <= len(data):
        words = struct.unpack_from("<4Q", data, at)
        lanes = [xxh64_round(lane, word) for lane, word in zip(lanes, words)]
        at += 32
    state = sum(rotated(lane, bits) for lane, bits in zip(lanes, (1, 7, 12, 18))) & MASK
    for lane in lanes:
        state = ((state ^ xxh64_round(0, lane)) * PRIMES[0] + PRIMES[3]) & MASK
    return state, at


def xxh64(data):
    """XXH64 with seed 0, as its public specification has it."""
    state, at = xxh64_head(data)
    state = (state + len(data)) & MASK
    while at + 8 <= len(data):
        state ^= xxh64_round(0, struct.unpack_from("<Q", data, at)[0])
        state = (rotated(state, 27) * PRIMES[0] + PRIMES[3]) & MASK
        at += 8
    if at + 4 <= len(data):
        state ^= struct.unpack_from("<I", data, at)[0] * PRIMES[0] & MASK
        state = (rotated(state, 23) * PRIMES[1] + PRIMES[2]) & MASK
        at += 4
    for byte in data[at:]:
        state = rotated(state ^ byte * PRIMES[4] & MASK, 11) * PRIMES[0] & MASK
    state = (state ^ state >> 33) * PRIMES[1] & MASK
    state = (state ^ state >> 29) * PRIMES[2] & MASK
    return state ^ state >> 32


class Object:
    def __init__(self, path, relative):
        self.path, self.relative = path, relative
        self.st = os.lstat(path)
        self.xattrs = {name: os.getxattr(path, name, follow_symlinks=False)
                       for name in sorted(os.listxattr(path, follow_symlinks=False))}

    @property
    def gfid(self):
        raw = self.xattrs.get("trusted.gfid", b"")
        return str(uuid.UUID(bytes=raw)) if len(raw) == 16 and any(raw) else None

    @property
    def is_dir(self):
        return stat.S_ISDIR(self.st.st_mode)

    @property
    def inode(self):
        return (self.st.st_dev, self.st.st_ino)


class Tree:
    """A brick that is read once: `objects` are the user's, `violations` what is wrong."""

    def __init__(self, brick, tolerate=()):
        self.brick = os.fsencode(brick)
        self.violations = []
        self.tolerate = set(tolerate)
        self.objects = self.walk(b"")
        self.by_gfid = collections.defaultdict(list)
        for one in self.objects.values():
            if one.gfid:
                self.by_gfid[one.gfid].append(one)

    def say(self, kind, relative, message):
        if kind not in self.tolerate:
            self.violations.append("%s: %s: %s" % (kind, os.fsdecode(relative) or ".", message))

    # -- reading

    def walk(self, start):
        """All that is below, by relative path; of .glusterfs nothing unless it is the start."""
        found = {start: Object(self.absolute(start), start)}
        for name in sorted(os.listdir(self.absolute(start))):
            relative = os.path.join(start, name)
            if relative == OWN:
                continue
            one = Object(self.absolute(relative), relative)
            found[relative] = one
            if one.is_dir:
                found.update(self.walk(relative))
        return found

    def absolute(self, relative):
        return os.path.join(self.brick, relative) if relative else self.brick

    def handle_path(self, gfid):
        return os.path.join(OWN, gfid[:2].encode(), gfid[2:4].encode(), gfid.encode())

    # -- checking

    def check(self):
        self.check_root()
        for one in self.objects.values():
            self.check_object(one)
        self.check_sharing()
        self.check_handles()
        for place in (b"unlink", b"landfill"):
            path = self.absolute(os.path.join(OWN, place))
            for name in os.listdir(path) if os.path.isdir(path) else []:
                self.say("leftover", os.path.join(OWN, place, name), "is still there")
        return self.violations

    def check_root(self):
        if self.objects[b""].gfid != ROOT_GFID:
            self.say("root", b"", "trusted.gfid is %s" % self.objects[b""].gfid)
        handle = self.handle_path(ROOT_GFID)
        if self.link_text(handle) != b"../../..":
            self.say("root", handle, "is not a link to ../../..")
        if "trusted.gfid" in os.listxattr(self.absolute(OWN)):
            self.say("root", OWN, "has a gfid")
        for number in range(256):
            path = os.path.join(OWN, b"%02x" % number)
            if not os.path.isdir(self.absolute(path)):
                self.say("root", path, "is missing")

    def link_text(self, relative):
        try:
            return os.readlink(self.absolute(relative))
        except OSError:
            return None

    def check_object(self, one):
        if not one.gfid:
            self.say("gfid", one.relative, "has none: %s" % one.xattrs.get("trusted.gfid"))
            return
        mdata = one.xattrs.get("trusted.glusterfs.mdata")
        if mdata is not None and (len(mdata) != MDATA_BYTES or mdata[0] != 1):
            self.say("mdata", one.relative, "is %s" % mdata.hex())
        if one.is_dir:
            self.check_dir_handle(one)
        else:
            self.check_file_handle(one)

    def check_dir_handle(self, one):
        if one.relative == b"":
            return
        parent, name = os.path.split(one.relative)
        parent_gfid = (self.objects[parent].gfid or "none").encode()
        expected = b"../../%s/%s/%s/%s" % (parent_gfid[:2], parent_gfid[2:4], parent_gfid, name)
        text = self.link_text(self.handle_path(one.gfid))
        if text != expected:
            self.say("dir-handle", one.relative, "handle %s is a link to %s, not %s"
                     % (one.gfid, text, expected))

    def check_file_handle(self, one):
        try:
            handle = os.lstat(self.absolute(self.handle_path(one.gfid)))
        except OSError as error:
            self.say("handle", one.relative, "handle %s: %s" % (one.gfid, error.strerror))
            return
        if (handle.st_dev, handle.st_ino) != one.inode:
            self.say("handle", one.relative, "handle %s is another file" % one.gfid)

    def check_sharing(self):
        """Objects with one gfid are one inode, which has these names, a handle, and no other."""
        for gfid, all_ in self.by_gfid.items():
            one = all_[0]
            if len({other.inode for other in all_}) > 1 or (one.is_dir and len(all_) > 1):
                self.say("gfid", one.relative, "%s has also %s" % (gfid, all_[1].relative))
            elif not one.is_dir:
                if one.st.st_nlink != len(all_) + 1:
                    self.say("nlink", one.relative, "%d links, %d names and a handle"
                             % (one.st.st_nlink, len(all_)))
                self.check_names(one, all_)

    def check_names(self, one, all_):
        expected = {}
        for other in all_:
            parent, name = os.path.split(other.relative)
            value = (self.objects[parent].gfid or "none").encode() + b"/" + name
            expected["trusted.gfid2path.%016x" % xxh64(value)] = value
        there = {key: value for key, value in one.xattrs.items()
                 if key.startswith("trusted.gfid2path.")}
        for key in sorted(set(expected) | set(there)):
            if expected.get(key) != there.get(key):
                self.say("gfid2path" if key in expected else "stale", one.relative,
                         "%s is %s, expected %s" % (key, there.get(key), expected.get(key)))

    def check_handles(self):
        for first in range(256):
            top = os.path.join(OWN, b"%02x" % first)
            if not os.path.isdir(self.absolute(top)):
                continue
            for second in sorted(os.listdir(self.absolute(top))):
                middle = os.path.join(top, second)
                for name in sorted(os.listdir(self.absolute(middle))):
                    self.check_handle(first, second, os.path.join(middle, name))

    def check_handle(self, first, second, relative):
        name = os.path.basename(relative).decode(errors="replace")
        try:
            is_canonical = str(uuid.UUID(name)) == name
        except ValueError:
            is_canonical = False
        if not is_canonical or name[:4].encode() != b"%02x" % first + second:
            self.say("handle", relative, "a strange name")
        elif name != ROOT_GFID and name not in self.by_gfid:
            st = os.lstat(self.absolute(relative))
            self.say("orphan", relative, "mode %06o, %d links" % (st.st_mode, st.st_nlink))

    # -- printing

    def lines(self, user_only=False):
        found = dict(self.objects)
        if not user_only:
            found.update(self.walk(OWN))
        return [self.line(one, user_only) for _, one in sorted(found.items())]

    def line(self, one, user_only):
        st, parts = one.st, []
        is_root = one.relative in (b"", OWN)
        parts.append("%06o %d:%d" % (st.st_mode, st.st_uid, st.st_gid))
        if not one.is_dir:
            parts.append("nlink %d" % (st.st_nlink - user_only))
        elif not is_root:
            parts.append("nlink %d" % st.st_nlink)
        if stat.S_ISREG(st.st_mode):
            parts.append("size %d sha256 %s" % (st.st_size, content_hash(one)))
        if stat.S_ISLNK(st.st_mode):
            parts.append("-> %r" % os.readlink(one.path))
        if stat.S_ISCHR(st.st_mode) or stat.S_ISBLK(st.st_mode):
            parts.append("rdev %d:%d" % (os.major(st.st_rdev), os.minor(st.st_rdev)))
        parts += ["%s=%s" % (name, shown(name, value)) for name, value in one.xattrs.items()
                  if not (user_only and name.startswith(BRICK_ONLY))]
        return "%r %s" % (os.fsdecode(one.relative) or ".", " ".join(parts))


def content_hash(one):
    if one.relative == os.path.join(OWN, b"health_check"):
        return "-"
    digest = hashlib.sha256()
    with open(one.path, "rb") as data:
        while chunk := data.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()


def shown(name, value):
    if name == "trusted.glusterfs.mdata":
        return "%d bytes" % len(value)
    return "0x" + value.hex()


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quiet", action="store_true", help="no dump, only violations")
    parser.add_argument("--user", action="store_true", help="leave out what only the brick sees")
    parser.add_argument("--tolerate", action="append", default=[], choices=KINDS)
    parser.add_argument("brick")
    args = parser.parse_args()
    tree = Tree(args.brick, args.tolerate)
    if not args.quiet:
        print("\n".join(tree.lines(args.user)))
    violations = tree.check()
    for violation in violations:
        print(violation, file=sys.stderr)
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
