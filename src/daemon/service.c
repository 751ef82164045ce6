/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/service.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/env.h"
#include "daemon/paths.h"
#include "daemon/process.h"
#include "daemon/source.h"
#include "daemon/statedump.h"
#include "graph/registry.h"
#include "xlators/mount/fuse/fuse.h"

enum {
    KERNEL_LIMIT_S = 30, /* for the kernel's first request after the mount */
    BRICK_LIMIT_S = 20,  /* for a first answer from the brick */
    STOP_LIMIT_S = 60,
    LOG_FLUSH_S = 10,
};

const int service_signals[SERVICE_SIGNALS_MAX] = { SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2 };
const int service_signal_count = 5;

/* --- the graph -------------------------------------------------------------------------------- */

static void graph_event(struct graph *graph, enum xlator_event event, void *data)
{
    struct service *service = graph->on_event_arg;
    HOLD(&service->mutex);

    if (event == EVENT_CHILD_UP)
        service->child_is_up = true;
    else if (event == EVENT_CHILD_DOWN)
        service->child_is_up = false;
    else if (event == EVENT_AUTH_FAILED)
        service->is_refused = true;
    else
        return;
    (void)data; /* who refused has logged why */
    fcond_wake_all(&service->changed);
}

static const char *graph_uuid(void)
{
    static char uuid[160];
    char host[64] = "localhost";
    struct timespec now = env_wallclock();
    struct tm tm;
    char date[32];

    gethostname(host, sizeof(host) - 1);
    gmtime_r(&now.tv_sec, &tm);
    strftime(date, sizeof(date), "%Y/%m/%d-%H:%M:%S", &tm);
    snprintf(uuid, sizeof(uuid), "%s-%d-%s:%06ld", host, (int)getpid(), date, now.tv_nsec / 1000);
    return uuid;
}

/* What flags of the command line say about volumes, behind what --xlator-option says. */
static unsigned overrides_make(const struct args *args, struct graph_override *overrides)
{
    unsigned count = args->override_count;

    memcpy(overrides, args->overrides, count * sizeof(*overrides));
    if (args->acl)
        overrides[count++] = (struct graph_override){ "*-md-cache", "cache-posix-acl", "true" };
    if (option_set_get(&args->fuse, "selinux"))
        overrides[count++] = (struct graph_override){ "*-md-cache", "cache-selinux", "true" };
    return count;
}

static int volfile_load(const char *text, size_t bytes, struct volfile **ret_volfile)
{
    char error[VOLFILE_ERROR_SIZE];
    int ret = volfile_parse(text, bytes, error, ret_volfile);

    if (ret < 0)
        log_error("parser", 0, "%s", error);
    return ret;
}

/* --brick-port, unless --xlator-option says where to listen. */
static int brick_port_put(const struct args *args, struct volfile *volfile)
{
    char port[8];
    int ret = 0;

    for (unsigned i = 0; i < args->override_count; i++)
        if (strstr(args->overrides[i].key, "listen-port"))
            return 0;
    snprintf(port, sizeof(port), "%u", args->brick_port);
    for (unsigned i = 0; i < volfile->count && ret == 0; i++)
        if (args->brick_port && strcmp(volfile->volumes[i].type, "protocol/server") == 0)
            ret = option_set_put(&volfile->volumes[i].options, "transport.socket.listen-port",
                                 port);
    return ret;
}

/* What is stacked over the volume file's top: an ACL layer, the mount. */
static int layers_push(struct service *service)
{
    const struct args *args = service->args;
    struct option_set options = { 0 };
    const struct xlator_type *acl;
    const char *reason;
    int ret = 0;

    if (args->acl) {
        ret = registry_find("system/posix-acl", &acl, &reason);
        if (ret == 0)
            ret = graph_push(service->graph, acl, "posix-acl-autoload", &options);
    }
    if (ret < 0 || !args->mount_point)
        return ret;
    for (unsigned i = 0; i < args->fuse.count && ret == 0; i++)
        ret = option_set_put(&options, args->fuse.pairs[i].key, args->fuse.pairs[i].value);
    if (ret == 0)
        ret = option_set_put(&options, "mountpoint", args->mount_point);
    if (ret == 0)
        ret = graph_push(service->graph, &xlator_mount_fuse, "fuse", &options);
    option_set_fini(&options);
    return ret;
}

