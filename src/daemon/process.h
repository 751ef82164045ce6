/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The process around the service: into the background with an answer, pid file, limits.
 *
 *     process_prepare(&args);                  // limits, name, out-of-memory score
 *     process_daemonize();                     // returns in the child; the parent waits, and exits
 *     ret = process_pid_file("/run/x.pid");    //   with the status that the child reports
 *     ...
 *     process_report(0);                       // ready, or why not (said on stderr before)
 */
#pragma once

#include "daemon/args.h"

void process_prepare(const struct args *args);
/* Returns in the child. The parent forwards INT and TERM to it while it waits. */
void process_daemonize(void);
/* Tells the waiting parent, if there is one; with 0 also lets go of the terminal. false: the parent
 * is gone (nobody waits for us any more). */
bool process_report(int status);
/* -EAGAIN: another process has it. */
must_check int process_pid_file(const char *path);
void process_pid_file_remove(void);
/* From now on this process ends by itself after so many seconds, whatever hangs. */
void process_end_within(unsigned seconds);
