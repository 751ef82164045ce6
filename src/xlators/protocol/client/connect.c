/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Getting a connection to the brick, step by step as spec/wire.md 5 has it:
 *
 *     connect to glusterd ---- DUMP lists Portmap ----> PORTBYBRICK, connect to the brick's port
 *         (or to the brick, when remote-port is set)          |
 *     DUMP lists fops 400 <-----------------------------------'
 *     SETVOLUME -> open files are opened anew -> the parents hear CHILD_UP
 *
 * One fiber does this over and over, from start to stop, and is the only one that tells the parents
 * of ups and downs, so they come in order. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/env.h"
#include "rpc/dict_wire.h"
#include "xlators/protocol/client/remote.h"

enum { SETVOLUME = 1, SETVOLUME_REPLY_MAX = 64 << 10, ERRNO_MAX = 1023 };
enum { CALLBACK_CHILD_UP = 6, CALLBACK_CHILD_DOWN = 7 };
enum { ADDRESS_TEXT = 256 };
#define HANDSHAKE_NS (20 * NS_PER_S)  /* for one attempt, all steps together */
#define RECONNECT_NS (NS_PER_S)       /* so long a call waits for a connection just lost */
#define LASTING_NS (3 * NS_PER_S)     /* a connection that lived so long was a good one */
static const uint64_t back_off_ns[] = { 0, 100 * NS_PER_MS, 300 * NS_PER_MS, NS_PER_S,
                                        3 * NS_PER_S };

static void remote_unhold(struct remote *remote)
{
    pthread_mutex_t *mutex = &remote->mutex;
    hold_end(&mutex);
}

/* --- where to --------------------------------------------------------------------------------- */

void remote_target_fini(struct remote_target *target)
{
    free(target->host);
    free(target->path);
    free(target->subvolume);
    dict_unref(target->options);
    *target = (struct remote_target){ 0 };
}

static char *copy_text(const char *text)
{
    return text ? strdup(text) : NULL;
}

int remote_target_copy(struct remote_target *to, const struct remote_target *from)
{
    *to = *from;
    to->host = copy_text(from->host);
    to->path = copy_text(from->path);
    to->subvolume = copy_text(from->subvolume);
    to->options = from->options ? dict_ref(from->options) : NULL;
    if (!to->subvolume || (from->host && !to->host) || (from->path && !to->path)) {
        remote_target_fini(to);
        return -ENOMEM;
    }
    return 0;
}

static const char *target_host(const struct remote_target *target)
{
    return target->path ? target->path : target->host;
}

/* --- SETVOLUME -------------------------------------------------------------------------------- */

static int set_identity(struct remote *remote, struct dict *dict)
{
    char *identity;
    if (asprintf(&identity, "%s-RECON_NO:-%u", remote->identity, remote->handshakes++) < 0)
        return -ENOMEM;
    int ret = dict_set_str(dict, "process-uuid", identity);
    free(identity);
    return ret;
}

static int setvolume_dict(struct remote *remote, const struct remote_target *target,
                          struct dict **ret_dict)
{
    static const char *const fixed[][2] = {
        { "fops-version", "1298437" }, { "clnt-lk-version", "1" }, { "opversion", "100000" },
        { "client-version", "Mortar" }, { "process-name", "mortar" },
    };
    AUTO(dict) dict = dict_copy(target->options);
    if (!dict)
        return -ENOMEM;
    int ret = set_identity(remote, dict);
    for (size_t i = 0; i < ARRAY_SIZE(fixed) && ret == 0; i++)
        ret = dict_set_str(dict, fixed[i][0], fixed[i][1]);
    if (ret == 0)
        ret = dict_set_str(dict, "remote-subvolume", target->subvolume);
    if (ret == 0 && remote->volume_id)
        ret = dict_set_str(dict, "volume-id", remote->volume_id);
    if (ret == 0)
        *ret_dict = TAKE(dict);
    return ret;
}

