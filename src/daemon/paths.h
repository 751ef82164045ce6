/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Where things are. What --print-* shows is what scripts of the known installation expect. */
#pragma once

#define CONFIG_DIR "/etc/glusterfs"
#define LOG_DIR "/var/log/glusterfs"
#define STATEDUMP_DIR "/var/run/gluster"
#ifndef LIB_DIR
#define LIB_DIR "/usr/lib/x86_64-linux-gnu"
#endif
#define LIBEXEC_DIR LIB_DIR "/glusterfs"
#define XLATOR_DIR LIB_DIR "/glusterfs/10.3/xlator"
