# SPDX-License-Identifier: LGPL-2.1-or-later
"""What an integration test stands on: private namespaces, bricks, mounts, limits, a verdict.

    sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
    import harness

    def story(test):
        brick = test.brick("genuine", stack="brick")
        mount = test.mount("ours", brick)
        with test.step("write and read", limit=30):
            test.run(["dd", "if=/dev/zero", "of=f", "count=1"], cwd=mount.dir)
            test.equal(os.stat(brick.dir + "/f").st_size, 512, "size on the brick")

    harness.main(story, __doc__)

The process is run again under unshare(1), as the first of its own pid, mount and network
namespaces, and forks: the child tells the story, the parent (pid 1) watches the clock. However the
test ends, the end of pid 1 takes every process and mount with it.

`ours` is taken from $MORTAR_BUILD, `genuine` from /usr/sbin. $MORTAR_ROUNDS (check, soak) picks
the numbers, $MORTAR_SEED the seed, $MORTAR_TEST_DIR where scratch directories go (a real file
system: O_DIRECT and trusted xattrs are used). A scratch directory outlives only a failed test.
"""
import argparse
import collections
import contextlib
import ctypes
import glob
import json
import os
import random
import re
import resource
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback

import volfiles

ADDRESS = "10.77.0.1"           # on lo, and not a loopback address: genuine daemons insist on one
BIG_BRICK_LIMIT_S = 30          # until a port answers or a mount is there
STOP_LIMIT_S = 30
TAIL_LINES = 25
UNSHARE = ["unshare", "-n", "-m", "-p", "--fork", "--mount-proc", "--kill-child"]
PRIVATE_DIRS = ["/var/lib/glusterd", "/var/log/glusterfs", "/run/gluster"]
GENUINE_DIR = "/usr/sbin"
KINDS = ["ours", "genuine"]
PR_SET_CHILD_SUBREAPER = 36


class Failed(Exception):
    """The step cannot go on. The message is the failed check."""


# ---------------------------------------------------------------- daemons

class Detached:
    """A daemon that went to the background, in the shape of a Popen: it is our child again, for
    the test process is the reaper of whoever loses a parent."""

    def __init__(self, pid):
        self.pid, self.returncode = pid, None

    def poll(self):
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def wait(self, timeout):
        due = time.monotonic() + timeout
        while self.poll() is None:
            if time.monotonic() > due:
                raise subprocess.TimeoutExpired(str(self.pid), timeout)
            time.sleep(0.01)
        return self.returncode

    def send_signal(self, number):
        os.kill(self.pid, number)

    def kill(self):
        self.send_signal(signal.SIGKILL)


