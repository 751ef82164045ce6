/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The tables of inodes and open files: identity, references from many threads, slots, growth. */
#include "../features/fixture.h"

#include <errno.h>
#include <pthread.h>
#include <sys/stat.h>

/* --- identity --------------------------------------------------------------------------------- */

static gfid_t random_gfid(uint64_t *random)
{
    gfid_t gfid;
    for (int i = 0; i < 16; i++) {
        *random = *random * 6364136223846793005ull + 1442695040888963407ull;
        gfid.bytes[i] = (uint8_t)(*random >> 56);
    }
    return gfid;
}

static void one_gfid_is_one_inode_while_anybody_holds_it(void **state)
{
    struct inode_table *table;
    (void)state;

    assert_int_equal(inode_table_new(&table), 0);
    gfid_t gfid = gfid_of(1);
    assert_null(inode_find(table, &gfid));
    struct inode *inode = inode_get(table, &gfid);
    assert_ptr_equal(inode_get(table, &gfid), inode);
    assert_ptr_equal(inode_find(table, &gfid), inode);
    assert_int_equal(inode->refs, 3);
    assert_int_equal(inode->type, 0);
    struct inode *root = inode_get(table, &gfid_root);
    assert_int_equal(root->type, S_IFDIR);
    assert_int_equal(inode_table_count(table), 2);
    for (int i = 0; i < 3; i++)
        inode_unref(inode);
    assert_null(inode_find(table, &gfid));
    inode_unref(NULL);
    inode_unref(root);
    assert_int_equal(inode_table_count(table), 0);
    inode_table_free(table);
}

static void count_one(struct inode *inode, void *arg)
{
    assert_true(inode->refs >= 2);
    ++*(unsigned *)arg;
}

static void the_table_grows_with_what_is_in_it(void **state)
{
    enum { MANY = 60000 };
    struct inode **inodes = calloc(MANY, sizeof(*inodes));
    uint64_t random = 42;
    struct inode_table *table;
    unsigned count = 0;
    (void)state;

    assert_int_equal(inode_table_new(&table), 0);
    for (int i = 0; i < MANY; i++) {
        gfid_t gfid = random_gfid(&random);
        inodes[i] = inode_get(table, &gfid);
        assert_non_null(inodes[i]);
    }
    assert_int_equal(inode_table_count(table), MANY);
    random = 42;
    for (int i = 0; i < MANY; i++) {
        gfid_t gfid = random_gfid(&random);
        struct inode *found = inode_find(table, &gfid);
        assert_ptr_equal(found, inodes[i]);
        inode_unref(found);
    }
    inode_table_each(table, count_one, &count);
    assert_int_equal(count, MANY);
    for (int i = 0; i < MANY; i += 2)
        inode_unref(inodes[i]);
    assert_int_equal(inode_table_count(table), MANY / 2);
    for (int i = 1; i < MANY; i += 2)
        inode_unref(inodes[i]);
    inode_table_free(table);
    free(inodes);
}

/* --- slots ------------------------------------------------------------------------------------ */

static unsigned forgotten, released, freed;

static void forget(struct xlator *xl, struct inode *inode, void *slot)
{
    (void)xl, (void)inode;
    free(slot);
    __atomic_add_fetch(&forgotten, 1, __ATOMIC_ACQ_REL);
}

static void release(struct xlator *xl, struct fd *fd, void *slot)
{
    (void)xl;
    assert_non_null(fd->inode); /* it is still there when its files end */
    free(slot);
    released++;
}

static void client_free(struct xlator *xl, struct client *client, void *slot)
{
    (void)xl;
    assert_string_equal(client->uid, "uid");
    free(slot);
    freed++;
}

static const struct xlator_type type = { .name = "test/slots", .forget = forget,
                                         .release = release, .client_free = client_free };

static void slots_hold_one_state_a_translator(void **state)
{
    enum { TRANSLATORS = 40 };
    static struct xlator xl[TRANSLATORS];
    struct inode_table *table;
    (void)state;

    assert_int_equal(inode_table_new(&table), 0);
    gfid_t gfid = gfid_of(1);
    struct inode *inode = inode_get(table, &gfid);
    for (int i = 0; i < TRANSLATORS; i++) {
        xl[i].type = &type;
        assert_null(slot_get(&inode->slots, &xl[i]));
        void *mine = malloc(1), *second = malloc(1);
        assert_ptr_equal(slot_add(&inode->slots, &xl[i], mine), mine);
        assert_ptr_equal(slot_add(&inode->slots, &xl[i], second), mine); /* the first one wins */
        assert_ptr_equal(slot_get(&inode->slots, &xl[i]), mine);
        free(second);
    }
    void *taken = slot_take(&inode->slots, &xl[3]);
    assert_non_null(taken);
    free(taken);
    assert_null(slot_take(&inode->slots, &xl[3]));
    assert_null(slot_get(&inode->slots, &xl[3]));
    assert_non_null(slot_get(&inode->slots, &xl[4]));
    assert_non_null(slot_get(&inode->slots, &xl[TRANSLATORS - 1]));
    forgotten = 0;
    inode_unref(inode);
    assert_int_equal(forgotten, TRANSLATORS - 1);
    inode_table_free(table);
}

