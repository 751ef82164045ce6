/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Credentials and message headers of ONC RPC as this protocol uses them (spec/wire.md 1.3, 1.5).
 *
 *     struct rpc_cred cred = { .flavor = RPC_AUTH_V3, .pid = getpid(), ... };
 *     rpc_encode_call(&w, xid, program, version, procedure, &cred);
 */
#pragma once

#include "rpc/xdr.h"

enum rpc_flavor {
    RPC_AUTH_NONE = 0,
    RPC_AUTH_SYS = 1,
    RPC_AUTH_V1 = 5,
    RPC_AUTH_V2 = 390039,
    RPC_AUTH_V3 = 390040,
};

/* Programs that both ends know (spec/wire.md 2). The callback program is served by clients. */
enum {
    RPC_DUMP_PROGRAM = 123451501, RPC_DUMP_VERSION = 1,
    RPC_CALLBACK_PROGRAM = 52743234, RPC_CALLBACK_VERSION = 1,
};
enum rpc_dump_procedure { RPC_DUMP_NULL, RPC_DUMP_DUMP, RPC_DUMP_PING };

enum rpc_accept {
    RPC_SUCCESS = 0,
    RPC_PROG_UNAVAIL = 1,
    RPC_PROG_MISMATCH = 2,
    RPC_PROC_UNAVAIL = 3,
    RPC_GARBAGE_ARGS = 4,
    RPC_SYSTEM_ERR = 5,
};

enum rpc_auth_stat { RPC_AUTH_OK = 0, RPC_AUTH_BADCRED = 1, RPC_AUTH_TOOWEAK = 5 };

enum {
    RPC_VERSION = 2,
    RPC_CRED_BYTES_MAX = 400,
    RPC_GROUPS_MAX = 95,
    RPC_LK_OWNER_MAX = 91,
    RPC_REPLY_HEADER_BYTES = 24,
    RPC_CALL_HEADER_BYTES_MAX = 24 + 8 + RPC_CRED_BYTES_MAX + 8,
};

struct rpc_cred {
    uint32_t flavor; /* enum rpc_flavor; an unknown one reads as RPC_AUTH_NONE */
    int32_t pid;
    uint32_t uid, gid;
    uint32_t flags, ctime_nsec; /* v3 only */
    uint64_t ctime_sec;
    uint32_t group_count, lk_owner_bytes;
    uint32_t groups[RPC_GROUPS_MAX];
    uint8_t lk_owner[RPC_LK_OWNER_MAX];
};

struct rpc_header { /* of a call */
    uint32_t xid, program, version, procedure;
    uint32_t rpc_version;
};

/* A call's header up to its body. -EBADMSG: not a call, or cut off. -EACCES: a well-formed call
 * whose credential cannot be accepted (header is filled in: answer "denied"). */
must_check int rpc_decode_call(struct reader *r, struct rpc_header *ret_header,
                               struct rpc_cred *ret_cred) nowait;
/* Groups that do not fit are left out; without a lock owner the pid stands in, little-endian. */
void rpc_encode_call(struct writer *w, uint32_t xid, uint32_t program, uint32_t version,
                     uint32_t procedure, const struct rpc_cred *cred) nowait;
/* 24 bytes; PROG_MISMATCH gets its low and high (0, 0) as well. */
void rpc_encode_reply(struct writer *w, uint32_t xid, enum rpc_accept accept) nowait;
void rpc_encode_denied(struct writer *w, uint32_t xid, enum rpc_auth_stat stat) nowait;
/* A reply's header. 0: body follows. -EBADMSG: malformed. -EREMOTEIO: the peer's RPC layer refused
 * the call; *ret_accept says how (-1: denied). */
must_check int rpc_decode_reply(struct reader *r, uint32_t *ret_xid, int *ret_accept) nowait;