class Daemon:
    """A process of the system under test with its log; in the foreground unless `detach`ed."""

    def __init__(self, test, name, kind, program, env):
        self.test, self.name, self.kind = test, name, kind
        self.program = program_path(kind, program)
        self.home = test.fresh_dir(name)
        self.log = os.path.join(self.home, "log")
        self.env = {**os.environ, **(env or {})}
        self.process = None
        self.expected = set()           # exit statuses that are no accident
        test.daemons.append(self)

    def spawn(self, argv):
        self.expected = set()
        with open(os.path.join(self.home, "stderr"), "ab") as stderr:
            self.process = subprocess.Popen(
                [self.program] + argv, stdin=subprocess.DEVNULL, stdout=stderr, stderr=stderr,
                cwd=self.home, env=self.env, start_new_session=True, preexec_fn=allow_core)
        self.test.watch(self)

    def detach(self, argv, limit_s=BIG_BRICK_LIMIT_S):
        """Starts it as users do: the command returns 0 when the daemon is ready."""
        self.expected = set()
        before = children()
        self.test.run([self.program] + argv, limit=limit_s, cwd=self.home, env=self.env)
        new = children() - before
        if len(new) != 1:
            raise Failed("%s: %d processes are left by the command" % (self.name, len(new)))
        self.process = Detached(new.pop())
        self.test.watch(self)

    @property
    def pid(self):
        return self.process.pid

    def is_running(self):
        return self.process is not None and self.process.poll() is None

    def signal(self, number):
        if self.is_running():
            self.process.send_signal(number)

    def kill9(self):
        """The crash that users mean: SIGKILL, at once."""
        self.expected = {-signal.SIGKILL}
        self.signal(signal.SIGKILL)
        self.await_end()

    def stop(self):
        """The clean end: SIGTERM. What is not gone in time is a failure, and killed."""
        if not self.process:
            return
        self.expected = {0, signal.SIGTERM, -signal.SIGTERM}    # genuine says exit(15)
        self.signal(signal.SIGTERM)
        self.await_end()

    def await_end(self):
        try:
            self.process.wait(STOP_LIMIT_S)
        except subprocess.TimeoutExpired:
            self.test.fail("%s did not end within %d s" % (self.name, STOP_LIMIT_S))
            self.expected.add(-signal.SIGKILL)
            self.process.kill()
            self.process.wait()
        self.judge_end()

    def judge_end(self):
        """Looks at how the process ended, once, if it did."""
        if self.process is None or self.process.poll() is None:
            return
        status, self.process = self.process.returncode, None
        if status not in self.expected:
            self.test.fail("%s (%s) ended by itself: %s" % (self.name, self.kind, said(status)))
            self.test.show_core(self)

    def await_true(self, what, is_true, limit_s=BIG_BRICK_LIMIT_S):
        due = time.monotonic() + limit_s
        while not is_true():
            if not self.is_running():
                status = self.process.returncode
                self.process = None
                raise Failed("%s (%s) ended before %s: %s" % (self.name, self.kind, what,
                                                              said(status)))
            if time.monotonic() > due:
                raise Failed("%s (%s): no %s within %d s" % (self.name, self.kind, what, limit_s))
            time.sleep(0.02)


class Brick(Daemon):
    """glusterfsd over a directory. `stack` names a volfile of volfiles.py; or `volfile` is text."""

    def __init__(self, test, kind, dir=None, port=None, stack="brick", volfile=None, options=None,
                 extra_args=(), env=None, name="brick"):
        super().__init__(test, name, kind, "glusterfsd", env)
        self.dir = dir or test.fresh_dir(name + ".dir")
        self.port = port or test.fresh_port()
        self.extra_args = list(extra_args)
        self.stack = stack
        self.subvolume = volfiles.exported_name(stack, self.dir)
        self.text = volfile or volfiles.server(stack, self.dir, self.port, options or {})
        volfiles.prepare_dir(stack, self.dir)

    def start_detached(self):
        """As in seed S4: nothing but -f (and a log file of our own)."""
        path = os.path.join(self.home, "server.vol")
        write_text(path, self.text)
        self.detach(["-f", path, "-l", self.log] + self.extra_args)
        self.test.check(port_answers(self.port), "the port answers when glusterfsd returns")
        return self

    def start(self):
        path = os.path.join(self.home, "server.vol")
        write_text(path, self.text)
        self.spawn(["-N", "-f", path, "-l", self.log, "-p", os.path.join(self.home, "pid")]
                   + self.extra_args)
        self.await_true("port %d answers" % self.port, lambda: port_answers(self.port))
        return self

    def restart(self):
        self.stop()
        return self.start()


