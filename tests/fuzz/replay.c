/* SPDX-License-Identifier: MIT */
/*
 * Replay: a main() that hands each given file, and each file of each given folder, to a fuzz target
 * once.  With it the seeds are tests like any other, on any compiler.  What cannot be read is an
 * error; a folder may be empty.
 */
#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static unsigned replayed;

/* The copy is of the exact size, so that a read beyond it is seen by AddressSanitizer. */
static bool replay_file(const char *path, size_t size)
{
    FILE *file = fopen(path, "rb");
    uint8_t *data = malloc(size ? size : 1);
    bool complete = file && data && fread(data, 1, size, file) == size;
    if (complete) {
        LLVMFuzzerTestOneInput(data, size);
        replayed++;
    } else {
        perror(path);
    }
    if (file)
        fclose(file);
    free(data);
    return complete;
}

static bool replay(const char *path);

static bool replay_folder(const char *path)
{
    struct dirent **entries;
    int count = scandir(path, &entries, NULL, alphasort);
    bool good = count >= 0;
    if (!good)
        perror(path);
    for (int i = 0; i < count; i++) {
        char name[4096];
        snprintf(name, sizeof(name), "%s/%s", path, entries[i]->d_name);
        if (entries[i]->d_name[0] != '.')
            good = replay(name) && good;
        free(entries[i]);
    }
    if (count >= 0)
        free(entries);
    return good;
}

static bool replay(const char *path)
{
    struct stat status;
    if (stat(path, &status) != 0) {
        perror(path);
        return false;
    }
    return S_ISDIR(status.st_mode) ? replay_folder(path) : replay_file(path, (size_t)status.st_size);
}

int main(int argc, char **argv)
{
    bool good = argc > 1;
    if (!good)
        fprintf(stderr, "usage: %s FILE|FOLDER...\n", argv[0]);
    for (int i = 1; i < argc; i++)
        good = replay(argv[i]) && good;
    printf("%s: %u inputs replayed\n", argv[0], replayed);
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
