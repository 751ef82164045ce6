#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Makes C from fops.def: types and vtable (fop_types.h), wire codec (fop_codec.h, .c), callers and
forwarding (fop_call.h, .c).  usage: gen.py fops.def DIRECTORY fop|graph"""
import os
import sys


class Fop:
    def __init__(self, name, proc, replay, klass):
        self.name, self.proc, self.replay, self.klass = name, int(proc), replay, klass
        self.ins, self.outs = [], []


def parse(path):
    fops = []
    for number, line in enumerate(open(path), 1):
        words = line.split('#')[0].split()
        if not words:
            continue
        if words[0] == 'fop' and len(words) == 5:
            fops.append(Fop(*words[1:]))
        elif words[0] in ('in', 'out') and len(words) == 3 and fops:
            (fops[-1].ins if words[0] == 'in' else fops[-1].outs).append((words[1], words[2]))
        else:
            sys.exit(f'{path}:{number}: cannot read: {line.strip()}')
    return fops


ARG_MEMBER = {
    'inode': 'struct inode *{0};', 'fdnum': 'struct fd *{0};', 'newfd': 'struct fd *{0};',
    'name': 'const char *{0};', 'text': 'const char *{0};', 'u32': 'uint32_t {0};',
    'i32': 'int32_t {0};', 'u64': 'uint64_t {0};', 'iatt': 'struct iatt {0};',
    'lock': 'struct lock {0};', 'lease': 'struct lease {0};', 'locklist': 'struct locklist {0};',
    'dict': 'struct dict *{0};', 'payload': 'struct payload {0};',
    'fdgfid': None, 'psize': None, 'nlen': None, 'nlen64': None,
}
REPLY_MEMBER = {
    'fdnum': 'int64_t {0}; /* protocol layers only */', 'text': 'char *{0};', 'u32': 'uint32_t {0};',
    'i32': 'int32_t {0};', 'u64': 'uint64_t {0};', 'iatt': 'struct iatt {0};',
    'lock': 'struct lock {0};', 'lease': 'struct lease {0};', 'locklist': 'struct locklist {0};',
    'dict': 'struct dict *{0};', 'payload': 'struct payload {0};', 'bytes': 'struct fop_bytes {0};',
    'dirents': 'struct dirents {0};', 'direntsp': 'struct dirents {0};',
    'statfs': 'struct fsstat {0};', 'eof': 'bool {0};', 'size': None,
}
HEAD = '/* SPDX-License-Identifier: LGPL-2.1-or-later */\n/* Made from src/fop/fops.def by gen.py. */\n'


def types_h(fops):
    out = [HEAD, '#pragma once\n\n#include "core/buf.h"\n#include "core/dict.h"\n'
           '#include "fop/call.h"\n#include "fop/iatt.h"\n\nstruct xlator;\nstruct inode;\n'
           'struct fd;\n\nstruct fop_bytes {\n    uint32_t bytes;\n    uint8_t data[64];\n};\n\n'
           'enum { FOP_NAME_BYTES_MAX = 4096, FOP_TEXT_BYTES_MAX = 65536 };\n\n'
           '/* Implemented by graph/inode.c, which knows what these are. */\n'
           'const gfid_t *inode_gfid(const struct inode *inode) nowait;\n'
           'const gfid_t *fd_gfid(const struct fd *fd) nowait; /* null gfid: not bound */\n\n'
           'enum fop_replay { REPLAY_AGAIN, REPLAY_JUDGE, REPLAY_FAIL };\n'
           'enum fop_class { CLASS_ENTRY, CLASS_INODE, CLASS_FD, CLASS_LOCK, CLASS_DATA };\n\n'
           'enum fop {\n']
    out += [f'    FOP_{f.name.upper()},\n' for f in fops]
    out.append('    FOP_COUNT,\n};\n\n')
    for f in fops:
        members = [ARG_MEMBER[k].format(n) for k, n in f.ins if ARG_MEMBER[k]]
        out.append(f'struct {f.name}_args {{\n' + ''.join(f'    {m}\n' for m in members) + '};\n')
        members = [REPLY_MEMBER[k].format(n) for k, n in f.outs if REPLY_MEMBER[k]]
        out.append(f'struct {f.name}_reply {{\n' + ''.join(f'    {m}\n' for m in members) + '};\n\n')
    out.append('union fop_args {\n' + ''.join(f'    struct {f.name}_args {f.name};\n' for f in fops)
               + '};\nunion fop_reply {\n'
               + ''.join(f'    struct {f.name}_reply {f.name};\n' for f in fops) + '};\n\n')
    out.append('/* 0 or a count, or -errno. args are borrowed; reply is zeroed by the caller and owned by it\n'
               ' * (fop_reply_fini), also after a failure, where it may carry xdata. */\n')
    out += [f'typedef int fop_{f.name}_fn(struct xlator *xl, struct call *call, '
            f'const struct {f.name}_args *in,\n                    struct {f.name}_reply *out);\n'
            for f in fops]
    out.append('\nstruct fops {\n' + ''.join(f'    fop_{f.name}_fn *{f.name};\n' for f in fops)
               + '};\n\n')
    out.append('struct fop_info {\n    const char *name;  /* "writev" */\n'
               '    const char *title; /* "WRITE", as statistics and traces say it */\n'
               '    uint32_t procedure;\n    enum fop_replay replay;\n    enum fop_class class_;\n'
               '    size_t args_size, reply_size;\n    size_t vtable_offset; /* in struct fops */\n};\n'
               'extern const struct fop_info fop_info[FOP_COUNT];\n'
               '/* FOP_COUNT: no such procedure. */\nenum fop fop_of_procedure(uint32_t procedure) nowait;\n'
               '/* By name or title, any case; FOP_COUNT: unknown. */\nenum fop fop_of_name(const char *name) nowait;\n'
               '/* Frees what a reply owns and zeroes it. */\n'
               'void fop_reply_fini(enum fop op, void *reply);\n')
    out += [f'void {f.name}_reply_fini(struct {f.name}_reply *reply);\n' for f in fops]
    out.append('/* Frees what decoding made in args (dicts, lists, payload; not inodes and fds). */\n'
               'void fop_args_fini(enum fop op, void *args);\n'
               '/* Calls fn on the attributes in a reply, those of directory entries too. */\n'
               'void fop_reply_each_iatt(enum fop op, void *reply,\n'
               '    void (*fn)(struct iatt *iatt, void *arg), void *arg);\n')
    return ''.join(out)


TITLES = {'readv': 'READ', 'writev': 'WRITE'}


def types_c(fops):
    out = [HEAD, '#include "fop/fop_types.h"\n\n#include <stdlib.h>\n#include <string.h>\n'
           '#include <strings.h>\n\n'
           'const struct fop_info fop_info[FOP_COUNT] = {\n']
    for f in fops:
        title = TITLES.get(f.name, f.name.upper())
        out.append(f'    [FOP_{f.name.upper()}] = {{ "{f.name}", "{title}", {f.proc}, '
                   f'REPLAY_{f.replay.upper()}, CLASS_{f.klass.upper()},\n        '
                   f'sizeof(struct {f.name}_args), sizeof(struct {f.name}_reply), '
                   f'offsetof(struct fops, {f.name}) }},\n')
    out.append('};\n\nenum fop fop_of_procedure(uint32_t procedure)\n{\n'
               '    static const uint8_t of[] = {\n')
    out += [f'        [{f.proc}] = FOP_{f.name.upper()} + 1,\n' for f in fops]
    out.append('    };\n    if (procedure >= ARRAY_SIZE(of) || of[procedure] == 0)\n'
               '        return FOP_COUNT;\n    return of[procedure] - 1;\n}\n\n'
               'enum fop fop_of_name(const char *name)\n{\n'
               '    for (enum fop op = 0; op < FOP_COUNT; op++)\n'
               '        if (strcasecmp(name, fop_info[op].name) == 0 ||\n'
               '            strcasecmp(name, fop_info[op].title) == 0)\n            return op;\n'
               '    return FOP_COUNT;\n}\n\n')
    fini = {'dict': '    dict_unref(reply->{0});\n', 'text': '    free(reply->{0});\n',
            'payload': '    payload_fini(&reply->{0});\n', 'dirents': '    dirents_fini(&reply->{0});\n',
            'direntsp': '    dirents_fini(&reply->{0});\n', 'locklist': '    locklist_fini(&reply->{0});\n'}
    for f in fops:
        out.append(f'void {f.name}_reply_fini(struct {f.name}_reply *reply)\n{{\n'
                   + ''.join(fini[k].format(n) for k, n in f.outs if k in fini)
                   + '    memset(reply, 0, sizeof(*reply));\n}\n\n')
    out.append('void fop_reply_fini(enum fop op, void *reply)\n{\n    switch (op) {\n')
    out += [f'    case FOP_{f.name.upper()}:\n        {f.name}_reply_fini(reply);\n        break;\n'
            for f in fops]
    out.append('    case FOP_COUNT:\n        break;\n    }\n}\n\n')
    arg_fini = {'dict': 'dict_unref(in->{0});', 'payload': 'payload_fini(&in->{0});',
                'locklist': 'locklist_fini(&in->{0});'}
    out.append('void fop_args_fini(enum fop op, void *args)\n{\n    switch (op) {\n')
    for f in fops:
        body = ''.join(f'        {arg_fini[k].format(n)}\n' for k, n in f.ins if k in arg_fini)
        out.append(f'    case FOP_{f.name.upper()}: {{\n        struct {f.name}_args *in = args;\n'
                   f'{body}        memset(in, 0, sizeof(*in));\n        break;\n    }}\n')
    out.append('    case FOP_COUNT:\n        break;\n    }\n}\n\n')
    each = {'iatt': '        fn(&out->{0}, arg);\n',
            'direntsp': '        for (struct dirent_entry *e = out->{0}.first; e; e = e->next)\n'
                        '            fn(e->stat, arg);\n'}
    out.append('void fop_reply_each_iatt(enum fop op, void *reply,\n'
               '    void (*fn)(struct iatt *iatt, void *arg), void *arg)\n{\n    switch (op) {\n')
    for f in fops:
        body = ''.join(each[k].format(n) for k, n in f.outs if k in each)
        if body:
            out.append(f'    case FOP_{f.name.upper()}: {{\n        struct {f.name}_reply *out = reply;\n'
                       f'{body}        break;\n    }}\n')
    out.append('    default:\n        break;\n    }\n}\n')
    return ''.join(out)


def codec_h(fops):
    return HEAD + '''#pragma once

#include "fop/fop_types.h"
#include "rpc/xdr.h"

/* What a request names, in wire order; the protocol layer turns it into inodes and fds. */
struct fop_refs {
    gfid_t gfid[3];
    int64_t fd[2];
    uint32_t gfids, fds;
    gfid_t fd_gfid[2];
};

/* Request arguments from the wire. Text points into the reader's bytes (changed in place); dicts, lists
 * are owned by args (fop_args_fini). payload, when the operation has one, is moved into args; else it
 * must be empty. inode and fd members stay NULL: fop_bind sets them. -EBADMSG, -E2BIG, -ENOMEM; args is
 * then already finished. */
must_check int fop_decode_args(enum fop op, struct reader *r, struct payload *payload, void *args,
                               struct fop_refs *refs);
/* Sets the inode members (in order of refs->gfid) and fd members (refs->fd). */
void fop_bind(enum fop op, void *args, struct inode *const inodes[3], struct fd *const fds[2]) nowait;
/* Whether the operation opens an fd, and where the pointer to it is. */
struct fd **fop_new_fd(enum fop op, void *args) nowait;

/* Request arguments to the wire; payload bytes are the caller's to send after it. fds: the peer's
 * numbers, in the order of the table. */
void fop_encode_args(enum fop op, const void *args, const int64_t fds[2], struct writer *w);
/* The payload of args or reply, or NULL where the operation has none. */
struct payload *fop_args_payload(enum fop op, const void *args) nowait;
struct payload *fop_reply_payload(enum fop op, const void *reply) nowait;

/* ret: what the operation returned. Always the complete structure (spec/wire.md 1.4). */
void fop_encode_reply(enum fop op, int ret, const void *reply, struct writer *w);
/* *ret_result: op_ret or -errno as the peer says. payload as in fop_decode_args. */
must_check int fop_decode_reply(enum fop op, struct reader *r, struct payload *payload, void *reply,
                                int *ret_result);
'''


# How a field is written and read: {m} is the member, {n} the name.
PARTS = ('iatt', 'lock', 'lease', 'locklist', 'dirents', 'direntsp', 'statfs', 'bytes')
ENCODE = {
    'inode': 'encode_inode(w, {m});', 'fdgfid': 'encode_fd_gfid(w, {m});',
    'u32': 'writer_u32(w, {m});', 'i32': 'writer_u32(w, (uint32_t){m});',
    'u64': 'writer_u64(w, {m});', 'name': 'writer_str(w, {m});', 'text': 'writer_str(w, {m});',
    'nlen': 'writer_u32(w, {m} != NULL);', 'nlen64': 'writer_u64(w, {m} != NULL);',
    'dict': 'dict_encode(w, {m});', 'psize': 'writer_u32(w, {m}.bytes);',
    'size': 'writer_u32(w, {m}.bytes);', **{part: 'encode_%s(w, &{m});' % part for part in PARTS},
}
DECODE = {
    'inode': 'reader_gfid(r, &refs->gfid[refs->gfids++])',
    'fdgfid': 'reader_gfid(r, &refs->fd_gfid[{i}])',
    'u32': 'reader_u32(r, &{m})', 'i32': 'reader_i32(r, &{m})', 'u64': 'reader_u64(r, &{m})',
    'name': 'reader_str(r, FOP_NAME_BYTES_MAX, (char **)&{m})',
    'text': 'reader_str(r, FOP_TEXT_BYTES_MAX, (char **)&{m})',
    'nlen': 'reader_u32(r, &has_{n})', 'nlen64': 'reader_u64(r, &has_{n})',
    'dict': 'dict_decode(r, &{m})', 'psize': 'reader_u32(r, &size_{n})',
    'size': 'reader_u32(r, &size_{n})', **{part: 'decode_%s(r, &{m})' % part for part in PARTS},
}
LOCALS = {'nlen': 'uint32_t has_{n} = 0;', 'nlen64': 'uint64_t has_{n} = 0;',
          'psize': 'uint32_t size_{n} = 0;', 'size': 'uint32_t size_{n} = 0;'}
FAIL = '    if ((ret = {call}) < 0)\n        return ret;\n'


def locals_of(fields):
    return ''.join('    ' + LOCALS[k].format(n=n) + '\n' for k, n in fields if k in LOCALS)


def decode_args(f):
    out = [f'static int decode_{f.name}_args(struct reader *r, struct payload *payload,\n'
           f'    struct {f.name}_args *in, struct fop_refs *refs)\n{{\n{locals_of(f.ins)}'
           '    (void)payload;\n    (void)refs;\n    int ret = 0;\n']
    fd_names = [n for k, n in f.ins if k == 'fdgfid']
    optional = [n for k, n in f.ins if k in ('nlen', 'nlen64')]
    for kind, n in f.ins:
        if kind == 'fdnum':
            call = 'reader_i64(r, &refs->fd[refs->fds++])'
        elif kind == 'payload':
            call = f'take_payload(r, payload, size_{n}, &in->{n})'
        elif kind == 'newfd':
            continue
        else:
            index = fd_names.index(n) if kind == 'fdgfid' else 0
            call = DECODE[kind].format(m='in->' + n, n=n, i=index)
        out.append(FAIL.format(call=call))
        if kind in ('name', 'text') and n in optional:
            out.append(f'    if (has_{n} == 0)\n        in->{n} = NULL;\n')
    return ''.join(out) + '    return ret;\n}\n\n'


def encode_args(f):
    out = [f'static void encode_{f.name}_args(const struct {f.name}_args *in, const int64_t *fds,\n'
           '    struct writer *w)\n{\n    (void)fds;\n']
    fd_index = 0
    for kind, n in f.ins:
        if kind == 'fdnum':
            out.append(f'    writer_u64(w, (uint64_t)fds[{fd_index}]);\n')
            fd_index += 1
        elif kind in ENCODE:
            out.append('    ' + ENCODE[kind].format(m='in->' + n, n=n) + '\n')
    return ''.join(out) + '}\n\n'


def encode_reply(f):
    eof = next(('out->' + n for k, n in f.outs if k == 'eof'), 'false')
    out = [f'static void encode_{f.name}_reply(int ret, const struct {f.name}_reply *out,\n'
           f'    struct writer *w)\n{{\n    encode_result(w, ret, {eof});\n']
    for kind, n in f.outs:
        if kind == 'fdnum':
            out.append(f'    writer_u64(w, (uint64_t)out->{n});\n')
        elif kind in ENCODE:
            out.append('    ' + ENCODE[kind].format(m='out->' + n, n=n) + '\n')
    return ''.join(out) + '    (void)out;\n}\n\n'


def decode_reply(f):
    out = [f'static int decode_{f.name}_reply(struct reader *r, struct payload *payload,\n'
           f'    struct {f.name}_reply *out, int *ret_result)\n{{\n{locals_of(f.outs)}'
           '    bool eof = false;\n    int ret = decode_result(r, ret_result, &eof);\n'
           '    (void)payload;\n    if (ret < 0)\n        return ret;\n']
    for kind, n in f.outs:
        if kind == 'eof':
            out.append(f'    out->{n} = eof;\n')
            continue
        if kind == 'fdnum':
            call = f'reader_i64(r, &out->{n})'
        elif kind == 'text':
            call = f'decode_text(r, &out->{n})'
        elif kind == 'payload':
            call = f'take_payload(r, payload, *ret_result < 0 ? 0 : size_{n}, &out->{n})'
        else:
            call = DECODE[kind].format(m='out->' + n, n=n)
        out.append(FAIL.format(call=call))
    return ''.join(out) + '    return 0;\n}\n\n'


def bind_case(f):
    text, inodes, fds = '', 0, 0
    for k, n in f.ins:
        member = f'        ((struct {f.name}_args *)args)->{n}'
        if k == 'inode':
            text += f'{member} = inodes[{inodes}];\n'
            inodes += 1
        elif k == 'fdnum':
            text += f'{member} = fds[{fds}];\n'
            fds += 1
    return text + '        break;\n'


def switch(fops, head, case, tail=''):
    cases = ''.join(f'    case FOP_{f.name.upper()}:\n' + case(f) for f in fops)
    return (f'{head}    switch (op) {{\n{cases}    case FOP_COUNT:\n        break;\n    }}\n'
            f'{tail}}}\n\n')


def member_of(fops, head, kind, members, field_kind):
    """A function that gives the address of the one member of that kind, or NULL."""
    cases = ''.join(f'    case FOP_{f.name.upper()}:\n'
                    f'        return (void *)&((const struct {f.name}_{kind} *){kind})->{n};\n'
                    for f in fops for k, n in getattr(f, members) if k == field_kind)
    return (f'{head}\n{{\n    switch (op) {{\n{cases}    default:\n        return NULL;\n'
            '    }\n}\n\n')


def codec_c(fops):
    out = [HEAD, '#include "fop/fop_codec.h"\n\n#include "fop/codec_parts.h"\n'
           '#include "rpc/dict_wire.h"\n\n']
    for f in fops:
        out += [decode_args(f), encode_args(f), encode_reply(f), decode_reply(f)]
    out.append(switch(
        fops, 'int fop_decode_args(enum fop op, struct reader *r, struct payload *payload,\n'
        '    void *args, struct fop_refs *refs)\n{\n    int ret = -EBADMSG;\n'
        '    memset(args, 0, fop_info[op].args_size);\n    memset(refs, 0, sizeof(*refs));\n',
        lambda f: f'        ret = decode_{f.name}_args(r, payload, args, refs);\n        break;\n',
        '    if (ret == 0 && (reader_left(r) != 0 || (payload && payload->bytes)))\n'
        '        ret = -EBADMSG;\n'
        '    if (ret < 0)\n        fop_args_fini(op, args);\n    return ret;\n'))
    out.append(switch(
        fops, 'void fop_encode_args(enum fop op, const void *args, const int64_t fds[2],\n'
        '    struct writer *w)\n{\n',
        lambda f: f'        encode_{f.name}_args(args, fds, w);\n        break;\n'))
    out.append(switch(
        fops, 'void fop_encode_reply(enum fop op, int ret, const void *reply, struct writer *w)\n'
        '{\n', lambda f: f'        encode_{f.name}_reply(ret, reply, w);\n        break;\n'))
    out.append(switch(
        fops, 'int fop_decode_reply(enum fop op, struct reader *r, struct payload *payload,\n'
        '    void *reply, int *ret_result)\n{\n    int ret = -EBADMSG;\n',
        lambda f: f'        ret = decode_{f.name}_reply(r, payload, reply, ret_result);\n'
        '        break;\n',
        '    if (ret == 0 && payload && payload->bytes)\n        ret = -EBADMSG;\n'
        '    if (ret < 0)\n        fop_reply_fini(op, reply);\n    return ret;\n'))
    out.append(switch(fops, 'void fop_bind(enum fop op, void *args, struct inode *const inodes[3],\n'
                      '    struct fd *const fds[2])\n{\n', bind_case))
    out.append(member_of(fops, 'struct payload *fop_args_payload(enum fop op, const void *args)',
                         'args', 'ins', 'payload'))
    out.append(member_of(fops, 'struct payload *fop_reply_payload(enum fop op, const void *reply)',
                         'reply', 'outs', 'payload'))
    out.append(member_of(fops, 'struct fd **fop_new_fd(enum fop op, void *args)', 'args', 'ins',
                         'newfd'))
    return ''.join(out)


def call_h(fops):
    out = [HEAD, '#pragma once\n\n#include "graph/xlator.h"\n\n']
    for f in fops:
        out.append(f'must_check int fop_{f.name}(struct xlator *xl, struct call *call, '
                   f'const struct {f.name}_args *in,\n    struct {f.name}_reply *out);\n')
    out.append('\n/* Any operation by number: args and reply are of its types. */\n'
               'must_check int fop_call(struct xlator *xl, struct call *call, enum fop op, const void *args,\n'
               '    void *reply);\n'
               '/* The inode (or parent) and the fd that an operation is about; either may be NULL. */\n'
               'struct inode *fop_subject(enum fop op, const void *args) nowait;\n'
               'struct fd *fop_subject_fd(enum fop op, const void *args) nowait;\n'
               'const char *fop_subject_name(enum fop op, const void *args) nowait;\n'
               '/* Calls type->any with these; xlator_resolve uses them. */\n'
               'extern void (*const fop_any_thunk[FOP_COUNT])(void);\n'
               '/* Answers -EOPNOTSUPP. */\nextern void (*const fop_unsupported[FOP_COUNT])(void);\n')
    return ''.join(out)


def call_c(fops):
    out = [HEAD, '#include "graph/fop_call.h"\n\n#include <errno.h>\n\n#include "graph/fop_guard.h"\n\n']
    for f in fops:
        n, u = f.name, f.name.upper()
        sig = (f'(struct xlator *xl, struct call *call, const struct {n}_args *in,\n'
               f'    struct {n}_reply *out)\n')
        out.append(f'int fop_{n}{sig}{{\n'
                   f'    const struct fop_target *target = &xl->target[FOP_{u}];\n'
                   f'    int ret = fop_guard_begin(target->xl, call, FOP_{u}, in);\n'
                   '    if (ret < 0)\n        return ret;\n'
                   f'    ret = ((fop_{n}_fn *)target->fn)(target->xl, call, in, out);\n'
                   f'    return fop_guard_end(target->xl, call, FOP_{u}, in, out, ret);\n}}\n\n')
        out.append(f'static int any_{n}{sig}{{\n    return xl->type->any(xl, call, FOP_{u}, in, out);\n}}\n\n')
        out.append(f'static int unsupported_{n}{sig}{{\n    (void)xl;\n    (void)call;\n    (void)in;\n'
                   '    (void)out;\n    return -EOPNOTSUPP;\n}\n\n')
    for table, prefix in (('fop_any_thunk', 'any'), ('fop_unsupported', 'unsupported')):
        out.append(f'void (*const {table}[FOP_COUNT])(void) = {{\n')
        out += [f'    [FOP_{f.name.upper()}] = (void (*)(void)){prefix}_{f.name},\n' for f in fops]
        out.append('};\n\n')
    out.append('int fop_call(struct xlator *xl, struct call *call, enum fop op, const void *args, void *reply)\n{\n'
               '    switch (op) {\n')
    out += [f'    case FOP_{f.name.upper()}:\n        return fop_{f.name}(xl, call, args, reply);\n' for f in fops]
    out.append('    case FOP_COUNT:\n        break;\n    }\n    return -EOPNOTSUPP;\n}\n\n')

    def subject(fn, type_, pick):
        out.append(f'{type_} {fn}(enum fop op, const void *args)\n{{\n    switch (op) {{\n')
        for f in fops:
            expr = pick(f)
            if expr:
                out.append(f'    case FOP_{f.name.upper()}:\n'
                           f'        return ((const struct {f.name}_args *)args)->{expr};\n')
        out.append('    default:\n        return NULL;\n    }\n}\n\n')

    def first(f, kinds):
        return next((n for k, n in f.ins if k in kinds), None)
    subject('fop_subject_fd', 'struct fd *', lambda f: first(f, ('fdnum', 'newfd')))
    subject('fop_subject_name', 'const char *',
            lambda f: next((n for k, n in f.ins if k == 'name' or (k, n) == ('text', 'name')), None))

    def inode_expr(f):
        name = first(f, ('inode',))
        if name:
            return name
        fd = first(f, ('fdnum',))
        return fd + '->inode' if fd else None
    subject('fop_subject', 'struct inode *', inode_expr)
    return ''.join(out)


def main():
    fops, to = parse(sys.argv[1]), sys.argv[2]
    files = {
        'fop': {'fop_types.h': types_h, 'fop_types.c': types_c, 'fop_codec.h': codec_h,
                'fop_codec.c': codec_c},
        'graph': {'fop_call.h': call_h, 'fop_call.c': call_c},
    }[sys.argv[3]]
    for name, make in files.items():
        with open(os.path.join(to, name), 'w') as out:
            out.write(make(fops))


main()