class Mount(Daemon):
    """glusterfs on a directory, as a client of `brick` (or of whatever `volfile` says)."""

    def __init__(self, test, kind, brick=None, dir=None, stack="plain", volfile=None, options=None,
                 extra_args=(), env=None, name="mount"):
        super().__init__(test, name, kind, "glusterfs", env)
        self.dir = dir or test.fresh_dir(name + ".dir")
        self.extra_args = list(extra_args)
        self.text = volfile or volfiles.client(stack, ADDRESS, brick.port, brick.subvolume,
                                               options or {})

    def mount(self):
        path = os.path.join(self.home, "client.vol")
        write_text(path, self.text)
        self.spawn(["-N", "--volfile=" + path, "--log-file=" + self.log] + self.extra_args
                   + [self.dir])
        self.await_true("mount at " + self.dir, lambda: is_mount_point(self.dir))
        self.test.run(["stat", "-f", self.dir], limit=BIG_BRICK_LIMIT_S)
        return self

    def mount_detached(self):
        """As in seed S4: the mount is there, and usable, when the command returns."""
        path = os.path.join(self.home, "client.vol")
        write_text(path, self.text)
        self.detach(["--volfile=" + path, "--log-file=" + self.log] + self.extra_args + [self.dir])
        self.test.check(is_mount_point(self.dir), "the mount is there when glusterfs returns")
        self.test.run(["ls", self.dir], limit=BIG_BRICK_LIMIT_S)
        return self

    def umount(self):
        """umount(8), and the process has to follow. Busy is a failure: who is still there?"""
        if is_mount_point(self.dir):
            result = self.test.run(["umount", self.dir], limit=STOP_LIMIT_S, ok=None)
            if result.status != 0:
                self.test.fail("umount %s: %s" % (self.name, result.text.strip()))
                subprocess.run(["umount", "-l", self.dir], check=False)
        if self.process:
            self.expected = {0, signal.SIGTERM, -signal.SIGTERM}
            self.await_end()

    stop = umount

    def remount(self):
        self.umount()
        return self.mount()


class Result:
    def __init__(self, status, output):
        self.status, self.output = status, output

    @property
    def text(self):
        return self.output.decode(errors="backslashreplace")


# ---------------------------------------------------------------- the test

