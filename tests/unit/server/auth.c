/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* protocol/server's rules of who may connect: spec/wire.md 5.3. */
#include "../core/backends.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include "xlators/protocol/server/auth.h"

#define BRICK "/bricks/b1"
enum { PORT_LOW = 1000, PORT_HIGH = 49151 };

static struct env_address address_of(const char *text, uint16_t port)
{
    struct env_address address = { .bytes = sizeof(struct sockaddr_in6) };
    struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)(void *)&address.sockaddr;
    struct sockaddr_in *in = (struct sockaddr_in *)(void *)&address.sockaddr;

    if (strchr(text, ':')) {
        *in6 = (struct sockaddr_in6){ .sin6_family = AF_INET6, .sin6_port = htons(port) };
        check_equal(inet_pton(AF_INET6, text, &in6->sin6_addr), 1);
    } else {
        *in = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons(port) };
        check_equal(inet_pton(AF_INET, text, &in->sin_addr), 1);
        address.bytes = sizeof(*in);
    }
    return address;
}

struct who {
    const char *address, *subdir, *user, *password;
    uint16_t port;
    bool refuse_insecure, strict;
};

static enum auth_answer decide_with(const char *const *options, const struct who *who,
                                    bool *ret_trusted)
{
    struct xlator xl = { .name = "server" };
    struct env_address peer = address_of(who->address ? who->address : "10.0.0.1",
                                         who->port ? who->port : PORT_HIGH);
    const struct auth_request request = {
        .brick = BRICK, .subdir = who->subdir ? who->subdir : "/", .user = who->user,
        .password = who->password, .peer = &peer, .allow_insecure = !who->refuse_insecure,
        .strict_accept = who->strict,
    };
    for (; *options; options += 2)
        check_equal(option_set_put(&xl.options, options[0], options[1]), 0);
    enum auth_answer answer = auth_decide(&xl, &request, ret_trusted);
    option_set_fini(&xl.options);
    return answer;
}

static bool is_welcome(const char *allow, const char *reject, const struct who *who)
{
    const char *options[5] = { 0 };
    bool trusted;
    int i = 0;

    if (allow) {
        options[i++] = "auth.addr." BRICK ".allow";
        options[i++] = allow;
    }
    if (reject) {
        options[i++] = "auth.addr." BRICK ".reject";
        options[i++] = reject;
    }
    return decide_with(options, who, &trusted) == AUTH_ACCEPT;
}

static void lists_of_addresses_match_as_specified(void)
{
    static const struct {
        const char *allow, *address;
        bool welcome;
    } rules[] = {
        { "*", "10.0.0.1", true },
        { "*", "fe80::1", true },
        { "10.0.0.1", "10.0.0.1", true },
        { "10.0.0.1", "10.0.0.11", false },
        { "10.0.0.2,10.0.0.1", "10.0.0.1", true },
        { ",,10.0.0.1,", "10.0.0.1", true },
        { "10.0.0.*", "10.0.0.255", true },
        { "10.0.0.*", "10.0.1.1", false },
        { "10.0.?.1", "10.0.7.1", true },
        { "10.0.0.0/8", "10.255.0.9", true },
        { "10.0.0.0/8", "11.0.0.1", false },
        { "10.1.2.0/23", "10.1.3.255", true },
        { "10.1.2.0/23", "10.1.4.0", false },
        { "10.1.2.128/25", "10.1.2.127", false },
        { "10.1.2.128/25", "10.1.2.128", true },
        { "10.1.2.3/32", "10.1.2.3", true },
        { "10.1.2.3/32", "10.1.2.2", false },
        { "0.0.0.0/0", "8.8.8.8", true },
        { "0.0.0.0/0", "2001:db8::1", false },
        { "10.0.0.0/33", "10.0.0.1", false },
        { "10.0.0.0/", "10.0.0.0", false },
        { "10.0.0.0/x", "10.0.0.0", false },
        { "10.0.0.0/8x", "10.0.0.0", false },
        { "10.0.0.0/-1", "10.0.0.0", false },
        { "2001:db8::/32", "2001:db8:1::9", true },
        { "2001:db8::/32", "2001:db9::1", false },
        { "2001:db8::1", "2001:0db8:0::0001", true },
        { "2001:db8::1", "2001:db8::2", false },
        { "10.0.0.1", "::ffff:10.0.0.1", true }, /* IPv4 that came over an IPv6 socket */
        { "10.0.0.0/24", "::ffff:10.0.0.77", true },
        { "10.0.0.*", "::ffff:10.0.0.77", true },
        { "127.0.0.1", "127.0.0.1", true },
        { "localhost", "127.0.0.1", true }, /* host names are compared by address */
        { "localhost", "10.0.0.1", false },
        { "!10.0.0.1", "10.0.0.1", false },
        { "!10.0.0.1", "10.0.0.2", true },
        { "!10.0.0.0/8", "10.9.9.9", false },
        { "10.0.0.9,!10.0.0.1", "10.0.0.9", true },
        { "!10.0.0.1,10.0.0.1", "10.0.0.1", false }, /* '!' stays set for the rest */
        { "", "10.0.0.1", false },
        { "no.such.host.invalid", "10.0.0.1", false },
    };
    for (size_t i = 0; i < ARRAY_SIZE(rules); i++) {
        const struct who who = { .address = rules[i].address };
        if (is_welcome(rules[i].allow, NULL, &who) != rules[i].welcome) {
            fprintf(stderr, "'%s' and %s: not %d\n", rules[i].allow, rules[i].address,
                    rules[i].welcome);
            abort();
        }
    }
}

