# SPDX-License-Identifier: LGPL-2.1-or-later
"""Trees to work on: filled and changed from a random generator, and read back as a snapshot.

    trees.fill("/scratch/source", test.random, files=150)
    before = trees.snapshot(mount.dir)
"""
import hashlib
import os
import stat

NAMES = ["a", "b", "file", "dir.d", ".hidden", "with space", "new\nline", "\u00e9t\u00e9", "x.tmp",
         ".x.AbC", "UPPER", "#hash", "-dash", "y" * 255, "z" * 200]
MODES = [0o644, 0o600, 0o755, 0o444, 0o4755, 0o2755, 0o1777, 0o640]


class Filler:
    """Objects of every type at random places, most of them files."""

    def __init__(self, root, random):
        self.root, self.random = root, random
        self.dirs, self.files, self.count = [root], [], 0

    def name(self):
        self.count += 1
        base = self.random.choice(NAMES)
        encoded = os.fsencode("%s.%d" % (base, self.count) if len(base) < 200 else base)
        path = os.path.join(os.fsencode(self.random.choice(self.dirs)), encoded[:255])
        return path if not os.path.lexists(path) and len(path) < 3000 else self.name()

    def file(self):
        path, random = self.name(), self.random
        with open(path, "wb") as out:
            for _ in range(random.randrange(3)):
                out.seek(random.choice([0, 0, 1, 5000, 200000, 1 << 20]))
                out.write(random.randbytes(random.choice([0, 1, 100, 4096, 70000])))
        self.files.append(path)
        self.dress(path)

    def directory(self):
        path = self.name()
        os.mkdir(path)
        os.chmod(path, self.random.choice([0o755, 0o700, 0o2775, 0o1777]))
        if len(path) < 1000:
            self.dirs.append(path)

    def symlink(self):
        os.symlink(self.random.choice(["a", "../b", "/nowhere/at/all", "x" * 300]), self.name())

    def link(self):
        if self.files:
            os.link(self.random.choice(self.files), self.name())

    def node(self):
        path, random = self.name(), self.random
        kind, device = random.choice([(stat.S_IFIFO, 0), (stat.S_IFSOCK, 0),
                                      (stat.S_IFCHR, os.makedev(1, 3)),
                                      (stat.S_IFBLK, os.makedev(7, 200))])
        os.mknod(path, kind | 0o640, device)

    def dress(self, path):
        random = self.random
        os.chown(path, random.choice([0, 1000, 65534]), random.choice([0, 1000, 2000]))
        os.chmod(path, random.choice(MODES))
        for number in range(random.randrange(3)):
            os.setxattr(path, "user.%d" % number, random.randbytes(random.randrange(1, 40)))
        if random.randrange(2):
            os.utime(path, ns=(random.randrange(1 << 60), random.randrange(1 << 60)))


def fill(root, random, files):
    fill_named(root, "tree", random, files)


def fill_named(root, name, random, files):
    """Makes root/name with that many objects."""
    tree = os.path.join(root, name)
    os.mkdir(tree)
    filler = Filler(tree, random)
    makers = [filler.file] * 12 + [filler.directory] * 3 + [filler.symlink] * 2
    makers += [filler.link] * 2 + [filler.node]
    for _ in range(files):
        random.choice(makers)()


def walk(root):
    """Every path below, as bytes, sorted."""
    found = []
    for directory, dirs, files in os.walk(os.fsencode(root)):
        found += [os.path.join(directory, name) for name in dirs + files]
    return sorted(found)


def change(root, random, changes):
    """Renames, links, removes, rewrites, touches: whatever `random` says, among what is there."""
    for _ in range(changes):
        paths = walk(root)
        path = random.choice(paths)
        is_file = stat.S_ISREG(os.lstat(path).st_mode)
        action = random.randrange(7)
        if action == 0:
            rename_over(path, random)
        elif action == 1 and is_file:
            os.link(path, fresh(path, random))
        elif action == 2 and not stat.S_ISDIR(os.lstat(path).st_mode):
            os.unlink(path)
        elif action == 3 and is_file:
            with open(path, "r+b") as out:
                out.seek(random.randrange(10000))
                out.write(random.randbytes(3000))
        elif action == 4 and is_file:
            os.truncate(path, random.randrange(5000))
        elif action == 5 and is_file:
            os.setxattr(path, "user.0", random.randbytes(9))
            os.chmod(path, random.choice(MODES))
        else:
            os.mkdir(fresh(path, random))


def fresh(path, random):
    """A name that is not there, beside the path."""
    while True:
        new = os.path.join(os.path.dirname(path), b"changed-%d" % random.randrange(1 << 40))
        if not os.path.lexists(new):
            return new


def rename_over(path, random):
    """To a new name, or over something of the same type beside it."""
    beside = [os.path.join(os.path.dirname(path), name)
              for name in sorted(os.listdir(os.path.dirname(path)))]
    files = [other for other in beside if not stat.S_ISDIR(os.lstat(other).st_mode)]
    if path in files and random.randrange(2):
        os.rename(path, random.choice(files))
    else:
        os.rename(path, fresh(path, random))


def snapshot(root, with_gfid=True, without=()):
    """All that a user can see of a tree, by path. Errors stand where values should be. `without`
    names what is left out: mode, owner, ino, rdev, mtime, nlink, text, size, content, xattrs."""
    root = os.fsencode(root)
    found = {}
    for path in walk(root):
        try:
            found[os.path.relpath(path, root)] = describe(path, with_gfid, without)
        except OSError as error:
            found[os.path.relpath(path, root)] = "cannot be read: %s" % error.strerror
    return found


def describe(path, with_gfid, without):
    st = os.lstat(path)
    is_dir = stat.S_ISDIR(st.st_mode)
    parts = {"mode": "%06o" % st.st_mode, "owner": (st.st_uid, st.st_gid), "ino": st.st_ino,
             "rdev": st.st_rdev, "mtime": st.st_mtime_ns, "nlink": st.st_nlink}
    if stat.S_ISLNK(st.st_mode):
        parts["text"] = os.readlink(path)
    if stat.S_ISREG(st.st_mode):
        parts["size"] = st.st_size
        with open(path, "rb") as data:
            parts["content"] = hashlib.sha256(data.read()).hexdigest()
    if is_dir or stat.S_ISREG(st.st_mode):
        parts["xattrs"] = {name: os.getxattr(path, name) for name in sorted(os.listxattr(path))
                           if name.startswith("user.")}
    if with_gfid:
        parts["gfid"] = os.getxattr(path, "glusterfs.gfid.string", follow_symlinks=False)
    return {key: value for key, value in parts.items() if key not in without}


def differences(got, expected):
    """One line for each path that is not the same, at most some."""
    lines = []
    for path in sorted(set(got) | set(expected)):
        one, other = got.get(path, "not there"), expected.get(path, "not there")
        if one != other:
            lines.append("%r: %s" % (path, only_different(one, other)))
    return lines[:20]


def only_different(one, other):
    if isinstance(one, str) or isinstance(other, str):
        return "%.200s, expected %.200s" % (one, other)
    return ", ".join("%s %r, expected %r" % (key, one.get(key), other.get(key))
                     for key in other if one.get(key) != other[key])
