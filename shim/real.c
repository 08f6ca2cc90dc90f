/* SPDX-License-Identifier: MIT */
/*
 * How a caller's libcurl is found.  The caller's object is known from its return address.  Each of
 * its references would, without us, have been bound to the first definition in the program and the
 * libraries loaded with it; then, for an object that was loaded privately, to one among its own
 * dependencies; in both only to one of the version that it asks for.  So that is what we look for,
 * function by function, from us on: another interposer behind us gets its calls, and two flavours
 * of libcurl in one process are told apart.  What is left (an object that is not linked with
 * libcurl and relies on the program's) gets any libcurl that is loaded.
 *
 * An object that is searched before us may itself be an interposer that goes on to us.  It is
 * given what comes after us, and is never itself an answer: that would lead back to us.
 *
 * What is found is kept for each calling object, and for those that cannot be unloaded by the place
 * of the call besides: then a look-up is a load and a compare, which matters, since libcurl's own
 * inner calls come through here too.  Any other object is compared with the one that was met before:
 * plugins come and go, and come to lie where another one was.  What we call ourselves is pinned.
 */
#include "shim/real.h"

#include "shim/object.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* An object that has called us.  Never freed: handles keep pointing to its functions, and readers
 * hold no lock. */
struct caller {
    const struct link_map *object; /* NULL: code that belongs to none */
    uint64_t fingerprint;
    struct real real;
    bool is_inner; /* a libcurl, or another Curtsy, which has done our work already */
    bool stays;    /* it will not be unloaded */
    struct caller *next;
    char name[];
};
static _Atomic(struct caller *) newest_caller;

#define CALL_SITES 1024 /* a power of two */
#define SITE_PROBES 8

static struct call_site sites[CALL_SITES];

/* ------------------------------------------------------------ looking up ---- */

struct search {
    const struct link_map *caller;
    bool is_libcurl;                /* is the caller one? */
    const char *version;            /* what its references ask for; NULL: none */
    void *handle;                   /* where to look */
    const struct link_map *settled; /* the object of the latest answer */
};

static const struct link_map *own_object(void)
{
    return object_at((const void *)(uintptr_t)&own_object);
}

/* We ourselves, or what the loader searches before us: the main program, earlier preloads. */
static bool may_lead_back(const struct link_map *object)
{
    const struct link_map *before = own_object();
    while (before && before != object)
        before = before->l_prev;
    return before != NULL;
}

static bool defines_version(const struct link_map *object, const char *name, const char *version)
{
    void *handle = object_open(object);
    bool defines = handle && object_at(dlvsym(handle, name, version)) == object;
    if (handle)
        dlclose(handle);
    return defines;
}

/* The loader's rule: a reference is bound to a definition of its version, or to one that has none,
 * and one without a version to any.  A libcurl refers to itself by its own version. */
static bool may_be_bound(const struct search *search, const struct link_map *object, const char *name)
{
    if (object == search->caller || !object_has_versions(object))
        return true;
    if (search->is_libcurl)
        return false;
    return !search->version || defines_version(object, name, search->version);
}

static bool is_answer(struct search *search, const void *address, const char *name)
{
    const struct link_map *object = address ? object_at(address) : NULL;
    if (!object || object == search->settled)
        return object != NULL;
    if (may_lead_back(object) || !may_be_bound(search, object, name))
        return false;
    object_pin(object);
    search->settled = object;
    return true;
}

static void *look_up(struct search *search, const char *name)
{
    void *address = dlsym(search->handle, name);
    if (address && search->version && !is_answer(search, address, name))
        address = dlvsym(search->handle, name, search->version);
    return is_answer(search, address, name) ? address : NULL;
}

/* Every libcurl since the beginning has these; what lacks them is none. */
static bool is_usable(const struct real *real)
{
    return real->curl_easy_init && real->curl_easy_setopt && real->curl_easy_getinfo && real->curl_easy_perform &&
           real->curl_easy_cleanup && real->curl_easy_reset && real->curl_easy_duphandle;
}

