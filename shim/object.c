/* SPDX-License-Identifier: MIT */
/*
 * Objects are known by their link map, which the loader shows to debuggers: where the object is,
 * what it is called, and its dynamic section, which names the rest.
 */
#include "shim/object.h"

#include <dlfcn.h>
#include <string.h>

const struct link_map *object_at(const void *address)
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

void *object_open(const struct link_map *object)
{
    return object->l_name[0] ? dlopen(object->l_name, RTLD_LAZY | RTLD_NOLOAD) : NULL;
}

void object_pin(const struct link_map *object)
{
    void *handle = object->l_name[0] ? dlopen(object->l_name, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE) : NULL;
    if (handle)
        dlclose(handle);
}

static const ElfW(Dyn) * entry_of(const struct link_map *object, ElfW(Sxword) tag)
{
    const ElfW(Dyn) *entry = object->l_ld;
    while (entry->d_tag != DT_NULL && entry->d_tag != tag)
        entry++;
    return entry->d_tag == tag ? entry : NULL;
}

/* What an entry points to.  The loader has relocated some of these addresses, and others not. */
static const char *table_of(const struct link_map *object, ElfW(Sxword) tag)
{
    const ElfW(Dyn) *entry = entry_of(object, tag);
    if (!entry)
        return NULL;
    ElfW(Addr) address = entry->d_un.d_ptr;
    return (const char *)(uintptr_t)(address < object->l_addr ? object->l_addr + address : address);
}

uint64_t object_fingerprint(const struct link_map *object)
{
    const char *strings = table_of(object, DT_STRTAB);
    uint64_t sum = (uint64_t)(uintptr_t)object->l_ld;
    for (const ElfW(Dyn) *entry = object->l_ld; entry->d_tag != DT_NULL; entry++) {
        sum = sum * 31 + entry->d_un.d_val;
        if (entry->d_tag == DT_NEEDED && strings)
            for (const char *name = strings + entry->d_un.d_val; *name; name++)
                sum = sum * 31 + (unsigned char)*name;
    }
    return sum;
}

const char *object_soname(const struct link_map *object)
{
    const char *strings = table_of(object, DT_STRTAB);
    const ElfW(Dyn) *name = entry_of(object, DT_SONAME);
    return strings && name ? strings + name->d_un.d_val : NULL;
}

bool object_has_versions(const struct link_map *object)
{
    return entry_of(object, DT_VERDEF) != NULL;
}

const char *object_libcurl_version(const struct link_map *object)
{
    const char *strings = table_of(object, DT_STRTAB);
    const char *place = table_of(object, DT_VERNEED);
    while (strings && place) {
        const ElfW(Verneed) *library = (const void *)place;
        const ElfW(Vernaux) *version = (const void *)(place + library->vn_aux);
        if (object_is_libcurl_name(strings + library->vn_file))
            return strings + version->vna_name;
        place = library->vn_next ? place + library->vn_next : NULL;
    }
    return NULL;
}

bool object_is_libcurl_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return strncmp(slash ? slash + 1 : path, "libcurl", 7) == 0;
}
