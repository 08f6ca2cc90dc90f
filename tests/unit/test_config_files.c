/* SPDX-License-Identifier: MIT */
/*
 * Configuration files: which are read, in what order, and what is said when one can't be.  All of it
 * happens below a temporary folder.
 */
#include "core/system/config_files.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static char root[64];
static char said[4096]; /* "FILE:LINE: message\n", with the root taken off */

static void record(void *context, const struct diagnostic *diagnostic)
{
    const char *file = diagnostic->file;
    size_t used = strlen(said);
    (void)context;
    if (strncmp(file, root, strlen(root)) == 0)
        file += strlen(root);
    snprintf(said + used, sizeof said - used, "%s:%u: %s\n", file, diagnostic->line, diagnostic->message);
}

static char paths[64][256];
static unsigned path_count;

/* Below the root; valid until the test ends. */
static const char *path_of(const char *name)
{
    assert_true(path_count < sizeof paths / sizeof paths[0]);
    snprintf(paths[path_count], sizeof paths[0], "%s%s", root, name);
    return paths[path_count++];
}

static void make_folder(const char *name)
{
    char path[256];
    snprintf(path, sizeof path, "%s%s", root, name);
    for (char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(path, 0700);
        *slash = '/';
    }
    mkdir(path, 0700);
}

