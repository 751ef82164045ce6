/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Whatever bytes a peer sends: the other end lives, answers or closes, and leaves nothing behind.
 * The first byte chooses the end: 0 they go to a server of the fop program, whose handlers decode
 * the arguments; else to a client that has one call of operation (byte 2) outstanding. Both run on
 * fibers, with their small stacks, in the simulator's network. */
#include <arpa/inet.h>
#include <assert.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/env.h"
#include "core/fiber.h"
#include "core/log.h"
#include "fop/fop_codec.h"
#include "rpc/client.h"
#include "rpc/server.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { FOP_PROGRAM = 1298437, PROCEDURES = 57, PORT = 4000 };

static const uint8_t *input;
static size_t input_bytes;
static int peer_listener;

/* --- the server's side ------------------------------------------------------------------------ */

static void serve(struct rpc_request *req)
{
    enum fop op = fop_of_procedure(req->procedure);
    union fop_args args;
    union fop_reply reply;
    struct fop_refs refs;
    if (op == FOP_COUNT || fop_decode_args(op, &req->body, &req->payload, &args, &refs) < 0)
        return rpc_reply_error(req, RPC_GARBAGE_ARGS);
    assert(refs.gfids <= 3 && refs.fds <= 2);
    fop_args_fini(op, &args);
    memset(&reply, 0, sizeof(reply));
    fop_encode_reply(op, -ENOENT, &reply, rpc_reply_begin(req));
    rpc_reply_send(req, NULL);
}

static struct rpc_procedure procedures[PROCEDURES];
static const struct rpc_program program = { FOP_PROGRAM, 400, "fuzz", procedures, PROCEDURES };

static struct env_address address_of(uint16_t port)
{
    struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(port),
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    struct env_address address = { .bytes = sizeof(in) };
    memcpy(&address.sockaddr, &in, sizeof(in));
    return address;
}

static void send_input(int fd)
{
    struct iovec iov = { (void *)(uintptr_t)input, input_bytes };
    if (input_bytes)
        (void)!env_send(fd, &iov, 1); /* the other end may close half-way */
}

static void drain(void *arg)
{
    int fd = (int)(intptr_t)arg;
    uint8_t bytes[4096];
    while (env_recv(fd, bytes, sizeof(bytes)) > 0)
        ;
}

static void to_server(void)
{
    struct rpc_server *server = NULL;
    struct env_address address = address_of(PORT);
    const struct rpc_server_config config = { .name = "server", .outstanding_max = 2 };
    assert(rpc_server_new(&config, &server) == 0 && rpc_server_register(server, &program) == 0);
    assert(rpc_server_listen(server, &address) == 0);
    int fd = env_connect(&address, NULL, 0);
    assert(fd >= 0 && fiber_start("drain", drain, (void *)(intptr_t)fd) == 0);
    send_input(fd);
    env_sleep(NS_PER_S); /* virtual: what can be served has been */
    env_shutdown(fd);
    rpc_server_stop(server);
    rpc_server_free(server);
    env_sleep(NS_PER_MS);
    env_close(fd);
}

/* --- the client's side ------------------------------------------------------------------------ */

static void callback(struct rpc_client *client, const struct rpc_header *header,
                     struct reader *body)
{
    (void)client;
    (void)header;
    assert(body->pos <= body->end);
    env_sleep(NS_PER_MS);
}

static void peer(void *arg)
{
    int fd = env_accept(peer_listener, NULL);
    (void)arg;
    assert(fd >= 0);
    env_sleep(10 * NS_PER_MS); /* the call is outstanding */
    send_input(fd);
    env_sleep(NS_PER_S);
    env_close(fd);
}

static void call_op(struct rpc_client *client, enum fop op)
{
    const struct rpc_cred cred = { .flavor = RPC_AUTH_V3 };
    struct rpc_call *call =
        rpc_call_new(client, FOP_PROGRAM, 400, fop_info[op].procedure, &cred);
    union fop_reply reply;
    int result;
    if (op == FOP_READV) {
        call->bulk_fixed = 172;
        call->bulk_size_at = 160;
        call->bulk_max = 8192;
    }
    memset(&reply, 0, sizeof(reply));
    if (rpc_call_run(call) == 0 &&
        fop_decode_reply(op, &call->body, &call->bulk, &reply, &result) == 0)
        fop_reply_fini(op, &reply);
    rpc_call_free(call);
}

static void to_client(enum fop op)
{
    struct rpc_client *client = NULL;
    struct env_address address = address_of(PORT);
    const struct rpc_client_config config = { .name = "client", .callback = callback,
                                              .ping_timeout_ns = NS_PER_S };
    peer_listener = env_listen(&address, 1);
    assert(peer_listener >= 0 && fiber_start("peer", peer, NULL) == 0);
    assert(rpc_client_new(&config, &client) == 0);
    assert(rpc_client_connect(client, &address, RPC_BIND_ANY, 0) == 0);
    call_op(client, op);
    rpc_client_free(client);
    env_sleep(2 * NS_PER_S);
    env_close(peer_listener);
}

/* --- one input -------------------------------------------------------------------------------- */

static void main_fiber(void *arg)
{
    const uint8_t *head = arg;
    if (head[0] == 0)
        to_server();
    else
        to_client(head[1] % FOP_COUNT);
    lanes_stop();
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    for (int i = 0; i < PROCEDURES; i++)
        procedures[i] = (struct rpc_procedure){ .name = "fuzz", .handler = serve };
    procedures[13].payload_fixed = 52;
    procedures[13].payload_size_at = 40;
    procedures[26].flags = RPC_BLOCKING;
    log_set_level(LOG_CRITICAL);
    if (env_init("sim", 1) < 0)
        abort();
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t head[2];
    if (size < sizeof(head))
        return 0;
    memcpy(head, data, sizeof(head));
    input = data + sizeof(head);
    input_bytes = size - sizeof(head);
    if (lanes_run(main_fiber, head) < 0)
        abort();
    return 0;
}