static void reject_is_asked_first(void)
{
    check(!is_welcome("*", "10.0.0.1", &(struct who){ 0 }));
    check(is_welcome("*", "10.0.0.2", &(struct who){ 0 }));
    check(!is_welcome("10.0.0.1", "10.0.0.*", &(struct who){ 0 }));
    check(!is_welcome(NULL, "10.0.0.2", &(struct who){ 0 })); /* nobody said yes */
    check(!is_welcome(NULL, NULL, &(struct who){ 0 }));
    check(is_welcome("*", "!10.0.0.0/8", &(struct who){ 0 }));
    check(!is_welcome("*", "!10.0.0.0/8", &(struct who){ .address = "11.0.0.1" }));
}

static void insecure_ports_are_rejected_when_asked(void)
{
    check(is_welcome("*", NULL, &(struct who){ .port = PORT_HIGH }));
    check(!is_welcome("*", NULL, &(struct who){ .port = PORT_HIGH, .refuse_insecure = true }));
    check(!is_welcome("*", NULL, &(struct who){ .port = 1024, .refuse_insecure = true }));
    check(is_welcome("*", NULL, &(struct who){ .port = 1023, .refuse_insecure = true }));
    check(is_welcome("*", NULL, &(struct who){ .port = PORT_LOW, .refuse_insecure = true }));
    check(!is_welcome("*", NULL, &(struct who){ .address = "fe80::1", .port = 1024,
                                                .refuse_insecure = true }));
}

static void subdirectories_have_rules_of_their_own(void)
{
    const char *allow = "/d1(10.0.0.1|10.0.0.2),/d2(10.0.1.0/24),/d3";
    static const struct {
        const char *subdir, *address;
        bool welcome;
    } rules[] = {
        { "/d1", "10.0.0.1", true },  { "/d1", "10.0.0.2", true }, { "/d1", "10.0.0.3", false },
        { "/d2", "10.0.1.9", true },  { "/d2", "10.0.0.1", false }, { "/d3", "1.2.3.4", true },
        { "/", "10.0.0.1", false },   { "/d", "10.0.0.1", false },  { "/d11", "10.0.0.1", false },
    };
    for (size_t i = 0; i < ARRAY_SIZE(rules); i++)
        check_equal(is_welcome(allow, NULL, &(struct who){ .subdir = rules[i].subdir,
                                                           .address = rules[i].address }),
                    rules[i].welcome);
    check(is_welcome("/(10.0.0.1)", NULL, &(struct who){ 0 })); /* the whole volume */
    check(!is_welcome("/(10.0.0.1)", NULL, &(struct who){ .subdir = "/d1" }));
    check(!is_welcome("*", "/d1(10.0.0.1)", &(struct who){ .subdir = "/d1" }));
    check(is_welcome("*", "/d1(10.0.0.1)", &(struct who){ .subdir = "/d2" }));
}

#define LOGIN "auth.login." BRICK ".allow", "alice,bob", "auth.login.alice.password", "secret"

