/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* features/access-control: the judgement against the kernel's own, and each operation's rule. */
#include "fixture.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "xlators/features/access-control/acl.h"

extern const struct xlator_type xlator_features_access_control;

#define ACL_NAME "system.posix_acl_access"

/* --- random numbers, replayed with MORTAR_SEED ------------------------------------------------ */

static uint64_t random_state;

static uint32_t draw(uint32_t below)
{
    random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
    return (uint32_t)(random_state >> 33) % below;
}

static void seed(void)
{
    const char *text = getenv("MORTAR_SEED");
    random_state = text ? strtoull(text, NULL, 0) : (uint64_t)getpid() << 16 | 12345;
    fprintf(stderr, "# seed %llu\n", (unsigned long long)random_state);
}

/* --- the kernel as the oracle ----------------------------------------------------------------- */

enum { OBJECTS = 160, SUBJECTS = 60, WANTS = 8, IDS = 4, FIRST_ID = 2000, ACL_MAX = 256 };

struct object { /* a file or directory on a real file system */
    char path[64];
    struct iatt stat;
    uint8_t acl[ACL_MAX];
    uint32_t acl_bytes;
};

static uint32_t put_entry(uint8_t *acl, uint32_t at, uint16_t tag, uint16_t perm, uint32_t id)
{
    const uint16_t head[2] = { htole16(tag), htole16(perm) };
    id = htole32(id);
    memcpy(acl + at, head, 4);
    memcpy(acl + at + 4, &id, 4);
    return at + 8;
}

/* A valid one: in order, each id once, a mask where there is a named entry. */
static uint32_t random_acl(uint8_t acl[ACL_MAX])
{
    uint32_t none = UINT32_MAX, at = 4, version = htole32(2);
    bool named = false;

    memcpy(acl, &version, 4);
    at = put_entry(acl, at, 1, (uint16_t)draw(8), none);
    for (uint32_t id = FIRST_ID; id < FIRST_ID + IDS; id++)
        if (draw(2) && (named = true))
            at = put_entry(acl, at, 2, (uint16_t)draw(8), id);
    at = put_entry(acl, at, 4, (uint16_t)draw(8), none);
    for (uint32_t id = FIRST_ID; id < FIRST_ID + IDS; id++)
        if (draw(3) == 0 && (named = true))
            at = put_entry(acl, at, 8, (uint16_t)draw(8), id);
    if (named)
        at = put_entry(acl, at, 16, (uint16_t)draw(8), none);
    return put_entry(acl, at, 32, (uint16_t)draw(8), none);
}

static bool make_object(const char *dir, int i, struct object *object)
{
    struct stat st;
    uint8_t acl[ACL_MAX];

    snprintf(object->path, sizeof(object->path), "%s/o%d", dir, i);
    if (draw(2))
        check_equal(mkdir(object->path, 0777), 0);
    else
        check_equal(mknod(object->path, S_IFREG | 0666, 0), 0);
    check_equal(chown(object->path, FIRST_ID + draw(IDS), FIRST_ID + draw(IDS)), 0);
    check_equal(chmod(object->path, draw(4) == 0 ? draw(8) << 6 | draw(8) : draw(01000)), 0);
    if (draw(3)) {
        uint32_t bytes = random_acl(acl);
        if (setxattr(object->path, ACL_NAME, acl, bytes, 0) != 0)
            return false;
    }
    ssize_t got = getxattr(object->path, ACL_NAME, object->acl, sizeof(object->acl));
    object->acl_bytes = got < 0 ? 0 : (uint32_t)got;
    check_equal(stat(object->path, &st), 0);
    iatt_from_stat(&object->stat, &st, &gfid_root);
    return true;
}

/* What the kernel lets this subject do: one byte for each object and combination of rights. */
static void ask_kernel(const struct call *call, const struct object *objects, uint8_t *answers)
{
    int fds[2];
    check_equal(pipe(fds), 0);
    pid_t child = fork();
    check(child >= 0);
    if (child == 0) {
        gid_t groups[IDS];
        for (uint32_t i = 0; i < call->group_count; i++)
            groups[i] = call->groups[i];
        if (setgroups(call->group_count, groups) || setresgid(call->gid, call->gid, call->gid) ||
            setresuid(call->uid, call->uid, call->uid))
            _exit(1);
        for (int o = 0; o < OBJECTS; o++)
            for (int want = 0; want < WANTS; want++) {
                uint8_t may = faccessat(AT_FDCWD, objects[o].path, want, AT_EACCESS) == 0;
                if (write(fds[1], &may, 1) != 1)
                    _exit(1);
            }
        _exit(0);
    }
    close(fds[1]);
    for (size_t got = 0; got < (size_t)OBJECTS * WANTS;) {
        ssize_t count = read(fds[0], answers + got, (size_t)OBJECTS * WANTS - got);
        check(count > 0);
        got += (size_t)count;
    }
    close(fds[0]);
    int status;
    check_equal(waitpid(child, &status, 0), child);
    check_equal(status, 0);
}

