#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Does style.py see what it is there to see? A small good tree passes every check; then one thing
at a time is spoilt, and exactly the checks that are named have to fail."""
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
C_TAG = "/* SPDX-License-Identifier: LGPL-2.1-or-later */\n"
REGISTRY = C_TAG + '{ "debug/sink", { 0 }, &xlator_debug_sink },\n'
SINK = C_TAG + '''#include "graph/xlator.h"

static const struct option options[] = {
    OPTION_BOOL(struct sink, on, "on", .help = "(yes)"),
};
const struct xlator_type sink = {
    .name = "debug/sink",
};
'''
GOOD = {
    "src/core/a.h": C_TAG + "#pragma once\n\nint a(void);\n",
    "src/core/a.c": C_TAG + '#include "core/a.h"\n\nint a(void)\n{\n    return 1;\n}\n',
    "src/core/env.c": C_TAG + "void e(void)\n{\n    getenv(x);\n}\n",
    "src/rpc/r.h": C_TAG + '#pragma once\n\n#include "core/a.h"\n',
    "src/graph/xlator.h": C_TAG + "#pragma once\n",
    "src/graph/registry.c": REGISTRY,
    "src/xlators/debug/sink/sink.c": SINK,
    "src/xlators/protocol/client/client.c": C_TAG + '#include "rpc/r.h"\n',
    "src/xlators/storage/posix/posix.c": C_TAG + "int p(void)\n{\n    return env_open(1); "
                                         "/* open(2) */\n}\n",
    "docs/translators/debug-sink.md": "# debug/sink\n",
    "docs/man/x.8": '.\\" SPDX-License-Identifier: LGPL-2.1-or-later\n.TH x 8\n',
    "tests/unit/sink.sh": "#!/bin/sh\n# SPDX-License-Identifier: LGPL-2.1-or-later\n"
                          "echo type debug/sink\n",
    "tests/style/ratchet.txt": "# SPDX-License-Identifier: LGPL-2.1-or-later\n",
}


def body(lines):
    return "int b(void)\n{\n" + "    b();\n" * (lines - 3) + "}\n"


SPDX, COLUMNS, BLANKS = "SPDX", "columns", "no tabs"
LENGTH, DOOR = "functions of at most", "core/env.h"
RATCHET_TAG = GOOD["tests/style/ratchet.txt"]
CASES = (
    # what is spoilt, {path: text}, the checks that must fail (a part of each one's name)
    ("nothing", {}, ()),
    ("no tag", {"src/core/b.c": "int b;\n"}, (SPDX,)),
    ("no tag in a script", {"tests/t.py": "#!/usr/bin/env python3\n"}, (SPDX,)),
    ("no tag in a man page", {"docs/man/y.8": ".TH y 8\n"}, (SPDX,)),
    ("101 columns", {"src/core/b.c": C_TAG + "/" * 101 + "\n"}, (COLUMNS,)),
    ("100 columns", {"src/core/b.c": C_TAG + "/" * 100 + "\n"}, ()),
    ("a tab", {"src/core/b.c": C_TAG + "\tint b;\n"}, (BLANKS,)),
    ("blanks at the end", {"src/core/b.c": C_TAG + "int b; \n"}, (BLANKS,)),
    ("no last newline", {"src/core/b.c": C_TAG + "int b;"}, (BLANKS,)),
    ("a marker", {"src/core/b.c": C_TAG + "/* TO" + "DO: all */\n"}, ("markers",)),
    ("a man page that groff warns of", {
        "docs/man/z.8": GOOD["docs/man/x.8"] + ".NOSUCH x\n"}, ("man pages",)),
    ("a path of ours", {"README.md": "see /wo" + "rk/x\n"}, ("workplace",)),
    ("core knows rpc", {"src/core/b.c": C_TAG + '#include "rpc/r.h"\n'}, ("knows",)),
    ("debug knows rpc", {"src/xlators/debug/sink/b.c": C_TAG + '#include "rpc/r.h"\n'},
     ("knows",)),
    ("another translator's header", {
        "src/xlators/debug/b/b.c": C_TAG + '#include "xlators/debug/sink/sink.h"\n'}, ("knows",)),
    ("its own folder's header", {
        "src/xlators/debug/sink/x.h": C_TAG + "#pragma once\n",
        "src/xlators/debug/sink/b.c": C_TAG + '#include "xlators/debug/sink/x.h"\n'}, ()),
    ("a bare name", {"src/core/b.c": C_TAG + '#include "a.h"\n'}, ("knows",)),
    ("own header second", {"src/core/a.c": C_TAG + '#include <errno.h>\n#include "core/a.h"\n'},
     ("own header",)),
    ("no pragma", {"src/core/b.h": C_TAG + "int b(void);\n"}, ("#pragma",)),
    ("a header that leans on another", {
        "src/core/b.h": C_TAG + "#pragma once\n\nuint32_t b(void);\n"}, ("stand alone",)),
    ("an unregistered translator", {
        "src/xlators/debug/x/x.c": C_TAG + '    .name = "debug/x",\n',
        "docs/translators/debug-x.md": "x\n", "tests/unit/debug-x.c": C_TAG}, ("registered",)),
    ("no page", {"src/graph/registry.c": REGISTRY + '{ "debug/y", { 0 }, &xlator_y },\n',
                 "tests/unit/debug-y.c": C_TAG}, ("page",)),
    ("no test", {"src/graph/registry.c": REGISTRY + '{ "debug/y", { 0 }, &xlator_y },\n',
                 "docs/translators/debug-y.md": "y\n"}, ("have a test",)),
    ("a test of a longer name", {
        "src/graph/registry.c": REGISTRY + '{ "debug/y", { 0 }, &xlator_y },\n',
        "docs/translators/debug-y.md": "y\n",
        "tests/unit/b.c": C_TAG + "/* debug/y-z */\n"}, ("have a test",)),
    ("an option without help", {
        "src/xlators/debug/sink/b.c": C_TAG + 'OPTION_INT(struct b, x, "x", .max = f(1)),\n'},
     ("help",)),
    ("a system call in posix", {
        "src/xlators/storage/posix/b.c": C_TAG + "int b(void)\n{\n    return openat(1, 2);\n}\n"},
     ("storage/posix",)),
    ("a field named like one", {
        "src/xlators/storage/posix/b.c": C_TAG + "int b(void)\n{\n    return x->open(1);\n}\n"},
     ()),
    ("the clock", {"src/rpc/b.c": C_TAG + "int b(void)\n{\n    return time(NULL);\n}\n"}, (DOOR,)),
    ("a socket", {"src/rpc/b.c": C_TAG + "int b(void)\n{\n    return socket(1, 2, 3);\n}\n"},
     (DOOR,)),
    ("a name of our own", {"src/rpc/b.h": C_TAG + "#pragma once\n\nint send(int x);\n"}, ()),
    ("101 lines", {"src/core/b.c": C_TAG + body(101)}, (LENGTH,)),
    ("100 lines", {"src/core/b.c": C_TAG + body(100)}, ()),
    ("101 lines of Python", {
        "tests/b.py": "# SPDX-License-Identifier: LGPL-2.1-or-later\ndef b():\n" +
                      "    b()\n" * 100}, (LENGTH,)),
    ("the ratchet allows it", {"src/core/b.c": C_TAG + body(120), "tests/style/ratchet.txt":
                               RATCHET_TAG + "src/core/b.c b 120\n"}, ()),
    ("the ratchet does not grow", {"src/core/b.c": C_TAG + body(121), "tests/style/ratchet.txt":
                                   RATCHET_TAG + "src/core/b.c b 120\n"}, (LENGTH,)),
    ("the ratchet turns", {"src/core/b.c": C_TAG + body(119), "tests/style/ratchet.txt":
                           RATCHET_TAG + "src/core/b.c b 120\n"}, (LENGTH,)),
    ("the ratchet lets go", {"src/core/b.c": C_TAG + body(100), "tests/style/ratchet.txt":
                             RATCHET_TAG + "src/core/b.c b 120\n"}, (LENGTH,)),
)


def failures(files):
    """The names of the checks that fail on a tree of these files, and style.py's own answer."""
    with tempfile.TemporaryDirectory() as root:
        for path, text in files.items():
            full = os.path.join(root, path)
            os.makedirs(os.path.dirname(full), exist_ok=True)
            with open(full, "w") as file:
                file.write(text)
        done = subprocess.run([sys.executable, "-B", os.path.join(HERE, "style.py"), "--root",
                               root], capture_output=True, text=True)
    lines = done.stdout.splitlines()
    return sorted({line.split(": ")[1] for line in lines[:-1] if ": " in line}), done


def main():
    passed = failed = 0
    for name, files, wanted in CASES:
        found, done = failures({**GOOD, **files})
        good = len(found) == len(wanted) and done.returncode == bool(wanted) and \
            all(part in check for part, check in zip(wanted, found))
        passed, failed = passed + good, failed + (not good)
        if not good:
            print("FAIL %s: wanted %s, found\n%s%s" % (name, wanted, done.stdout, done.stderr))
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
