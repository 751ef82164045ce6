/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A scanner for words, quoted words and five keywords, and a parser that knows in which state of a
 * volume each may come. The texts of errors are those that users and scripts know. */
#include "graph/volfile.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/log.h"

enum token { TOKEN_END_OF_TEXT, TOKEN_WORD, TOKEN_VOLUME, TOKEN_TYPE, TOKEN_OPTION,
             TOKEN_SUBVOLUMES, TOKEN_END, TOKEN_BAD };

struct parser {
    const char *text;    /* where it all begins */
    const char *pos, *end;
    unsigned line;
    struct volfile *volfile;
    struct volfile_volume *volume; /* being defined, or NULL */
    bool has_options, has_subvolumes;
    enum token token;    /* the one ahead */
    char *word;          /* its text, NUL-terminated */
    size_t word_bytes, word_room;
    unsigned word_line;  /* where it began */
    char *error;
    int ret;             /* the first failure */
};

static int fail(struct parser *p, int ret, const char *format, ...) printf_like(3, 4);
static int fail(struct parser *p, int ret, const char *format, ...)
{
    va_list args;

    if (p->ret < 0)
        return p->ret;
    va_start(args, format);
    vsnprintf(p->error, VOLFILE_ERROR_SIZE, format, args);
    va_end(args);
    for (char *c = p->error; *c; c++)
        if ((unsigned char)*c < ' ')
            *c = '?';
    return p->ret = ret;
}

static int fail_memory(struct parser *p)
{
    return fail(p, -ENOMEM, "out of memory");
}

/* --- words ------------------------------------------------------------------------------------ */

