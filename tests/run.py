#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Runs everything: `run.py check` with rounds cut to a budget of minutes, `run.py soak` in full.

    tests/run.py check --build build [--only PART] [--list]

Builds (plain, with sanitizers, for fuzzing), then style, unit tests, fuzz targets and the programs of
tests/ that drive real mounts and genuine peers. Stops at the first broken build; every program has a
limit and runs in namespaces of its own. The last line is `N passed, N failed`."""
import argparse
import glob
import os
import re
import signal
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SUMMARY = re.compile(r"^(?:\S+: )?(\d+) passed, (\d+) failed(?:, (\d+) skipped)?$", re.MULTILINE)
MESON_OK = re.compile(r"^Ok:\s+(\d+)", re.MULTILINE)
MESON_BAD = re.compile(r"^(?:Fail|Unexpected Pass|Timeout):\s+(\d+)", re.MULTILINE)
MESON_SKIP = re.compile(r"^Skipped:\s+(\d+)", re.MULTILINE)
SHOWN_MAX = 20000       # of a program's output; of what came before, the lines that say FAIL
FUZZ_SECONDS = {"check": 240, "soak": 1500}    # of all targets together


class Tally:
    def __init__(self):
        self.passed = self.failed = self.skipped = 0
        self.broken = []

    def add(self, name, passed, failed, skipped=0):
        self.passed, self.failed = self.passed + passed, self.failed + failed
        self.skipped += skipped
        if failed:
            self.broken.append(name)


class Runner:
    def __init__(self, args):
        self.args, self.tally = args, Tally()
        self.build = os.path.join(ROOT, args.build)
        self.env = {**os.environ, "MORTAR_BUILD": self.build, "MORTAR_ROUNDS": args.rounds}

    # -- building

    def must(self, argv, env=None):
        print("$ " + " ".join(argv), flush=True)
        if subprocess.run(argv, cwd=ROOT, env=env, check=False).returncode != 0:
            print("the build is broken: nothing else is run")
            print("0 passed, 1 failed")
            sys.exit(1)

    def wants(self, *names):
        return any((self.args.only or "") in name for name in names)

    def make(self, build, *options, env=None):
        if self.args.list:
            return
        if not os.path.exists(os.path.join(build, "build.ninja")):
            self.must(["meson", "setup", build, *options], env)
        self.must(["ninja", "-C", build], env)

    # -- running

    def part(self, name, argv, limit, env=None, summary=SUMMARY):
        """One program: its own summary line counts; dying without one is one failure."""
        if not self.wants(name):
            return
        if self.args.list:
            print(name)
            return
        began = time.monotonic()
        print("=== %s" % name, flush=True)
        process = subprocess.Popen(argv, cwd=ROOT, env={**self.env, **(env or {})}, text=True,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, errors="backslashreplace",
                                   start_new_session=True)
        try:
            output, _ = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            output, _ = process.communicate()
            output += "\n(not done after %d s: killed)\n" % limit
        except KeyboardInterrupt:
            os.killpg(process.pid, signal.SIGTERM)
            process.wait()
            raise
        self.judge(name, process.returncode, output, time.monotonic() - began, summary)

    def judge(self, name, status, output, seconds, summary):
        if summary is SUMMARY:
            found = SUMMARY.findall(output)
            counts = [int(number or 0) for number in found[-1]] if found else [0, 0, 0]
        else:
            counts = [sum(int(n) for n in rule.findall(output))
                      for rule in (MESON_OK, MESON_BAD, MESON_SKIP)]
        if status != 0 and counts[1] == 0 or counts[0] + counts[1] == 0:
            counts[1] += 1
        interesting = output if counts[1] or self.args.verbose else "\n".join(
            line for line in output.splitlines()
            if re.match(r"^(seed |  \d.* of soak's|skip |FAIL|rounds)", line))
        early = [line for line in interesting[:-SHOWN_MAX].splitlines() if line.startswith("FAIL")]
        if interesting:
            print("\n".join(early + [interesting[-SHOWN_MAX:]]), flush=True)
        print("--- %s: %d passed, %d failed, %d skipped in %.0f s"
              % (name, *counts, seconds), flush=True)
        self.tally.add(name, *counts)

    def unit_tests(self, name, build, limit, env=None):
        self.part(name, ["meson", "test", "-C", build, "--no-rebuild", "--print-errorlogs"], limit,
                  env, summary=None)

    def fuzz(self, build):
        """Each source in tests/fuzz is a target."""
        sources = glob.glob(os.path.join(ROOT, "tests", "fuzz", "*.c"))
        targets = sorted("fuzz-" + os.path.basename(source)[:-2] for source in sources)
        if self.wants(*("fuzz/" + target for target in targets)):
            self.make(build, *SANITIZERS, "-Dfuzz=true", env={**os.environ, "CC": "clang"})
        seconds = max(5, FUZZ_SECONDS[self.args.rounds] // len(targets))
        for target in targets:
            self.part("fuzz/" + target, [sys.executable, "tests/fuzz/run.py",
                                         os.path.join(build, "tests", "fuzz", target), str(seconds)],
                      seconds + 120)


SANITIZERS = ["-Dwerror=false", "-Db_sanitize=address,undefined", "-Db_lundef=false"]
SANITIZED = {"ASAN_OPTIONS": "detect_leaks=1:abort_on_error=1:detect_stack_use_after_return=0",
             "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1"}


def integration(runner, soak):
    """The programs that drive real mounts: name, arguments, limit in seconds (check, soak)."""
    py = sys.executable
    plain = {"MORTAR_ENV": "plain"}
    parts = [
        ("tools", [py, "tests/tools/selftest.py"], (120, 120), None),
        ("mount", [py, "tests/mount/mount_helper.py"], (120, 120), None),
        ("daemon/errors", [py, "tests/daemon/g_errors.py"], (180, 300), None),
        ("daemon/life", [py, "tests/daemon/life.py"], (180, 300), None),
        ("daemon/managed", [py, "tests/daemon/managed.py"], (240, 300), None),
        ("A volfiles", [py, "tests/interop/a_volfiles.py"], (240, 900), None),
        ("B volfiles, plain", [py, "tests/interop/a_volfiles.py"], (240, 900), plain),
        ("B volfiles, confined", [py, "tests/interop/b_confined.py"], (240, 900), None),
        ("C posix, ours on ours", [py, "tests/interop/c_posix.py", "--brick", "ours", "--client",
                                   "ours"], (300, 900), None),
        ("C posix, ours with --acl", [py, "tests/interop/c_posix.py", "--brick", "ours",
                                      "--client", "ours", "--flags=--acl"], (300, 900), None),
        ("C posix, genuine mount", [py, "tests/interop/c_posix.py", "--brick", "ours", "--client",
                                    "genuine"], (300, 900), None),
        ("C posix, genuine brick", [py, "tests/interop/c_posix.py", "--brick", "genuine",
                                    "--client", "ours"], (300, 900), None),
        ("C diff, ours on ours", [py, "tests/interop/c_diff.py", "--brick", "ours", "--client",
                                  "ours"], (240, 1200), None),
        ("C diff, genuine mount", [py, "tests/interop/c_diff.py", "--brick", "ours", "--client",
                                   "genuine"], (240, 1200), None),
        ("C diff, genuine brick", [py, "tests/interop/c_diff.py", "--brick", "genuine", "--client",
                                   "ours"], (240, 1200), None),
        ("D swap", [py, "tests/interop/d_swap.py"], (240, 900), None),
        ("D crash", [py, "tests/interop/d_crash.py"], (240, 900), None),
        ("D swap, genuine first", [py, "tests/interop/d_swap.py", "--brick", "genuine"],
         (240, 900), None),
        ("D windows", [py, "tests/interop/d_windows.py"], (240, 900), None),
        ("E programs", [py, "tests/interop/e_programs.py"], (300, 1500), None),
        ("F direct I/O", [py, "tests/interop/f_direct.py"], (180, 600), None),
    ]
    for name, argv, limits, env in parts:
        if os.path.exists(os.path.join(ROOT, argv[1])):
            runner.part(name, argv, limits[1 if soak else 0], env)
        elif not (runner.args.only or runner.args.list):
            print("=== %s: no such program: %s" % (name, argv[1]))
            runner.tally.add(name, 0, 1)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rounds", choices=["check", "soak"])
    parser.add_argument("--build", default="build")
    parser.add_argument("--only", help="parts whose name contains this")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--verbose", action="store_true")
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    runner = Runner(args)
    soak = args.rounds == "soak"
    began = time.monotonic()

    runner.make(runner.build)
    runner.part("style", [sys.executable, "tests/style/style.py", "--include",
                          os.path.join(runner.build, "src")], 120)
    runner.part("style of the style test", [sys.executable, "tests/style/selftest.py"], 120)
    runner.unit_tests("unit", runner.build, 600)
    integration(runner, soak)
    sanitized = runner.build + "-asan"
    if runner.wants("unit, ASan and UBSan", "A volfiles, ASan and UBSan"):
        runner.make(sanitized, *SANITIZERS)
    runner.unit_tests("unit, ASan and UBSan", sanitized, 900, SANITIZED)
    runner.part("A volfiles, ASan and UBSan", [sys.executable, "tests/interop/a_volfiles.py"], 600,
                {**SANITIZED, "MORTAR_BUILD": sanitized})
    runner.fuzz(runner.build + "-fuzz")
    if args.list:
        return

    tally = runner.tally
    if tally.broken:
        print("failed: " + ", ".join(tally.broken))
    print("%s took %.1f minutes" % (args.rounds, (time.monotonic() - began) / 60))
    print("%d passed, %d failed, %d skipped" % (tally.passed, tally.failed, tally.skipped))
    sys.exit(1 if tally.failed or tally.passed == 0 else 0)


try:
    main()
except KeyboardInterrupt:
    sys.exit("interrupted")
