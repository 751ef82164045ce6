#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The command line that scripts/mount.glusterfs composes, row by row of its option tables, and
whatever it refuses: message and status.

    sudo tests/mount/mount_helper.py [SCRIPT]

A recorder stands where glusterfs(8) should be: it writes down its arguments and mounts a tmpfs, so
that the mount point answers. What is expected is written here; where Debian's own 10.3 helper is
installed it is run with the same arguments in the same namespace, and has to agree, except in the
rows that say why not (`differs`). Nothing outlives the private mount and pid namespace.
"""
import ctypes
import os
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
OURS = os.path.join(HERE, "..", "..", "scripts", "mount.glusterfs")
GENUINE = "/sbin/mount.glusterfs"
GENUINE_VERSION = "10.3"
SERVERS = ["--process-name", "fuse", "--volfile-server=h", "--volfile-id=/V"]
LIBC = ctypes.CDLL(None, use_errno=True)

RECORDER = """#!/bin/sh
printf '%s\\0' "$@" >"$RECORD"
for last in "$@"; do :; done
[ "${RECORDER_STATUS:-0}" = 0 ] || exit "$RECORDER_STATUS"
case ${RECORDER_MOUNT:-tmpfs} in
tmpfs) mount -t tmpfs recorder "$last" ;;
dead) python3 "$RECORDER_DEAD" "$last" ;;
esac
"""

DEAD_MOUNT = """import sys
sys.path.insert(0, %r)
from mount_helper import fuse_mount
fuse_mount(sys.argv[1])
""" % HERE


class Row:
    """One call: the arguments after the script, what comes out. DIR in args is the mount point."""

    def __init__(self, name, args, argv=None, status=0, says="", differs=None, before=None,
                 env=None, parts=None):
        self.name, self.args, self.status, self.differs = name, args, status, differs
        self.argv, self.says, self.before, self.env = argv, says, before, env or {}
        self.parts = parts          # text that stderr must contain, where the rest is free


def option_row(options, flags, differs=None, says="", **more):
    """-o OPTIONS on h:/V puts FLAGS before the rest of the command line."""
    return Row("-o " + options, ["h:/V", "DIR", "-o", options], flags + SERVERS + ["DIR"],
               differs=differs, says=says, **more)


SAME_VALUE = """log-file direct-io-mode volume-name attribute-timeout entry-timeout negative-timeout
    gid-timeout background-qlen congestion-threshold lru-limit invalidate-limit oom-score-adj
    reader-thread-count xlator-option use-readdirp event-history auto-invalidation
    kernel-writeback-cache attr-times-granularity dump-fuse fuse-flush-handle-interrupt""".split()
PLACED_VALUE = """log-level transport volume-id subdir-mount server-port backup-volfile-servers
    backupvolfile-server fetch-attempts fuse-mountopts fuse-dev-eperm-ratelimit-ns io-engine
    root-squash no-root-squash volfile-check context fscontext defcontext rootcontext
    halo-max-latency halo-max-replicas halo-min-replicas process-name""".split()
SAME_FLAG = """acl selinux worm enable-ino32 mem-accounting aux-gfid-mount thin-client resolve-gids
    global-threading localtime-logging""".split()
NOTHING = "rw auto noauto _netdev x-systemd.automount x-a=b".split()
KERNEL = """atime noatime diratime nodiratime relatime norelatime strictatime nostrictatime
    lazyatime nolazyatime dev nodev exec noexec suid nosuid auto_unmount""".split()
IGNORED = "async sync dirsync mand nomand silent loud iversion noiversion nofail".split()


def with_mountopts(options):
    return SERVERS + ["--fuse-mountopts=" + options, "DIR"]


def table_rows():
    """Every row of the two option tables, in its plain form and in the form that it refuses."""
    for key in SAME_VALUE:
        yield option_row(key + "=1", ["--%s=1" % key])
    for key in SAME_FLAG:
        yield option_row(key, ["--" + key])
    for key in NOTHING:
        yield option_row(key, [])
    for key in KERNEL:
        yield Row("-o " + key, ["h:/V", "DIR", "-o", key], with_mountopts(key))
    for key in IGNORED:
        yield option_row(key, [], says="mount option '%s' is not handled (yet?)\n" % key)
    for key in SAME_VALUE + PLACED_VALUE:
        yield Row("-o %s wants a value" % key, ["h:/V", "DIR", "-o", key], status=1,
                  says="Invalid option %s\n" % key)
    for key in SAME_FLAG + KERNEL + IGNORED + ["ro", "rw", "auto", "noauto", "_netdev"]:
        yield Row("-o %s takes no value" % key, ["h:/V", "DIR", "-o", key + "=1"], status=1,
                  says="Invalid option: %s\n" % key)
    for key in SAME_VALUE + PLACED_VALUE:
        if key not in ("context", "fscontext", "defcontext", "rootcontext", "volfile-check") \
                and not key.startswith("halo-"):
            yield option_row(key + "=", [], differs="a shell's complaint on stderr"
                             if key.endswith("root-squash") else None)


def placed_rows():
    """Options whose flag has another name, form or place."""
    yield option_row("ro", ["--read-only"])
    for level in "TRACE DEBUG INFO WARNING ERROR CRITICAL NONE".split():
        yield option_row("log-level=" + level.lower(), ["--log-level=" + level])
    yield option_row("log-level=loud", ["--log-level=INFO"],
                     says="invalid log level loud, using INFO\n")
    yield option_row("fetch-attempts=3", ["--volfile-max-fetch-attempts=3"])
    yield option_row("volfile-check=1", ["--volfile-check"])
    for word in "no off disable false".split():
        yield option_row("root-squash=" + word, ["--no-root-squash"])
    for word in "yes on enable true".split():
        yield option_row("no-root-squash=" + word, ["--no-root-squash"])
        yield option_row("root-squash=" + word, [])
    for word in "no off 0".split():
        yield option_row("no-root-squash=" + word, [])
    for key in "halo-max-latency halo-max-replicas halo-min-replicas".split():
        yield option_row(key + "=7", ["--xlator-option", "*replicate*.%s=7" % key])
    yield option_row("fopen-keep-cache", ["--fopen-keep-cache=true"])
    yield option_row("fopen-keep-cache=off", ["--fopen-keep-cache=off"],
                     differs="the other writes a doubled = that its client refuses")
    for key in "context fscontext defcontext rootcontext".split():
        yield Row("-o %s" % key, ["h:/V", "DIR", "-o", key + "=u:r:t:s0"],
                  with_mountopts('%s="u:r:t:s0"' % key))
    yield Row("a quoted context keeps its comma",
              ["h:/V", "DIR", "-o", 'context="u:r:t:s0:c1,c2",ro'],
              ["--read-only"] + with_mountopts('context="u:r:t:s0:c1,c2"'),
              differs="the other cuts it in two")
    yield Row("fuse-mountopts", ["h:/V", "DIR", "-o", "fuse-mountopts=max_read=4096"],
              with_mountopts("max_read=4096"))
    yield Row("fuse-mountopts joins the rest",
              ["h:/V", "DIR", "-o", "noatime,fuse-mountopts=a=b,nodev"],
              with_mountopts("noatime,a=b,nodev"), differs="the other forgets what came before")
    yield Row("process-name", ["h:/V", "DIR", "-o", "process-name=N"],
              ["--process-name", "fuse.N", "--volfile-server=h", "--volfile-id=/V", "DIR"])
    yield Row("io-engine", ["h:/V", "DIR", "-o", "io-engine=legacy"],
              ["--process-name", "fuse", "--io-engine=legacy"] + SERVERS[2:] + ["DIR"])
    yield Row("fuse-dev-eperm-ratelimit-ns",
              ["h:/V", "DIR", "-o", "fuse-dev-eperm-ratelimit-ns=5"],
              SERVERS + ["--fuse-dev-eperm-ratelimit-ns=5", "DIR"])
    yield Row("server-port and transport",
              ["h:/V", "DIR", "-o", "transport=rdma,server-port=5"],
              SERVERS[:3] + ["--volfile-server-port=5", "--volfile-server-transport=rdma",
                             "--volfile-id=/V.rdma", "DIR"])
    yield option_row("xlator-option=a.b=1,xlator-option=*c.d=2",
                     ["--xlator-option=a.b=1", "--xlator-option=*c.d=2"],
                     differs="the other keeps the last one only")
    yield Row("volume-id counts where the device has none", ["h:", "DIR", "-o", "volume-id=ID"],
              SERVERS[:3] + ["--volfile-id=ID", "DIR"])
    yield option_row("volume-id=ID", [])
    yield option_row("log-level=debug,log-level=error", ["--log-level=ERROR"])
    yield option_row(",acl,,", ["--acl"])
    yield Row("everything at once keeps its order", ["h:/V/s", "DIR", "-o", ALL_OPTIONS],
              ALL_FLAGS)


ALL_OPTIONS = (
    "localtime-logging,io-engine=1,fuse-dev-eperm-ratelimit-ns=1,fuse-flush-handle-interrupt=1,"
    "dump-fuse=d,attr-times-granularity=1,kernel-writeback-cache=1,auto-invalidation=1,"
    "event-history=1,use-readdirp=1,xlator-option=xo,reader-thread-count=1,oom-score-adj=1,"
    "invalidate-limit=1,lru-limit=1,congestion-threshold=1,background-qlen=1,gid-timeout=1,"
    "negative-timeout=1,entry-timeout=1,attribute-timeout=1,fetch-attempts=1,"
    "backupvolfile-server=b,server-port=1,volume-name=n,direct-io-mode=1,transport=tcp,log-file=l,"
    "log-level=info,fopen-keep-cache,root-squash=no,volfile-check=1,context=c,halo-max-latency=1,"
    "halo-min-replicas=3,process-name=pn,ro,acl,selinux,worm,enable-ino32,mem-accounting,"
    "aux-gfid-mount,thin-client,resolve-gids,global-threading,noatime")
ALL_FLAGS = (
    "--read-only --acl --selinux --enable-ino32 --worm --volfile-max-fetch-attempts=1 "
    "--volfile-check --mem-accounting --aux-gfid-mount --resolve-gids --no-root-squash "
    "--thin-client --global-threading --localtime-logging --fopen-keep-cache=true "
    "--xlator-option *replicate*.halo-max-latency=1 "
    "--xlator-option *replicate*.halo-min-replicas=3 "
    "--log-level=INFO --log-file=l --direct-io-mode=1 --use-readdirp=1 --event-history=1 "
    "--reader-thread-count=1 --auto-invalidation=1 --volume-name=n --attribute-timeout=1 "
    "--entry-timeout=1 --negative-timeout=1 --gid-timeout=1 --lru-limit=1 --invalidate-limit=1 "
    "--background-qlen=1 --congestion-threshold=1 --oom-score-adj=1 --xlator-option=xo "
    "--kernel-writeback-cache=1 --attr-times-granularity=1 --dump-fuse=d "
    "--fuse-flush-handle-interrupt=1 --process-name fuse.pn --io-engine=1 --volfile-server=h "
    "--volfile-server=b --volfile-server-port=1 --volfile-server-transport=tcp "
    '--volfile-id=/V.tcp --fuse-mountopts=context="c",noatime --subdir-mount=/s '
    "--fuse-dev-eperm-ratelimit-ns=1 DIR").split()


def device(name, text, servers, volume, tail=(), head=(), differs=None, options=None):
    args = [text, "DIR"] + (["-o", options] if options else [])
    argv = list(head) + SERVERS[:2] + ["--volfile-server=" + one for one in servers] + \
        ["--volfile-id=" + volume] + list(tail) + ["DIR"]
    return Row(name, args, argv, differs=differs)


def device_rows():
    sub = "--subdir-mount="
    yield device("a volume without its slash", "h:V", ["h"], "V")
    yield device("several servers", "h1,h2,,h3:/V", ["h1", "h2", "h3"], "/V")
    yield device("a subdirectory", "h:/V/a/b", ["h"], "/V", [sub + "/a/b"])
    yield device("a subdirectory, no slash", "h:V/a", ["h"], "V", [sub + "/a"])
    yield device("a trailing slash", "h:/V/", ["h"], "/V")
    yield device("subdir-mount", "h:/V", ["h"], "/V", [sub + "/a/b"], options="subdir-mount=a/b")
    yield device("subdir-mount with its slash", "h:/V", ["h"], "/V", [sub + "/a"],
                 options="subdir-mount=/a", differs="the other doubles the slash")
    yield device("the device's subdirectory wins", "h:/V/a", ["h"], "/V", [sub + "/a"],
                 options="subdir-mount=b")
    yield device("a colon in a subdirectory", "h:/V/a:b", ["h"], "/V", [sub + "/a:b"],
                 differs="the other takes the volume for a part of the server")
    yield device("a snapshot", "h:/snaps/S/V", ["h"], "/snaps/S/V", head=["--read-only"])
    yield device("a snapshot, no slash", "h:snaps/S/V", ["h"], "snaps/S/V", head=["--read-only"],
                 differs="the other mounts it for writing")
    yield device("a snapshot cannot be rw", "h:/snaps/S/V", ["h"], "/snaps/S/V",
                 head=["--read-only"], options="rw")
    yield device("IPv6", "fe80::1,h2:/V", ["fe80::1", "h2"], "/V")
    yield device("IPv6 in brackets", "[fe80::1],h2:/V", ["fe80::1", "h2"], "/V",
                 differs="the other passes `[fe80:`")
    yield device("a name too long is left out", "x" * 64 + ",h2:/V", ["h2"], "/V")
    yield device("63 characters are a name", "x" * 63 + ":/V", ["x" * 63], "/V")
    yield device("backup list", "h:/V", ["h", "a", "b"], "/V",
                 options="backup-volfile-servers=a:b")
    yield device("backup list, IPv6", "h:/V", ["h", "a", "::1", "fe80::2", "b"], "/V",
                 options="backup-volfile-servers=a:[::1]:[fe80::2]:b")
    yield device("backup list, empty names", "h:/V", ["h", "a", "b"], "/V",
                 options="backup-volfile-servers=:a::b:")
    yield device("one backup", "h:/V", ["h", "a"], "/V", options="backupvolfile-server=a")
    yield device("the list wins over the one", "h:/V", ["h", "b"], "/V",
                 options="backupvolfile-server=a,backup-volfile-servers=b")
    for bad in ("[::1", "[]:b", "a]:b", "a[x]:b"):
        yield Row("backup list " + bad, ["h:/V", "DIR", "-o", "backup-volfile-servers=" + bad],
                  status=1, says="ERROR: Invalid backup-volfile-servers specified.. exiting\n")
    yield Row("no valid server", [",:/V", "DIR"], status=1,
              says="ERROR: No valid servers found on command line.. exiting\n")


def volfile_rows(volfile):
    plain = SERVERS[:2] + ["--volfile=" + volfile, "DIR"]
    yield Row("a volfile as device", [volfile, "DIR"], plain)
    yield Row("a volfile with options", [volfile, "DIR", "-o", "ro,log-file=/x,noatime"],
              ["--read-only", "--log-file=/x"] + plain[:-1] + ["--fuse-mountopts=noatime", "DIR"])
    yield Row("a volfile and subdir-mount", [volfile, "DIR", "-o", "subdir-mount=a"],
              plain[:-1] + ["--subdir-mount=/a", "DIR"])
    yield Row("a volfile needs no server",
              [volfile, "DIR", "-o", "backupvolfile-server=b,server-port=3,transport=rdma"], plain)
    yield Row("no such volfile", [volfile + ".none", "DIR"], status=1, says=UNSPECIFIED)
    yield Row("a directory is no volfile", [os.path.dirname(volfile), "DIR"], status=1,
              says=UNSPECIFIED, differs="the other starts a client that fails later")
    spaced = os.path.join(os.path.dirname(volfile), "a b.vol")
    shutil.copy(volfile, spaced)
    yield Row("a volfile with a blank in its name", [spaced, "DIR"],
              SERVERS[:2] + ["--volfile=" + spaced, "DIR"], differs="the other cuts it in two")


UNSPECIFIED = ("ERROR: Server name/volume name unspecified cannot proceed further..\n"
               "Please specify correct format\nUsage:\nman 8 ARGV0\n")
NO_MOUNT_POINT = ("ERROR: Mount point does not exist\n"
                  "Please specify a mount point\nUsage:\nman 8 ARGV0\n")
DASH_O = ("ERROR: -o options cannot be specified in either first two arguments..\n"
          "Please specify correct style\nUsage:\nman 8 ARGV0\n")


def form_rows():
    yield Row("no arguments", [], status=1, says=UNSPECIFIED)
    yield Row("one argument", ["h:/V"], status=1, says=UNSPECIFIED)
    for bad in ("h", ":/V", "h:", "/V"):
        yield Row("device " + bad, [bad, "DIR"], status=1, says=UNSPECIFIED)
    yield Row("-o first", ["-o", "ro", "h:/V", "DIR"], status=1, says=UNSPECIFIED)
    yield Row("-o second", ["h:/V", "-o", "ro", "DIR"], status=1, says=DASH_O)
    yield Row("no such mount point", ["h:/V", "/no/such"], status=1, says=NO_MOUNT_POINT)
    yield Row("a file as mount point", ["h:/V", "/etc/hostname"], status=1, says=NO_MOUNT_POINT)
    yield Row("several -o", ["h:/V", "DIR", "-n", "-o", "acl", "-s", "-o", "ro"],
              ["--read-only", "--acl"] + SERVERS + ["DIR"], differs="the other loses the last")
    yield Row("-v -r -t", ["h:/V", "DIR", "-v", "-r", "-t", "glusterfs"],
              ["--read-only"] + SERVERS + ["DIR"], differs="the other does not know them")
    yield Row("-f only pretends", ["h:/V", "DIR", "-f"], differs="the other does not know it")
    yield Row("-f still looks", ["h:/V", "/", "-f"], status=2, says="Cannot mount over root\n",
              differs="the other does not know it")
    yield Row("unknown flag", ["h:/V", "DIR", "-x"], status=1, parts="Usage: ",
              differs="the other fails with status 0")
    yield Row("-o without a word", ["h:/V", "DIR", "-o"], status=1, parts="Usage: ",
              differs="the other fails with status 0")
    yield Row("-h", ["-h"])
    yield Row("-h behind", ["h:/V", "DIR", "-h"])
    yield Row("-V asks the client", ["-V"], ["-V"], env={"RECORDER_MOUNT": "no"})
    yield Row("unknown option", ["h:/V", "DIR", "-o", "acl,nonsense"], status=1,
              says="Invalid option nonsense\n")
    yield Row("unknown option with value", ["h:/V", "DIR", "-o", "nonsense=1,acl"], status=1,
              says="Invalid option: nonsense\n")


def hostile_rows():
    """What the user types is data."""
    trap = "$(touch %s)`touch %s`;touch %s" % ((os.path.join(WORK, "trapped"),) * 3)
    yield option_row("log-file=" + trap, ["--log-file=" + trap],
                     differs="the other cuts words at blanks")
    yield option_row('log-file="a,b",xlator-option="c,d"',
                     ["--log-file=a,b", "--xlator-option=c,d"], differs="the other cuts it in two")
    for value in ("a  b", "it's", 'say"what', "*", "a=b", "-x", "\\n", "a\nb"):
        yield option_row("log-file=" + value, ["--log-file=" + value],
                         differs="the other cuts words at blanks and expands patterns")
    yield Row("a key is compared, not run", ["h:/V", "DIR", "-o", "log-level log-file=x"],
              status=1, says="Invalid option: log-level log-file\n", differs="cut at blanks")
    yield Row("a key is no command", ["h:/V", "DIR", "-o", "a;%s=1" % trap], status=1,
              says="Invalid option: a;%s\n" % trap, differs="cut at blanks")
    yield Row("a server with a blank", ["h 1:/V w", "DIR"],
              SERVERS[:2] + ["--volfile-server=h 1", "--volfile-id=/V w", "DIR"],
              differs="the other cuts words at blanks")
    yield option_row("xlator-option=*", ["--xlator-option=*"], differs="the other expands it")
    yield option_row("acl", ["--acl"], differs="the other takes them over",
                     env={"option_log_level": "X", "read_only": "1", "subdir": "/x",
                          "volfile": "/y", "servers": "s"})


def client_rows():
    yield Row("client fails", ["h:/V", "DIR"], SERVERS + ["DIR"], status=1,
              says="Mounting glusterfs on DIR failed.\n", env={"RECORDER_STATUS": "107"})
    dead = {"RECORDER_MOUNT": "dead"}
    yield Row("client dies after it started", ["h:/V", "DIR"], SERVERS + ["DIR"], status=1,
              says="Mount failed. Check the log file  for more details.\n", env=dead)
    yield option_row("log-file=/l", ["--log-file=/l"], status=1, env=dead,
                     says="Mount failed. Check the log file /l for more details.\n")


def refusal_rows():
    brick, parent = os.path.join(WORK, "brick"), os.path.join(WORK, "parent")
    link = os.path.join(WORK, "link")
    yield Row("over the root", ["h:/V", "/"], status=2, says="Cannot mount over root\n")
    yield Row("over /tmp", ["h:/V", "/tmp"], status=2, says="Cannot mount over /tmp\n")
    for alias in ("//", "/usr/.."):
        yield Row("over the root, " + alias, ["h:/V", alias], status=2,
                  says="Cannot mount over root\n", differs="the other compares text")
    for alias in ("/tmp/", link):
        yield Row("over /tmp, " + alias, ["h:/V", alias], status=2,
                  says="Cannot mount over /tmp\n", differs="the other compares text")
    yield Row("over a brick", ["h:/V", brick], status=2,
              says="ERROR: %s is in use as a brick of a gluster volume\n" % brick)
    yield Row("over a brick's parent", ["h:/V", parent], status=2,
              says="ERROR: %s is a parent of the brick %s/a/brick\n" % (parent, parent),
              differs="the other does not see it in this laboratory")
    yield Row("beside a brick", ["h:/V", parent + "/a/bri"],
              SERVERS + [parent + "/a/bri"])
    yield Row("another host's brick has the same path", ["h:/V", os.path.join(WORK, "remote")],
              SERVERS + [os.path.join(WORK, "remote")])


def refusal_fixture():
    """A brick, a directory above a brick of the local glusterd, and one only named like that."""
    for path in ("brick", "parent/a/brick", "parent/a/bri", "remote/brick"):
        os.makedirs(os.path.join(WORK, path))
    os.setxattr(os.path.join(WORK, "brick"), "trusted.gfid", b"\0" * 15 + b"\1")
    os.setxattr(os.path.join(WORK, "parent/a/brick"), "trusted.glusterfs.volume-id", b"v" * 16)
    os.symlink("/tmp", os.path.join(WORK, "link"))
    os.makedirs("/var/lib/glusterd", exist_ok=True)
    run("mount", "-t", "tmpfs", "store", "/var/lib/glusterd")
    os.makedirs("/var/lib/glusterd/vols/T/bricks")
    for number, path in enumerate(("parent/a/brick", "remote/brick")):
        with open("/var/lib/glusterd/vols/T/bricks/h:%d" % number, "w") as file:
            file.write("hostname=h\npath=%s\nlisten-port=0\n" % os.path.join(WORK, path))


# --- running --------------------------------------------------------------------------------


def run(*command, **more):
    return subprocess.run(command, check=True, **more)


def fuse_mount(path):
    """Mounts a FUSE file system of the type fuse.glusterfs; without its reader it is dead."""
    fd = os.open("/dev/fuse", os.O_RDWR)
    data = b"fd=%d,rootmode=40000,user_id=0,group_id=0" % fd
    if LIBC.mount(b"h:/V", path.encode(), b"fuse.glusterfs", 0, data) != 0:
        raise OSError(ctypes.get_errno(), "mount " + path)
    return fd


def unmount_all(path):
    while subprocess.run(["umount", "-l", path], stderr=subprocess.DEVNULL).returncode == 0:
        pass


class Outcome:
    def __init__(self, argv, status, stderr):
        self.argv, self.status, self.stderr = argv, status, stderr

    def same(self, other):
        return (self.argv, self.status, self.stderr) == (other.argv, other.status, other.stderr)

    def __str__(self):
        return "status %d, says %r, runs %s" % (self.status, self.stderr, self.argv)


def call(script, row, env):
    """Runs one row with one script. The second --fuse-mountopts says what the first said: only
    the last is kept, so that both ways of writing it compare equal."""
    record = os.path.join(WORK, "record")
    mount_point = os.path.join(WORK, "m")
    args = [mount_point if arg == "DIR" else arg for arg in row.args]
    if os.path.exists(record):
        os.unlink(record)
    env = dict(os.environ, RECORD=record, RECORDER_DEAD=os.path.join(WORK, "dead.py"), **env)
    done = subprocess.run([script] + args, env={**env, **row.env}, cwd=WORK, text=True,
                          stdin=subprocess.DEVNULL, stderr=subprocess.PIPE,
                          stdout=subprocess.DEVNULL, timeout=60)
    argv = None
    if os.path.exists(record):
        with open(record) as file:
            argv = file.read().split("\0")[:-1]
        argv = ["DIR" if arg == mount_point else arg for arg in argv]
        extra = [i for i, arg in enumerate(argv) if arg.startswith("--fuse-mountopts=")][:-1]
        argv = [arg for i, arg in enumerate(argv) if i not in extra]
    unmount_all(args[1] if len(args) > 1 and args[1].startswith(WORK) else mount_point)
    return Outcome(argv, done.returncode,
                   done.stderr.replace(script, "ARGV0").replace(mount_point, "DIR"))


class Report:
    def __init__(self):
        self.passed = self.failed = 0

    def check(self, name, good, detail=""):
        if good:
            self.passed += 1
        else:
            self.failed += 1
            print("FAIL %s: %s" % (name, detail))


def row_check(report, row, ours, genuine):
    got = call(ours, row, {"MORTAR_SBINDIR": os.path.join(WORK, "sbin")})
    wanted = Outcome(row.argv, row.status, row.says)
    if row.parts is not None:
        wanted.stderr = got.stderr if row.parts in got.stderr else row.parts
    report.check(row.name, got.same(wanted), "\n  got    %s\n  wanted %s" % (got, wanted))
    if genuine and not row.differs:
        other = call(genuine, row, {})
        if row.parts is not None:               # the usage text is our own
            other.stderr = got.stderr if row.parts in other.stderr else other.stderr
        report.check(row.name + " (genuine)", got.same(other),
                     "\n  got     %s\n  genuine %s" % (got, other))


def mounted_checks(report, ours, genuine):
    """Status 32 for what is mounted, also through another name; a dead mount does not hang us."""
    mount_point = os.path.join(WORK, "m")
    says = "ARGV0: according to mtab, GlusterFS is already mounted on %s\n"
    link = os.path.join(WORK, "m-link")
    os.symlink("m", link)
    for name, path, living, both in (("already mounted", "DIR", True, True),
                                     ("already mounted, slash", mount_point + "/", True, False),
                                     ("already mounted, link", link, True, False),
                                     ("already mounted, dead", "DIR", False, False)):
        for script in [ours] + ([genuine] if genuine and both else []):
            reader = mount_reader(mount_point) if living else os.close(fuse_mount(mount_point))
            row = Row(name, ["h:/V", path])
            got = call(script, row, {"MORTAR_SBINDIR": os.path.join(WORK, "sbin")})
            wanted = Outcome(None, 32, (says % path).replace(mount_point, "DIR"))
            report.check(name + " " + script, got.same(wanted),
                         "\n  got    %s\n  wanted %s" % (got, wanted))
            unmount_all(mount_point)
            if reader:
                reader.kill()
                reader.wait()


def mount_reader(path):
    """A process that mounts and answers just enough for stat."""
    reader = subprocess.Popen([sys.executable, os.path.join(HERE, "tiny_fuse.py"), path],
                              stdout=subprocess.PIPE, text=True)
    if reader.stdout.readline().strip() != "mounted":
        raise RuntimeError("tiny_fuse.py does not mount")
    return reader


def place_checks(report, ours):
    """Where the client is found: the build's directory, else the script's own, else /usr/sbin."""
    own = os.path.join(WORK, "sbin", "mount.glusterfs")
    shutil.copy(ours, own)
    row = Row("the script's own folder", ["h:/V", "DIR"], SERVERS + ["DIR"])
    report.check(row.name, call(own, row, {}).argv == row.argv)
    built = os.path.join(WORK, "mount.built")
    with open(ours) as file, open(built, "w") as copy:
        copy.write(file.read().replace("@" + "SBINDIR@", os.path.join(WORK, "sbin")))
    os.chmod(built, 0o755)
    report.check("the build's directory", call(built, row, {}).argv == row.argv)
    gone = call(ours, row, {"MORTAR_SBINDIR": "/no/such"})
    report.check("no client", gone.status == 1 and
                 gone.stderr.endswith("Mounting glusterfs on DIR failed.\n"), str(gone))


UPDATEDB = (
    # before, after, does the genuine one agree
    ('PRUNEFS="NFS nfs"\n', 'PRUNEFS="NFS nfs fuse.glusterfs"\n', True),
    ('A="x y"\nPRUNEFS = "NFS"  # c\nB=1\n', 'A="x y"\nPRUNEFS = "NFS fuse.glusterfs"  # c\nB=1\n',
     True),
    ('PRUNEFS="NFS fuse.glusterfs x"\n', 'PRUNEFS="NFS fuse.glusterfs x"\n', True),
    ("A=1\n", "A=1\n", True),
    ('# PRUNEFS="NFS"\n', '# PRUNEFS="NFS"\n', False),
    (None, None, True),
)


def updatedb_checks(report, ours, genuine):
    """The type is added to PRUNEFS of an /etc/updatedb.conf that lacks it; nothing else changes."""
    for name in ("upper", "work"):
        os.mkdir(os.path.join(WORK, name))
    run("mount", "-t", "overlay", "-o", "lowerdir=/etc,upperdir=%s/upper,workdir=%s/work" %
        (WORK, WORK), "overlay", "/etc")
    path = "/etc/updatedb.conf"
    for before, after, both in UPDATEDB:
        for script in [ours] + ([genuine] if genuine and both else []):
            if os.path.exists(path):
                os.unlink(path)
            if before is not None:
                with open(path, "w") as file:
                    file.write(before)
                os.chmod(path, 0o640)
            call(script, Row("", ["h:/V", "DIR"]), {"MORTAR_SBINDIR": WORK + "/sbin"})
            text = open(path).read() if os.path.exists(path) else None
            report.check("updatedb %r %s" % (before, script), text == after, repr(text))
            if script == ours and text is not None:
                report.check("updatedb keeps the mode", os.stat(path).st_mode & 0o777 == 0o640)
    left = [name for name in os.listdir("/etc") if name.startswith("updatedb.conf.")]
    report.check("updatedb leaves no draft", not left, str(left))
    run("umount", "-l", "/etc")


def mount_program_checks(report, ours):
    """mount(8) itself calls the helper, with arguments of its own making."""
    if not os.path.exists(GENUINE):
        print("skipped: mount(8), there is no %s over which to bind ours" % GENUINE)
        return
    run("mount", "--bind", ours, os.path.realpath(GENUINE))
    mount_point = os.path.join(WORK, "m")
    volfile = os.path.join(WORK, "client.vol")
    for name, source, options, argv in (
            ("mount(8)", "h:/V", [], SERVERS),
            ("mount(8) defaults", "h:/V", ["-o", "defaults,_netdev"], SERVERS),
            ("mount(8) -r -v", "h:/V", ["-r", "-v"], ["--read-only"] + SERVERS),
            ("mount(8) -n -s", "h:/V", ["-n", "-s", "-o", "acl"], ["--acl"] + SERVERS),
            ("mount(8) quotes", "h:/V", ["-o", 'log-file="a,b",ro'],
             ["--read-only", "--log-file=a,b"] + SERVERS),
            ("mount(8) volfile", volfile, ["-o", "log-file=a b"],
             ["--log-file=a b", "--process-name", "fuse", "--volfile=" + volfile])):
        row = Row(name, ["-t", "glusterfs"] + options + [source, "DIR"], argv + ["DIR"])
        got = call(shutil.which("mount"), row, {"MORTAR_SBINDIR": os.path.join(WORK, "sbin")})
        unmount_all(mount_point)
        report.check(name, got.same(Outcome(row.argv, 0, "")), str(got))
    row = Row("mount(8) -f", ["-t", "glusterfs", "-f", "h:/V", "DIR"])
    got = call(shutil.which("mount"), row, {"MORTAR_SBINDIR": os.path.join(WORK, "sbin")})
    report.check(row.name, got.same(Outcome(None, 0, "")), str(got))


def genuine_find():
    """The path of Debian's own helper, or None with the reason printed."""
    owner = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", "glusterfs-client"],
                           capture_output=True, text=True)
    files = subprocess.run(["dpkg-query", "-S", GENUINE], capture_output=True, text=True)
    if owner.stdout.startswith(GENUINE_VERSION) and "glusterfs-client" in files.stdout \
            and os.path.exists("/usr/sbin/glusterfs"):
        return GENUINE
    print("skipped: the comparison, Debian's glusterfs-client %s is not installed" %
          GENUINE_VERSION)
    return None