class Test:
    """What a story is told with. Checks are counted; a failed one does not end the story."""

    def __init__(self, args, scratch, notify):
        self.args, self.scratch, self.notify = args, scratch, notify
        self.passed = self.failed = self.skipped = 0
        self.daemons = []
        self.steps = []
        self.made = collections.Counter()       # of the fresh directories, by name
        self.port = 49152
        self.rounds = os.environ.get("MORTAR_ROUNDS", "check")
        self.seed = int(os.environ.get("MORTAR_SEED") or random.randrange(1, 1 << 31))
        self.random = random.Random(self.seed)
        print("seed %d, rounds %s" % (self.seed, self.rounds), flush=True)

    # -- numbers, directories, ports

    def number(self, check, soak):
        """Says how much is done of what a soak does, and gives the number for this run."""
        chosen = soak if self.rounds == "soak" else check
        if chosen != soak:
            print("  %s of soak's %s" % (chosen, soak), flush=True)
        return chosen

    def fresh_dir(self, name):
        self.made[name] += 1
        number = "-%d" % self.made[name] if self.made[name] > 1 else ""
        path = os.path.join(self.scratch, name + number)
        os.mkdir(path)
        return path

    def fresh_port(self):
        self.port += 1
        return self.port

    # -- actors

    def brick(self, kind, **more):
        return Brick(self, kind, **more).start()

    def mount(self, kind, brick=None, **more):
        return Mount(self, kind, brick, **more).mount()

    # -- verdicts

    def ok(self, message):
        """Of a check that may have more to say when it fails, the first line is its name."""
        self.passed += 1
        if self.args.verbose:
            print("ok    %s" % message.split("\n")[0], flush=True)

    def fail(self, message):
        self.failed += 1
        where = ": ".join(step for step in self.steps)
        print("FAIL  %s%s%s" % (where, ": " if where else "", message), flush=True)
        self.notify("count", passed=self.passed, failed=self.failed, skipped=self.skipped)

    def skip(self, reason):
        self.skipped += 1
        print("skip  %s" % reason, flush=True)

    def check(self, is_true, message):
        (self.ok if is_true else self.fail)(message)
        return bool(is_true)

    def equal(self, got, expected, message):
        return self.check(got == expected, message if got == expected else
                          "%s: got %.300r, expected %.300r" % (message, got, expected))

    def require(self, is_true, message):
        """A check without which the step makes no sense."""
        if not is_true:
            raise Failed(message)
        self.ok(message)

    @contextlib.contextmanager
    def step(self, name, limit):
        """Names what happens, and bounds it: after `limit` seconds the whole test is over."""
        began = time.monotonic()
        self.steps.append(name)
        self.notify("step", name=": ".join(self.steps), limit=limit)
        try:
            yield
        except Failed as failure:
            self.fail(str(failure))
        except Exception:
            self.fail("the test itself broke\n" + traceback.format_exc())
        finally:
            self.judge_daemons()
            self.steps.pop()
            self.notify("done", passed=self.passed, failed=self.failed, skipped=self.skipped)
            print("%6.1f s  %s" % (time.monotonic() - began, name), flush=True)

    # -- programs

    def run(self, argv, limit=60, ok=(0,), cwd=None, env=None, input=None):
        """Runs a program to its end and returns its Result. `ok` lists the good exit statuses,
        None takes any; another is raised as Failed. Late: its process group is killed."""
        process = subprocess.Popen(argv, cwd=cwd, env={**os.environ, **(env or {})},
                                   stdin=subprocess.PIPE if input else subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                   start_new_session=True)
        try:
            output, _ = process.communicate(input, timeout=limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            output = drain(process)
            raise Failed("%s: not done after %d s\n%s" % (" ".join(argv)[:200], limit,
                                                          tail_of(output)))
        if ok is not None and process.returncode not in ok:
            raise Failed("%s: %s\n%s" % (" ".join(argv)[:200], said(process.returncode),
                                         tail_of(output)))
        return Result(process.returncode, output)

    def tool(self, name):
        """A program of tests/tools or tests/posix, from the build directory."""
        for place in ("tests/tools", "tests", "tests/posix", "bench", ""):
            path = os.path.join(build_dir(), place, name)
            if os.access(path, os.X_OK) and os.path.isfile(path):
                return path
        raise Failed("no %s in $MORTAR_BUILD (%s)" % (name, build_dir()))

    # -- daemons

    def watch(self, daemon):
        self.notify("log", name=daemon.name, home=daemon.home)

    def judge_daemons(self):
        for daemon in self.daemons:
            daemon.judge_end()

    def stop_all(self):
        """Mounts first: a mount whose brick is gone waits for it."""
        for daemon in sorted(self.daemons, key=lambda one: not isinstance(one, Mount)):
            daemon.stop()

    def show_core(self, daemon):
        cores = glob.glob(os.path.join(daemon.home, "core*"))
        if cores and shutil.which("gdb"):
            subprocess.run(["gdb", "-batch", "-ex", "bt", daemon.program, cores[0]],
                           stdin=subprocess.DEVNULL, timeout=60, check=False)


# ---------------------------------------------------------------- small parts

def program_path(kind, program):
    folder = os.path.join(build_dir(), "src", "daemon") if kind == "ours" else GENUINE_DIR
    path = os.path.join(folder, program)
    if not os.access(path, os.X_OK):
        raise Failed("no executable %s (%s)" % (path, kind))
    return path


def build_dir():
    default = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "build")
    return os.path.abspath(os.environ.get("MORTAR_BUILD", default))


def allow_core():
    hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
    resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))


def write_text(path, text):
    with open(path, "w", encoding="utf-8") as out:
        out.write(text)


def said(status):
    if status < 0:
        return "killed by %s" % signal.Signals(-status).name
    return "exit status %d" % status


def tail_of(output):
    """The last lines; not those of the volfile, which logs repeat with line numbers."""
    lines = [line for line in output.decode(errors="backslashreplace").splitlines()
             if not re.match(r" *\d+: ", line)]
    return "\n".join(lines[-TAIL_LINES:])


def wait_for(is_true, limit_s):
    """(whether it became true in time, what it last said)"""
    due = time.monotonic() + limit_s
    while True:
        value = is_true()
        if value or time.monotonic() > due:
            return bool(value), value
        time.sleep(0.01)


