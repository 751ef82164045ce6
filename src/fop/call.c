/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "fop/call.h"

#include <errno.h>

void call_cancel_init(struct call_cancel *cancel)
{
    *cancel = (struct call_cancel){};
    pthread_mutex_init(&cancel->guard, NULL);
}

void call_cancel_fini(struct call_cancel *cancel)
{
    pthread_mutex_destroy(&cancel->guard);
}

void call_cancel_fire(struct call_cancel *cancel)
{
    HOLD(&cancel->guard);
    cancel->cancelled = true;
    if (cancel->wake)
        cancel->wake(cancel->wake_arg);
    cancel->wake = NULL;
}

int call_cancel_arm(struct call_cancel *cancel, void (*wake)(void *arg), void *arg)
{
    if (!cancel)
        return 0;
    HOLD(&cancel->guard);
    if (cancel->cancelled)
        return -EINTR;
    cancel->wake = wake;
    cancel->wake_arg = arg;
    return 0;
}

bool call_cancel_disarm(struct call_cancel *cancel)
{
    if (!cancel)
        return false;
    HOLD(&cancel->guard);
    cancel->wake = NULL;
    return cancel->cancelled;
}