static bool is_separator(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static int word_add(struct parser *p, char c)
{
    if (p->word_bytes + 1 >= p->word_room) {
        size_t room = p->word_room ? p->word_room * 2 : 256;
        char *word = realloc(p->word, room);
        if (!word)
            return fail_memory(p);
        p->word = word;
        p->word_room = room;
    }
    p->word[p->word_bytes++] = c;
    p->word[p->word_bytes] = '\0';
    return 0;
}

static int refuse_char(struct parser *p)
{
    const char *line_start = p->pos;

    while (line_start > p->text && line_start[-1] != '\n')
        line_start--;
    if (*p->pos == '`')
        return fail(p, -EINVAL,
                    "line (%u), column (%d): commands in back-quotes are never run: "
                    "write the value itself",
                    p->line, (int)(p->pos - line_start) + 1);
    return fail(p, -EINVAL, "line %u: a NUL byte: this is no volume file", p->line);
}

/* Blanks, comments, and backslashes outside quotes. */
static void skip_to_word(struct parser *p)
{
    while (p->pos < p->end) {
        if (*p->pos == '#') {
            while (p->pos < p->end && *p->pos != '\n')
                p->pos++;
        } else if (is_separator(*p->pos)) {
            p->line += *p->pos++ == '\n';
        } else if (*p->pos == '\\') {
            p->pos++;
            if (p->pos < p->end && *p->pos == '`') /* a quoted back-quote is a plain one */
                break;
        } else {
            break;
        }
    }
}

static enum token scan_quoted(struct parser *p)
{
    for (p->pos++; p->pos < p->end && p->ret == 0; p->pos++) {
        if (*p->pos == '"') {
            p->pos++;
            return TOKEN_WORD;
        }
        if (*p->pos == '`' || *p->pos == '\0') {
            refuse_char(p);
        } else if (*p->pos == '\n') {
            p->line++;
        } else {
            if (*p->pos == '\\' && p->pos + 1 < p->end && p->pos[1] != '\n')
                p->pos++;
            if (*p->pos != '\0')
                word_add(p, *p->pos);
            else
                refuse_char(p);
        }
    }
    p->line = p->word_line;
    return TOKEN_BAD;
}

static enum token keyword(const char *word)
{
    static const struct {
        const char *text;
        enum token token;
    } keywords[] = {
        { "volume", TOKEN_VOLUME },         { "type", TOKEN_TYPE },
        { "option", TOKEN_OPTION },         { "subvolumes", TOKEN_SUBVOLUMES },
        { "subvolumeS", TOKEN_SUBVOLUMES }, { "end-volume", TOKEN_END },
    };

    for (unsigned i = 0; i < ARRAY_SIZE(keywords); i++)
        if (strcmp(word, keywords[i].text) == 0)
            return keywords[i].token;
    return TOKEN_WORD;
}

static enum token scan_plain(struct parser *p)
{
    bool was_quoted = p->pos > p->text && p->pos[-1] == '\\';

    for (; p->pos < p->end && p->ret == 0; p->pos++) {
        char c = *p->pos;
        if (is_separator(c) || c == '"' || c == '\\')
            break;
        if ((c == '`' && !was_quoted) || c == '\0')
            refuse_char(p);
        else
            word_add(p, c);
        was_quoted = false;
    }
    return p->ret < 0 ? TOKEN_BAD : keyword(p->word);
}

static void next(struct parser *p)
{
    p->word_bytes = 0;
    p->word[0] = '\0';
    skip_to_word(p);
    p->word_line = p->line;
    if (p->ret < 0)
        p->token = TOKEN_BAD;
    else if (p->pos >= p->end)
        p->token = TOKEN_END_OF_TEXT;
    else
        p->token = *p->pos == '"' ? scan_quoted(p) : scan_plain(p);
}

/* --- the tree --------------------------------------------------------------------------------- */

static int syntax_error(struct parser *p)
{
    static const char allowed[] =
        "allowed tokens are 'volume', 'type', 'subvolumes', 'option', 'end-volume'";

    if (p->volume)
        return fail(p, -EINVAL, "syntax error: line %u (volume '%.100s'): \"%.100s\" (%s)",
                    p->word_line, p->volume->name, p->word, allowed);
    return fail(p, -EINVAL, "syntax error in line %u: \"%.100s\" (%s)", p->word_line, p->word,
                allowed);
}

int volfile_find(const struct volfile *volfile, const char *name)
{
    for (unsigned i = 0; i < volfile->count; i++)
        if (strcmp(volfile->volumes[i].name, name) == 0)
            return (int)i;
    return -ENOENT;
}

static int volume_begin(struct parser *p)
{
    struct volfile *volfile = p->volfile;

    if (p->word_bytes == 0)
        return fail(p, -EINVAL, "line %u: a volume needs a name", p->word_line);
    if (volfile_find(volfile, p->word) >= 0)
        return fail(p, -EINVAL, "Line %u: volume '%.100s' defined again", p->word_line, p->word);
    if (volfile->count == VOLFILE_VOLUMES_MAX)
        return fail(p, -E2BIG, "line %u: more than %d volumes", p->word_line, VOLFILE_VOLUMES_MAX);

    if ((volfile->count & (volfile->count - 1)) == 0) { /* full at every power of two */
        size_t room = volfile->count ? volfile->count * 2 : 1;
        void *volumes = realloc(volfile->volumes, room * sizeof(*volfile->volumes));
        if (!volumes)
            return fail_memory(p);
        volfile->volumes = volumes;
    }
    struct volfile_volume *volume = &volfile->volumes[volfile->count];
    *volume = (struct volfile_volume){ .name = strdup(p->word), .line = p->word_line };
    if (!volume->name)
        return fail_memory(p);
    volfile->count++;
    p->volume = volume;
    p->has_options = p->has_subvolumes = false;
    return 0;
}

static int parse_type(struct parser *p)
{
    struct volfile_volume *volume = p->volume;

    if (volume->type_line || p->has_options || p->has_subvolumes)
        return fail(p, -EINVAL, "line %u: duplicate 'type' defined for volume '%.100s'",
                    p->word_line, volume->name);
    next(p);
    if (p->token != TOKEN_WORD)
        return fail(p, -EINVAL, "Volume %.100s, before line %u: Please specify volume type",
                    volume->name, p->line);
    volume->type_line = p->word_line;
    if (p->word_bytes > 0 && !(volume->type = strdup(p->word)))
        return fail_memory(p);
    next(p);
    return p->ret;
}

static int option_words_missing(struct parser *p)
{
    return fail(p, -EINVAL, "Volume %.100s, before line %u: Please specify option <key> <value>",
                p->volume->name, p->line);
}

static int parse_option(struct parser *p)
{
    struct volfile_volume *volume = p->volume;
    unsigned line = p->word_line;

    next(p);
    if (p->token != TOKEN_WORD)
        return option_words_missing(p);
    AUTO_FREE char *key = strdup(p->word);
    if (!key)
        return fail_memory(p);
    next(p);
    if (p->token != TOKEN_WORD)
        return option_words_missing(p);
    if (volume->options.count == VOLFILE_OPTIONS_MAX)
        return fail(p, -E2BIG, "line %u: more than %d options for volume '%.100s'", line,
                    VOLFILE_OPTIONS_MAX, volume->name);

    if (*key == '\0' || p->word_bytes == 0)
        log_error("parser", 0,
                  "Invalid argument: Volume '%s', line %u: option '%s' has no value, ignored",
                  volume->name, line, key);
    else if (option_set_put(&volume->options, key, p->word) < 0)
        return fail_memory(p);
    p->has_options = true;
    next(p);
    return p->ret;
}

static int subvolume_add(struct parser *p)
{
    struct volfile_volume *volume = p->volume;
    int index = volfile_find(p->volfile, p->word);

    if (p->word_bytes == 0) {
        log_error("parser", 0, "Invalid subvolumes argument: Volume '%s', line %u", volume->name,
                  p->word_line);
        volume->children_missing++;
        return 0;
    }
    if (index < 0 || index == (int)p->volfile->count - 1) {
        if (index < 0)
            log_error("parser", 0,
                      "Volume '%s', line %u: subvolume '%s' is not defined prior to usage",
                      volume->name, p->word_line, p->word);
        else
            log_error("parser", 0, "Volume '%s', line %u: has '%s' itself as subvolume",
                      volume->name, p->word_line, p->word);
        volume->children_missing++;
        return 0;
    }
    if (volume->child_count == VOLFILE_SUBVOLUMES_MAX)
        return fail(p, -E2BIG, "line %u: more than %d subvolumes of '%.100s'", p->word_line,
                    VOLFILE_SUBVOLUMES_MAX, volume->name);
    unsigned *children = realloc(volume->children, (volume->child_count + 1) * sizeof(*children));
    if (!children)
        return fail_memory(p);
    volume->children = children;
    children[volume->child_count++] = (unsigned)index;
    return 0;
}

static int parse_subvolumes(struct parser *p)
{
    struct volfile_volume *volume = p->volume;

    if (p->has_subvolumes || !volume->type_line)
        return fail(p, -EINVAL, "line %u: duplicate 'subvolumes' defined for volume '%.100s'",
                    p->word_line, volume->name);
    next(p);
    if (p->token != TOKEN_WORD)
        return fail(p, -EINVAL, "Volume %.100s, before line %u: Please specify subvolumes",
                    volume->name, p->line);
    for (; p->token == TOKEN_WORD && p->ret == 0; next(p))
        (void)subvolume_add(p); /* p->ret says */
    p->has_subvolumes = true;
    return p->ret;
}

static int volume_end(struct parser *p)
{
    if (!p->has_options && !p->has_subvolumes)
        return syntax_error(p);
    if (!p->volume->type)
        return fail(p, -EINVAL, "\"type\" not specified for volume %.100s", p->volume->name);
    p->volume = NULL;
    next(p);
    return p->ret;
}

static int parse_volume(struct parser *p)
{
    if (p->token != TOKEN_VOLUME)
        return syntax_error(p);
    next(p);
    if (p->token != TOKEN_WORD)
        return syntax_error(p);
    if (volume_begin(p) < 0)
        return p->ret;
    next(p);
    while (p->volume && p->ret == 0) {
        switch (p->token) {
        case TOKEN_TYPE:
            (void)parse_type(p); /* p->ret says, here and below */
            break;
        case TOKEN_OPTION:
            (void)parse_option(p);
            break;
        case TOKEN_SUBVOLUMES:
            (void)parse_subvolumes(p);
            break;
        case TOKEN_END:
            (void)volume_end(p);
            break;
        case TOKEN_VOLUME:
            fail(p, -EINVAL, "'end-volume' not defined for volume '%.100s'", p->volume->name);
            break;
        default:
            syntax_error(p);
        }
    }
    return p->ret;
}

int volfile_parse(const char *text, size_t bytes, char error[VOLFILE_ERROR_SIZE],
                  struct volfile **ret_volfile)
{
    AUTO(volfile) volfile = calloc(1, sizeof(*volfile));

    struct parser p = { .text = text, .pos = text, .end = text + bytes, .line = 1,
                        .volfile = volfile, .error = error };

    error[0] = '\0';
    if (bytes > VOLFILE_BYTES_MAX)
        return fail(&p, -E2BIG, "the volume file is larger than %d bytes", VOLFILE_BYTES_MAX);
    p.word_room = 256;
    p.word = malloc(p.word_room);
    if (!volfile || !p.word)
        fail_memory(&p);
    else
        next(&p);
    do
        (void)(p.ret == 0 && parse_volume(&p)); /* p.ret says */
    while (p.ret == 0 && p.token != TOKEN_END_OF_TEXT);
    free(p.word);
    if (p.ret < 0)
        return p.ret;
    *ret_volfile = TAKE(volfile);
    return 0;
}

void volfile_free(struct volfile *volfile)
{
    if (!volfile)
        return;
    for (unsigned i = 0; i < volfile->count; i++) {
        struct volfile_volume *volume = &volfile->volumes[i];
        free(volume->name);
        free(volume->type);
        free(volume->children);
        option_set_fini(&volume->options);
    }
    free(volfile->volumes);
    free(volfile);
}

/* --- writing ---------------------------------------------------------------------------------- */

/* A word as the parser reads it back: in quotes where it would not come through bare. */
static void write_word(FILE *out, const char *word)
{
    if (word[0] != '#' && keyword(word) == TOKEN_WORD && !word[strcspn(word, " \t\r\n\"\\`")] &&
        word[0]) {
        fputs(word, out);
        return;
    }
    fputc('"', out);
    for (; *word; word++) {
        if (*word == '"' || *word == '\\' || *word == '`')
            fputc('\\', out);
        fputc(*word, out);
    }
    fputc('"', out);
}

static void write_volume(FILE *out, const struct volfile *volfile,
                         const struct volfile_volume *volume)
{
    fputs("volume ", out);
    write_word(out, volume->name);
    fputs("\n    type ", out);
    write_word(out, volume->type);
    for (unsigned i = 0; i < volume->options.count; i++) {
        fputs("\n    option ", out);
        write_word(out, volume->options.pairs[i].key);
        fputc(' ', out);
        write_word(out, volume->options.pairs[i].value);
    }
    if (volume->child_count > 0)
        fputs("\n    subvolumes", out);
    for (unsigned i = 0; i < volume->child_count; i++) {
        fputc(' ', out);
        write_word(out, volfile->volumes[volume->children[i]].name);
    }
    fputs("\nend-volume\n", out);
}

char *volfile_format(const struct volfile *volfile)
{
    char *text = NULL;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);

    if (!out)
        return NULL;
    for (unsigned i = 0; i < volfile->count; i++) {
        if (i > 0)
            fputc('\n', out);
        write_volume(out, volfile, &volfile->volumes[i]);
    }
    if (fclose(out) != 0) {
        free(text);
        return NULL;
    }
    return text;
}

void volfile_log(const char *text)
{
    static const char ruler[] =
        "+------------------------------------------------------------------------------+\n";
    char *numbered = NULL;
    size_t bytes;
    FILE *out = open_memstream(&numbered, &bytes);

    if (!out)
        return;
    fprintf(out, "Final graph:\n%s", ruler);
    for (unsigned line = 1; *text; line++) {
        int length = (int)strcspn(text, "\n");
        fprintf(out, "%3u: %.*s\n", line, length, text);
        text += length + (text[length] == '\n');
    }
    fputs(ruler, out);
    if (fclose(out) == 0)
        log_raw(numbered);
    free(numbered);
}