static int read_setvolume(struct reader *r, int *ret_result, struct dict **ret_dict)
{
    int32_t op_ret = -1, op_errno = 0;
    uint8_t *bytes = NULL;
    uint32_t count = 0;
    int ret = reader_i32(r, &op_ret);
    if (ret == 0)
        ret = reader_i32(r, &op_errno);
    if (ret == 0)
        ret = reader_opaque(r, SETVOLUME_REPLY_MAX, &bytes, &count);
    if (ret < 0)
        return ret;
    *ret_result = op_ret >= 0 ? 0 : op_errno > 0 && op_errno <= ERRNO_MAX ? -op_errno : -EIO;
    return dict_decode_legacy(bytes, count, ret_dict);
}

/* The brick said no: who has to know, knows (spec/wire.md 5.2). */
static void refused_by_brick(struct remote *remote, const struct remote_target *target, int result,
                             const char *text)
{
    bool is_auth = result == -EACCES ||
                   (result == -ENOENT && dict_get(target->options, "subdir-mount") &&
                    remote->told != TOLD_UP);
    if (remote->last_failure != result)
        log_error(remote->xl, result, "the brick %s at %s refuses us: %s%s", target->subvolume,
                  rpc_client_peer(remote->rpc), text ? text : "no reason given",
                  is_auth ? "" : "; trying again");
    remote->last_failure = result;
    if (is_auth)
        xlator_notify(remote->xl, EVENT_AUTH_FAILED, (void *)(uintptr_t)(text ? text : "refused"));
}

static int keep_volume_id(struct remote *remote, const struct dict *answer)
{
    const char *volume_id = dict_get_str(answer, "volume-id");
    if (!volume_id || remote->volume_id)
        return 0;
    remote->volume_id = strdup(volume_id);
    return remote->volume_id ? 0 : -ENOMEM;
}

static int setvolume(struct remote *remote, const struct remote_target *target, uint64_t until_ns)
{
    const struct rpc_cred cred = { .flavor = RPC_AUTH_V3, .pid = (int32_t)env_pid() };
    AUTO(dict) request = NULL;
    AUTO(dict) answer = NULL;
    int result = -EIO;
    AUTO(rpc_call) call =
        rpc_call_new(remote->rpc, RPC_HANDSHAKE_PROGRAM, RPC_HANDSHAKE_VERSION, SETVOLUME, &cred);
    int ret = call ? setvolume_dict(remote, target, &request) : -ENOMEM;
    if (ret < 0)
        return ret;
    call->until_ns = until_ns;
    dict_encode_legacy(rpc_call_writer(call), request);
    ret = rpc_call_run(call);
    if (ret == 0)
        ret = read_setvolume(&call->body, &result, &answer);
    if (ret < 0)
        return ret;
    if (result < 0) {
        refused_by_brick(remote, target, result, dict_get_str(answer, "ERROR"));
        return result;
    }
    const char *child_up = dict_get_str(answer, "child_up");
    hold_begin(&remote->mutex);
    remote->child_is_down = child_up && strcmp(child_up, "0") == 0;
    remote_unhold(remote);
    return keep_volume_id(remote, answer);
}

/* --- the steps -------------------------------------------------------------------------------- */

static int connect_to(struct remote *remote, const struct remote_target *target, uint16_t port,
                      uint64_t until_ns, struct rpc_peer_programs *ret_programs)
{
    rpc_client_disconnect_wait(remote->rpc);
    int ret = rpc_connect_host(remote->rpc, target_host(target), port, target->family, target->bind,
                               until_ns);
    return ret < 0 ? ret : rpc_peer_programs(remote->rpc, until_ns, ret_programs);
}

/* A peer that has the port mapper is glusterd: asks it where the brick is, and goes there. */
static int go_to_brick(struct remote *remote, const struct remote_target *target,
                       uint64_t until_ns, struct rpc_peer_programs *programs)
{
    uint16_t port;
    if (!rpc_peer_has(programs, RPC_PORTMAP_PROGRAM, RPC_PORTMAP_VERSION))
        return 0;
    int ret = glusterd_port_of_brick(remote->rpc, target->subvolume, until_ns, &port);
    if (ret == -ENOENT && remote->last_failure != ret)
        log_error(remote->xl, 0, "glusterd of %s knows no running brick %s: trying again",
                  target_host(target), target->subvolume);
    if (ret == -ENOENT)
        remote->last_failure = ret;
    return ret < 0 ? ret : connect_to(remote, target, port, until_ns, programs);
}