def children():
    """Pids of the processes whose parent is this one, zombies apart."""
    found = set()
    for name in os.listdir("/proc"):
        with contextlib.suppress(OSError, ValueError):
            with open("/proc/%d/stat" % int(name), encoding="utf-8", errors="replace") as data:
                state, parent = data.read().rsplit(")", 1)[1].split()[:2]
            if int(parent) == os.getpid() and state != "Z":
                found.add(int(name))
    return found


def drain(process):
    try:
        return process.communicate(timeout=5)[0]
    except subprocess.TimeoutExpired:
        return b"(it does not even die)"


def port_answers(port):
    with socket.socket() as one:
        one.settimeout(1)
        return one.connect_ex((ADDRESS, port)) == 0


def mount_points():
    """Paths as in mountinfo, the latest last."""
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as lines:
        return [line.split()[4].encode().decode("unicode_escape") for line in lines]


def is_mount_point(path):
    return os.path.realpath(path) in mount_points()


# ---------------------------------------------------------------- pid 1

class Watcher:
    """Pid 1: reads what the story says about its steps, and ends the test when one is late."""

    def __init__(self, teller, pipe, scratch, limit):
        self.teller, self.pipe, self.scratch = teller, pipe, scratch
        self.steps = [("the whole test", time.monotonic() + limit)]
        self.homes = {}
        self.counts = {"passed": 0, "failed": 0, "skipped": 0}
        self.finished = False

    def watch(self):
        """Returns the exit status of the test."""
        buffered = b""
        while not self.finished:
            name, due = min(self.steps, key=lambda step: step[1])
            wait_s = due - time.monotonic()
            if wait_s <= 0:
                return self.give_up("FAIL  %s: over its time limit" % name)
            if not select.select([self.pipe], [], [], wait_s)[0]:
                continue
            data = os.read(self.pipe, 65536)
            if not data:
                return self.give_up("FAIL  the test process died")
            *lines, buffered = (buffered + data).split(b"\n")
            for line in lines:
                self.hear(json.loads(line))
        return self.conclude()

    def hear(self, said_):
        self.counts.update({key: said_[key] for key in self.counts if key in said_})
        if said_["what"] == "step":
            self.steps.append((said_["name"], time.monotonic() + said_["limit"]))
        elif said_["what"] == "done":
            self.steps.pop()
        elif said_["what"] == "log":
            self.homes[said_["home"]] = said_["name"]
        elif said_["what"] == "end":
            self.finished = True

    def give_up(self, message):
        print(message)
        self.counts["failed"] += 1
        show_where_they_wait()
        return self.conclude()

    def conclude(self):
        if self.counts["failed"]:
            self.show_logs()
        kill_all_others()
        unmount_below(self.scratch)
        if self.counts["failed"]:
            print("kept: " + self.scratch)
        else:
            shutil.rmtree(self.scratch, ignore_errors=True)
        print("%(passed)d passed, %(failed)d failed, %(skipped)d skipped" % self.counts, flush=True)
        return 1 if self.counts["failed"] or not sum(self.counts.values()) else 0

    def show_logs(self):
        for home, name in self.homes.items():
            for part in ("stderr", "log"):
                path = os.path.join(home, part)
                if os.path.exists(path) and os.path.getsize(path):
                    print("---- %s: last lines of %s" % (name, path))
                    with open(path, "rb") as data:
                        data.seek(max(0, os.path.getsize(path) - 16384))
                        print(tail_of(data.read()))


def show_where_they_wait():
    """A line for each process that is left: what hangs is among them."""
    for pid in sorted(int(name) for name in os.listdir("/proc") if name.isdigit()):
        try:
            with open("/proc/%d/cmdline" % pid, "rb") as data:
                argv = data.read().replace(b"\0", b" ").decode(errors="replace")[:100]
            with open("/proc/%d/wchan" % pid, encoding="ascii") as data:
                print("      pid %d %s (%s)" % (pid, argv, data.read()))
        except OSError:
            pass


