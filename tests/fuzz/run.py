#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Runs one fuzz target for some seconds on a copy of its corpus: fuzz/run.py TARGET SECONDS.
What it finds is shown as hex, to become a file of tests/fuzz/corpus/NAME and a unit test."""
import glob
import os
import shutil
import subprocess
import sys
import tempfile

target, seconds = sys.argv[1], int(sys.argv[2])
name = os.path.basename(target)[len("fuzz-"):]
seeds = os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus", name)
with tempfile.TemporaryDirectory() as work:
    corpus = os.path.join(work, "corpus")
    shutil.copytree(seeds, corpus) if os.path.isdir(seeds) else os.mkdir(corpus)
    done = subprocess.run([target, "-max_total_time=%d" % seconds, "-timeout=10", "-rss_limit_mb=2048",
                           "-print_final_stats=1", "-max_len=65536", "-artifact_prefix=" + work + "/",
                           corpus], capture_output=True, text=True, errors="backslashreplace",
                          check=False)
    runs = [line for line in done.stderr.splitlines() if "number_of_executed_units" in line]
    print("%s: %s in %d s" % (name, runs[0].split()[-1] + " inputs" if runs else "no inputs", seconds))
    for found in glob.glob(work + "/crash-*") + glob.glob(work + "/oom-*") + \
            glob.glob(work + "/timeout-*") + glob.glob(work + "/leak-*"):
        print("%s: %s" % (os.path.basename(found), open(found, "rb").read()[:4096].hex()))
    if done.returncode != 0 or not runs:
        print(done.stderr[-6000:])
        print("0 passed, 1 failed")
        sys.exit(1)
print("1 passed, 0 failed")