static int check_programs(struct remote *remote, const struct rpc_peer_programs *programs)
{
    if (rpc_peer_has(programs, FOP_PROGRAM, FOP_VERSION))
        return 0;
    if (remote->last_failure != -EPROTONOSUPPORT)
        log_error(remote->xl, 0,
                  "%s does not serve program %d version %d (GlusterFS 4.x v1): it is "
                  "too old, or no brick",
                  rpc_client_peer(remote->rpc), FOP_PROGRAM, FOP_VERSION);
    remote->last_failure = -EPROTONOSUPPORT;
    return -EPROTONOSUPPORT;
}

/* From here on operations may use the connection, unless it ended meanwhile. */
static int begin_serving(struct remote *remote, uint32_t generation)
{
    HOLD(&remote->mutex);
    if (rpc_client_generation(remote->rpc) != generation)
        return -ENOTCONN;
    remote->generation = generation;
    fcond_wake_all(&remote->changed);
    return 0;
}

static int handshake(struct remote *remote, const struct remote_target *target)
{
    struct rpc_peer_programs programs = { .count = 0 };
    uint64_t until_ns = env_now_ns() + HANDSHAKE_NS;
    int ret = connect_to(remote, target, target->port ? target->port : GLUSTERD_PORT, until_ns,
                         &programs);
    if (ret == 0)
        ret = go_to_brick(remote, target, until_ns, &programs);
    if (ret == 0)
        ret = check_programs(remote, &programs);
    if (ret == 0)
        ret = setvolume(remote, target, until_ns);
    uint32_t generation = rpc_client_generation(remote->rpc);
    if (ret == 0)
        ret = generation ? remote_fds_reopen(remote, generation) : -ENOTCONN;
    if (ret == 0)
        ret = begin_serving(remote, generation);
    if (ret == 0)
        log_info(remote->xl, 0, "connected to %s, brick %s", rpc_client_peer(remote->rpc),
                 target->subvolume);
    else
        rpc_client_disconnect_wait(remote->rpc);
    return ret;
}

/* --- the connector ---------------------------------------------------------------------------- */

static void tell(struct remote *remote, enum remote_told told)
{
    if (remote->told == told)
        return;
    remote->told = told;
    xlator_notify(remote->xl, told == TOLD_UP ? EVENT_CHILD_UP : EVENT_CHILD_DOWN, NULL);
}

/* While the connection serves: passes on what the brick says of its state. */
static void serve(struct remote *remote)
{
    hold_begin(&remote->mutex);
    while (remote->generation && !remote->is_stopping) {
        enum remote_told told = remote->child_is_down ? TOLD_DOWN : TOLD_UP;
        if (told == remote->told) {
            fcond_wait(&remote->changed, &remote->mutex, "brick");
            continue;
        }
        remote_unhold(remote);
        tell(remote, told);
        hold_begin(&remote->mutex);
    }
    remote_unhold(remote);
}

/* What nobody has logged yet. */
static void report_failure(struct remote *remote, const struct remote_target *target, int ret)
{
    if (ret == remote->last_failure)
        return;
    remote->last_failure = ret;
    if (ret == -ENOENT)
        log_error(remote->xl, 0, "host %s of brick %s is not known: trying again",
                  target_host(target), target->subvolume);
    else
        log_error(remote->xl, ret, "cannot connect to brick %s of %s: trying again",
                  target->subvolume, target_host(target));
}

