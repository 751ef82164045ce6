/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A client of a brick, as its translators see it: the identity that owns fds and locks. */
#pragma once

#include <stdint.h>

#include "core/auto.h"
#include "graph/inode.h"

struct client {
    char *uid;                  /* the handshake's process-uuid */
    _Atomic uint32_t refs;
    _Atomic bool gone;          /* its connection ended: new locks are refused */
    bool trusted;               /* authenticated with the volume's own user name */
    struct slots slots;         /* ended by xlator_type.client_free */
    char address[64];           /* peer, for dumps */
    int32_t op_version;
};

struct client *client_new(const char *uid, const char *address) nowait;
struct client *client_ref(struct client *client) nowait;
void client_unref(struct client *client) nowait;
AUTO_DEFINE(client, client_unref)
