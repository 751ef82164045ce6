#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What a machine can check of the house style, so that it needs no argument in review.

    tests/style/style.py [--root DIR] [--include DIR]... [--cc "gcc -m64"]

--include is where the build put its generated headers; without it the headers that need them are
not compiled on their own, and the run says so. Every check is one `passed` or `failed`; a violation
is a line `path:line: check: what`. A new check is a function below, and a row in CHECKS.
"""
import argparse
import ast
import os
import re
import shlex
import subprocess
import sys

COLUMNS_MAX = 100           # of C; tables and generators of it get a little more
FUNCTION_LINES_MAX = 100
RATCHET = "tests/style/ratchet.txt"
REGISTRY = "src/graph/registry.c"
TAG = "SPDX-License-Identifier: LGPL-2.1-or-later"

C_SUFFIXES = (".c", ".h", ".x")
HASH_SUFFIXES = (".py", ".sh", ".def", ".build", ".options", ".yml", ".yaml", ".toml", ".service")
HASH_NAMES = ("Makefile", "meson.build", "meson_options.txt", "run", ".clang-format", ".gitignore",
              "ratchet.txt", "mount.glusterfs", "suppressions")

# Who may include whom: a folder of src/ and the folders to which it points, besides itself.
KNOWS = {
    "core": (),
    "rpc": ("core",),
    "fop": ("core", "rpc"),
    "graph": ("core", "fop"),
    "xlators": ("graph", "fop", "core"),
    "api": ("graph", "fop", "core"),
    "daemon": ("core", "rpc", "fop", "graph", "xlators", "api"),
    "mgmt": ("core", "rpc"),
    "cli": ("core", "rpc"),
}
KNOWS_RPC = ("protocol", "nfs")             # translators that speak to the network themselves

# What leaves the process goes through core/env.h; only its own files call these.
OUTSIDE = """getenv secure_getenv setenv unsetenv putenv
    clock_gettime clock_nanosleep gettimeofday time nanosleep usleep sleep alarm setitimer
    timer_create timerfd_create timerfd_settime
    getrandom getentropy arc4random arc4random_buf rand random srand srandom drand48 rand_r
    uuid_generate uuid_generate_random uuid_generate_time
    socket socketpair bind connect listen accept accept4 send sendto sendmsg sendmmsg
    recv recvfrom recvmsg recvmmsg shutdown getsockopt setsockopt getsockname getpeername
    getaddrinfo gethostbyname getnameinfo
    poll ppoll select pselect epoll_create epoll_create1 epoll_ctl epoll_wait epoll_pwait
    eventfd signalfd io_uring_queue_init io_uring_setup""".split()
OUTSIDE_DOOR = re.compile(r"src/core/env[a-z_]*\.[ch]$")
# (path, call): why it may.
OUTSIDE_ALLOWED = {
    ("src/core/pool.c", "clock_gettime"): "how long an idle worker thread stays; no fiber waits",
}

# A brick's translator names no system call and no libc function that is one in disguise.
SYSTEM_CALLS = """open openat openat2 creat close dup dup2 dup3 read pread pread64 readv preadv
    preadv2 write pwrite pwrite64 writev pwritev pwritev2 lseek lseek64 sendfile splice tee
    copy_file_range fsync fdatasync sync syncfs sync_file_range truncate ftruncate fallocate
    posix_fallocate posix_fadvise readahead stat lstat fstat fstatat statx statfs fstatfs statvfs
    fstatvfs access faccessat faccessat2 chmod fchmod fchmodat chown fchown lchown fchownat utime
    utimes lutimes futimes futimesat utimensat futimens mkdir mkdirat mknod mknodat mkfifo mkfifoat
    rmdir unlink unlinkat remove rename renameat renameat2 link linkat symlink symlinkat readlink
    readlinkat opendir fdopendir readdir readdir64 closedir rewinddir seekdir telldir dirfd scandir
    getdents getdents64 getxattr lgetxattr fgetxattr setxattr lsetxattr fsetxattr listxattr
    llistxattr flistxattr removexattr lremovexattr fremovexattr fopen fopen64 fdopen freopen fclose
    fread fwrite fgets fgetc fputs fscanf fprintf fflush tmpfile mkstemp mkostemp mkdtemp realpath
    getcwd chdir fchdir chroot mount umount umount2 mmap munmap msync ioctl fcntl flock lockf pipe
    pipe2 fork vfork execve system popen kill setuid setgid seteuid setegid setreuid setregid
    setresuid setresgid setfsuid setfsgid setgroups umask syscall name_to_handle_at
    open_by_handle_at inotify_init fanotify_init acl_get_file acl_set_file acl_get_fd acl_set_fd
    ftw nftw fts_open glob""".split()

MARKERS = ["TO" + "DO", "FIX" + "ME", "X" + "XX", "HA" + "CK", "T" + "BD", "W" + "IP"]
# Names of the place where the code was written, which mean nothing to its reader.
WORKPLACE = [r"(?<![\w.%}])/wo" + "rk/", "/tmp/bri" + "ef", "/tmp/build" + "-",
             r"\bAnth" + "ropic", r"\bCl" + r"aude\b", r"\bsub-?age" + "nt"]

OPTION_ROW = re.compile(r"\bOPTION_(?!END\b|LIVE\b|PATTERN\b|NO_EFFECT\b)[A-Z_]+\(")
COMMENT_OR_STRING = re.compile(
    r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)


class Tree:
    """The files of the repository, their text, and where the generated headers are."""

    def __init__(self, root, include, compiler):
        self.root, self.include, self.compiler = root, include, compiler
        self.paths = sorted(path for path in self.listed() if self.is_file(path))
        self.skipped = []
        self.cache = {}

    def listed(self):
        done = subprocess.run(["git", "-c", "safe.directory=*", "-C", self.root, "ls-files", "-co",
                               "--exclude-standard"], capture_output=True, text=True)
        if done.returncode == 0:
            return set(done.stdout.splitlines())
        return {os.path.relpath(os.path.join(folder, name), self.root)
                for folder, _, names in os.walk(self.root) for name in names}

    def is_file(self, path):
        full = os.path.join(self.root, path)
        return os.path.isfile(full) and not os.path.islink(full)

    def text(self, path):
        if path not in self.cache:
            with open(os.path.join(self.root, path), encoding="utf-8", errors="replace") as file:
                self.cache[path] = file.read()
        return self.cache[path]

    def lines(self, path):
        return self.text(path).splitlines()

    def code(self, path):
        """The text of a C file, comments and strings blanked, its lines kept."""
        return COMMENT_OR_STRING.sub(blank, self.text(path))

    def c_files(self, *folders):
        return [path for path in self.paths if path.endswith((".c", ".h")) and
                (not folders or path.startswith(tuple(folder + "/" for folder in folders)))]

    def sources(self):
        """Programs and headers: what people write in a language, without texts and data."""
        return [path for path in self.paths if comment_of(path)]


def blank(match):
    return "".join(char if char == "\n" else " " for char in match.group(0))


def comment_of(path):
    """How line one of such a file says the SPDX tag, or None for a file that has no such line."""
    name = os.path.basename(path)
    if path.startswith("docs/") and re.search(r"\.[1-8]$", name):
        return '.\\" ' + TAG
    if path.endswith(C_SUFFIXES):
        return "/* " + TAG + " */"
    if path.endswith(HASH_SUFFIXES) or name in HASH_NAMES:
        return "# " + TAG
    return None


# --- the checks: each yields (path, line, what) ----------------------------------------------


def spdx(tree):
    for path in tree.paths:
        lines = tree.lines(path)[:2] + ["", ""]
        if lines[0].startswith("#!"):
            lines, wanted = lines[1:], "# " + TAG
        else:
            wanted = comment_of(path)
        if wanted and lines[0] != wanted:
            yield path, 1, "does not begin with `%s`" % wanted


def columns(tree):
    for path in tree.sources():
        for number, line in enumerate(tree.lines(path), 1):
            limit = COLUMNS_MAX if path.endswith((".c", ".h")) else COLUMNS_MAX + 20
            if len(line) > limit:
                yield path, number, "%d columns" % len(line)


def blanks(tree):
    for path in tree.sources():
        for number, line in enumerate(tree.lines(path), 1):
            if "\t" in line and not os.path.basename(path) == "Makefile":
                yield path, number, "a tab"
            if line != line.rstrip():
                yield path, number, "blanks at the end"
        if tree.text(path) and not tree.text(path).endswith("\n"):
            yield path, len(tree.lines(path)), "no newline at the end"


def markers(tree):
    pattern = re.compile(r"\b(%s)\b" % "|".join(MARKERS))
    for path in tree.sources():
        for number, line in enumerate(tree.lines(path), 1):
            found = pattern.search(line)
            if found:
                yield path, number, "leftover `%s`" % found.group(0)


def workplace(tree):
    pattern = re.compile("|".join(WORKPLACE))
    for path in tree.paths:
        for number, line in enumerate(tree.lines(path), 1):
            found = pattern.search(line)
            if found:
                yield path, number, "speaks of where it was written: `%s`" % found.group(0)


def includes_of(tree, path):
    for number, line in enumerate(tree.lines(path), 1):
        found = re.match(r'\s*#\s*include\s+([<"])([^>"]+)[>"]', line)
        if found:
            yield number, found.group(1) == '"', found.group(2)


def may_include(path, header):
    """Why `path` of src/ may not include "header", or None."""
    mine, theirs = path.split("/")[1:], header.split("/")
    if len(theirs) < 2 or theirs[0] not in KNOWS:
        return "is not a path from src/, such as \"core/buf.h\""
    if mine[0] == "xlators" and theirs[0] == "xlators":
        return None if mine[:3] == theirs[:3] else "is another translator's: they meet in the graph"
    if theirs[0] == mine[0] or theirs[0] in KNOWS.get(mine[0], ()):
        return None
    if mine[0] == "xlators" and mine[1] in KNOWS_RPC and theirs[0] == "rpc":
        return None
    return "is not for src/%s, which knows: %s" % (mine[0], ", ".join(KNOWS.get(mine[0], ())))


def include_rules(tree):
    for path in tree.c_files("src"):
        for number, quoted, header in includes_of(tree, path):
            why = may_include(path, header) if quoted else None
            if why:
                yield path, number, '"%s" %s' % (header, why)


def own_header_first(tree):
    for path in tree.c_files("src"):
        header = path[:-2] + ".h"
        if path.endswith(".c") and header in tree.paths:
            first = next(includes_of(tree, path), None)
            if not first or first[2] != header[len("src/"):]:
                yield path, first[0] if first else 1, 'does not include "%s" first' % header[4:]


def pragma_once(tree):
    for path in tree.c_files("src"):
        if path.endswith(".h") and "\n#pragma once\n" not in tree.text(path):
            yield path, 1, "no #pragma once"


def headers_alone(tree):
    flags = ["-std=gnu17", "-D_GNU_SOURCE", "-D_FILE_OFFSET_BITS=64", "-Wall", "-Wextra",
             "-Wshadow", "-Wvla", "-Werror", "-fsyntax-only", "-x", "c",
             "-I" + os.path.join(tree.root, "src")]
    flags += ["-I" + folder for folder in tree.include]
    for path in tree.c_files("src"):
        if not path.endswith(".h"):
            continue
        done = subprocess.run(tree.compiler + flags + ["-"], capture_output=True, text=True,
                              input='#include "%s"\n' % path[len("src/"):])
        if done.returncode == 0:
            continue
        first = next((line for line in done.stderr.splitlines() if "error:" in line), done.stderr)
        if not tree.include and "No such file or directory" in first:
            tree.skipped.append("%s on its own: no --include for the generated headers" % path)
        else:
            yield path, 1, "does not stand alone: " + first.strip()


def translators(tree):
    """Every real translator: those of the registry and those that a file defines."""
    registered = set(re.findall(r'\{ "([a-z]+/[a-z0-9-]+)", \{[^}]*\}, &xlator_\w+ \}',
                                tree.text(REGISTRY))) if REGISTRY in tree.paths else set()
    defined = {}
    for path in tree.c_files("src/xlators"):
        for name in re.findall(r'^\s*\.name = "([a-z]+/[a-z0-9-]+)",', tree.text(path), re.M):
            defined[name] = path
    return registered, defined


def translator_registry(tree):
    registered, defined = translators(tree)
    if not registered:
        yield REGISTRY, 1, "no row of a real translator found: has its form changed?"
    for name in sorted(set(defined) - registered - {"mount/fuse", "mount/api"}):
        yield defined[name], 1, "%s has no row in %s" % (name, REGISTRY)


def translator_docs(tree):
    registered, defined = translators(tree)
    for name in sorted(registered | set(defined)):
        page = "docs/translators/%s.md" % name.replace("/", "-")
        if page not in tree.paths:
            yield page, 1, "no page for %s" % name


def translator_tests(tree):
    registered, defined = translators(tree)
    tests = [path for path in tree.paths if path.startswith("tests/") and
             path.endswith((".c", ".py", ".sh")) and
             not path.startswith(("tests/style/", "tests/mount/", "tests/lib/"))]
    for name in sorted(registered | set(defined)):
        word = re.compile(r"\b%s\b(?!-)" % re.escape(name))
        if not any(word.search(path) or name.replace("/", "-") in path or
                   word.search(tree.text(path)) for path in tests):
            yield defined.get(name, REGISTRY), 1, "no test speaks of %s" % name


def closing(text, start):
    """Where the parenthesis that opens at `start` closes."""
    depth = 0
    for at in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        if depth == 0:
            return at
    return len(text)


def option_rows(tree):
    for path in tree.c_files("src/xlators", "src/graph"):
        code = tree.code(path)
        for found in OPTION_ROW.finditer(code):
            row = code[found.start():closing(code, found.end() - 1)]
            if ".help" not in row:
                yield path, code.count("\n", 0, found.start()) + 1, "an option without .help"


def calls(tree, path, names):
    """(line, name) of calls of these functions; not of fields, methods or longer names."""
    pattern = re.compile(r"(?<![\w.])(?<!->)(%s)\s*\(" % "|".join(names))
    for number, line in enumerate(tree.code(path).splitlines(), 1):
        for found in pattern.finditer(line):
            yield number, found.group(1)


def posix_system_calls(tree):
    for path in tree.c_files("src/xlators/storage/posix"):
        for number, name in calls(tree, path, SYSTEM_CALLS):
            yield path, number, "calls %s itself: use env_%s or its like" % (name, name)


def one_door(tree):
    used = set()
    for path in tree.c_files("src"):
        if OUTSIDE_DOOR.match(path):
            continue
        for number, name in calls(tree, path, OUTSIDE):
            if is_declaration(tree, path, number, name):
                continue
            if (path, name) in OUTSIDE_ALLOWED:
                used.add((path, name))
            else:
                yield path, number, "calls %s past core/env.h" % name
    for path, name in sorted(set(OUTSIDE_ALLOWED) - used):
        if path in tree.paths:
            yield path, 1, "does not call %s any more: take it off the allow-list" % name


def is_declaration(tree, path, number, name):
    """`int (*send)(...)` and `static int poll(struct ...` are names of our own."""
    line = tree.code(path).splitlines()[number - 1]
    return re.match(r"\s*(static\s+|extern\s+)?(const\s+)?(struct\s+)?\w+[\s*]+%s\s*\(" % name,
                    line) and not re.match(r"\s*(return|else|case)\b", line)


def c_functions(tree, path):
    """(line, name, lines). A function's brace stands alone in column one; nothing else's does."""
    lines = tree.code(path).splitlines()
    for number, line in enumerate(lines):
        if line != "{":
            continue
        first = number
        while first > 0 and lines[first - 1].strip() and \
                not lines[first - 1].rstrip().endswith((";", "}", "*/")) and \
                not lines[first - 1].startswith("#"):
            first -= 1
        last = next((i for i in range(number, len(lines)) if lines[i].startswith("}")), number)
        name = re.search(r"(\w+)\s*\(", " ".join(lines[first:number]))
        yield first + 1, name.group(1) if name else "?", last - first + 1


def py_functions(tree, path):
    for node in ast.walk(ast.parse(tree.text(path))):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.lineno, node.name, node.end_lineno - node.lineno + 1


def ratchet_rows(tree):
    rows = {}
    for line in tree.lines(RATCHET) if RATCHET in tree.paths else []:
        if line and not line.startswith("#"):
            path, name, lines = line.split()
            rows[path, name] = int(lines)
    return rows


def function_length(tree):
    rows, seen = ratchet_rows(tree), {}
    for path in tree.paths:
        functions = c_functions if path.endswith((".c", ".h")) else py_functions
        if not path.endswith((".c", ".h", ".py")):
            continue
        for number, name, lines in functions(tree, path):
            seen[path, name] = max(lines, seen.get((path, name), 0))
            if lines > max(FUNCTION_LINES_MAX, rows.get((path, name), 0)):
                yield path, number, "%s has %d lines" % (name, lines)
    for (path, name), lines in sorted(rows.items()):
        now = seen.get((path, name), 0)
        if now <= FUNCTION_LINES_MAX:
            yield RATCHET, 1, "%s %s is not over %d lines any more: take its row out" % (
                path, name, FUNCTION_LINES_MAX)
        elif now < lines:
            yield RATCHET, 1, "%s %s has %d lines now: lower its row" % (path, name, now)


def man_pages(tree):
    for path in tree.paths:
        if not re.match(r"docs/man/.*\.[1-8]$", path):
            continue
        try:
            done = subprocess.run(["groff", "-ww", "-Tutf8", "-man", os.path.join(tree.root, path)],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        except FileNotFoundError:
            tree.skipped.append("man pages: no groff")
            return
        for line in done.stderr.splitlines():
            yield path, 1, line.replace(tree.root + "/", "")


CHECKS = (
    ("line one is the SPDX tag", spdx),
    ("no line over %d columns" % COLUMNS_MAX, columns),
    ("no tabs, no blanks at a line's end", blanks),
    ("no leftover markers", markers),
    ("no words about the workplace", workplace),
    ("a folder includes only what it knows", include_rules),
    ("a .c includes its own header first", own_header_first),
    ("#pragma once", pragma_once),
    ("headers stand alone", headers_alone),
    ("real translators are registered", translator_registry),
    ("real translators have a page", translator_docs),
    ("real translators have a test", translator_tests),
    ("options have their help", option_rows),
    ("storage/posix makes no system call", posix_system_calls),
    ("everything outside is behind core/env.h", one_door),
    ("man pages are clean", man_pages),
    ("functions of at most %d lines, or the ratchet's" % FUNCTION_LINES_MAX, function_length),
)


def main():
    parser = argparse.ArgumentParser(description="checks the house style")
    parser.add_argument("--root", default=os.path.join(os.path.dirname(__file__), "..", ".."))
    parser.add_argument("--include", action="append", default=[])
    parser.add_argument("--cc", default=os.environ.get("CC", "cc"))
    options = parser.parse_args()
    tree = Tree(os.path.abspath(options.root), [os.path.abspath(one) for one in options.include],
                shlex.split(options.cc))
    failed = 0
    for name, check in CHECKS:
        violations = list(check(tree))
        failed += bool(violations)
        for path, line, what in violations:
            print("%s:%d: %s: %s" % (path, line, name, what))
    for what in tree.skipped:
        print("skipped: " + what)
    print("%d passed, %d failed" % (len(CHECKS) - failed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