static int attempt(struct remote *remote)
{
    struct remote_target target;
    hold_begin(&remote->mutex);
    int ret = remote_target_copy(&target, &remote->target);
    remote_unhold(remote);
    if (ret < 0)
        return ret;
    ret = handshake(remote, &target);
    if (ret < 0)
        report_failure(remote, &target, ret);
    else
        remote->last_failure = 0;
    remote_target_fini(&target);
    return ret;
}

/* true: it is time to end. */
static bool wait_a_little(struct remote *remote, uint64_t ns)
{
    uint64_t until_ns = env_now_ns() + ns;
    HOLD(&remote->mutex);
    while (ns && !remote->is_stopping &&
           fcond_wait_until(&remote->changed, &remote->mutex, "reconnect", until_ns) == 0)
        ;
    return remote->is_stopping;
}

static bool is_stopping(struct remote *remote)
{
    HOLD(&remote->mutex);
    return remote->is_stopping;
}

/* One connection's life. Returns how long to wait before the next: the first loss, and that of a
 * connection that lasted, is mended at once; who keeps losing connections has to slow down. */
static uint64_t live(struct remote *remote, unsigned *failures)
{
    uint64_t begin_ns = env_now_ns();
    if (attempt(remote) == 0) {
        serve(remote);
        if (!is_stopping(remote))
            log_warn(remote->xl, 0, "disconnected from %s: connecting again",
                     rpc_client_peer(remote->rpc));
        if (env_now_ns() - begin_ns >= LASTING_NS)
            *failures = 0;
    } else if (*failures == 0) {
        *failures = 1;
    }
    tell(remote, TOLD_DOWN);
    uint64_t wait_ns = back_off_ns[*failures];
    *failures = MIN(*failures + 1, (unsigned)ARRAY_SIZE(back_off_ns) - 1);
    return wait_ns;
}

void remote_connector(void *arg)
{
    struct remote *remote = arg;
    unsigned failures = 0;
    while (!is_stopping(remote))
        if (wait_a_little(remote, live(remote, &failures)))
            break;
    rpc_client_disconnect_wait(remote->rpc);
    HOLD(&remote->mutex);
    remote->connector_runs = false;
    fcond_wake_all(&remote->changed);
}

/* --- the RPC layer's hooks -------------------------------------------------------------------- */

void remote_disconnected(struct rpc_client *rpc)
{
    struct remote *remote = rpc_client_arg(rpc);
    hold_begin(&remote->mutex);
    bool was_serving = remote->generation != 0;
    if (was_serving) {
        remote->generation = 0;
        remote->lost_at_ns = env_now_ns();
    }
    fcond_wake_all(&remote->changed);
    remote_unhold(remote);
    if (was_serving)
        remote_fds_lost(remote);
}

/* Upcalls (cache invalidation, lock contention, leases) have no listener yet: nothing here caches.
 * */
void remote_callback(struct rpc_client *rpc, const struct rpc_header *header, struct reader *body)
{
    struct remote *remote = rpc_client_arg(rpc);
    (void)body;
    if (header->program != RPC_CALLBACK_PROGRAM)
        return;
    if (header->procedure != CALLBACK_CHILD_UP && header->procedure != CALLBACK_CHILD_DOWN) {
        log_debug(remote->xl, 0, "the brick's callback %u is not used", header->procedure);
        return;
    }
    HOLD(&remote->mutex);
    remote->child_is_down = header->procedure == CALLBACK_CHILD_DOWN;
    fcond_wake_all(&remote->changed);
}

/* --- callers ---------------------------------------------------------------------------------- */

uint32_t remote_wait_serving(struct remote *remote, const struct call *call)
{
    uint32_t generation = remote->generation;
    if (generation)
        return generation;
    HOLD(&remote->mutex);
    uint64_t until_ns = remote->lost_at_ns ? remote->lost_at_ns + RECONNECT_NS : 0;
    if (call->deadline_ns)
        until_ns = MIN(until_ns, call->deadline_ns);
    while (!remote->generation && !remote->is_stopping && env_now_ns() < until_ns)
        if (fcond_wait_until(&remote->changed, &remote->mutex, "reconnect", until_ns) < 0)
            break;
    return remote->generation;
}
