#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Mounts an empty root of the type fuse.glusterfs on argv[1], prints "mounted", and answers INIT
and GETATTR until it is unmounted or killed (mount_helper.py wants a mount point that is alive)."""
import errno
import os
import struct
import sys

from mount_helper import fuse_mount

GETATTR, INIT = 3, 26                       # linux/fuse.h
HEADER = struct.Struct("=IIQ")              # len, opcode, unique
REPLY = struct.Struct("=IiQ")               # len, error, unique


def init_reply():
    return struct.pack("=IIIIHHIIHH", 7, 31, 65536, 0, 16, 12, 65536, 1, 0, 0) + b"\0" * 28


def attr_reply():
    ino, mode, links = 1, 0o40755, 2
    attr = struct.pack("=QQQQQQIIIIIIIIII", ino, 0, 0, 0, 0, 0, 0, 0, 0, mode, links, 0, 0, 0,
                       4096, 0)
    return struct.pack("=QII", 1, 0, 0) + attr


def serve(fd):
    while True:
        try:
            request = os.read(fd, 1 << 17)
        except OSError as error:
            if error.errno == errno.ENODEV:  # unmounted
                return
            raise
        _, opcode, unique = HEADER.unpack_from(request)
        body = {INIT: init_reply, GETATTR: attr_reply}.get(opcode, bytes)()
        error = 0 if body else -errno.ENOSYS
        os.write(fd, REPLY.pack(REPLY.size + len(body), error, unique) + body)


if __name__ == "__main__":
    device = fuse_mount(sys.argv[1])
    print("mounted", flush=True)
    serve(device)
