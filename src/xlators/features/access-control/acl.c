/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "xlators/features/access-control/acl.h"

#include <endian.h>
#include <string.h>

enum { /* linux/posix_acl.h, version 2 of the xattr form: spec/disk.md 1.5 */
    ACL_VERSION = 2,
    TAG_USER_OBJ = 1,
    TAG_USER = 2,
    TAG_GROUP_OBJ = 4,
    TAG_GROUP = 8,
    TAG_MASK = 16,
    TAG_OTHER = 32, ENTRIES_MAX = 512,
};

struct acl_entry { /* little-endian */
    uint16_t tag, perm;
    uint32_t id;
} __attribute__((packed));

bool call_in_group(const struct call *call, uint32_t gid)
{
    if (call->gid == gid)
        return true;
    for (uint32_t i = 0; i < call->group_count; i++)
        if (call->groups[i] == gid)
            return true;
    return false;
}

static bool by_mode(const struct iatt *stat, const struct call *call, uint32_t want)
{
    uint32_t bits = stat->mode;

    if (call->uid == stat->uid)
        bits >>= 6;
    else if (call_in_group(call, stat->gid))
        bits >>= 3;
    return (bits & want) == want;
}

/* What the entries say, in the algorithm's order: owner, named user, any matching group, other. */
struct verdict {
    const struct iatt *stat;
    const struct call *call;
    uint32_t want;
    uint32_t mask;                /* 07 when there is no mask entry */
    bool named, named_may;        /* a user entry of the caller */
    bool grouped, group_may;      /* any group entry of the caller; one that suffices */
    uint32_t owner_perm, other_perm;
};

static void see_entry(struct verdict *v, uint32_t tag, uint32_t perm, uint32_t id)
{
    switch (tag) {
    case TAG_USER_OBJ:
        v->owner_perm = perm;
        break;
    case TAG_USER:
        if (id == v->call->uid) {
            v->named = true;
            v->named_may = (perm & v->mask & v->want) == v->want;
        }
        break;
    case TAG_GROUP_OBJ:
    case TAG_GROUP:
        if (call_in_group(v->call, tag == TAG_GROUP_OBJ ? v->stat->gid : id)) {
            v->grouped = true;
            v->group_may |= (perm & v->mask & v->want) == v->want;
        }
        break;
    case TAG_OTHER:
        v->other_perm = perm;
        break;
    default:
        break;
    }
}

static bool by_acl(const struct acl_subject *subject, const struct call *call, uint32_t want)
{
    const uint8_t *bytes = subject->acl;
    uint32_t version, count = (subject->acl_bytes - 4) / sizeof(struct acl_entry);
    struct verdict v = { .stat = subject->stat, .call = call, .want = want, .mask = 7 };
    struct acl_entry entry;

    memcpy(&version, bytes, 4);
    if (le32toh(version) != ACL_VERSION || (subject->acl_bytes - 4) % sizeof(entry) ||
        count > ENTRIES_MAX)
        return false;
    for (int pass = 0; pass < 2; pass++) { /* the mask stands behind what it masks */
        for (uint32_t i = 0; i < count; i++) {
            memcpy(&entry, bytes + 4 + i * sizeof(entry), sizeof(entry));
            if (pass == 1)
                see_entry(&v, le16toh(entry.tag), le16toh(entry.perm), le32toh(entry.id));
            else if (le16toh(entry.tag) == TAG_MASK)
                v.mask = le16toh(entry.perm);
        }
    }
    if (call->uid == subject->stat->uid)
        return (v.owner_perm & want) == want;
    if (v.named)
        return v.named_may;
    if (v.grouped)
        return v.group_may;
    return (v.other_perm & want) == want;
}

bool acl_permits(const struct acl_subject *subject, const struct call *call, uint32_t super_uid,
                 uint32_t want)
{
    uint32_t mode = subject->stat->mode;

    if (call->uid == super_uid)
        return !(want & ACL_EXECUTE) || S_ISDIR(mode) || (mode & 0111);
    /* the kernel asks the list only when the group's bits, which are its mask, leave something */
    if (subject->acl && subject->acl_bytes >= 4 && (mode & 070))
        return by_acl(subject, call, want);
    return by_mode(subject->stat, call, want);
}
