/* SPDX-License-Identifier: MIT */
/*
 * Real: which libcurl does this handle, or this caller, belong to?
 *
 * One process may hold several libcurls (Debian ships three flavours side by side, wheels bring
 * their own), linked or loaded privately, where RTLD_NEXT finds the wrong one or none.  So a handle
 * belongs to the library that made it, and a call without a known handle goes where it would have
 * gone from the caller's own object without us: to that library, or to another interposer behind us.
 *
 * Thread-safe; after the first call from an object a look-up is lock-free and makes no system call.
 * errno is preserved.
 */
#ifndef CURTSY_SHIM_REAL_H
#define CURTSY_SHIM_REAL_H

#include "shim/libcurl.h"

#include <stdatomic.h>
#include <stdbool.h>

/* The functions of one libcurl, with what other interposers put before them.  One that this libcurl
 * is too old to have is NULL. */
struct real {
#define HOOK(name) __typeof__(name) *name;
#define PASS(returns, name, parameters, arguments, whose, failure) __typeof__(name) *name;
#define USE(name) __typeof__(name) *name;
#include "shim/hooks.def"
    unsigned version; /* 0x075801 for 7.88.1 */
};

/* The libcurl that the code at `return_address` would have called; NULL if there is none in this
 * process (then the call fails softly, as if libcurl could not initialise). */
const struct real *real_of_caller(const void *return_address);

/* The same for a hook that is called from one place most of the time (libcurl's own perform calls the
 * multi functions over and over): that place is kept in a static variable of the hook. */
struct call_site {
    _Atomic(const void *) address;
    _Atomic(const struct real *) real; /* set last; neither changes again */
};
const struct real *real_of_another_site(struct call_site *usual, const void *return_address);

/* NULL: it is another place, or the first time. */
static inline const struct real *real_of_known_site(const struct call_site *usual, const void *return_address)
{
    const struct real *real = atomic_load_explicit(&usual->real, memory_order_acquire);
    return real && atomic_load_explicit(&usual->address, memory_order_relaxed) == return_address ? real : NULL;
}

static inline const struct real *real_of_site(struct call_site *usual, const void *return_address)
{
    const struct real *real = real_of_known_site(usual, return_address);
    return real ? real : real_of_another_site(usual, return_address);
}

/* Is that code a libcurl itself, or another Curtsy?  Their calls are not the program's. */
bool real_caller_is_libcurl(const void *return_address);

/* Is a libcurl mapped already?  Walks the list of loaded objects; no system call. */
bool real_is_loaded(void);

#endif
