/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the process is there for: the graph of a volume file, served or mounted, until a signal or
 * an unmount ends it.
 *
 *     struct service service = { .args = &args, .signal_fd = fd };
 *     ret = lanes_run(service_main, &service);  ...  return service.status;
 */
#pragma once

#include <pthread.h>

#include "core/sync.h"
#include "daemon/args.h"

struct fuse;
struct manager;

struct service {
    const struct args *args;
    int signal_fd;
    int status;              /* of the process, afterwards */

    struct graph *graph;
    struct fuse *fuse;
    struct manager *manager; /* NULL: the volume file is a local one */
    char *text;              /* of the volume file, as read */
    struct fmutex work;      /* held while a signal's work, or the stop, uses the graph */
    pthread_mutex_t mutex;   /* what follows */
    struct fcond changed;
    bool child_is_up, is_refused, must_stop, is_running;
    unsigned attempts_failed;
};

/* A lane's first fiber: starts, reports, waits, stops, and ends the lanes. */
void service_main(void *arg);

enum service_signals { SERVICE_SIGNALS_MAX = 8 };
extern const int service_signals[SERVICE_SIGNALS_MAX];
extern const int service_signal_count;