def kill_all_others():
    with contextlib.suppress(ProcessLookupError):
        os.kill(-1, signal.SIGKILL)         # of this pid namespace, without pid 1
    due = time.monotonic() + STOP_LIMIT_S
    while time.monotonic() < due:
        try:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                time.sleep(0.01)
        except ChildProcessError:
            return


def unmount_below(scratch):
    for path in reversed(mount_points()):
        if path.startswith(scratch + "/"):
            subprocess.run(["umount", "-l", path], check=False, stderr=subprocess.DEVNULL)


# ---------------------------------------------------------------- start

def enter_namespaces():
    """Comes back only in the first process of a pid namespace."""
    if os.getpid() == 1:
        return
    os.execvp(UNSHARE[0], UNSHARE + [sys.executable, os.path.abspath(sys.argv[0])] + sys.argv[1:])


def set_up_namespaces():
    for argv in (["mount", "--make-rprivate", "/"], ["ip", "link", "set", "lo", "up"],
                 ["ip", "address", "add", ADDRESS + "/32", "dev", "lo"]):
        subprocess.run(argv, check=True)
    write_text("/proc/sys/net/ipv4/ip_local_port_range", "32768 48999")    # below our bricks' ports
    if not os.path.isdir("/run/gluster"):
        subprocess.run(["mount", "-t", "tmpfs", "private", "/run"], check=True)
        os.mkdir("/run/gluster")
    for path in PRIVATE_DIRS:
        if os.path.isdir(path):
            subprocess.run(["mount", "-t", "tmpfs", "private", path], check=True)


def tell(story, args, scratch, pipe):
    """The child of pid 1: runs the story, says how it went."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    with os.fdopen(pipe, "w") as out:
        def notify(what, **more):
            out.write(json.dumps({"what": what, **more}) + "\n")
            out.flush()

        test = Test(args, scratch, notify)
        try:
            story(test)
        except Failed as failure:
            test.fail(str(failure))
        except Exception:
            test.fail("the test itself broke\n" + traceback.format_exc())
        with test.step("clean end", limit=4 * STOP_LIMIT_S):
            test.stop_all()
        notify("end")


def stop(number, scratch):
    """Somebody pressed ^C: nothing is judged, nothing is kept."""
    print("stopped by signal %d" % number, flush=True)
    kill_all_others()
    unmount_below(scratch)
    shutil.rmtree(scratch, ignore_errors=True)
    os._exit(1)


def parse_args(description, add_arguments):
    parser = argparse.ArgumentParser(description=description,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--brick", choices=KINDS, default="ours", help="whose glusterfsd")
    parser.add_argument("--client", choices=KINDS, default="ours", help="whose glusterfs")
    parser.add_argument("--limit", type=int, default=3600, help="seconds for the whole test")
    parser.add_argument("--verbose", action="store_true", help="print the checks that pass, too")
    if add_arguments:
        add_arguments(parser)
    return parser.parse_args()


def main(story, description="", add_arguments=None):
    args = parse_args(description, add_arguments)
    if os.geteuid() != 0:
        sys.exit("0 passed, 0 failed, 1 skipped\n(integration tests need root)")
    enter_namespaces()
    set_up_namespaces()
    base = os.environ.get("MORTAR_TEST_DIR", "/var/tmp")
    name = os.path.splitext(os.path.basename(sys.argv[0]))[0]
    scratch = os.path.realpath(tempfile.mkdtemp(prefix="mortar-%s-" % name, dir=base))
    os.chmod(scratch, 0o755)                    # other users act in it
    inlet, outlet = os.pipe()
    teller = os.fork()
    if teller == 0:
        os.close(inlet)
        tell(story, args, scratch, outlet)
        sys.stdout.flush()
        os._exit(0)
    os.close(outlet)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda number, _: stop(number, scratch))
    watcher = Watcher(teller, inlet, scratch, args.limit)
    os._exit(watcher.watch())