static int graph_make(struct service *service, struct volfile *volfile)
{
    static struct graph_override overrides[ARGS_OVERRIDES_MAX + 2];
    struct graph_config config = {
        .uuid = graph_uuid(),
        .volume_name = service->args->volume_name,
        .overrides = overrides,
        .override_count = overrides_make(service->args, overrides),
    };
    int ret = brick_port_put(service->args, volfile);
    if (ret == 0)
        ret = graph_new(volfile, &config, &service->graph);
    if (ret < 0)
        return ret;

    service->graph->on_event = graph_event;
    service->graph->on_event_arg = service;
    ret = layers_push(service);
    if (ret == 0)
        ret = graph_init(service->graph);
    if (ret == 0)
        volfile_log(service->graph->volfile);
    if (ret == 0)
        ret = graph_start(service->graph);
    return ret;
}

static void volfile_changed(void *arg);

static int graph_load(struct service *service)
{
    char error[SOURCE_ERROR_SIZE];
    AUTO(volfile) volfile = NULL;
    size_t bytes;
    int ret = 0;

    if (service->args->server_count > 0)
        ret = manager_new(service->args, volfile_changed, service, &service->manager);
    if (ret == 0)
        ret = source_read(service->args, service->manager, &service->text, &bytes, error);
    if (ret < 0) {
        log_error("glusterfsd", 0, "%s", error);
        service->status = service->args->no_daemon ? STATUS_NO_VOLFILE : 1;
        return ret;
    }
    service->status = 1;
    ret = volfile_load(service->text, bytes, &volfile);
    if (ret == 0)
        ret = graph_make(service, volfile);
    if (ret == 0 && service->manager)
        ret = manager_serving(service->manager);
    if (ret < 0) {
        log_to_stderr(LOG_NONE); /* the reason has been told */
        LOG_(LOG_ERROR, "glusterfsd", 100026, 0, "failed to construct the graph []");
    }
    return ret;
}

/* --- the mount -------------------------------------------------------------------------------- */

static void stop_ask(struct service *service)
{
    HOLD(&service->mutex);

    service->must_stop = true;
    fcond_wake_all(&service->changed);
}

static void mount_ended(void *arg)
{
    struct service *service = arg;

    log_info("fuse", 0, "%s was unmounted", service->args->mount_point);
    stop_ask(service);
}

static const char *mount_source(const struct args *args)
{
    static char source[1024];

    if (args->source)
        return args->source;
    if (args->server_count > 0)
        snprintf(source, sizeof(source), "%.400s:%s%.400s", args->servers[0],
                 args->volfile_id[0] == '/' ? "" : "/", args->volfile_id);
    else
        snprintf(source, sizeof(source), "%.1000s", args->volfile);
    return source;
}

static int brick_wait(struct service *service)
{
    uint64_t until_ns = env_now_ns() + BRICK_LIMIT_S * NS_PER_S;
    HOLD(&service->mutex);
    int ret = 0;

    while (ret == 0 && !service->child_is_up && !service->is_refused && !service->must_stop)
        ret = fcond_wait_until(&service->changed, &service->mutex, "first brick", until_ns);
    if (service->child_is_up)
        return 0;
    if (service->must_stop)
        return -EINTR;
    return service->is_refused ? -EACCES : -ETIMEDOUT;
}

static int mount_make(struct service *service)
{
    struct fuse_mount_config config = {
        .mountpoint = service->args->mount_point,
        .source = mount_source(service->args),
        .ended = mount_ended,
        .arg = service,
    };
    int ret = brick_wait(service);

    if (ret == -ETIMEDOUT)
        log_error("glusterfs", 0,
                  "no brick could be reached within %d s: start it, or look at remote-host and "
                  "remote-port in the volume file, then mount again", BRICK_LIMIT_S);
    else if (ret == -EACCES)
        log_error("glusterfs", 0, "the brick refuses this client: look at its auth options");
    if (ret < 0)
        return ret;

    ret = fuse_mount(&config, service->graph, &service->fuse);
    if (ret < 0) {
        log_error("fuse", 0, "%s", config.error);
        return ret;
    }
    ret = fuse_ready_wait(service->fuse, env_now_ns() + KERNEL_LIMIT_S * NS_PER_S);
    if (ret < 0)
        log_error("fuse", ret, "the kernel did not take the mount on %s into use",
                  config.mountpoint);
    else
        log_info("fuse", 0, "mounted on %s, requests come over %s", config.mountpoint,
                 fuse_transport(service->fuse));
    return ret;
}

/* --- signals ---------------------------------------------------------------------------------- */