def recorder_install(genuine):
    os.mkdir(os.path.join(WORK, "sbin"))
    recorder = os.path.join(WORK, "sbin", "glusterfs")
    with open(recorder, "w") as file:
        file.write(RECORDER)
    os.chmod(recorder, 0o755)
    with open(os.path.join(WORK, "dead.py"), "w") as file:
        file.write(DEAD_MOUNT)
    if genuine:
        run("mount", "--bind", recorder, os.path.realpath("/usr/sbin/glusterfs"))


def main(ours):
    report = Report()
    started = time.monotonic()
    run("mount", "-t", "tmpfs", "mount-test", WORK)
    os.mkdir(os.path.join(WORK, "m"))
    genuine = genuine_find()
    recorder_install(genuine)
    volfile = os.path.join(WORK, "client.vol")
    with open(volfile, "w") as file:
        file.write("volume a\n  type debug/sink\nend-volume\n")

    refusal_fixture()
    for rows in (table_rows(), placed_rows(), device_rows(), volfile_rows(volfile), form_rows(),
                 hostile_rows(), client_rows(), refusal_rows()):
        for row in rows:
            row_check(report, row, ours, genuine)
    report.check("no trap was sprung", not os.path.exists(os.path.join(WORK, "trapped")))
    mounted_checks(report, ours, genuine)
    place_checks(report, ours)
    updatedb_checks(report, ours, genuine)
    mount_program_checks(report, ours)
    print("%.1f s" % (time.monotonic() - started))
    print("%d passed, %d failed" % (report.passed, report.failed))
    return 1 if report.failed else 0


def missing():
    """The thing without which this test cannot run, or None."""
    if os.geteuid() != 0:
        return "not root"
    for tool in ("unshare", "getfattr", "umount"):
        if not shutil.which(tool):
            return "no " + tool
    return None if os.path.exists("/dev/fuse") else "no /dev/fuse"


if __name__ == "__main__":
    SCRIPT = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else OURS)
    WORK = os.environ.get("MOUNT_TEST_WORK")
    if WORK:
        sys.exit(main(SCRIPT))
    if missing():
        print("skipped: " + missing())
        print("0 passed, 0 failed")
        sys.exit(77)
    WORK = tempfile.mkdtemp(prefix="mount-test.")
    try:
        sys.exit(subprocess.run(
            ["unshare", "-n", "-m", "-p", "--fork", "--mount-proc", "--kill-child",
             sys.executable, os.path.abspath(__file__), SCRIPT],
            env=dict(os.environ, MOUNT_TEST_WORK=WORK)).returncode)
    finally:
        os.rmdir(WORK)
