/* SPDX-License-Identifier: MIT */
/*
 * Mapping: brings the segment's memory into this process.
 *
 * A name ("/curtsy.v1.1000") is a POSIX shared memory object, under /dev/shm; a path with a slash
 * inside ("/run/curtsy/budget") is a file there.  It is opened without O_CREAT first and made with
 * O_CREAT|O_EXCL second (fs.protected_regular refuses O_CREAT on another user's file, even to
 * root); its space is really allocated before it is mapped (posix_fallocate: a full tmpfs would
 * otherwise be SIGBUS later), unless RLIMIT_FSIZE forbids it (which would be SIGXFSZ).  The file
 * must be a regular one, of this user or root, not writable by others than its mode was meant to
 * allow, and of the full size; one that a process left short by dying between making and allocating
 * it is grown by whoever opens it next.  Descriptors are closed again at once, and moved up first
 * if they came out as 0, 1 or 2; nothing is unlinked, but for a segment of an earlier boot, which is
 * replaced.  errno is preserved by all functions.
 */
#ifndef CURTSY_CORE_SYSTEM_MAPPING_H
#define CURTSY_CORE_SYSTEM_MAPPING_H

#include "core/segment.h"

struct mapping {
    void *memory; /* NULL: none */
    size_t size;
    bool is_private; /* this process' (and its forked children's) own */
    uint64_t device, inode;
    uint32_t owner; /* uid */
};

enum mapping_access {
    MAPPING_CREATE,   /* to be used, and made if it is not there */
    MAPPING_EXISTING, /* to be used */
    MAPPING_VIEW,     /* to be looked at, whoever it belongs to: nothing is written to it, ever */
    MAPPING_OPERATE,  /* to be written to by an operator: his own or, if he is root, anybody's */
};

/* What a file that is made here is to be like.  Where its group may write it, others than its owner
 * share it: they use it only if it is root's. */
struct mapping_permissions {
    unsigned mode;  /* 0600 */
    uint32_t group; /* MAPPING_OWN_GROUP: the maker's */
};
#define MAPPING_OWN_GROUP UINT32_MAX
#define MAPPING_PRIVATE_PERMISSIONS ((struct mapping_permissions){0600, MAPPING_OWN_GROUP})

/* The segment's default name for this user: "/curtsy.v1.UID". */
void mapping_default_name(char *buffer, size_t size);

/* The file behind a name: "/dev/shm/curtsy.v1.0".  False, with a message, if it is neither a name nor
 * an absolute path. */
bool mapping_path(const char *name, char *path, size_t size, char *error, size_t error_size);

/* False with a message ("/dev/shm/curtsy.v1.0: No space left on device") in `error`.  `size` is
 * used when it has to be made; an existing one keeps its own. */
bool mapping_open(struct mapping *mapping, const char *name, uint64_t size, struct mapping_permissions permissions,
                  enum mapping_access access, char *error, size_t error_size);

/* Anonymous shared memory: this process and the children it forks. */
bool mapping_private(struct mapping *mapping, uint64_t size);

void mapping_close(struct mapping *mapping);

/* mapping_open and segment_attach, and what to do about an earlier boot's file: all that a reader
 * or a program under Curtsy needs.  With MAPPING_CREATE it falls back to private memory, returns
 * true, and leaves the reason in `error`; `error` is empty when all is well. */
bool mapping_attach(struct mapping *mapping, struct segment *segment, const char *name, uint64_t size,
                    struct mapping_permissions permissions, enum mapping_access access, char *error,
                    size_t error_size);

/* Is the file behind the name still the one that is mapped?  One system call; one that was cut short
 * meanwhile is grown again, before anybody touches what is missing.  Never of a private mapping. */
enum mapping_state { MAPPING_IN_PLACE, MAPPING_REPLACED, MAPPING_GONE };
enum mapping_state mapping_look(const struct mapping *mapping, const char *name);

#endif
