/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Who may mount: the address and login rules of a brick's options (spec/wire.md 5.3).
 *
 *     enum auth_answer answer = auth_decide(xl, &request);
 */
#pragma once

#include "core/env.h"
#include "graph/xlator.h"

struct auth_request {
    const char *brick;            /* name of the exported volume */
    const char *subdir;           /* "/dir", or "/" */
    const char *user, *password;  /* NULL: not given */
    const struct env_address *peer;
    bool allow_insecure;          /* ports >= 1024 are welcome */
    bool strict_accept;           /* without credentials: rejected */
};

enum auth_answer { AUTH_REJECT, AUTH_ACCEPT, AUTH_DONT_CARE };

/* Any module's reject rejects, else any accept accepts, else rejected. *ret_trusted: the volume's
 * own user name and password were given. May wait (host names are resolved). */
enum auth_answer auth_decide(const struct xlator *xl, const struct auth_request *request,
                             bool *ret_trusted);
