/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "xlators/protocol/server/auth.h"

#include <arpa/inet.h>
#include <fnmatch.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

enum { RESOLVED_MAX = 16, KEY_BYTES_MAX = 4200 };

/* --- one item of an address list ------------------------------------------------------------- */
/* The peer's address in 16 bytes, IPv4 as ::ffff:a.b.c.d. false: not an internet address. */
static bool address_bytes(const struct sockaddr_storage *sockaddr, uint8_t bytes[16])
{
    if (sockaddr->ss_family == AF_INET6) {
        memcpy(bytes, &((const struct sockaddr_in6 *)sockaddr)->sin6_addr, 16);
        return true;
    }
    if (sockaddr->ss_family == AF_INET) {
        memset(bytes, 0, 10);
        bytes[10] = bytes[11] = 0xff;
        memcpy(bytes + 12, &((const struct sockaddr_in *)sockaddr)->sin_addr, 4);
        return true;
    }
    return false;
}

static bool text_bytes(const char *text, uint8_t bytes[16], unsigned *ret_bits)
{
    struct sockaddr_storage storage = { .ss_family = AF_INET };
    *ret_bits = 32;
    if (inet_pton(AF_INET, text, &((struct sockaddr_in *)&storage)->sin_addr) == 1)
        return address_bytes(&storage, bytes);
    storage.ss_family = AF_INET6;
    *ret_bits = 128;
    if (inet_pton(AF_INET6, text, &((struct sockaddr_in6 *)&storage)->sin6_addr) == 1)
        return address_bytes(&storage, bytes);
    return false;
}

static bool same_prefix(const uint8_t a[16], const uint8_t b[16], unsigned bits)
{
    if (memcmp(a, b, bits / 8) != 0)
        return false;
    unsigned rest = bits % 8;
    return rest == 0 || ((a[bits / 8] ^ b[bits / 8]) >> (8 - rest)) == 0;
}

static bool network_matches(const char *item, const char *slash, const uint8_t peer[16])
{
    char net[INET6_ADDRSTRLEN];
    uint8_t bytes[16];
    unsigned width;
    char *end;
    unsigned long bits = strtoul(slash + 1, &end, 10);

    if ((size_t)(slash - item) >= sizeof(net) || *end || end == slash + 1)
        return false;
    memcpy(net, item, (size_t)(slash - item));
    net[slash - item] = '\0';
    if (!text_bytes(net, bytes, &width) || bits > width)
        return false;
    return same_prefix(peer, bytes, (unsigned)bits + (128 - width));
}

static bool host_matches(const char *item, const uint8_t peer[16])
{
    struct env_address found[RESOLVED_MAX];
    int count = env_resolve(item, 0, AF_UNSPEC, found, RESOLVED_MAX);

    for (int i = 0; i < count; i++) {
        uint8_t bytes[16];
        if (address_bytes(&found[i].sockaddr, bytes) && memcmp(bytes, peer, 16) == 0)
            return true;
    }
    return false;
}

static bool item_matches(const char *item, const struct env_address *peer, const char *peer_text)
{
    uint8_t bytes[16];
    const char *slash = strchr(item, '/');

    if (strcmp(item, "*") == 0 || strcmp(item, peer_text) == 0)
        return true;
    if (!address_bytes(&peer->sockaddr, bytes))
        return false;
    if (slash)
        return network_matches(item, slash, bytes);
    if (strpbrk(item, "*?["))
        return fnmatch(item, peer_text, 0) == 0;
    return host_matches(item, bytes);
}

/* --- a list ---------------------------------------------------------------------------------- */
/* "/dir(a|b)": whether dir is the one asked for; *ret_items then holds "a|b". */
static bool subdir_form(char *word, const char *subdir, char **ret_items)
{
    char *open = strchr(word, '(');
    if (open) {
        char *close = strchr(open, ')');
        if (close)
            *close = '\0';
        *open = '\0';
        *ret_items = open + 1;
    } else {
        *ret_items = NULL; /* "/dir" alone: any address */
    }
    return strcmp(word, subdir) == 0;
}