static void files_and_clients_end_theirs(void **state)
{
    struct xlator xl = { .type = &type };
    struct inode_table *table;
    (void)state;

    assert_int_equal(inode_table_new(&table), 0);
    gfid_t gfid = gfid_of(1);
    struct inode *inode = inode_get(table, &gfid);
    struct fd *fd = fd_new(inode, 2, 7);
    inode_unref(inode); /* the file holds it */
    assert_non_null(slot_add(&fd->slots, &xl, malloc(1)));
    assert_ptr_equal(fd_ref(fd), fd);
    released = freed = 0;
    fd_unref(fd);
    assert_int_equal(released, 0);
    fd_unref(fd);
    assert_int_equal(released, 1);
    assert_int_equal(inode_table_count(table), 0);
    struct client *client = client_new("uid", "address");
    assert_non_null(slot_add(&client->slots, &xl, malloc(1)));
    client_unref(client_ref(client));
    assert_int_equal(freed, 0);
    client_unref(client);
    assert_int_equal(freed, 1);
    fd_unref(NULL);
    client_unref(NULL);
    inode_table_free(table);
}

static void what_create_opened_is_bound_once(void **state)
{
    struct inode_table *table;
    (void)state;

    assert_int_equal(inode_table_new(&table), 0);
    gfid_t one = gfid_of(1), two = gfid_of(2);
    struct inode *first = inode_get(table, &one), *second = inode_get(table, &two);
    struct fd *fd = fd_new(NULL, 2, 7);
    assert_memory_equal(fd_gfid(fd), &gfid_null, 16);
    fd_bind(fd, first);
    fd_bind(fd, second); /* the first one wins */
    assert_memory_equal(fd_gfid(fd), &one, 16);
    assert_int_equal(first->refs, 2);
    assert_int_equal(second->refs, 1);
    fd_unref(fd);
    struct fd *any = fd_anonymous(second);
    assert_true(any->anonymous);
    fd_unref(any);
    inode_unref(first);
    inode_unref(second);
    inode_table_free(table);
}

/* --- many threads ----------------------------------------------------------------------------- */

enum { THREADS = 4, ROUNDS = 40000, SHARED = 8 };
static struct inode_table *shared_table;
static struct xlator shared_xl = { .type = &type };
static unsigned added;

/* Gets and drops a few gfids that the others do too: references fall to zero all the time. */
static void *get_and_drop(void *arg)
{
    uint64_t random = (uint64_t)(uintptr_t)arg * 7919 + 1;

    for (int i = 0; i < ROUNDS; i++) {
        random = random * 6364136223846793005ull + 1442695040888963407ull;
        gfid_t gfid = gfid_of((uint32_t)(random >> 40) % SHARED + 1);
        struct inode *inode = inode_get(shared_table, &gfid);
        if (memcmp(&inode->gfid, &gfid, 16) != 0)
            abort();
        if (i % 3 == 0) {
            int *mine = malloc(sizeof(*mine));
            if (slot_add(&inode->slots, &shared_xl, mine) == mine)
                __atomic_add_fetch(&added, 1, __ATOMIC_ACQ_REL);
            else
                free(mine);
        }
        struct inode *again = inode_find(shared_table, &gfid);
        if (again != inode || (i % 5 == 0 && inode_ref(inode) != inode))
            abort();
        if (i % 5 == 0)
            inode_unref(inode);
        inode_unref(again);
        inode_unref(inode);
    }
    return NULL;
}

static void threads_get_and_drop_the_same_inodes(void **state)
{
    pthread_t threads[THREADS];
    (void)state;

    assert_int_equal(inode_table_new(&shared_table), 0);
    forgotten = added = 0;
    for (uintptr_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, get_and_drop, (void *)i), 0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(inode_table_count(shared_table), 0);
    assert_int_equal(forgotten, added); /* every state ended once */
    assert_true(added > THREADS);
    inode_table_free(shared_table);
}

static void *bind_all(void *arg)
{
    struct fd **fds = arg;
    for (int i = 0; i < 2000; i++) {
        gfid_t gfid = gfid_of((uint32_t)i + 1);
        struct inode *inode = inode_get(shared_table, &gfid);
        fd_bind(fds[i], inode);
        inode_unref(inode);
    }
    return NULL;
}

static void threads_bind_the_same_files(void **state)
{
    struct fd *fds[2000];
    pthread_t threads[2];
    (void)state;

    assert_int_equal(inode_table_new(&shared_table), 0);
    for (int i = 0; i < 2000; i++)
        fds[i] = fd_new(NULL, 0, 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, bind_all, fds), 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(inode_table_count(shared_table), 2000);
    for (int i = 0; i < 2000; i++) {
        assert_int_equal(((struct inode *)fds[i]->inode)->refs, 1);
        fd_unref(fds[i]);
    }
    inode_table_free(shared_table);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_gfid_is_one_inode_while_anybody_holds_it),
        cmocka_unit_test(the_table_grows_with_what_is_in_it),
        cmocka_unit_test(slots_hold_one_state_a_translator),
        cmocka_unit_test(files_and_clients_end_theirs),
        cmocka_unit_test(what_create_opened_is_bound_once),
        cmocka_unit_test(threads_get_and_drop_the_same_inodes),
        cmocka_unit_test(threads_bind_the_same_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
