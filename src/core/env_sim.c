/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/env_internal.h"

static int sim_probe(uint64_t seed)
{
    (void)seed;
    return -EOPNOTSUPP;
}

const struct env_ops env_sim = { .kind = ENV_SIM, .name = "sim", .probe = sim_probe };