static bool list_matches(const char *list, const struct auth_request *request,
                         const char *peer_text)
{
    AUTO_FREE char *copy = strdup(list);
    bool negate = false; /* stays set for the rest of the list, as the genuine one does */
    char *rest = copy;

    for (char *word; copy && (word = strsep(&rest, ",")) != NULL;) {
        char *items = word, *item;
        if (*word == '\0')
            continue;
        if (*word == '/') {
            if (!subdir_form(word, request->subdir, &items))
                continue;
            if (!items)
                return true;
        }
        while ((item = strsep(&items, "|")) != NULL) {
            if (*item == '!') {
                negate = true;
                item++;
            }
            if (item_matches(item, request->peer, peer_text) != negate)
                return true;
        }
    }
    return false;
}

/* --- the two modules ------------------------------------------------------------------------- */
static const char *rule(const struct xlator *xl, const char *module, const char *name,
                        const char *what)
{
    char key[KEY_BYTES_MAX];
    int length = snprintf(key, sizeof(key), "auth.%s.%s.%s", module, name, what);
    return (size_t)length < sizeof(key) ? option_set_get(&xl->options, key) : NULL;
}

static bool port_is_insecure(const struct env_address *peer)
{
    const struct sockaddr_storage *sockaddr = &peer->sockaddr;
    if (sockaddr->ss_family == AF_INET)
        return ntohs(((const struct sockaddr_in *)sockaddr)->sin_port) >= 1024;
    if (sockaddr->ss_family == AF_INET6)
        return ntohs(((const struct sockaddr_in6 *)sockaddr)->sin6_port) >= 1024;
    return false;
}

/* The peer's address without its port. */
static void peer_text_of(const struct env_address *peer, char text[INET6_ADDRSTRLEN])
{
    static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
    uint8_t bytes[16];

    text[0] = '\0';
    if (!address_bytes(&peer->sockaddr, bytes))
        return;
    if (memcmp(bytes, mapped, sizeof(mapped)) == 0)
        inet_ntop(AF_INET, bytes + 12, text, INET6_ADDRSTRLEN);
    else
        inet_ntop(AF_INET6, bytes, text, INET6_ADDRSTRLEN);
}

static enum auth_answer address_answer(const struct xlator *xl, const struct auth_request *request)
{
    const char *allow = rule(xl, "addr", request->brick, "allow");
    const char *reject = rule(xl, "addr", request->brick, "reject");
    char text[INET6_ADDRSTRLEN];

    if (!allow)
        allow = rule(xl, "ip", request->brick, "allow");
    if (!allow && !reject)
        return AUTH_DONT_CARE;
    if (!request->allow_insecure && port_is_insecure(request->peer))
        return AUTH_REJECT;
    peer_text_of(request->peer, text);
    if (reject && list_matches(reject, request, text))
        return AUTH_REJECT;
    if (allow && list_matches(allow, request, text))
        return AUTH_ACCEPT;
    return AUTH_DONT_CARE;
}

static bool list_has_word(const char *list, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = list; at && *at;) {
        size_t item = strcspn(at, ",");
        if (item == length && memcmp(at, word, length) == 0)
            return true;
        at += item;
        at += *at == ',';
    }
    return false;
}

/* A module is asked where any option names it. */
static bool is_asked(const struct xlator *xl, const char *prefix)
{
    for (unsigned i = 0; i < xl->options.count; i++)
        if (strncmp(xl->options.pairs[i].key, prefix, strlen(prefix)) == 0)
            return true;
    return false;
}

static enum auth_answer login_answer(const struct xlator *xl, const struct auth_request *request)
{
    if (!is_asked(xl, "auth.login."))
        return AUTH_DONT_CARE;
    if (!request->user || !request->password)
        return request->strict_accept ? AUTH_REJECT : AUTH_DONT_CARE;
    const char *users = rule(xl, "login", request->brick, "allow");
    if (!users || !list_has_word(users, request->user))
        return AUTH_DONT_CARE;
    const char *password = rule(xl, "login", request->user, "password");
    return password && strcmp(password, request->password) == 0 ? AUTH_ACCEPT : AUTH_REJECT;
}

enum auth_answer auth_decide(const struct xlator *xl, const struct auth_request *request,
                             bool *ret_trusted)
{
    enum auth_answer address = address_answer(xl, request);
    enum auth_answer login = login_answer(xl, request);

    *ret_trusted = login == AUTH_ACCEPT;
    if (address == AUTH_REJECT || login == AUTH_REJECT)
        return AUTH_REJECT;
    return address == AUTH_ACCEPT || login == AUTH_ACCEPT ? AUTH_ACCEPT : AUTH_REJECT;
}