static void compare(const struct call *call, const struct object *object, uint8_t kernel_may,
                    uint32_t want)
{
    const struct acl_subject subject = { .stat = &object->stat,
                                         .acl = object->acl_bytes ? object->acl : NULL,
                                         .acl_bytes = object->acl_bytes };
    bool may = acl_permits(&subject, call, 0, want);
    if (may == kernel_may)
        return;
    fprintf(stderr, "want %u: %d, the kernel says %d: mode %o uid %u gid %u, acl", want, may,
            kernel_may, object->stat.mode, object->stat.uid, object->stat.gid);
    for (uint32_t i = 4; i < object->acl_bytes; i += 8)
        fprintf(stderr, " %u:%u:%u", object->acl[i], object->acl[i + 2],
                object->acl[i + 4] | object->acl[i + 5] << 8);
    fprintf(stderr, "; caller uid %u gid %u groups", call->uid, call->gid);
    for (uint32_t i = 0; i < call->group_count; i++)
        fprintf(stderr, " %u", call->groups[i]);
    fprintf(stderr, "\n");
    abort();
}

static void the_kernel_judges_alike(void **state)
{
    const char *base = getenv("MORTAR_TEST_DIR");
    char dir[48];
    struct object *objects = calloc(OBJECTS, sizeof(*objects));
    uint8_t *answers = malloc((size_t)OBJECTS * WANTS);

    (void)state;
    if (geteuid() != 0) {
        print_message("# skipped: only root can ask the kernel for others\n");
        skip();
    }
    snprintf(dir, sizeof(dir), "%.24s/mortar-acl-XXXXXX", base ? base : "/var/tmp");
    check(mkdtemp(dir) != NULL);
    check_equal(chmod(dir, 0755), 0);
    bool acls = true;
    for (int i = 0; i < OBJECTS && acls; i++)
        acls = make_object(dir, i, &objects[i]);
    for (int s = 0; s < SUBJECTS && acls; s++) {
        uint32_t groups[IDS];
        struct call call = { .uid = s == 0 ? 0 : FIRST_ID + draw(IDS + 1),
                             .gid = s == 0 ? 0 : FIRST_ID + draw(IDS + 1), .groups = groups,
                             .group_count = draw(IDS + 1) };
        for (uint32_t i = 0; i < call.group_count; i++)
            groups[i] = FIRST_ID + draw(IDS + 2);
        ask_kernel(&call, objects, answers);
        for (int o = 0; o < OBJECTS; o++)
            for (uint32_t want = 1; want < WANTS; want++)
                compare(&call, &objects[o], answers[o * WANTS + (int)want], want);
    }
    for (int i = 0; i < OBJECTS; i++)
        (void)remove(objects[i].path);
    check_equal(rmdir(dir), 0);
    free(objects);
    free(answers);
    if (!acls) {
        print_message("# skipped: no ACLs on the file system of %s\n", dir);
        skip();
    }
}

static void a_malformed_acl_permits_nothing(void **state)
{
    uint8_t acl[64];
    const struct iatt stat = { .mode = S_IFREG | 0777, .uid = 1, .gid = 1 };
    const struct call call = { .uid = 5, .gid = 5 };
    uint32_t at = 4, version = htole32(2);

    (void)state;
    memcpy(acl, &version, 4);
    at = put_entry(acl, at, 1, 7, UINT32_MAX);
    at = put_entry(acl, at, 4, 7, UINT32_MAX);
    at = put_entry(acl, at, 32, 7, UINT32_MAX);
    struct acl_subject subject = { .stat = &stat, .acl = acl, .acl_bytes = at };
    assert_true(acl_permits(&subject, &call, 0, ACL_READ));
    for (uint32_t bytes = 4; bytes < at; bytes++) {
        subject.acl_bytes = bytes;
        assert_false(acl_permits(&subject, &call, 0, ACL_READ));
    }
    subject.acl_bytes = at;
    acl[0] = 3;
    assert_false(acl_permits(&subject, &call, 0, ACL_READ));
}

