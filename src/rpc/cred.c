/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "rpc/cred.h"

enum { MSG_CALL = 0, MSG_REPLY = 1, REPLY_ACCEPTED = 0, REPLY_DENIED = 1, DENIED_AUTH_ERROR = 1 };
enum { V1_GROUPS = 16, SYS_MACHINE_MAX = 255, SYS_GROUPS_MAX = 16 };

/* --- receiving -------------------------------------------------------------------------------- */

/* More groups than an honest sender can have are read over, the first ones count. */
static int read_groups(struct reader *r, struct rpc_cred *cred)
{
    uint32_t count, gid = 0;
    int ret = reader_u32(r, &count);
    if (ret < 0)
        return ret;
    if (count > reader_left(r) / 4)
        return -EBADMSG;
    for (uint32_t i = 0; i < count && ret == 0; i++) {
        ret = reader_u32(r, &gid);
        if (i < RPC_GROUPS_MAX)
            cred->groups[i] = gid;
    }
    cred->group_count = MIN(count, (uint32_t)RPC_GROUPS_MAX);
    return ret;
}

static void set_owner(struct rpc_cred *cred, const void *bytes, uint32_t count)
{
    memcpy(cred->lk_owner, bytes, count);
    cred->lk_owner_bytes = count;
}

/* Groups, then the owner, with the limit they share: room - (bytes of owner) groups. */
static int read_groups_and_owner(struct reader *r, struct rpc_cred *cred, uint32_t room)
{
    uint8_t *owner;
    uint32_t bytes;
    int ret = read_groups(r, cred);
    if (ret == 0)
        ret = reader_opaque(r, RPC_CRED_BYTES_MAX, &owner, &bytes);
    if (ret < 0)
        return ret;
    if (bytes > RPC_LK_OWNER_MAX || bytes + MIN(cred->group_count, room) > room)
        return -EACCES;
    set_owner(cred, owner, bytes);
    cred->group_count = MIN(cred->group_count, room - bytes);
    return 0;
}

static int read_v2(struct reader *r, struct rpc_cred *cred)
{
    int ret = reader_i32(r, &cred->pid);
    if (ret == 0)
        ret = reader_u32(r, &cred->uid);
    if (ret == 0)
        ret = reader_u32(r, &cred->gid);
    return ret < 0 ? ret : read_groups_and_owner(r, cred, 95);
}

static int read_v3(struct reader *r, struct rpc_cred *cred)
{
    int ret = reader_i32(r, &cred->pid);
    if (ret == 0)
        ret = reader_u32(r, &cred->uid);
    if (ret == 0)
        ret = reader_u32(r, &cred->gid);
    if (ret == 0)
        ret = reader_u32(r, &cred->flags);
    if (ret == 0)
        ret = reader_u32(r, &cred->ctime_nsec);
    if (ret == 0)
        ret = reader_u64(r, &cred->ctime_sec);
    return ret < 0 ? ret : read_groups_and_owner(r, cred, 91);
}

static int read_v1(struct reader *r, struct rpc_cred *cred)
{
    uint8_t *owner;
    uint32_t groups = 0;
    int ret = reader_raw(r, 8, &owner);
    if (ret == 0)
        ret = reader_i32(r, &cred->pid);
    if (ret == 0)
        ret = reader_u32(r, &cred->uid);
    if (ret == 0)
        ret = reader_u32(r, &cred->gid);
    if (ret == 0)
        ret = reader_u32(r, &groups);
    if (ret < 0)
        return ret;
    if (groups > V1_GROUPS || reader_left(r) < (size_t)V1_GROUPS * 4)
        return -EBADMSG;
    for (uint32_t i = 0; i < V1_GROUPS && ret == 0; i++)
        ret = reader_u32(r, &cred->groups[i]);
    cred->group_count = groups;
    set_owner(cred, owner, 8);
    return ret;
}

static int read_sys(struct reader *r, struct rpc_cred *cred)
{
    uint32_t stamp, bytes;
    uint8_t *machine;
    int ret = reader_u32(r, &stamp);
    if (ret == 0)
        ret = reader_opaque(r, SYS_MACHINE_MAX, &machine, &bytes);
    if (ret == 0)
        ret = reader_u32(r, &cred->uid);
    if (ret == 0)
        ret = reader_u32(r, &cred->gid);
    if (ret == 0)
        ret = read_groups(r, cred);
    if (ret == 0 && cred->group_count > SYS_GROUPS_MAX)
        ret = -EBADMSG;
    return ret;
}

static int read_cred(struct reader body, uint32_t flavor, struct rpc_cred *cred)
{
    int ret = 0;
    *cred = (struct rpc_cred){ .flavor = flavor };
    switch (flavor) {
    case RPC_AUTH_V3:
        ret = read_v3(&body, cred);
        break;
    case RPC_AUTH_V2:
        ret = read_v2(&body, cred);
        break;
    case RPC_AUTH_V1:
        ret = read_v1(&body, cred);
        break;
    case RPC_AUTH_SYS:
        ret = read_sys(&body, cred);
        break;
    default:
        cred->flavor = RPC_AUTH_NONE;
    }
    return ret < 0 ? -EACCES : 0;
}

