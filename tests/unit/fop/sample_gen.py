#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Makes C from fops.def: sample and comparison of every operation's arguments and reply (sample.h).
usage: sample_gen.py fops.def OUTPUT"""
import sys

HEAD = """/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Made from src/fop/fops.def by sample_gen.py. */
#include "sample.h"

#include <stdlib.h>
#include <string.h>
"""
NO_MEMBER = ("fdgfid", "psize", "nlen", "nlen64", "size")
OBJECTS = ("inode", "fdnum", "newfd")       # of arguments: bound by who calls
BY_VALUE = ("u32", "i32", "u64", "eof", "fdnum")
BY_MEMORY = ("lease", "statfs")             # structs without padding


def parse(path):
    """[(name, {"args": [(kind, member)], "reply": [...]})]"""
    fops = []
    with open(path, encoding="utf-8") as lines:
        for words in (line.split("#")[0].split() for line in lines):
            if words and words[0] == "fop":
                fops.append((words[1], {"args": [], "reply": []}))
            elif words:
                fops[-1][1]["args" if words[0] == "in" else "reply"].append(tuple(words[1:]))
    return fops


def members(fields, side):
    skipped = NO_MEMBER + (OBJECTS if side == "args" else ())
    optional = {name for kind, name in fields if kind in ("nlen", "nlen64")}
    return [("optional" if name in optional and kind in ("name", "text") else kind, name)
            for kind, name in fields if kind not in skipped]


def draw(kind, name, side):
    if kind == "text" and side == "args":
        kind = "name"
    return "        draw_%s(&it->%s);\n" % (kind, name)


def same(kind, name):
    if kind in BY_VALUE:
        return "a->%s == b->%s" % (name, name)
    if kind in BY_MEMORY:
        return "memcmp(&a->%s, &b->%s, sizeof(a->%s)) == 0" % (name, name, name)
    if kind in ("name", "optional"):
        return "same_name(a->%s, b->%s)" % (name, name)
    if kind == "text":
        return "same_text(a->%s, b->%s)" % (name, name)
    if kind == "dict":
        return "same_dict(a->%s, b->%s)" % (name, name)
    return "same_%s(&a->%s, &b->%s)" % (kind.replace("direntsp", "dirents"), name, name)


def function(head, fops, case, tail=""):
    cases = "".join("    case FOP_%s: {\n%s        break;\n    }\n" % (name.upper(), case(name, fop))
                    for name, fop in fops)
    return "\n%s\n{\n    switch (op) {\n%s    default:\n        break;\n    }\n%s}\n" % (
        head, cases, tail)


def draw_case(side):
    def case(name, fop):
        struct = "struct %s_%s" % (name, side)
        return ("        %s *it = out;\n        memset(it, 0, sizeof(*it));\n" % struct
                + "".join(draw(kind, member, side) for kind, member in members(fop[side], side)))
    return case


def same_case(side):
    def case(name, fop):
        struct = "const struct %s_%s" % (name, side)
        terms = [same(kind, member) for kind, member in members(fop[side], side)] or ["true"]
        return ("        %s *a = left, *b = right;\n        (void)a;\n        (void)b;\n"
                "        return %s;\n" % (struct, " &&\n               ".join(terms)))
    return case


def free_case(name, fop):
    texts = [member for kind, member in members(fop["args"], "args")
             if kind in ("name", "text", "optional")]
    return ("        struct %s_args *it = args;\n        (void)it;\n" % name
            + "".join("        free((char *)(uintptr_t)it->%s);\n" % member for member in texts))


def main():
    fops = parse(sys.argv[1])
    text = [HEAD]
    for side in ("args", "reply"):
        text.append(function("void sample_%s(enum fop op, void *out)" % side, fops,
                             draw_case(side)))
        text.append(function("bool sample_%s_equal(enum fop op, const void *left, "
                             "const void *right)" % side, fops, same_case(side),
                             "    return false;\n"))
    text.append(function("void sample_args_fini(enum fop op, void *args)", fops, free_case,
                         "    fop_args_fini(op, args);\n"))
    with open(sys.argv[2], "w", encoding="utf-8") as out:
        out.write("".join(text))


main()
