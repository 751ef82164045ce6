/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Who may do what by mode bits and POSIX ACL (acl(5), "access check algorithm").
 *
 *     struct acl_subject subject = { .stat = &stat, .acl = bytes, .acl_bytes = count };
 *     bool may = acl_permits(&subject, call, ACL_WRITE | ACL_EXECUTE);
 */
#pragma once

#include "fop/call.h"

enum acl_want { ACL_EXECUTE = 1, ACL_WRITE = 2, ACL_READ = 4 };

struct acl_subject {
    const struct iatt *stat;
    const void *acl;      /* value of system.posix_acl_access, or NULL: mode bits decide */
    uint32_t acl_bytes;
};

/* A malformed ACL permits nothing. Root (super_uid) may read and write all, and execute what
 * anybody may execute or what is a directory. */
bool acl_permits(const struct acl_subject *subject, const struct call *call, uint32_t super_uid,
                 uint32_t want) nowait;
bool call_in_group(const struct call *call, uint32_t gid) nowait;
