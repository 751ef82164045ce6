/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "xlators/protocol/server/session.h"

#include <stdlib.h>
#include <string.h>

struct session *session_new(struct xlator *server, struct xlator *export_, struct client *client,
                            struct inode *subdir)
{
    struct session *session = calloc(1, sizeof(*session));
    if (!session)
        return NULL;
    session->refs = 1;
    session->server = server;
    session->export_ = export_;
    session->client = client;
    session->subdir = subdir;
    fdtable_init(&session->fds);
    return session;
}

struct session *session_ref(struct session *session)
{
    session->refs++;
    return session;
}

void session_unref(struct session *session)
{
    if (!session || --session->refs > 0)
        return;
    fdtable_close(&session->fds);
    fdtable_fini(&session->fds);
    inode_unref(session->subdir);
    client_unref(session->client);
    free(session);
}

void session_end(struct session *session)
{
    session->client->gone = true;
    xlator_client_gone(session->export_, session->client); /* waiters for locks are answered */
    fdtable_close(&session->fds);
    session_unref(session);
}

/* --- on whose behalf -------------------------------------------------------------------------- */
static bool is_squashed(const struct server *server, const struct session *session,
                        const struct call *call)
{
    if (!server->root_squash && !server->all_squash)
        return false;
    switch (call->pid) { /* spec/wire.md 1.5: internal callers that know the volume's password */
    case PID_GSYNCD: case PID_REBALANCE: case PID_NO_ROOT_SQUASH: case PID_QUOTA_MOUNT:
    case PID_SELF_HEAL:
        if (session->client->trusted)
            return false;
        break;
    default:
        break;
    }
    return server->all_squash || call->uid == 0 || call->gid == 0;
}

static void squash(const struct server *server, struct call *call)
{
    if (server->all_squash || call->uid == 0)
        call->uid = (uint32_t)server->anonuid;
    if (server->all_squash || call->gid == 0)
        call->gid = (uint32_t)server->anongid;
    call->group_count = 0; /* root's groups would let in what squashing keeps out */
}

void session_call(const struct session *session, const struct rpc_request *req, struct call *call)
{
    const struct server *server = session->server->state;
    const struct rpc_cred *cred = &req->cred;

    *call = (struct call){
        .client = session->client, .pid = cred->pid, .uid = cred->uid, .gid = cred->gid,
        .group_count = cred->group_count, .groups = cred->groups, .times = cred->flags,
        .ctime_sec = cred->ctime_sec, .ctime_nsec = cred->ctime_nsec, .unique = req->xid,
        .owner = { .bytes = cred->lk_owner_bytes },
    };
    memcpy(call->owner.data, cred->lk_owner, cred->lk_owner_bytes);
    if (is_squashed(server, session, call))
        squash(server, call);
}
