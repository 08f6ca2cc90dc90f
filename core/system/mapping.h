/* SPDX-License-Identifier: MIT */
/*
 * Mapping: brings the segment's memory into this process.
 *
 * A name ("/curtsy.v1.1000") is a POSIX shared memory object, under /dev/shm; a path with a slash
 * inside ("/run/curtsy/budget") is a file there.  It is opened without O_CREAT first and made with
 * O_CREAT|O_EXCL second (fs.protected_regular refuses O_CREAT on another user's file, even to
 * root); its space is really allocated before it is mapped (posix_fallocate: a full tmpfs would
 * otherwise be SIGBUS later), unless RLIMIT_FSIZE forbids it (which would be SIGXFSZ).
 *
 * Whoever uses a segment believes what its writers say, so a file is used only if it is a regular
 * one, this user's or root's, and may be written by others only if it is root's: a segment for
 * several users has to be made by root.  Root, who trusts nobody's file either, looks at all of them
 * and writes to them as an operator.
 *
 * One that a process left short by dying between making and allocating it is grown by whoever opens
 * it next, and so is one of ours that was cut short.  Of a file that others may write nobody
 * allocates more than he was configured for: the memory would be charged to him.
 *
 * Descriptors are closed again at once, and moved up first if they came out as 0, 1 or 2; nothing is
 * unlinked, but for a segment of an earlier boot, which its owner replaces.  errno is preserved by
 * all functions.
 */
#ifndef CURTSY_CORE_SYSTEM_MAPPING_H
#define CURTSY_CORE_SYSTEM_MAPPING_H

#include "core/segment.h"

struct mapping {
    void *memory; /* NULL: none */
    size_t size;
    bool is_private; /* this process' (and its forked children's) own */
    bool is_view;    /* may only be read */
    uint64_t device, inode;
    uint32_t owner;        /* uid */
    uint64_t may_allocate; /* bytes: the most of the file that this process makes room for */
};

enum mapping_access {
    MAPPING_CREATE,   /* to be used, and made if it is not there */
    MAPPING_EXISTING, /* to be used */
    MAPPING_VIEW,     /* to be looked at, whoever it belongs to: nothing is written to it, ever */
    MAPPING_OPERATE,  /* to be written to by an operator: his own or root's, or anybody's if he is root */
};

/* What a file that is made here is to be like: it gets exactly this mode, whatever the umask.  Where
 * others than its owner may write it, only root makes it: from anybody else they could not use it.
 * Where it cannot be given its group, that group gets nothing: 0660 becomes 0600. */
struct mapping_permissions {
    unsigned mode;  /* 0600, 0660, 0666 */
    uint32_t group; /* MAPPING_OWN_GROUP: the maker's, or the folder's where that is inherited */
};
#define MAPPING_OWN_GROUP UINT32_MAX
#define MAPPING_PRIVATE_PERMISSIONS ((struct mapping_permissions){0600, MAPPING_OWN_GROUP})

/* The segment's default name for this user: "/curtsy.v1.UID". */
void mapping_default_name(char *buffer, size_t size);

/* The file behind a name: "/dev/shm/curtsy.v1.0".  False, with a message, if it is neither a name nor
 * an absolute path. */
bool mapping_path(const char *name, char *path, size_t size, char *error, size_t error_size);

/* False with a message ("/dev/shm/curtsy.v1.0: No space left on device") in `error`.  `size` and
 * `permissions` are used when it has to be made; an existing one keeps its own. */
bool mapping_open(struct mapping *mapping, const char *name, uint64_t size, struct mapping_permissions permissions,
                  enum mapping_access access, char *error, size_t error_size);

/* Anonymous shared memory: this process and the children it forks. */
bool mapping_private(struct mapping *mapping, uint64_t size);

void mapping_close(struct mapping *mapping);

/* mapping_open and segment_attach (segment_view for MAPPING_VIEW and MAPPING_OPERATE, which take only
 * what is a segment already), and what to do about an earlier boot's file: all that a reader or a
 * program under Curtsy needs.  Nothing is attached under another clock than the machine's.  With
 * MAPPING_CREATE it falls back to private memory, returns true, and leaves the reason in `error`;
 * `error` is empty when all is well. */
bool mapping_attach(struct mapping *mapping, struct segment *segment, const char *name, uint64_t size,
                    struct mapping_permissions permissions, enum mapping_access access, char *error, size_t error_size);

/*
 * Is the file behind the name still the one that is mapped?  One system call, if it is.  A file that
 * was cut short meanwhile is grown again, before anybody touches what is missing, which would be
 * SIGBUS.  Where it cannot be grown (or is only looked at), memory of this process' own is put in
 * the place of what is missing, and the mapping is MAPPING_REPLACED from then on: attach again.
 * MAPPING_IN_PLACE of a private mapping, and where it cannot be told.  For one thread at a time.
 */
enum mapping_state { MAPPING_IN_PLACE, MAPPING_REPLACED, MAPPING_GONE };
enum mapping_state mapping_look(const struct mapping *mapping, const char *name);

#endif