/* Looks there for what is still missing; true if that makes a whole libcurl. */
static bool fill(struct real *real, struct search *search, void *handle)
{
    search->handle = handle;
#define FILL(name)                                                                                                     \
    if (!real->name)                                                                                                   \
        real->name = (__typeof__(real->name))(uintptr_t)look_up(search, #name);
#define HOOK(name) FILL(name)
#define PASS(returns, name, parameters, arguments, whose, failure) FILL(name)
#define USE(name) FILL(name)
#include "shim/hooks.def"
    return is_usable(real);
}

struct loaded {
    unsigned skip;
    char name[PATH_MAX];
};

static int find_loaded(struct dl_phdr_info *info, size_t size, void *data)
{
    (void)size;
    struct loaded *loaded = data;
    if (!info->dlpi_name || !object_is_libcurl_name(info->dlpi_name) || loaded->skip-- > 0)
        return 0;
    snprintf(loaded->name, sizeof loaded->name, "%s", info->dlpi_name);
    return 1;
}

bool real_is_loaded(void)
{
    struct loaded loaded;
    loaded.skip = 0;
    return dl_iterate_phdr(find_loaded, &loaded) != 0;
}

/* From the first libcurl on the list that completes it. */
static bool fill_from_loaded(struct real *real, struct search *search)
{
    const struct real partial = *real;
    struct loaded loaded;
    for (unsigned i = 0; !is_usable(real); i++) {
        loaded.skip = i;
        if (!dl_iterate_phdr(find_loaded, &loaded))
            return false;
        void *handle = dlopen(loaded.name, RTLD_LAZY | RTLD_NOLOAD);
        *real = partial;
        if (handle) {
            fill(real, search, handle);
            dlclose(handle);
        }
    }
    return true;
}

/* ------------------------------------------------------- the callers met ---- */

static bool is_another_curtsy(const struct link_map *object)
{
    const char *theirs = object_soname(object), *ours = object_soname(own_object());
    return theirs && ours && strcmp(theirs, ours) == 0;
}

/* Finds out all about a caller; false if there is no libcurl for it. */
static bool examine(struct caller *caller)
{
    const struct link_map *object = caller->object;
    struct search search = {.caller = object};
    void *handle = NULL;
    if (object) {
        /* Searching an object that comes before us would find its own hooks, or everything's. */
        handle = may_lead_back(object) ? NULL : object_open(object);
        search.is_libcurl = handle && object_at(dlsym(handle, "curl_version_info")) == object;
        search.version = object_libcurl_version(object);
        caller->fingerprint = object_fingerprint(object);
        caller->is_inner = search.is_libcurl || is_another_curtsy(object);
        caller->stays = search.is_libcurl || !object->l_name[0];
    }
    struct real *real = &caller->real;
    bool found =
        fill(real, &search, RTLD_NEXT) || (handle && fill(real, &search, handle)) || fill_from_loaded(real, &search);
    if (found && search.is_libcurl)
        object_pin(object);
    if (handle)
        dlclose(handle);
    const curl_version_info_data *version =
        found && real->curl_version_info ? real->curl_version_info(CURLVERSION_FIRST) : NULL;
    real->version = version ? version->version_num : 0;
    return found;
}

static struct caller *find(struct caller *caller, const struct link_map *object)
{
    uint64_t fingerprint = object ? object_fingerprint(object) : 0;
    const char *name = object ? object->l_name : "";
    while (caller &&
           (caller->object != object || caller->fingerprint != fingerprint || strcmp(caller->name, name) != 0))
        caller = caller->next;
    return caller;
}

/* On the list, unless another thread has been faster. */
static const struct caller *publish(struct caller *made)
{
    made->next = atomic_load_explicit(&newest_caller, memory_order_acquire);
    do {
        struct caller *same = find(made->next, made->object);
        if (same) {
            free(made);
            return same;
        }
    } while (!atomic_compare_exchange_weak_explicit(&newest_caller, &made->next, made, memory_order_acq_rel,
                                                    memory_order_acquire));
    return made;
}

static const struct caller *meet(const struct link_map *object)
{
    int saved_errno = errno;
    const char *name = object ? object->l_name : "";
    struct caller *made = calloc(1, sizeof *made + strlen(name) + 1);
    if (made) {
        made->object = object;
        memcpy(made->name, name, strlen(name));
        if (!examine(made)) {
            free(made);
            made = NULL;
        }
    }
    /* Our own unanswered questions must not be what the program's next dlerror() tells. */
    dlerror();
    errno = saved_errno;
    return made ? publish(made) : NULL;
}

/* ---------------------------------------------------------- the way there ---- */

static size_t place_of(const void *address)
{
    uintptr_t number = (uintptr_t)address;
    return number ^ number >> 9;
}

/* The address is claimed first and never changes; the answer follows.  True unless it is another's. */
static bool settle(struct call_site *site, const void *address, const struct real *real)
{
    const void *expected = NULL;
    if (atomic_compare_exchange_strong_explicit(&site->address, &expected, address, memory_order_relaxed,
                                                memory_order_relaxed))
        atomic_store_explicit(&site->real, real, memory_order_release);
    return !expected || expected == address;
}

static void remember(const void *address, const struct real *real)
{
    for (size_t i = 0; i < SITE_PROBES; i++)
        if (settle(&sites[(place_of(address) + i) % CALL_SITES], address, real))
            return;
}

/* What was remembered for that place, or NULL. */
static const struct real *recall(const void *address)
{
    size_t place = place_of(address);
    for (size_t i = 0; i < SITE_PROBES; i++) {
        struct call_site *site = &sites[(place + i) % CALL_SITES];
        const void *known = atomic_load_explicit(&site->address, memory_order_relaxed);
        if (known == address)
            return atomic_load_explicit(&site->real, memory_order_acquire);
        if (!known)
            break;
    }
    return NULL;
}

static const struct caller *caller_at(const void *address)
{
    const struct link_map *object = object_at(address);
    const struct caller *known = find(atomic_load_explicit(&newest_caller, memory_order_acquire), object);
    return known ? known : meet(object);
}

static __attribute__((noinline)) const struct real *real_of_new_site(const void *address)
{
    const struct caller *caller = caller_at(address);
    if (caller && caller->stays)
        remember(address, &caller->real);
    return caller ? &caller->real : NULL;
}

const struct real *real_of_caller(const void *return_address)
{
    const struct real *real = recall(return_address);
    return real ? real : real_of_new_site(return_address);
}

/* The first place that stays becomes the usual one. */
const struct real *real_of_another_site(struct call_site *usual, const void *return_address)
{
    const struct real *real = real_of_caller(return_address);
    if (!atomic_load_explicit(&usual->address, memory_order_relaxed) && recall(return_address))
        settle(usual, return_address, real);
    return real;
}

bool real_caller_is_libcurl(const void *return_address)
{
    const struct caller *caller = caller_at(return_address);
    return caller && caller->is_inner;
}