/* --- a tree that the child tells of ----------------------------------------------------------- */

enum { MY_DIR = 1, STICKY, MY_FILE, OTHERS_FILE, SUBDIR, OTHERS_SUBDIR, OPEN_DIR, NODES };
enum { ME = 1000, OTHER = 1001, US = 1000, GROUP = 500 };

static struct node {
    uint32_t mode, uid, gid;
} nodes[NODES];
static const uint8_t *node_acl; /* of OTHERS_FILE */
static uint32_t node_acl_bytes;
static int acl_error;

static const struct {
    const char *name;
    uint32_t node;
} names[] = { { "mine", MY_FILE }, { "others", OTHERS_FILE }, { "sub", SUBDIR },
              { "others-sub", OTHERS_SUBDIR } };

static int stat_of_node(uint32_t n, struct iatt *stat)
{
    *stat = (struct iatt){ .gfid = gfid_of(n), .mode = nodes[n].mode, .uid = nodes[n].uid,
                           .gid = nodes[n].gid };
    return 0;
}

static int answer_lookup(const struct lookup_args *in, struct lookup_reply *out)
{
    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        if (strcmp(in->name, names[i].name) == 0)
            return stat_of_node(names[i].node, &out->stat);
    return -ENOENT;
}

static int answer_getxattr(const struct getxattr_args *in, struct getxattr_reply *out)
{
    if (acl_error)
        return acl_error;
    if (in->inode->gfid.bytes[15] != OTHERS_FILE || !node_acl || strcmp(in->name, ACL_NAME) != 0)
        return -ENODATA;
    out->dict = dict_new();
    check_equal(dict_set_bytes(out->dict, in->name, node_acl, node_acl_bytes), 0);
    return (int)node_acl_bytes;
}

static int answer(struct fixture *fx, struct call *call, enum fop op, const void *args, void *reply)
{
    (void)fx;
    (void)call;
    if (op == FOP_STAT)
        return stat_of_node(((const struct stat_args *)args)->inode->gfid.bytes[15],
                            &((struct stat_reply *)reply)->stat);
    if (op == FOP_LOOKUP)
        return answer_lookup(args, reply);
    if (op == FOP_GETXATTR)
        return answer_getxattr(args, reply);
    return 0;
}

static const struct node fresh_nodes[NODES] = {
    [MY_DIR] = { S_IFDIR | 0755, ME, US },
    [STICKY] = { S_IFDIR | 01777, OTHER, OTHER },
    [MY_FILE] = { S_IFREG | 0644, ME, US },
    [OTHERS_FILE] = { S_IFREG | 0644, OTHER, OTHER },
    [SUBDIR] = { S_IFDIR | 0755, ME, US },
    [OTHERS_SUBDIR] = { S_IFDIR | 0755, OTHER, OTHER },
    [OPEN_DIR] = { S_IFDIR | 0777, OTHER, OTHER },
};

struct scene {
    struct fixture *fx;
    struct inode *inode[NODES];
    struct fd *fd[NODES];
    struct call call;
};

static struct scene *scene_new(void)
{
    static const uint32_t groups[] = { GROUP };
    struct scene *scene = calloc(1, sizeof(*scene));

    memcpy(nodes, fresh_nodes, sizeof(nodes));
    node_acl = NULL;
    acl_error = 0;
    scene->fx = fixture_new(&xlator_features_access_control, NULL);
    scene->fx->answer = answer;
    for (uint32_t i = 1; i < NODES; i++) {
        scene->inode[i] = fixture_inode(scene->fx, i);
        scene->fd[i] = fd_new(scene->inode[i], 2, 1);
    }
    scene->call = call_of(NULL, "me");
    scene->call.uid = ME;
    scene->call.gid = US;
    scene->call.groups = groups;
    scene->call.group_count = 1;
    return scene;
}

static void scene_free(struct scene *scene)
{
    for (int i = 1; i < NODES; i++) {
        fd_unref(scene->fd[i]);
        inode_unref(scene->inode[i]);
    }
    fixture_free(scene->fx);
    free(scene);
}

