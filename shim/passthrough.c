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

/* What a call needs that does not come from the usual place, and is kept out of the hook's frame. */
#define OFF_THE_SHORT_WAY __attribute__((noinline))

#define REAL_OF_EASY(easy) transfer_real(easy, caller)
#define REAL_OF_CALLER real_of_site(usual, caller)
#define NONE_RUNNING(pointer) ((pointer) ? (void)(*(pointer) = 0) : (void)0)
#define LIST(...) __VA_ARGS__ /* without its parentheses */

#define PASS(returns, name, parameters, arguments, whose, failure)                                                     \
    static OFF_THE_SHORT_WAY returns pass_##name(struct call_site *usual __attribute__((unused)), const void *caller,  \
                                                 LIST parameters)                                                      \
    {                                                                                                                  \
        const struct real *real = whose;                                                                               \
        if (!real || !real->name)                                                                                      \
            return failure;                                                                                            \
        return real->name arguments;                                                                                   \
    }                                                                                                                  \
    EXPORTED returns name parameters                                                                                   \
    {                                                                                                                  \
        static struct call_site usual_site;                                                                            \
        const void *caller = __builtin_return_address(0);                                                              \
        const struct real *real = real_of_known_site(&usual_site, caller);                                             \
        if (real && real->name)                                                                                        \
            return real->name arguments;                                                                               \
        return pass_##name(&usual_site, caller, LIST arguments);                                                       \
    }
#include "shim/hooks.def"

/* Without parameters, to which none can be added. */
EXPORTED CURLM *curl_multi_init(void)
{
    const struct real *real = real_of_caller(__builtin_return_address(0));
    return real && real->curl_multi_init ? real->curl_multi_init() : NULL;
}

/* Every option's argument is one register wide on the machines that Curtsy is built for (LP64), so
 * it is forwarded as a pointer whatever it is. */
_Static_assert(sizeof(void *) == 8 && sizeof(long) == 8 && sizeof(curl_off_t) == 8, "LP64 only");

static OFF_THE_SHORT_WAY CURLMcode pass_curl_multi_setopt(struct call_site *usual, const void *caller, CURLM *multi,
                                                          CURLMoption option, void *argument)
{
    const struct real *real = real_of_site(usual, caller);
    return real && real->curl_multi_setopt ? real->curl_multi_setopt(multi, option, argument) : CURLM_INTERNAL_ERROR;
}

EXPORTED CURLMcode curl_multi_setopt(CURLM *multi, CURLMoption option, ...)
{
    static struct call_site usual_site;
    const void *caller = __builtin_return_address(0);
    const struct real *real = real_of_known_site(&usual_site, caller);
    va_list arguments;
    va_start(arguments, option);
    void *argument = va_arg(arguments, void *);
    va_end(arguments);
    if (real && real->curl_multi_setopt)
        return real->curl_multi_setopt(multi, option, argument);
    return pass_curl_multi_setopt(&usual_site, caller, multi, option, argument);
}
