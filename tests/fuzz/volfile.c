/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Whatever the text: no crash; a refusal says why in one printable line; what was accepted and has
 * all it names can be written and read back to the same text. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/log.h"
#include "graph/volfile.h"
#include "small_stack.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The grammar wants an option or a subvolume in every volume; left-out ones may leave neither. */
static bool can_be_written(const struct volfile *volfile)
{
    for (unsigned i = 0; i < volfile->count; i++)
        if (volfile->volumes[i].options.count == 0 && volfile->volumes[i].child_count == 0)
            return false;
    return true;
}

static int one_input(const uint8_t *data, size_t size)
{
    char error[VOLFILE_ERROR_SIZE];
    struct volfile *volfile = NULL, *again = NULL;

    log_set_level(LOG_NONE);
    if (volfile_parse((const char *)data, size, error, &volfile) < 0) {
        assert(error[0] != '\0' && !strchr(error, '\n'));
        return 0;
    }
    if (can_be_written(volfile)) {
        char *text = volfile_format(volfile);
        assert(volfile_parse(text, strlen(text), error, &again) == 0);
        char *same = volfile_format(again);
        assert(strcmp(text, same) == 0);
        free(text);
        free(same);
    }
    volfile_free(volfile);
    volfile_free(again);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return on_small_stack(one_input, data, size);
}
