/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The command line of glusterfsd and glusterfs (spec/volfile.md 9), made into a plain structure.
 *
 *     struct args args;
 *     args_parse(&args, argc, argv);           // ends the process on a mistake: 64 or 255
 *
 * What a flag asks for and this version cannot do is a mistake as well, never silently dropped. */
#pragma once

#include <stdint.h>

#include "core/log.h"
#include "core/option.h"
#include "graph/graph.h"

enum program { PROGRAM_CLIENT, PROGRAM_SERVER, PROGRAM_MANAGER };

enum {
    ARGS_SERVERS_MAX = 32,
    ARGS_OVERRIDES_MAX = 1024,
    VOLFILE_SERVER_PORT = 24007,
    STATUS_BAD_ARGUMENT = 255,
    STATUS_NO_VOLFILE = 250,
};

struct args {
    enum program program;
    const char *name;               /* base name of argv[0] */
    char *command_line;             /* as typed, joined by blanks */

    char *volfile;                  /* absolute; NULL with servers */
    char *log_path;                 /* absolute; NULL: not given */
    const char *servers[ARGS_SERVERS_MAX];
    unsigned server_count;
    const char *volfile_id, *transport;
    uint16_t server_port;

    struct log_config log;          /* path absolute */
    char *pid_file;                 /* absolute */
    const char *volume_name;
    struct graph_override overrides[ARGS_OVERRIDES_MAX];
    unsigned override_count;

    char *mount_point;              /* absolute; NULL: no mount */
    const char *mount_word;         /* as typed: names the log */
    struct option_set fuse;         /* of mount/fuse */
    const char *source;             /* shown in the mount table */
    bool acl;

    const char *process_name, *brick_name;
    uint16_t brick_port;            /* registered at the management daemon; 0: none given */
    const char *env;                /* --io-engine; NULL: as the kernel allows */
    bool no_daemon, debug;
    bool has_oom_score;
    int oom_score;
    bool obsolete_fetch_attempts, global_threading; /* said once in the log, nothing else */
};

void args_parse(struct args *ret_args, int argc, char **argv);
