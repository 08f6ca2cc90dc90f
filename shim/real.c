/* SPDX-License-Identifier: MIT */
/*
 * How a caller's libcurl is found.  The caller's object is known from its return address.  Asking
 * dlsym on that object's own handle searches it and its dependencies, breadth first: what it would
 * have been bound to, also where it was loaded with RTLD_LOCAL, and also with two flavours in the
 * process.  The main program has no handle of its own (its "" names the global scope, where we come
 * first), so there the next definition after ours is right.  What is left (an object that is not
 * linked with libcurl and relies on the program's) gets the next one too, or any that is loaded.
 *
 * Every answer is kept in a small table by the place of the call: a look-up is a load and a
 * compare, which matters, since libcurl's own inner calls come through here too.  The library found
 * is pinned: its code is called for as long as we are there.
 */
#include "shim/real.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define LIBRARIES_MAX 16
#define CALL_SITES 1024 /* a power of two */
#define SITE_PROBES 8

struct library {
    _Atomic(const void *) base; /* its load address; NULL: free */
    _Atomic bool ready;
    struct real real;
};

/* One word holds both, so that a reader never sees one's address with another's library: the
 * library's number above the 48 bits of a user-space address. */
#define ADDRESS_BITS 48
static _Atomic uint64_t call_sites[CALL_SITES];

static struct library libraries[LIBRARIES_MAX];

static const struct link_map *object_of(const void *address)
{
#if __GLIBC_PREREQ(2, 35)
    struct dl_find_object found;
    if (_dl_find_object((void *)(uintptr_t)address, &found) == 0)
        return found.dlfo_link_map;
    return NULL;
#else
    Dl_info info;
    struct link_map *map = NULL;
    return dladdr1(address, &info, (void **)&map, RTLD_DL_LINKMAP) ? map : NULL;
#endif
}

static const struct link_map *own_object(void)
{
    return object_of((const void *)(uintptr_t)&own_object);
}

/* An address of curl_easy_init that is not ours, or NULL. */
static void *not_ours(void *address)
{
    return address && object_of(address) != own_object() ? address : NULL;
}

static void *look_up_in(const char *object_name)
{
    void *handle = dlopen(object_name, RTLD_LAZY | RTLD_NOLOAD);
    if (!handle)
        return NULL;
    void *address = not_ours(dlsym(handle, "curl_easy_init"));
    dlclose(handle);
    return address;
}

static bool is_libcurl_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return strncmp(slash ? slash + 1 : path, "libcurl", 7) == 0;
}

static int find_loaded(struct dl_phdr_info *info, size_t size, void *found)
{
    (void)size;
    if (!info->dlpi_name || !is_libcurl_name(info->dlpi_name))
        return 0;
    *(const char **)found = info->dlpi_name;
    return 1;
}

static void *look_up_loaded(void)
{
    const char *name = NULL;
    dl_iterate_phdr(find_loaded, &name);
    return name ? look_up_in(name) : NULL;
}

bool real_is_loaded(void)
{
    const char *name = NULL;
    dl_iterate_phdr(find_loaded, &name);
    return name != NULL;
}

static void *find_for(const struct link_map *caller)
{
    void *address = NULL;
    if (caller && caller->l_name && caller->l_name[0])
        address = look_up_in(caller->l_name);
    if (!address)
        address = not_ours(dlsym(RTLD_NEXT, "curl_easy_init"));
    if (!address)
        address = look_up_loaded();
    return address;
}

static void fill(struct real *real, void *handle)
{
#define FILL(name) real->name = (__typeof__(real->name))(uintptr_t)dlsym(handle, #name);
#define HOOK(name) FILL(name)
#define PASS(returns, name, parameters, arguments, whose, failure) FILL(name)
#define USE(name) FILL(name)
#include "shim/hooks.def"
    const curl_version_info_data *version = real->curl_version_info ? real->curl_version_info(CURLVERSION_FIRST) : NULL;
    real->version = version ? version->version_num : 0;
}

/* Every libcurl since the beginning has these; an object without them is none. */
static bool is_usable(const struct real *real)
{
    return real->curl_easy_init && real->curl_easy_setopt && real->curl_easy_getinfo && real->curl_easy_perform &&
           real->curl_easy_cleanup && real->curl_easy_reset && real->curl_easy_duphandle;
}

/* The entry of the library that `address` lies in, made if need be.  Two threads may fill two
 * entries for one library at the same time; both are right. */
static struct library *library_of(void *address)
{
    const struct link_map *map = object_of(address);
    if (!map)
        return NULL;
    const void *base = map;
    for (int i = 0; i < LIBRARIES_MAX; i++)
        if (atomic_load_explicit(&libraries[i].base, memory_order_acquire) == base &&
            atomic_load_explicit(&libraries[i].ready, memory_order_acquire))
            return &libraries[i];

    /* Kept open on purpose: this is the pin. */
    void *handle = dlopen(map->l_name[0] ? map->l_name : NULL, RTLD_LAZY | RTLD_NOLOAD);
    if (!handle)
        return NULL;
    struct real real;
    fill(&real, handle);
    if (!is_usable(&real) || !not_ours((void *)(uintptr_t)real.curl_easy_init)) {
        dlclose(handle);
        return NULL;
    }
    for (int i = 0; i < LIBRARIES_MAX; i++) {
        const void *expected = NULL;
        if (atomic_compare_exchange_strong(&libraries[i].base, &expected, base)) {
            libraries[i].real = real;
            atomic_store_explicit(&libraries[i].ready, true, memory_order_release);
            return &libraries[i];
        }
    }
    return NULL;
}

static struct library *resolve(const struct link_map *caller)
{
    int saved_errno = errno;
    void *address = find_for(caller);
    struct library *library = address ? library_of(address) : NULL;
    /* Our own unanswered questions must not be what the program's next dlerror() tells. */
    dlerror();
    errno = saved_errno;
    return library;
}

static uint64_t packed(uint64_t address, const struct library *library)
{
    return (uint64_t)(library - libraries + 1) << ADDRESS_BITS | address;
}

const struct real *real_of_caller(const void *return_address)
{
    uint64_t address = (uint64_t)(uintptr_t)return_address;
    size_t first = (address ^ address >> 9) % CALL_SITES;
    _Atomic uint64_t *free_site = &call_sites[first];
    for (size_t i = 0; i < SITE_PROBES; i++) {
        _Atomic uint64_t *site = &call_sites[(first + i) % CALL_SITES];
        uint64_t known = atomic_load_explicit(site, memory_order_acquire);
        if (known << (64 - ADDRESS_BITS) == address << (64 - ADDRESS_BITS) && known)
            return &libraries[(known >> ADDRESS_BITS) - 1].real;
        if (!known) {
            free_site = site;
            break;
        }
    }
    struct library *library = resolve(object_of(return_address));
    if (!library)
        return NULL;
    if (address >> ADDRESS_BITS == 0)
        atomic_store_explicit(free_site, packed(address, library), memory_order_release);
    return &library->real;
}

bool real_caller_is_libcurl(const void *return_address)
{
    const struct link_map *map = object_of(return_address);
    for (int i = 0; map && i < LIBRARIES_MAX; i++) {
        const void *base = atomic_load_explicit(&libraries[i].base, memory_order_acquire);
        if (!base)
            break;
        if (base == map)
            return true;
    }
    return false;
}