static void options_reload(struct service *service)
{
    struct graph_override *overrides = calloc(ARGS_OVERRIDES_MAX + 2, sizeof(*overrides));
    char error[SOURCE_ERROR_SIZE];
    AUTO(volfile) volfile = NULL;
    AUTO_FREE char *text = NULL;
    size_t bytes;
    int ret = overrides ? source_read(service->args, service->manager, &text, &bytes, error)
                        : -ENOMEM;

    if (overrides && ret < 0)
        log_error("glusterfsd", 0, "%s: running on as before", error);
    if (ret == 0 && strcmp(text, service->text) == 0) {
        log_info("glusterfsd", 0, "No change in volfile,continuing");
        ret = -EALREADY;
    }
    if (ret == 0)
        ret = volfile_load(text, bytes, &volfile);
    if (ret == 0) {
        struct graph_config config = { .overrides = overrides,
                                       .override_count = overrides_make(service->args, overrides) };
        ret = brick_port_put(service->args, volfile);
        if (ret == 0)
            ret = graph_reconfigure(service->graph, volfile, &config);
        if (ret == -EXDEV)
            log_error("glusterfsd", 0,
                      "the volume file has other volumes now: this version takes over options "
                      "only; running on as before, start anew for the rest");
    }
    if (ret == 0) {
        free(service->text);
        service->text = TAKE(text);
        volfile_log(service->graph->volfile);
    }
    free(overrides);
}

static void reload(void *arg)
{
    struct service *service = arg;
    FLOCK(&service->work);

    if (service->is_running)
        options_reload(service);
}

static void volfile_changed(void *arg)
{
    if (fiber_start("reload", reload, arg) < 0)
        log_error("glusterfsd", -ENOMEM, "a changed volume file is not looked at");
}

static void log_rotated(void)
{
    int ret = log_reopen();

    if (ret < 0)
        log_error("glusterfsd", ret, "cannot open %s anew: writing on to the old one",
                  log_get_path());
}

static const char *dump_directory(const struct graph *graph)
{
    for (uint32_t i = 0; i < graph->count; i++) {
        const char *path = option_set_get(&graph->xlators[i]->options, "statedump-path");
        if (path)
            return path;
    }
    return STATEDUMP_DIR;
}

static void dump(struct service *service)
{
    FLOCK(&service->work);

    if (service->is_running)
        statedump_write(dump_directory(service->graph), service->args->brick_name, service->graph);
}

static void signals_run(void *arg)
{
    struct service *service = arg;
    unsigned ends = 0;

    for (;;) {
        int number = env_signal_wait(service->signal_fd);
        switch (number) {
        case SIGHUP:
            log_rotated();
            reload(service);
            break;
        case SIGUSR1:
            dump(service);
            break;
        case SIGUSR2:
            log_info("glusterfsd", 0, "SIGUSR2: there are no metrics in a file in this version");
            break;
        case SIGTERM:
        case SIGINT:
            log_info(service->args->name, 0, "received signum (%d), shutting down", number);
            if (ends++ > 0)
                _exit(1);
            process_end_within(STOP_LIMIT_S);
            stop_ask(service);
            break;
        default: /* the descriptor is gone: the process is ending */
            return;
        }
    }
}

static void log_flush_run(void *arg)
{
    (void)arg;
    for (;;) {
        env_sleep(LOG_FLUSH_S * NS_PER_S);
        log_flush(false);
    }
}

/* --- life ------------------------------------------------------------------------------------- */

static int service_start(struct service *service)
{
    int ret = fiber_start("signals", signals_run, service);

    if (ret == 0)
        ret = fiber_start("log flush", log_flush_run, NULL);
    if (ret == 0)
        ret = graph_load(service);
    if (ret == 0 && service->args->mount_point)
        ret = mount_make(service);
    return ret;
}

static void stop_wait(struct service *service)
{
    HOLD(&service->mutex);

    while (!service->must_stop)
        fcond_wait(&service->changed, &service->mutex, "signal to stop");
}

static void service_stop(struct service *service)
{
    manager_end(service->manager);
    FLOCK(&service->work);

    service->is_running = false;
    manager_free(service->manager);
    if (service->fuse)
        fuse_unmount(service->fuse);
    if (service->graph) {
        graph_stop(service->graph);
        graph_free(service->graph);
    }
    free(service->text);
}

void service_main(void *arg)
{
    struct service *service = arg;

    service->status = 1;
    pthread_mutex_init(&service->mutex, NULL);
    fcond_init(&service->changed);
    fmutex_init(&service->work);
    int ret = service_start(service);
    log_to_stderr(LOG_NONE);
    if (ret == 0) {
        service->is_running = true;
        service->status = 0;
        if (process_ready())
            stop_wait(service);
        else
            log_error(service->args->name, 0, "who started this process is gone: ending");
    } else {
        process_end_within(STOP_LIMIT_S);
    }
    service_stop(service);
    log_info(service->args->name, 0, "ended with status %d", service->status);
    lanes_stop();
}
