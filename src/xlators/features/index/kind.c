/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "xlators/features/index/index.h"

#include <errno.h>
#include <string.h>

#include "core/env.h"

enum { BASE_NAME_BYTES = 64, DENTS_BYTES = 4096 };

int kind_open(struct xlator *xl, int base_dir, struct kind *kind)
{
    int ret = env_mkdirat(base_dir, kind->folder, 0600);
    if (ret < 0 && ret != -EEXIST) {
        log_error(xl, ret, "cannot make the index directory %s", kind->folder);
        return ret;
    }
    kind->dir = env_openat(base_dir, kind->folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
                           0);
    if (kind->dir < 0) {
        ret = kind->dir;
        log_error(xl, ret, "cannot open the index directory %s", kind->folder);
        return ret;
    }
    pthread_mutex_init(&kind->mutex, NULL);
    gfid_generate(&kind->gfid);
    return 0;
}

static void base_name(const struct kind *kind, const gfid_t *base, char name[BASE_NAME_BYTES])
{
    char text[UUID_TEXT_SIZE];
    snprintf(name, BASE_NAME_BYTES, "%s-%s", kind->folder, gfid_format(base, text));
}

/* The base file that links go to; `full` says that this one takes no more. */
static gfid_t base_of(struct kind *kind, const gfid_t *full)
{
    HOLD(&kind->mutex);
    if (gfid_is_null(&kind->base) || (full && gfid_equal(&kind->base, full)))
        gfid_generate(&kind->base);
    return kind->base;
}

static int make_base(struct kind *kind, const char *name)
{
    int fd = env_openat(kind->dir, name, O_CREAT | O_EXCL | O_RDONLY | O_CLOEXEC, 0);
    if (fd < 0)
        return fd == -EEXIST ? 0 : fd;
    env_close(fd);
    return 0;
}

int kind_link(struct xlator *xl, struct kind *kind, const gfid_t *gfid)
{
    char name[BASE_NAME_BYTES], text[UUID_TEXT_SIZE];
    gfid_t base = base_of(kind, NULL);
    int ret = -ENOENT;

    gfid_format(gfid, text);
    for (int tries = 0; tries < 4; tries++) {
        base_name(kind, &base, name);
        ret = env_linkat(kind->dir, name, kind->dir, text, 0);
        if (ret == 0 || ret == -EEXIST)
            return 0;
        if (ret == -EMLINK) {
            base = base_of(kind, &base);
            continue;
        }
        if (ret == -ENOENT && (ret = make_base(kind, name)) == 0)
            ret = -ENOENT; /* still not linked */
        else
            break;
    }
    log_error(xl, ret, "cannot index gfid %s in %s: heal will not find it by itself", text,
              kind->folder);
    return ret;
}

int kind_unlink(struct xlator *xl, struct kind *kind, const gfid_t *gfid)
{
    char text[UUID_TEXT_SIZE];
    int ret = env_unlinkat(kind->dir, gfid_format(gfid, text), 0);

    if (ret == 0 || ret == -ENOENT)
        return 0;
    log_warn(xl, ret, "cannot take gfid %s off the index %s", text, kind->folder);
    return ret;
}

/* Base files are few; each knows its links. */
int64_t kind_count(struct kind *kind)
{
    _Alignas(struct dirent64) char dents[DENTS_BYTES];
    int64_t links = 0;
    AUTO_FD dir = env_openat(kind->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    size_t prefix = strlen(kind->folder);

    if (dir < 0)
        return dir;
    for (;;) {
        ssize_t bytes = env_getdents(dir, dents, sizeof(dents));
        if (bytes <= 0)
            return bytes < 0 ? bytes : links;
        for (ssize_t at = 0; at < bytes;) {
            struct dirent64 *entry = (struct dirent64 *)(void *)(dents + at);
            struct stat st;
            at += entry->d_reclen;
            if (strncmp(entry->d_name, kind->folder, prefix) == 0 && entry->d_name[prefix] == '-' &&
                env_fstatat(dir, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0)
                links += (int64_t)st.st_nlink - 1;
        }
    }
}
