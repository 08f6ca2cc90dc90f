/* SPDX-License-Identifier: MIT */
/*
 * The hooks that only forward: made from the table.  A tool that stands in front of a function must
 * also stand there when it has nothing to say, so that every call on a handle reaches the libcurl
 * that made it.  Where no libcurl can be found they fail softly, and never leave an out-parameter
 * unset that a caller loops on.
 */
#include "shim/real.h"
#include "shim/transfer.h"

#include <stdarg.h>

#define REAL_OF_EASY(easy) transfer_real(easy, __builtin_return_address(0))
#define REAL_OF_CALLER real_of_site(&usual_site, __builtin_return_address(0))
#define NONE_RUNNING(pointer) ((pointer) ? (void)(*(pointer) = 0) : (void)0)

#define PASS(returns, name, parameters, arguments, whose, failure)                                                     \
    EXPORTED returns name parameters                                                                                   \
    {                                                                                                                  \
        static struct call_site usual_site __attribute__((unused));                                                    \
        const struct real *real = whose;                                                                               \
        if (!real || !real->name)                                                                                      \
            return failure;                                                                                            \
        return real->name arguments;                                                                                   \
    }
#include "shim/hooks.def"

/* Every option's argument is one register wide on the machines that Curtsy is built for (LP64), so
 * it is forwarded as a pointer whatever it is. */
_Static_assert(sizeof(void *) == 8 && sizeof(long) == 8 && sizeof(curl_off_t) == 8, "LP64 only");

EXPORTED CURLMcode curl_multi_setopt(CURLM *multi, CURLMoption option, ...)
{
    static struct call_site usual_site;
    const struct real *real = REAL_OF_CALLER;
    va_list arguments;
    va_start(arguments, option);
    void *argument = va_arg(arguments, void *);
    va_end(arguments);
    if (!real || !real->curl_multi_setopt)
        return CURLM_INTERNAL_ERROR;
    return real->curl_multi_setopt(multi, option, argument);
}