static void write_file(const char *name, const char *text)
{
    FILE *file = fopen(path_of(name), "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static int set_up(void **state)
{
    (void)state;
    strcpy(root, "/tmp/curtsy-config-XXXXXX");
    assert_non_null(mkdtemp(root));
    make_folder("/etc/curtsy/ratelimit.d");
    make_folder("/home/.config/curtsy");
    make_folder("/xdg/curtsy");
    make_folder(CURTSY_DATADIR);
    said[0] = '\0';
    path_count = 0;
    return 0;
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *walk)
{
    (void)status;
    (void)type;
    (void)walk;
    return remove(path);
}

static int tear_down(void **state)
{
    (void)state;
    return nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* Changed at that second. */
static void set_time(const char *name, time_t second)
{
    const struct timespec times[2] = {{second, 0}, {second, 5}};
    assert_int_equal(utimensat(AT_FDCWD, path_of(name), times, 0), 0);
}

/* What the last load told of its sources. */
static struct config_sources sources;

/* The value of max_attempts of [default], and from which file it came, as "N FILE". */
static const char *load(bool secure, const struct environment *environment)
{
    static char text[512];
    said[0] = '\0';
    struct config *config = config_files_load_below(root, secure, environment, &sources, record, NULL);
    assert_non_null(config);
    const struct section *section = &config->sections[0];
    const char *file = section->origins[POLICY_KEY_max_attempts].file;
    if (file != NULL && strncmp(file, root, strlen(root)) == 0)
        file += strlen(root);
    if (section->set[POLICY_KEY_max_attempts])
        snprintf(text, sizeof text, "%u %s:%u", section->values.max_attempts, file,
                 section->origins[POLICY_KEY_max_attempts].line);
    else
        snprintf(text, sizeof text, "unset");
    config_free(config);
    return text;
}

static struct environment environment_with_home(void)
{
    return (struct environment){.home = path_of("/home")};
}

static void without_files_there_is_silence(void **state)
{
    struct environment environment = {0};

    (void)state;
    assert_string_equal(load(false, &environment), "unset");
    assert_string_equal(said, "");
    environment.home = path_of("/nowhere");
    environment.config_home = path_of("/neither");
    assert_string_equal(load(false, &environment), "unset");
    assert_string_equal(said, "");
}

/* Each layer is put on top of the one before. */
static void layers_are_read_in_order(void **state)
{
    struct environment environment = environment_with_home();

    (void)state;
    write_file("/etc/curtsy/ratelimit.ini", "[default]\nmax_attempts = 1\n");
    assert_string_equal(load(false, &environment), "1 /etc/curtsy/ratelimit.ini:2");
    write_file("/etc/curtsy/ratelimit.d/b.ini", "[default]\nmax_attempts = 2\n");
    assert_string_equal(load(false, &environment), "2 /etc/curtsy/ratelimit.d/b.ini:2");
    write_file("/home/.config/curtsy/ratelimit.ini", "[default]\nmax_attempts = 3\n");
    assert_string_equal(load(false, &environment), "3 /home/.config/curtsy/ratelimit.ini:2");
    write_file("/xdg/curtsy/ratelimit.ini", "[default]\nmax_attempts = 4\n");
    assert_string_equal(load(false, &environment), "3 /home/.config/curtsy/ratelimit.ini:2");
    environment.config_home = path_of("/xdg");
    assert_string_equal(load(false, &environment), "4 /xdg/curtsy/ratelimit.ini:2");
    environment.set = "[default]\nmax_attempts = 5\n";
    assert_string_equal(load(false, &environment), "5 CURTSY_SET:2");
    assert_string_equal(said, "");
}

/* By bytes, as in the C locale: capitals first, and 10 before 9. */
static void a_folders_files_are_read_by_name(void **state)
{
    struct environment environment = {0};
    static const char *const names[] = {"10.ini", "9.ini", "Z.ini", "a.ini", "\xc3\xa4.ini"};

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char name[64], text[64], wanted[128];
        snprintf(name, sizeof name, "/etc/curtsy/ratelimit.d/%s", names[i]);
        snprintf(text, sizeof text, "[default]\nmax_attempts = %zu\n", i + 1);
        snprintf(wanted, sizeof wanted, "%zu %s:2", i + 1, name);
        write_file(name, text);
        assert_string_equal(load(false, &environment), wanted);
    }
    write_file("/etc/curtsy/ratelimit.d/zz.ini~", "[default]\nmax_attempts = 99\n");
    write_file("/etc/curtsy/ratelimit.d/zz.conf", "[default]\nmax_attempts = 99\n");
    write_file("/etc/curtsy/ratelimit.d/.zz.ini", "[default]\nmax_attempts = 99\n");
    write_file("/etc/curtsy/ratelimit.d/.ini", "[default]\nmax_attempts = 99\n");
    write_file("/etc/curtsy/ratelimit.d/zzini", "[default]\nmax_attempts = 99\n");
    assert_string_equal(load(false, &environment), "5 /etc/curtsy/ratelimit.d/\xc3\xa4.ini:2");
    assert_string_equal(said, "");
}

static void a_named_file_replaces_all_files(void **state)
{
    struct environment environment = environment_with_home();

    (void)state;
    write_file("/etc/curtsy/ratelimit.ini", "[default]\nmax_attempts = 1\n");
    write_file("/home/.config/curtsy/ratelimit.ini", "[default]\nmax_attempts = 3\n");
    write_file("/mine", "[default]\nmax_wait = 1s\n");
    environment.config = path_of("/mine");
    assert_string_equal(load(false, &environment), "unset");
    environment.set = "max_attempts = 5";
    assert_string_equal(load(false, &environment), "5 CURTSY_SET:1");
    environment.set = NULL;
    environment.config = "/dev/null";
    assert_string_equal(load(false, &environment), "unset");
    assert_string_equal(said, "");
}

static void what_cannot_be_read_is_said_and_skipped(void **state)
{
    struct environment environment = environment_with_home();

    (void)state;
    write_file("/home/.config/curtsy/ratelimit.ini", "[default]\nmax_attempts = 3\n");
    make_folder("/etc/curtsy/ratelimit.ini");
    assert_string_equal(load(false, &environment), "3 /home/.config/curtsy/ratelimit.ini:2");
    assert_string_equal(said, "/etc/curtsy/ratelimit.ini:0: cannot be read: Is a directory\n");
    assert_false(sources.complete);

    rmdir(path_of("/etc/curtsy/ratelimit.ini"));
    rmdir(path_of("/etc/curtsy/ratelimit.d"));
    write_file("/etc/curtsy/ratelimit.d", "");
    assert_string_equal(load(false, &environment), "3 /home/.config/curtsy/ratelimit.ini:2");
    assert_string_equal(said, "/etc/curtsy/ratelimit.d:0: cannot be read: Not a directory\n");
    assert_false(sources.complete);

    environment.config = path_of("/missing");
    assert_string_equal(load(false, &environment), "unset");
    assert_string_equal(said, "/missing:0: cannot be read: No such file or directory\n");
    assert_false(sources.complete);
    config_free(config_files_load_below(root, false, &environment, NULL, NULL, NULL));
}

static void faults_are_told_with_their_file(void **state)
{
    struct environment environment = {.set = "quota = banana\n[x.example]\nqouta = 5/h"};

    (void)state;
    write_file("/etc/curtsy/ratelimit.ini", "[default]\nmax_wait = 5\n");
    load(false, &environment);
    assert_string_equal(said,
                        "/etc/curtsy/ratelimit.ini:2: max_wait = 5: expected a duration with its unit, such as 90s or "
                        "250ms, or auto\n"
                        "CURTSY_SET:1: quota = banana: expected a rate such as 5000/h, or none\n"
                        "CURTSY_SET:3: unknown key \"qouta\" in [x.example]; did you mean \"quota\"?\n");
}

static void a_setting_may_be_one_line(void **state)
{
    static const struct {
        const char *set;
        const char *wanted;
    } cases[] = {
        {"max_attempts = 7", "7 CURTSY_SET:1"},
        {"[default] max_attempts = 7", "7 CURTSY_SET:1"},
        {"[default]\nmax_attempts = 7", "7 CURTSY_SET:2"},
        {"# seven\nmax_attempts = 7", "7 CURTSY_SET:2"},
        {"[x.example] quota = 5/h\n[default] max_attempts = 7\n", "7 CURTSY_SET:2"},
        {"[x.example] max_attempts = 7", "unset"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct environment environment = {.set = cases[i].set};
        assert_string_equal(load(false, &environment), cases[i].wanted);
        assert_string_equal(said, "");
    }
}

/* Whoever runs a program with more rights than his own has no say. */
static void a_users_files_do_not_count_for_a_privileged_program(void **state)
{
    struct environment environment = environment_with_home();

    (void)state;
    write_file("/etc/curtsy/ratelimit.ini", "[default]\nmax_attempts = 1\n");
    write_file("/home/.config/curtsy/ratelimit.ini", "[default]\nmax_attempts = 3\n");
    write_file("/xdg/curtsy/ratelimit.ini", "[default]\nmax_attempts = 4\n");
    environment.config_home = path_of("/xdg");
    environment.config = path_of("/missing");
    environment.set = "max_attempts = 5";
    assert_string_equal(load(true, &environment), "1 /etc/curtsy/ratelimit.ini:2");
    assert_string_equal(said, "");
}

static void the_working_directory_is_never_read(void **state)
{
    char before[512];

    (void)state;
    write_file("/xdg/curtsy/ratelimit.ini", "[default]\nmax_attempts = 4\n");
    make_folder("/.config/curtsy");
    write_file("/.config/curtsy/ratelimit.ini", "[default]\nmax_attempts = 4\n");
    write_file("/ratelimit.ini", "[default]\nmax_attempts = 4\n");
    assert_non_null(getcwd(before, sizeof before));
    assert_int_equal(chdir(root), 0);
    static const struct environment environments[] = {
        {.config_home = "xdg"}, {.home = "."}, {.home = ""}, {.config_home = ""}, {.config_home = "."}};
    for (size_t i = 0; i < sizeof environments / sizeof environments[0]; i++)
        assert_string_equal(load(false, &environments[i]), "unset");
    /* A relative XDG_CONFIG_HOME is as if it was not there. */
    make_folder("/home/.config/curtsy");
    write_file("/home/.config/curtsy/ratelimit.ini", "[default]\nmax_attempts = 3\n");
    struct environment environment = environment_with_home();
    environment.config_home = "xdg";
    assert_string_equal(load(false, &environment), "3 /home/.config/curtsy/ratelimit.ini:2");
    assert_int_equal(chdir(before), 0);
}

/* ---- what was read ---- */

static void what_is_not_there_is_complete(void **state)
{
    struct environment environment = environment_with_home();

    (void)state;
    load(false, &environment);
    assert_true(sources.complete);
    assert_int_equal(symlink("nowhere", path_of("/etc/curtsy/ratelimit.ini")), 0);
    load(false, &environment);
    assert_true(sources.complete);
    /* A home that is a file: what should be in it is not there. */
    write_file("/file", "");
    environment.config_home = path_of("/file");
    load(false, &environment);
    assert_true(sources.complete);
    assert_string_equal(said, "");
}

/* Whether a file is there cannot be told from outside of a folder that one may not enter. */
static void load_as_nobody(void)
{
    const struct environment environment = environment_with_home();
    pid_t child = fork();
    int status;

    assert_true(child >= 0);
    if (child == 0) {
        if (geteuid() == 0 && setuid(65534) != 0)
            _exit(9);
        load(false, &environment);
        _exit(sources.complete ? 1 : said[0] != '\0' ? 2 : 0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void what_cannot_be_looked_at_is_silently_incomplete(void **state)
{
    (void)state;
    write_file("/home/.config/curtsy/ratelimit.ini", "[default]\nmax_attempts = 3\n");
    chmod(root, 0711);
    chmod(path_of("/home"), 0000);
    load_as_nobody();
    chmod(path_of("/home"), 0700);
}

/* Neither is it there, nor is it not there. */
static void what_leads_in_circles_is_said(void **state)
{
    struct environment environment = {0};

    (void)state;
    assert_int_equal(symlink("ratelimit.ini", path_of("/etc/curtsy/ratelimit.ini")), 0);
    load(false, &environment);
    assert_string_equal(said, "/etc/curtsy/ratelimit.ini:0: cannot be read: Too many levels of symbolic links\n");
    assert_false(sources.complete);
}

/* Out of descriptors, a process can tell nothing: not that there are no files any more. */
static void without_a_descriptor_nothing_is_complete(void **state)
{
    struct environment environment = {0};
    struct rlimit before, none;

    (void)state;
    write_file("/etc/curtsy/ratelimit.ini", "[default]\nmax_attempts = 3\n");
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = before;
    none.rlim_cur = 0;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    const char *loaded = load(false, &environment);
    setrlimit(RLIMIT_NOFILE, &before);
    assert_string_equal(loaded, "unset");
    assert_false(sources.complete);
    assert_non_null(strstr(said, "/etc/curtsy/ratelimit.ini:0: cannot be read: Too many open files\n"));
}

static uint64_t changed_of(const char *name)
{
    struct stat status;
    assert_int_equal(stat(path_of(name), &status), 0);
    uint64_t modified = (uint64_t)status.st_mtim.tv_sec * 1000000000 + (uint64_t)status.st_mtim.tv_nsec;
    uint64_t changed = (uint64_t)status.st_ctim.tv_sec * 1000000000 + (uint64_t)status.st_ctim.tv_nsec;
    return modified > changed ? modified : changed;
}

static void the_newest_of_all_files_is_told(void **state)
{
    struct environment environment = environment_with_home();
    static const char *const names[] = {CURTSY_DATADIR "/p.ini", "/etc/curtsy/ratelimit.ini",
                                        "/etc/curtsy/ratelimit.d/a.ini", "/home/.config/curtsy/ratelimit.ini"};

    (void)state;
    environment.set = "[curtsy] presets = p";
    rmdir(path_of("/etc/curtsy/ratelimit.d"));
    load(false, &environment);
    assert_true(sources.changed == 0);
    make_folder("/etc/curtsy/ratelimit.d");
    for (size_t i = 0; i < 4; i++)
        write_file(names[i], "[default]\nmax_attempts = 3\n");
    /* Each is the newest once, by its mtime; the last one by its ctime, although its mtime is old. */
    for (size_t i = 0; i < 4; i++) {
        set_time(names[i], 4000000000 + (time_t)i);
        load(false, &environment);
        assert_true(sources.changed == (UINT64_C(4000000000) + i) * 1000000000 + 5);
    }
    for (size_t i = 0; i < 4; i++)
        set_time(names[i], 1000000000);
    load(false, &environment);
    assert_true(sources.changed == changed_of(names[3]));
    assert_true(sources.changed > UINT64_C(1700000000000000000));
    /* That a file was taken away is seen, too. */
    set_time("/etc/curtsy/ratelimit.d", 4000000000);
    load(false, &environment);
    assert_true(sources.changed == UINT64_C(4000000000000000005));
    /* A device is changed by whoever writes to it. */
    environment = (struct environment){.config = "/dev/null"};
    load(false, &environment);
    assert_true(sources.changed == 0 && sources.complete);
}

/* ---- presets ---- */

static void presets_are_laid_below_all_files(void **state)
{
    struct environment environment = environment_with_home();

    (void)state;
    write_file(CURTSY_DATADIR "/one.ini", "[default]\nmax_attempts = 1\n[one.example]\nquota = 1/h\n");
    write_file(CURTSY_DATADIR "/two.ini", "[default]\nmax_attempts = 2\n");
    assert_string_equal(load(false, &environment), "unset");
    write_file("/etc/curtsy/ratelimit.ini", "[curtsy]\npresets = two, one\n");
    assert_string_equal(load(false, &environment), "1 " CURTSY_DATADIR "/one.ini:2");
    /* Who says it last says it alone; in his order, and each of them once. */
    write_file("/etc/curtsy/ratelimit.d/a.ini", "[curtsy]\npresets = one, two, one\n");
    assert_string_equal(load(false, &environment), "2 " CURTSY_DATADIR "/two.ini:2");
    environment.set = "[curtsy] presets = one";
    assert_string_equal(load(false, &environment), "1 " CURTSY_DATADIR "/one.ini:2");
    environment.set = "[curtsy] presets = none";
    assert_string_equal(load(false, &environment), "unset");
    environment.set = "[curtsy] presets = one\n[default] max_attempts = 9";
    assert_string_equal(load(false, &environment), "9 CURTSY_SET:2");
    write_file("/mine", "[curtsy]\npresets = two\n");
    environment = (struct environment){.config = path_of("/mine")};
    assert_string_equal(load(false, &environment), "2 " CURTSY_DATADIR "/two.ini:2");
    assert_string_equal(said, "");
    assert_true(sources.complete);
}

/* It is a value like any other: at its line, and the rest holds. */
static void a_preset_that_is_not_there_is_said(void **state)
{
    struct environment environment = {.set = "[curtsy]\npresets = githbu, one\n"};
    char folder[256];

    (void)state;
    load(false, &environment);
    snprintf(folder, sizeof folder, "%s" CURTSY_DATADIR, root);
    char wanted[1024];
    snprintf(wanted, sizeof wanted,
             "CURTSY_SET:2: presets: there is no preset \"githbu\" in %s, nor any other\n"
             "CURTSY_SET:2: presets: there is no preset \"one\" in %s, nor any other\n",
             folder, folder);
    assert_string_equal(said, wanted);
    assert_true(sources.complete);

    write_file(CURTSY_DATADIR "/one.ini", "[default]\nmax_attempts = 1\n");
    write_file(CURTSY_DATADIR "/github.ini", "");
    write_file(CURTSY_DATADIR "/.hidden.ini", "");
    assert_string_equal(load(false, &environment), "1 " CURTSY_DATADIR "/one.ini:2");
    snprintf(wanted, sizeof wanted,
             "CURTSY_SET:2: presets: there is no preset \"githbu\" in %s; did you mean \"github\"?\n", folder);
    assert_string_equal(said, wanted);
    environment.set = "[curtsy]\n\npresets = banana";
    load(false, &environment);
    snprintf(wanted, sizeof wanted,
             "CURTSY_SET:3: presets: there is no preset \"banana\" in %s: expected some of github, one\n", folder);
    assert_string_equal(said, wanted);
}

static void a_preset_is_a_plain_file_of_its_folder(void **state)
{
    struct environment environment = {0};
    static const char *const names[] = {"../secret", "./one", "/one", "one.ini", "..", ".one"};

    (void)state;
    write_file(CURTSY_DATADIR "/../secret.ini", "[default]\nmax_attempts = 9\n");
    write_file(CURTSY_DATADIR "/one.ini", "[default]\nmax_attempts = 1\n");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char set[64];
        snprintf(set, sizeof set, "[curtsy] presets = %s", names[i]);
        environment.set = set;
        assert_string_equal(load(false, &environment), "unset");
        assert_non_null(strstr(said, "CURTSY_SET:1: presets: expected names"));
    }
}

static void faults_of_a_preset_are_told_with_its_file(void **state)
{
    struct environment environment = {.set = "[curtsy] presets = one, two, folder"};

    (void)state;
    write_file(CURTSY_DATADIR "/one.ini", "[curtsy]\npresets = two\n[default]\nmax_wait = 5\nmax_attempts = 4\n");
    write_file(CURTSY_DATADIR "/two.ini", "[default]\nqouta = 5/h\n");
    make_folder(CURTSY_DATADIR "/folder.ini");
    assert_string_equal(load(false, &environment), "4 " CURTSY_DATADIR "/one.ini:5");
    assert_string_equal(said, CURTSY_DATADIR
                        "/one.ini:2: \"presets\" is ignored here: a preset names no others\n" CURTSY_DATADIR
                        "/one.ini:4: max_wait = 5: expected a duration with its unit, such as 90s or 250ms, or "
                        "auto\n" CURTSY_DATADIR
                        "/two.ini:2: unknown key \"qouta\" in [default]; did you mean \"quota\"?\n" CURTSY_DATADIR
                        "/folder.ini:0: cannot be read: Is a directory\n");
    assert_false(sources.complete);
}

/* ---- the whole machine's segment ---- */

static bool is_machine_wide(const char *admins, const char *users, struct environment *environment)
{
    write_file("/etc/curtsy/ratelimit.d/a.ini", admins);
    write_file("/home/.config/curtsy/ratelimit.ini", users);
    load(false, environment);
    return sources.machine_wide;
}

static void only_an_administrator_names_a_machines_segment(void **state)
{
    struct environment environment = environment_with_home();
    static const char named[] = "[curtsy]\nsegment = /machine\n";

    (void)state;
    assert_false(is_machine_wide("", "", &environment));
    assert_true(is_machine_wide(named, "", &environment));
    assert_true(is_machine_wide(named, "[curtsy]\nlog = off\n", &environment));
    assert_false(is_machine_wide("", named, &environment));
    assert_false(is_machine_wide(named, named, &environment));
    assert_false(is_machine_wide("[curtsy]\nsegment = auto\n", "", &environment));
    assert_false(is_machine_wide("[curtsy]\nsegment_size = 8MiB\n", "", &environment));
    environment.set = "[curtsy] segment = /mine";
    assert_false(is_machine_wide(named, "", &environment));
    environment.set = "max_attempts = 3";
    assert_true(is_machine_wide(named, "", &environment));
    environment.segment = "/mine";
    assert_false(is_machine_wide(named, "", &environment));
    /* Under AT_SECURE the environment has no say. */
    load(true, &environment);
    assert_true(sources.machine_wide);
    environment.segment = NULL;
    environment.config = path_of("/home/.config/curtsy/ratelimit.ini");
    assert_false(is_machine_wide(named, named, &environment));
    write_file(CURTSY_DATADIR "/p.ini", named);
    environment = environment_with_home();
    assert_false(is_machine_wide("[curtsy]\npresets = p\n", "", &environment));
}

static void the_machines_config_is_the_administrators_alone(void **state)
{
    (void)state;
    write_file(CURTSY_DATADIR "/one.ini", "[one.example]\nquota = 1/h\n");
    write_file(CURTSY_DATADIR "/two.ini", "[two.example]\nquota = 2/h\n");
    write_file("/etc/curtsy/ratelimit.ini", "[curtsy]\npresets = one\n[a.example]\nquota = 3/h\nqouta = 3/h\n");
    write_file("/home/.config/curtsy/ratelimit.ini", "[curtsy]\npresets = two\n[b.example]\nquota = 4/h\n");
    struct config *config = config_files_load_machine(root);
    assert_non_null(config);
    assert_int_equal(config->section_count, 3);
    assert_string_equal(config->sections[1].name, "one.example");
    assert_string_equal(config->sections[2].name, "a.example");
    assert_string_equal(config->settings.presets, "one");
    config_free(config);
}

static bool add_alone(const char *path, struct config **config)
{
    struct config_builder *builder = config_builder_new(NULL, NULL);
    errno = 0;
    bool added = config_files_add(builder, path);
    int error = errno;
    *config = config_builder_finish(builder);
    errno = error;
    return added;
}

static void a_file_of_any_size_is_read_whole(void **state)
{
    static const size_t paddings[] = {0, 1, 4000, 4094, 4095, 4096, 4097, 8191, 8192, 100000, 5 << 20};

    (void)state;
    for (size_t i = 0; i < sizeof paddings / sizeof paddings[0]; i++) {
        struct config *config;
        FILE *file = fopen(path_of("/big"), "w");
        fputs("[default]\n#", file);
        for (size_t j = 0; j < paddings[i]; j++)
            putc('x', file);
        fputs("\nmax_attempts = 7", file);
        fclose(file);
        assert_true(add_alone(path_of("/big"), &config));
        assert_int_equal(config->sections[0].values.max_attempts, 7);
        config_free(config);
    }
}

static void what_is_no_file_ends_at_once(void **state)
{
    struct config *config;

    (void)state;
    assert_int_equal(truncate(path_of("/big"), 0), -1);
    write_file("/big", "");
    assert_int_equal(truncate(path_of("/big"), (off_t)CONFIG_FILE_SIZE_MAX + 1), 0);
    assert_false(add_alone(path_of("/big"), &config));
    assert_int_equal(errno, EFBIG);
    config_free(config);
    assert_false(add_alone("/dev/zero", &config));
    assert_int_equal(errno, EFBIG);
    config_free(config);
    assert_false(add_alone(root, &config));
    assert_int_equal(errno, EISDIR);
    config_free(config);
    /* A FIFO that nobody writes into would be waited on for ever. */
    assert_int_equal(mkfifo(path_of("/fifo"), 0600), 0);
    assert_true(add_alone(path_of("/fifo"), &config));
    assert_int_equal(config->section_count, 1);
    config_free(config);
}

static void the_environment_is_read_once(void **state)
{
    struct environment environment, again;

    (void)state;
    setenv("CURTSY_CONFIG", "/some/where", 1);
    setenv("CURTSY_SET", "", 1);
    setenv("CURTSY_MODE", "observe", 1);
    setenv("CURTSY_LOG_FORMAT", "json", 1);
    unsetenv("CURTSY_SEGMENT");
    setenv("HOME", "/a/home", 1);
    environment_read(&environment);
    assert_string_equal(environment.config, "/some/where");
    assert_null(environment.set);
    assert_null(environment.segment);
    assert_string_equal(environment.mode, "observe");
    assert_string_equal(environment.log_format, "json");
    assert_string_equal(environment.home, "/a/home");
    setenv("CURTSY_MODE", "off", 1);
    assert_string_equal(environment.mode, "observe");
    environment_read(&again);
    assert_string_equal(again.mode, "observe");
}

int main(void)
{
#define IN_A_FOLDER(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        IN_A_FOLDER(without_files_there_is_silence),
        IN_A_FOLDER(layers_are_read_in_order),
        IN_A_FOLDER(a_folders_files_are_read_by_name),
        IN_A_FOLDER(a_named_file_replaces_all_files),
        IN_A_FOLDER(what_cannot_be_read_is_said_and_skipped),
        IN_A_FOLDER(faults_are_told_with_their_file),
        IN_A_FOLDER(a_setting_may_be_one_line),
        IN_A_FOLDER(a_users_files_do_not_count_for_a_privileged_program),
        IN_A_FOLDER(the_working_directory_is_never_read),
        IN_A_FOLDER(what_is_not_there_is_complete),
        IN_A_FOLDER(what_cannot_be_looked_at_is_silently_incomplete),
        IN_A_FOLDER(what_leads_in_circles_is_said),
        IN_A_FOLDER(without_a_descriptor_nothing_is_complete),
        IN_A_FOLDER(the_newest_of_all_files_is_told),
        IN_A_FOLDER(presets_are_laid_below_all_files),
        IN_A_FOLDER(a_preset_that_is_not_there_is_said),
        IN_A_FOLDER(a_preset_is_a_plain_file_of_its_folder),
        IN_A_FOLDER(faults_of_a_preset_are_told_with_its_file),
        IN_A_FOLDER(only_an_administrator_names_a_machines_segment),
        IN_A_FOLDER(the_machines_config_is_the_administrators_alone),
        IN_A_FOLDER(a_file_of_any_size_is_read_whole),
        IN_A_FOLDER(what_is_no_file_ends_at_once),
        cmocka_unit_test(the_environment_is_read_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
