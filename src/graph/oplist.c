/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "graph/oplist.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/env.h"

static int parse_word(struct xlator *xl, const char *word, struct oplist *list)
{
    enum fop op = fop_of_name(word);
    if (op == FOP_COUNT) {
        log_error(xl, 0, "no operation is called '%s'", word);
        return -EINVAL;
    }
    list->has[op] = true;
    return 0;
}

int oplist_parse(struct xlator *xl, const char *text, struct oplist *ret_list)
{
    struct oplist list = {};
    AUTO_FREE char *copy = strdup(text ? text : "");
    char *rest = copy, *word;
    int ret = copy ? 0 : -ENOMEM, words = 0;

    while (ret == 0 && (word = strsep(&rest, ", ")) != NULL) {
        if (*word == '\0')
            continue;
        words++;
        ret = parse_word(xl, word, &list);
    }
    if (ret < 0)
        return ret;
    if (words == 0)
        memset(list.has, true, sizeof(list.has));
    *ret_list = list;
    return 0;
}

bool oplist_chance(double percent)
{
    uint32_t die;
    env_random(&die, sizeof(die));
    return die < percent / 100.0 * 4294967296.0;
}