static void logins_accept_reject_or_do_not_care(void)
{
    const char *login[] = { LOGIN, NULL };
    const char *both[] = { LOGIN, "auth.addr." BRICK ".allow", "10.0.0.*", NULL };
    static const struct {
        const char *user, *password, *address;
        enum auth_answer login_only, with_address;
        bool trusted;
    } rules[] = {
        { "alice", "secret", "11.0.0.1", AUTH_ACCEPT, AUTH_ACCEPT, true },
        { "alice", "wrong", "10.0.0.1", AUTH_REJECT, AUTH_REJECT, false },
        { "alice", "", "10.0.0.1", AUTH_REJECT, AUTH_REJECT, false },
        { "bob", "secret", "10.0.0.1", AUTH_REJECT, AUTH_REJECT, false }, /* has no password */
        { "ali", "secret", "10.0.0.1", AUTH_REJECT, AUTH_ACCEPT, false }, /* unknown */
        { "alice,bob", "secret", "10.0.0.1", AUTH_REJECT, AUTH_ACCEPT, false },
        { "", "secret", "10.0.0.1", AUTH_REJECT, AUTH_ACCEPT, false },
        { "alice", NULL, "10.0.0.1", AUTH_REJECT, AUTH_ACCEPT, false },
        { NULL, NULL, "10.0.0.1", AUTH_REJECT, AUTH_ACCEPT, false },
        { NULL, NULL, "11.0.0.1", AUTH_REJECT, AUTH_REJECT, false },
    };
    for (size_t i = 0; i < ARRAY_SIZE(rules); i++) {
        const struct who who = { .user = rules[i].user, .password = rules[i].password,
                                 .address = rules[i].address };
        bool trusted = !rules[i].trusted;
        check_equal(decide_with(login, &who, &trusted), rules[i].login_only);
        check_equal(trusted, rules[i].trusted);
        check_equal(decide_with(both, &who, &trusted), rules[i].with_address);
        check_equal(trusted, rules[i].trusted);
    }
}

static void strict_means_that_credentials_are_needed(void)
{
    const char *both[] = { LOGIN, "auth.addr." BRICK ".allow", "*", NULL };
    const char *address_only[] = { "auth.addr." BRICK ".allow", "*", NULL };
    bool trusted;

    check_equal(decide_with(both, &(struct who){ .strict = true }, &trusted), AUTH_REJECT);
    check_equal(decide_with(both, &(struct who){ .strict = true, .user = "alice",
                                                 .password = "secret" }, &trusted), AUTH_ACCEPT);
    /* the module is asked only where an option names it */
    check_equal(decide_with(address_only, &(struct who){ .strict = true }, &trusted), AUTH_ACCEPT);
}

static void rules_of_other_bricks_and_old_spellings(void)
{
    const char *other[] = { "auth.addr./bricks/b2.allow", "*", NULL };
    const char *ip[] = { "auth.ip." BRICK ".allow", "10.0.0.1", NULL };
    bool trusted;

    check_equal(decide_with(other, &(struct who){ 0 }, &trusted), AUTH_REJECT);
    check_equal(decide_with(ip, &(struct who){ 0 }, &trusted), AUTH_ACCEPT);
    check_equal(decide_with(ip, &(struct who){ .address = "10.0.0.2" }, &trusted), AUTH_REJECT);
}

static void names_of_any_length_do_no_harm(void)
{
    const char *both[] = { LOGIN, "auth.addr." BRICK ".allow", "10.0.0.*", NULL };
    char *name = malloc(100001);
    bool trusted;

    memset(name, 'x', 100000);
    name[100000] = '\0';
    check_equal(decide_with(both, &(struct who){ .user = name, .password = name }, &trusted),
                AUTH_ACCEPT);
    check_equal(decide_with(both, &(struct who){ .subdir = name, .user = "alice",
                                                 .password = name }, &trusted), AUTH_REJECT);
    free(name);
}

static const struct fiber_case cases[] = {
    FIBER_CASE(lists_of_addresses_match_as_specified, PLAIN_ONLY),
    FIBER_CASE(reject_is_asked_first, PLAIN_ONLY),
    FIBER_CASE(insecure_ports_are_rejected_when_asked, PLAIN_ONLY),
    FIBER_CASE(subdirectories_have_rules_of_their_own, PLAIN_ONLY),
    FIBER_CASE(logins_accept_reject_or_do_not_care, PLAIN_ONLY),
    FIBER_CASE(strict_means_that_credentials_are_needed, PLAIN_ONLY),
    FIBER_CASE(rules_of_other_bricks_and_old_spellings, PLAIN_ONLY),
    FIBER_CASE(names_of_any_length_do_no_harm, PLAIN_ONLY),
};

int main(void)
{
    return on_backends(cases, ARRAY_SIZE(cases));
}