/* The operation answers that, and reached the child exactly when it was permitted. */
#define check_op(scene_, op_, expected_, ...)                                                      \
    do {                                                                                           \
        struct op_##_reply reply_ = { 0 };                                                         \
        const struct op_##_args args_ = { __VA_ARGS__ };                                           \
        unsigned before_ = fixture_count((scene_)->fx, fop_of_name(#op_));                         \
        int ret_ = fop_##op_((scene_)->fx->top, &(scene_)->call, &args_, &reply_);                 \
        check_equal(ret_, expected_);                                                              \
        check_equal(fixture_count((scene_)->fx, fop_of_name(#op_)) - before_ > 0, ret_ == 0);      \
        op_##_reply_fini(&reply_);                                                                 \
    } while (0)

static void making_entries_needs_write_and_search(void)
{
    struct scene *s = scene_new();
    static const uint32_t modes[] = { 0755, 0555, 0655, 0055, 0333 };
    static const int results[] = { 0, -EACCES, -EACCES, -EACCES, 0 };

    for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
        nodes[MY_DIR].mode = S_IFDIR | modes[i];
        check_op(s, mkdir, results[i], .parent = s->inode[MY_DIR], .name = "new");
        check_op(s, mknod, results[i], .parent = s->inode[MY_DIR], .name = "new");
        check_op(s, symlink, results[i], .parent = s->inode[MY_DIR], .name = "new", .target = "t");
        check_op(s, link, results[i], .inode = s->inode[OTHERS_FILE], .newparent = s->inode[MY_DIR],
                 .newname = "new");
        check_op(s, unlink, results[i], .parent = s->inode[MY_DIR], .name = "mine");
        check_op(s, rmdir, results[i], .parent = s->inode[MY_DIR], .name = "sub");
    }
    s->call.uid = 0; /* whom nothing holds */
    check_op(s, mkdir, 0, .parent = s->inode[MY_DIR], .name = "new");
    s->call.uid = OTHER;
    s->call.pid = PID_SELF_HEAL;
    check_op(s, mkdir, 0, .parent = s->inode[MY_DIR], .name = "new");
    scene_free(s);
}

static void looking_up_needs_search(void)
{
    struct scene *s = scene_new();
    struct lookup_reply reply = { 0 };
    const struct lookup_args nameless = { .inode = s->inode[MY_FILE], .name = "" };

    check_op(s, lookup, 0, .parent = s->inode[MY_DIR], .name = "mine");
    nodes[MY_DIR].mode = S_IFDIR | 0677;
    check_op(s, lookup, -EACCES, .parent = s->inode[MY_DIR], .name = "mine");
    nodes[MY_DIR].mode = S_IFDIR | 0100;
    check_op(s, lookup, 0, .parent = s->inode[MY_DIR], .name = "mine");
    check_equal(fop_lookup(s->fx->top, &s->call, &nameless, &reply), -ENOENT); /* the child's */
    scene_free(s);
}

static void a_sticky_directory_keeps_others_entries(void)
{
    struct scene *s = scene_new();

    check_op(s, unlink, 0, .parent = s->inode[STICKY], .name = "mine");
    check_op(s, unlink, -EPERM, .parent = s->inode[STICKY], .name = "others");
    check_op(s, rmdir, -EPERM, .parent = s->inode[STICKY], .name = "others-sub");
    check_op(s, unlink, -ENOENT, .parent = s->inode[STICKY], .name = "none");
    check_op(s, rename, -EPERM, .oldparent = s->inode[STICKY], .newparent = s->inode[MY_DIR],
             .oldname = "others", .newname = "x");
    check_op(s, rename, -EPERM, .oldparent = s->inode[MY_DIR], .newparent = s->inode[STICKY],
             .oldname = "mine", .newname = "others"); /* over another's */
    check_op(s, rename, 0, .oldparent = s->inode[MY_DIR], .newparent = s->inode[STICKY],
             .oldname = "mine", .newname = "none");
    nodes[STICKY].uid = ME; /* its owner may */
    check_op(s, unlink, 0, .parent = s->inode[STICKY], .name = "others");
    s->call.uid = 0;
    nodes[STICKY].uid = OTHER;
    check_op(s, unlink, 0, .parent = s->inode[STICKY], .name = "others");
    scene_free(s);
}

static void renaming_needs_both_directories_and_a_moved_one(void)
{
    struct scene *s = scene_new();

    check_op(s, rename, 0, .oldparent = s->inode[MY_DIR], .newparent = s->inode[OPEN_DIR],
             .oldname = "mine", .newname = "x");
    check_op(s, rename, -EACCES, .oldparent = s->inode[MY_DIR],
             .newparent = s->inode[OTHERS_SUBDIR], .oldname = "mine", .newname = "x");
    check_op(s, rename, -EACCES, .oldparent = s->inode[OTHERS_SUBDIR],
             .newparent = s->inode[MY_DIR], .oldname = "mine", .newname = "x");
    /* a directory's ".." is rewritten when it moves: that is a write to it */
    check_op(s, rename, -EACCES, .oldparent = s->inode[MY_DIR], .newparent = s->inode[OPEN_DIR],
             .oldname = "others-sub", .newname = "x");
    check_op(s, rename, 0, .oldparent = s->inode[MY_DIR], .newparent = s->inode[MY_DIR],
             .oldname = "others-sub", .newname = "x");
    scene_free(s);
}

static void opening_needs_what_the_flags_say(void)
{
    struct scene *s = scene_new();
    enum { EXEC = 040 };

    check_op(s, open, 0, .inode = s->inode[OTHERS_FILE], .flags = O_RDONLY);
    check_op(s, open, -EACCES, .inode = s->inode[OTHERS_FILE], .flags = O_WRONLY);
    check_op(s, open, -EACCES, .inode = s->inode[OTHERS_FILE], .flags = O_RDWR);
    check_op(s, open, -EACCES, .inode = s->inode[OTHERS_FILE], .flags = O_RDONLY | O_TRUNC);
    check_op(s, open, -EACCES, .inode = s->inode[OTHERS_FILE], .flags = EXEC);
    nodes[OTHERS_FILE].mode = S_IFREG | 0711;
    check_op(s, open, 0, .inode = s->inode[OTHERS_FILE], .flags = EXEC);
    check_op(s, open, -EACCES, .inode = s->inode[OTHERS_FILE], .flags = O_RDONLY);
    /* "to execute" is no way to write */
    check_op(s, open, -EACCES, .inode = s->inode[OTHERS_FILE], .flags = O_RDWR | EXEC);
    check_op(s, open, -EACCES, .inode = s->inode[OTHERS_FILE], .flags = O_TRUNC | EXEC);
    nodes[OTHERS_FILE].mode = S_IFREG | 0722;
    check_op(s, open, 0, .inode = s->inode[OTHERS_FILE], .flags = O_WRONLY);
    check_op(s, open, -EACCES, .inode = s->inode[OTHERS_FILE], .flags = 3);
    check_op(s, opendir, 0, .inode = s->inode[OTHERS_SUBDIR]);
    nodes[OTHERS_SUBDIR].mode = S_IFDIR | 0733;
    check_op(s, opendir, -EACCES, .inode = s->inode[OTHERS_SUBDIR]);
    check_op(s, truncate, 0, .inode = s->inode[OTHERS_FILE]);
    nodes[OTHERS_FILE].mode = S_IFREG | 0744;
    check_op(s, truncate, -EACCES, .inode = s->inode[OTHERS_FILE]);
    scene_free(s);
}

static void creating_over_a_file_is_opening_it(void)
{
    struct scene *s = scene_new();
    struct inode *dir = s->inode[OTHERS_SUBDIR];

    check_op(s, create, 0, .parent = s->inode[MY_DIR], .name = "new", .flags = O_RDWR | O_CREAT);
    check_op(s, create, -EACCES, .parent = dir, .name = "new", .flags = O_RDWR | O_CREAT);
    check_op(s, create, 0, .parent = dir, .name = "others", .flags = O_RDONLY | O_CREAT);
    check_op(s, create, -EACCES, .parent = dir, .name = "others", .flags = O_WRONLY | O_CREAT);
    check_op(s, create, -EACCES, .parent = dir, .name = "others",
             .flags = O_RDONLY | O_CREAT | O_TRUNC);
    nodes[OTHERS_SUBDIR].mode = S_IFDIR | 0766;
    check_op(s, create, -EACCES, .parent = dir, .name = "others", .flags = O_RDONLY | O_CREAT);
    scene_free(s);
}

static void access_judges_by_the_caller(void)
{
    struct scene *s = scene_new();
    struct access_reply reply = { 0 };

    for (uint32_t mask = 0; mask < 8; mask++) {
        const struct access_args in = { .inode = s->inode[OTHERS_FILE], .mask = mask };
        check_equal(fop_access(s->fx->top, &s->call, &in, &reply), mask & 3 ? -EACCES : 0);
    }
    s->call.uid = 0;
    const struct access_args exec = { .inode = s->inode[OTHERS_FILE], .mask = 1 };
    check_equal(fop_access(s->fx->top, &s->call, &exec, &reply), -EACCES); /* nobody's x bit */
    const struct access_args write = { .inode = s->inode[OTHERS_FILE], .mask = 6 };
    check_equal(fop_access(s->fx->top, &s->call, &write, &reply), 0);
    scene_free(s);
}

static void attributes_are_the_owners(void)
{
    struct scene *s = scene_new();
    const struct iatt to_me = { .uid = ME, .gid = US }, to_other = { .uid = OTHER, .gid = OTHER };
    const struct iatt to_group = { .gid = GROUP };

    for (int i = 0; i < 2; i++) { /* a directory and a file, by inode and by fd */
        struct inode *mine = s->inode[i ? MY_DIR : MY_FILE];
        struct fd *fd = s->fd[i ? MY_DIR : MY_FILE];
        check_op(s, setattr, 0, .inode = mine, .valid = VALID_MODE);
        check_op(s, fsetattr, 0, .fd = fd, .valid = VALID_MODE);
        check_op(s, setattr, 0, .inode = mine, .valid = VALID_UID | VALID_GID, .stat = to_me);
        check_op(s, setattr, 0, .inode = mine, .valid = VALID_GID, .stat = to_group);
        check_op(s, setattr, -EPERM, .inode = mine, .valid = VALID_UID, .stat = to_other);
        check_op(s, fsetattr, -EPERM, .fd = fd, .valid = VALID_GID, .stat = to_other);
        check_op(s, setattr, 0, .inode = mine, .valid = VALID_ATIME | VALID_MTIME);
        check_op(s, setattr, 0, .inode = mine, .valid = VALID_SIZE);
    }
    nodes[OTHERS_FILE].gid = US;
    check_op(s, setattr, -EPERM, .inode = s->inode[OTHERS_FILE], .valid = VALID_MODE);
    check_op(s, fsetattr, -EPERM, .fd = s->fd[OTHERS_FILE], .valid = VALID_MODE);
    check_op(s, setattr, -EPERM, .inode = s->inode[OTHERS_FILE], .valid = VALID_UID,
             .stat = { .uid = OTHER });
    check_op(s, setattr, -EPERM, .inode = s->inode[OTHERS_FILE], .valid = VALID_GID, .stat = to_me);
    check_op(s, setattr, -EACCES, .inode = s->inode[OTHERS_FILE],
             .valid = VALID_ATIME | VALID_MTIME);
    check_op(s, setattr, -EACCES, .inode = s->inode[OTHERS_FILE], .valid = VALID_SIZE);
    nodes[OTHERS_FILE].mode = S_IFREG | 0666; /* who may write may touch */
    check_op(s, setattr, 0, .inode = s->inode[OTHERS_FILE], .valid = VALID_ATIME | VALID_MTIME);
    check_op(s, setattr, 0, .inode = s->inode[OTHERS_FILE], .valid = VALID_SIZE);
    check_op(s, setattr, -EPERM, .inode = s->inode[OTHERS_FILE], .valid = VALID_MODE | VALID_SIZE);
    s->call.uid = 0;
    check_op(s, setattr, 0, .inode = s->inode[OTHERS_FILE], .valid = VALID_UID, .stat = to_me);
    scene_free(s);
}

/* A kernel clears set-id bits by a chmod when it truncates for somebody who may only write. */
static void who_may_write_may_clear_setid_bits(void)
{
    struct scene *s = scene_new();
    struct inode *file = s->inode[OTHERS_FILE];

    nodes[OTHERS_FILE].mode = S_IFREG | 06777;
    check_op(s, setattr, 0, .inode = file, .valid = VALID_MODE, .stat.mode = 0777);
    check_op(s, setattr, 0, .inode = file, .valid = VALID_MODE | VALID_SIZE, .stat.mode = 02777);
    check_op(s, setattr, -EPERM, .inode = file, .valid = VALID_MODE, .stat.mode = 0775);
    check_op(s, setattr, -EPERM, .inode = file, .valid = VALID_MODE, .stat.mode = 04777);
    check_op(s, setattr, -EPERM, .inode = file, .valid = VALID_MODE, .stat.mode = 06777);
    check_op(s, setattr, -EPERM, .inode = file, .valid = VALID_MODE | VALID_UID,
             .stat.mode = 0777);
    nodes[OTHERS_FILE].mode = S_IFREG | 06775;
    check_op(s, setattr, -EACCES, .inode = file, .valid = VALID_MODE, .stat.mode = 0775);
    nodes[OTHERS_FILE].mode = S_IFREG | 0777;
    check_op(s, setattr, -EPERM, .inode = file, .valid = VALID_MODE, .stat.mode = 0777);
    scene_free(s);
}

static uint32_t mode_that_arrived;

static int answer_setattr(struct fixture *fx, struct call *call, enum fop op, const void *args,
                          void *reply)
{
    if (op == FOP_SETATTR)
        mode_that_arrived = ((const struct setattr_args *)args)->stat.mode;
    if (op == FOP_FSETATTR)
        mode_that_arrived = ((const struct fsetattr_args *)args)->stat.mode;
    return answer(fx, call, op, args, reply);
}

/* chmod(2): who is not in the file's group cannot give its rights away. */
static void setgid_is_for_members_of_the_group(void)
{
    struct scene *s = scene_new();
    const struct iatt to = { .mode = 06755 };

    s->fx->answer = answer_setattr;
    check_op(s, setattr, 0, .inode = s->inode[MY_FILE], .valid = VALID_MODE, .stat = to);
    check_equal(mode_that_arrived, 06755);
    nodes[MY_FILE].gid = GROUP;
    check_op(s, setattr, 0, .inode = s->inode[MY_FILE], .valid = VALID_MODE, .stat = to);
    check_equal(mode_that_arrived, 06755);
    nodes[MY_FILE].gid = OTHER;
    check_op(s, setattr, 0, .inode = s->inode[MY_FILE], .valid = VALID_MODE, .stat = to);
    check_equal(mode_that_arrived, 04755);
    check_op(s, fsetattr, 0, .fd = s->fd[MY_FILE], .valid = VALID_MODE, .stat = to);
    check_equal(mode_that_arrived, 04755);
    s->call.uid = 0;
    check_op(s, setattr, 0, .inode = s->inode[MY_FILE], .valid = VALID_MODE, .stat = to);
    check_equal(mode_that_arrived, 06755);
    scene_free(s);
}

static void attributes_by_name_have_their_rules(void)
{
    static const struct {
        const char *name;
        int on_mine, on_others, of_root;
    } rules[] = {
        { "user.x", 0, -EACCES, 0 },
        { ACL_NAME, 0, -EPERM, 0 },
        { "system.posix_acl_default", 0, -EPERM, 0 },
        { "trusted.x", -EPERM, -EPERM, 0 },
        { "security.x", 0, -EACCES, 0 },
    };
    struct scene *s = scene_new();

    for (size_t i = 0; i < ARRAY_SIZE(rules); i++) {
        const char *name = rules[i].name;
        AUTO(dict) dict = dict_new();
        check_equal(dict_set_bytes(dict, name, "v", 1), 0);
        s->call.uid = ME;
        check_op(s, setxattr, rules[i].on_mine, .inode = s->inode[MY_FILE], .dict = dict);
        check_op(s, fsetxattr, rules[i].on_mine, .fd = s->fd[MY_FILE], .dict = dict);
        check_op(s, removexattr, rules[i].on_mine, .inode = s->inode[MY_FILE], .name = name);
        check_op(s, fremovexattr, rules[i].on_mine, .fd = s->fd[MY_FILE], .name = name);
        check_op(s, setxattr, rules[i].on_others, .inode = s->inode[OTHERS_FILE], .dict = dict);
        check_op(s, fsetxattr, rules[i].on_others, .fd = s->fd[OTHERS_FILE], .dict = dict);
        check_op(s, removexattr, rules[i].on_others, .inode = s->inode[OTHERS_FILE], .name = name);
        check_op(s, fremovexattr, rules[i].on_others, .fd = s->fd[OTHERS_FILE], .name = name);
        s->call.uid = 0;
        check_op(s, setxattr, rules[i].of_root, .inode = s->inode[OTHERS_FILE], .dict = dict);
    }
    AUTO(dict) two = dict_new();
    check_equal(dict_set_bytes(two, "user.fine", "v", 1), 0);
    check_equal(dict_set_bytes(two, "trusted.not", "v", 1), 0);
    s->call.uid = ME;
    check_op(s, setxattr, -EPERM, .inode = s->inode[MY_FILE], .dict = two);
    scene_free(s);
}

static void reading_user_attributes_needs_read(void)
{
    struct scene *s = scene_new();
    struct getxattr_reply reply = { 0 };
    const struct getxattr_args in = { .inode = s->inode[OTHERS_FILE], .name = "user.x" };

    check_equal(fop_getxattr(s->fx->top, &s->call, &in, &reply), -ENODATA); /* the child's */
    nodes[OTHERS_FILE].mode = S_IFREG | 0600;
    check_equal(fop_getxattr(s->fx->top, &s->call, &in, &reply), -EACCES);
    scene_free(s);
}

/* Owner, then named user, then groups, then others: the file's own list counts. */
static void an_acl_widens_and_narrows(void)
{
    struct scene *s = scene_new();
    uint8_t acl[ACL_MAX];
    uint32_t version = htole32(2), at = 4;

    memcpy(acl, &version, 4);
    at = put_entry(acl, at, 1, 6, UINT32_MAX);
    at = put_entry(acl, at, 2, 6, ME);
    at = put_entry(acl, at, 4, 4, UINT32_MAX);
    at = put_entry(acl, at, 16, 6, UINT32_MAX);
    at = put_entry(acl, at, 32, 4, UINT32_MAX);
    nodes[OTHERS_FILE].mode = S_IFREG | 0664;
    node_acl = acl;
    node_acl_bytes = at;
    check_op(s, open, 0, .inode = s->inode[OTHERS_FILE], .flags = O_RDWR);
    acl[4 + 8 + 2] = 0; /* user:me:--- beats other::r-- */
    check_op(s, open, -EACCES, .inode = s->inode[OTHERS_FILE], .flags = O_RDONLY);
    scene_free(s);
}

/* A list that cannot be read is no permission: it might have said no. */
static void an_acl_that_cannot_be_read_fails_closed(void)
{
    struct scene *s = scene_new();

    acl_error = -EIO;
    check_op(s, open, -EIO, .inode = s->inode[OTHERS_FILE], .flags = O_RDONLY);
    acl_error = -EOPNOTSUPP; /* a file system without: the mode decides */
    check_op(s, open, 0, .inode = s->inode[OTHERS_FILE], .flags = O_RDONLY);
    acl_error = -ENODATA;
    check_op(s, open, 0, .inode = s->inode[OTHERS_FILE], .flags = O_RDONLY);
    scene_free(s);
}

static void the_super_user_is_an_option(void)
{
    struct scene *s = scene_new();

    check_op(s, open, -EACCES, .inode = s->inode[OTHERS_FILE], .flags = O_RDWR);
    check_equal(fixture_reconfigure(s->fx, (const char *[]){ "super-uid", "1000", NULL }), 0);
    check_op(s, open, 0, .inode = s->inode[OTHERS_FILE], .flags = O_RDWR);
    s->call.uid = 0;
    check_op(s, open, -EACCES, .inode = s->inode[OTHERS_FILE], .flags = O_RDWR);
    scene_free(s);
}

static const struct fiber_case cases[] = {
    FIBER_CASE(making_entries_needs_write_and_search, PLAIN_ONLY),
    FIBER_CASE(looking_up_needs_search, PLAIN_ONLY),
    FIBER_CASE(a_sticky_directory_keeps_others_entries, PLAIN_ONLY),
    FIBER_CASE(renaming_needs_both_directories_and_a_moved_one, PLAIN_ONLY),
    FIBER_CASE(opening_needs_what_the_flags_say, PLAIN_ONLY),
    FIBER_CASE(creating_over_a_file_is_opening_it, PLAIN_ONLY),
    FIBER_CASE(access_judges_by_the_caller, PLAIN_ONLY),
    FIBER_CASE(attributes_are_the_owners, PLAIN_ONLY),
    FIBER_CASE(who_may_write_may_clear_setid_bits, PLAIN_ONLY),
    FIBER_CASE(setgid_is_for_members_of_the_group, PLAIN_ONLY),
    FIBER_CASE(attributes_by_name_have_their_rules, PLAIN_ONLY),
    FIBER_CASE(reading_user_attributes_needs_read, PLAIN_ONLY),
    FIBER_CASE(an_acl_widens_and_narrows, PLAIN_ONLY),
    FIBER_CASE(an_acl_that_cannot_be_read_fails_closed, PLAIN_ONLY),
    FIBER_CASE(the_super_user_is_an_option, PLAIN_ONLY),
};

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_kernel_judges_alike),
        cmocka_unit_test(a_malformed_acl_permits_nothing),
    };
    seed();
    int failed = getenv("ONLY_CASE") ? 0 : cmocka_run_group_tests(tests, NULL, NULL);
    return failed + on_backends(cases, ARRAY_SIZE(cases));
}
