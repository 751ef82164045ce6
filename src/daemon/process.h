/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The process around the service: into the background with an answer, pid file, limits.
 *
 *     process_prepare(&args);                  // limits, name, out-of-memory score
 *     process_daemonize();                     // returns in the child; the parent waits, and exits
 *     ret = process_pid_file("/run/x.pid");    //   with 0 when the child is ready, or its status
 *     ...                                      //   when it ended before (and said why on stderr)
 *     process_ready();
 */
#pragma once

#include "daemon/args.h"

void process_prepare(const struct args *args);
/* Returns in the child. The parent forwards INT and TERM to it while it waits. */
void process_daemonize(void);
/* Lets the waiting parent go, if there is one, and the terminal too. false: the parent is gone (who
 * started us has given up). */
must_check bool process_ready(void);
/* -EAGAIN: another process has it. */
must_check int process_pid_file(const char *path);
void process_pid_file_remove(void);
/* From now on this process ends by itself after so many seconds, whatever hangs. */
void process_end_within(unsigned seconds);