int rpc_decode_call(struct reader *r, struct rpc_header *ret_header, struct rpc_cred *ret_cred)
{
    uint32_t type, flavor, bytes, verifier;
    uint8_t *cred;
    int ret = reader_u32(r, &ret_header->xid);
    if (ret == 0)
        ret = reader_u32(r, &type);
    if (ret == 0)
        ret = reader_u32(r, &ret_header->rpc_version);
    if (ret == 0)
        ret = reader_u32(r, &ret_header->program);
    if (ret == 0)
        ret = reader_u32(r, &ret_header->version);
    if (ret == 0)
        ret = reader_u32(r, &ret_header->procedure);
    if (ret == 0)
        ret = reader_u32(r, &flavor);
    if (ret == 0)
        ret = reader_opaque(r, RPC_CRED_BYTES_MAX, &cred, &bytes);
    if (ret < 0 || type != MSG_CALL)
        return -EBADMSG;

    struct reader cred_body = reader_of(cred, bytes);
    ret = reader_u32(r, &verifier);
    if (ret == 0)
        ret = reader_opaque(r, 0, &cred, &bytes); /* a verifier is always empty here */
    return ret < 0 ? -EBADMSG : read_cred(cred_body, flavor, ret_cred);
}

int rpc_decode_reply(struct reader *r, uint32_t *ret_xid, int *ret_accept)
{
    uint32_t type, stat, flavor, bytes, accept = 0;
    uint8_t *verifier;
    int ret = reader_u32(r, ret_xid);
    if (ret == 0)
        ret = reader_u32(r, &type);
    if (ret == 0)
        ret = reader_u32(r, &stat);
    if (ret < 0 || type != MSG_REPLY || stat > REPLY_DENIED)
        return -EBADMSG;
    if (stat == REPLY_DENIED) {
        *ret_accept = -1;
        return -EREMOTEIO;
    }
    ret = reader_u32(r, &flavor);
    if (ret == 0)
        ret = reader_opaque(r, 0, &verifier, &bytes);
    if (ret == 0)
        ret = reader_u32(r, &accept);
    if (ret < 0)
        return -EBADMSG;
    *ret_accept = (int)MIN(accept, (uint32_t)INT32_MAX);
    return accept == RPC_SUCCESS ? 0 : -EREMOTEIO;
}

/* --- sending ---------------------------------------------------------------------------------- */

static void write_groups_and_owner(struct writer *w, const struct rpc_cred *cred, uint32_t room)
{
    uint8_t pid[4] = { (uint8_t)cred->pid, (uint8_t)(cred->pid >> 8), (uint8_t)(cred->pid >> 16),
                       (uint8_t)(cred->pid >> 24) };
    uint32_t owner_bytes = cred->lk_owner_bytes ? cred->lk_owner_bytes : sizeof(pid);
    uint32_t groups = MIN(cred->group_count, room - owner_bytes);
    writer_u32(w, groups);
    for (uint32_t i = 0; i < groups; i++)
        writer_u32(w, cred->groups[i]);
    writer_opaque(w, cred->lk_owner_bytes ? cred->lk_owner : pid, owner_bytes);
}

static void write_cred(struct writer *w, const struct rpc_cred *cred)
{
    size_t at = w->used;
    assert(cred->lk_owner_bytes <= RPC_LK_OWNER_MAX);
    writer_u32(w, cred->flavor);
    writer_u32(w, 0);
    if (cred->flavor == RPC_AUTH_NONE)
        return;
    assert(cred->flavor == RPC_AUTH_V2 || cred->flavor == RPC_AUTH_V3); /* the two that we send */
    writer_u32(w, (uint32_t)cred->pid);
    writer_u32(w, cred->uid);
    writer_u32(w, cred->gid);
    if (cred->flavor == RPC_AUTH_V3) {
        writer_u32(w, cred->flags);
        writer_u32(w, cred->ctime_nsec);
        writer_u64(w, cred->ctime_sec);
    }
    write_groups_and_owner(w, cred, cred->flavor == RPC_AUTH_V3 ? 91 : 95);
    writer_patch_u32(w, at + 4, (uint32_t)(w->used - at - 8));
}

void rpc_encode_call(struct writer *w, uint32_t xid, uint32_t program, uint32_t version,
                     uint32_t procedure, const struct rpc_cred *cred)
{
    writer_u32(w, xid);
    writer_u32(w, MSG_CALL);
    writer_u32(w, RPC_VERSION);
    writer_u32(w, program);
    writer_u32(w, version);
    writer_u32(w, procedure);
    write_cred(w, cred);
    writer_u32(w, RPC_AUTH_NONE);
    writer_u32(w, 0);
}

void rpc_encode_reply(struct writer *w, uint32_t xid, enum rpc_accept accept)
{
    writer_u32(w, xid);
    writer_u32(w, MSG_REPLY);
    writer_u32(w, REPLY_ACCEPTED);
    writer_u32(w, RPC_AUTH_NONE);
    writer_u32(w, 0);
    writer_u32(w, accept);
    if (accept == RPC_PROG_MISMATCH)
        writer_u64(w, 0); /* low and high, as genuine servers say */
}

void rpc_encode_denied(struct writer *w, uint32_t xid, enum rpc_auth_stat stat)
{
    writer_u32(w, xid);
    writer_u32(w, MSG_REPLY);
    writer_u32(w, REPLY_DENIED);
    writer_u32(w, DENIED_AUTH_ERROR);
    writer_u32(w, stat);
}
