/* SPDX-License-Identifier: MIT */
/*
 * A program that has libcurl put its request bodies together: mime structures and the older lists of
 * curl_formadd, of whatever parts it is told, built in whatever order.
 *
 *     mime_bodies URL WORD...
 *     mime_bodies URL threads COUNT TIMES
 *
 * The words are obeyed in their order (the table at the end), each with what follows its "=" if anything
 * does.  Those that set a content set the one of the newest part, as often as they come; `part` makes
 * another, `nest` goes into a structure that becomes its content, and `end` comes back.
 * `then` has the next word obeyed later: once a refusal has arrived, while the transfer is still under way.
 * A line tells what came of each `perform`.  Exit 3: something failed that should not.
 *
 * With threads, each of them builds, changes and frees structures that many times, and sends the last.
 */
#define _GNU_SOURCE
#include <curl/curl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEPTH_MAX 100

static const char *url;

struct text {
    const char *begin, *at;
};

/* What one thread works with. */
struct work {
    CURL *easy;
    curl_mime *structure[DEPTH_MAX];
    curl_mimepart *part[DEPTH_MAX];
    int depth;
    struct curl_httppost *form, *last;
    struct curl_slist *fields, *headers;
    char *name, *pointer;
    const char *later;
    bool was_refused;
    char body[256];
    size_t body_length;
};

/* ------------------------------------------------------------------ callbacks ---- */

static size_t give_text(char *buffer, size_t size, size_t count, void *userdata)
{
    struct text *text = userdata;
    size_t length = strnlen(text->at, size * count);
    memcpy(buffer, text->at, length);
    text->at += length;
    return length;
}

static int seek_text(void *userdata, curl_off_t offset, int origin)
{
    struct text *text = userdata;
    (void)origin;
    text->at = text->begin + offset;
    return CURL_SEEKFUNC_OK;
}

static int refuse_to_seek(void *userdata, curl_off_t offset, int origin)
{
    (void)userdata, (void)offset, (void)origin;
    return CURL_SEEKFUNC_CANTSEEK;
}

static size_t receive(char *data, size_t size, size_t count, void *userdata)
{
    struct work *work = userdata;
    size_t length = size * count, room = sizeof work->body - 1 - work->body_length;
    memcpy(work->body + work->body_length, data, length < room ? length : room);
    work->body_length += length < room ? length : room;
    return length;
}

/* The status line of a refusal passes, of whichever attempt. */
static int on_debug(CURL *easy, curl_infotype type, char *data, size_t size, void *userdata)
{
    struct work *work = userdata;
    (void)easy;
    if (type == CURLINFO_HEADER_IN && size > 9 && memcmp(data, "HTTP/", 5) == 0 && data[9] == '4')
        work->was_refused = true;
    return 0;
}

static void obey(struct work *work, const char *word);

static int on_progress(void *userdata, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
    struct work *work = userdata;
    const char *word = work->later;
    (void)a, (void)b, (void)c, (void)d;
    if (word && work->was_refused) {
        work->later = NULL;
        obey(work, word);
    }
    return 0;
}

/* ------------------------------------------------------------- mime structures ---- */

#define PART work->part[work->depth]

static void must(CURLcode code)
{
    if (code != CURLE_OK)
        exit(3);
}

static void add_part(struct work *work, const char *unused)
{
    (void)unused;
    if (!work->structure[0])
        work->structure[0] = curl_mime_init(work->easy);
    PART = curl_mime_addpart(work->structure[work->depth]);
    must(curl_mime_name(PART, "part"));
}

static void set_data(struct work *work, const char *text)
{
    must(curl_mime_data(PART, text, CURL_ZERO_TERMINATED));
}

static void set_nothing(struct work *work, const char *unused)
{
    must(curl_mime_filedata(PART, NULL));
}

static void set_file(struct work *work, const char *path)
{
    must(curl_mime_filedata(PART, path));
    must(curl_mime_filename(PART, "name.bin"));
}

static void set_missing_file(struct work *work, const char *path)
{
    if (curl_mime_filedata(PART, path) != CURLE_READ_ERROR)
        exit(3);
}

static void set_callback(struct work *work, const char *begin, curl_seek_callback seek)
{
    struct text *text = malloc(sizeof *text);
    *text = (struct text){begin, begin};
    must(curl_mime_data_cb(PART, (curl_off_t)strlen(begin), give_text, seek, free, text));
}

static void set_seekable(struct work *work, const char *text)
{
    set_callback(work, text, seek_text);
}

static void set_once(struct work *work, const char *text)
{
    set_callback(work, text, NULL);
}

static void set_unseekable(struct work *work, const char *text)
{
    set_callback(work, text, refuse_to_seek);
}

static void set_headers(struct work *work, const char *text)
{
    work->headers = curl_slist_append(work->headers, text);
    must(curl_mime_headers(PART, work->headers, 0));
}

static void change_headers(struct work *work, const char *text)
{
    strcpy(work->headers->data, text);
}

static void set_encoder(struct work *work, const char *encoding)
{
    must(curl_mime_encoder(PART, encoding));
}

static void set_name(struct work *work, const char *name)
{
    must(curl_mime_name(PART, name));
}

/* `last`: as the content that it has already. */
static void nest(struct work *work, const char *how)
{
    curl_mimepart *part = PART;
    if (work->depth + 1 == DEPTH_MAX)
        exit(2);
    curl_mime *nested = *how ? work->structure[work->depth + 1] : curl_mime_init(work->easy);
    must(curl_mime_subparts(part, nested));
    work->structure[++work->depth] = nested;
    if (!*how)
        add_part(work, "");
}

static void end_nested(struct work *work, const char *unused)
{
    work->depth--;
}

static void free_nested(struct work *work, const char *unused)
{
    curl_mime_free(work->structure[work->depth + 1]);
}

static void set_no_subparts(struct work *work, const char *unused)
{
    must(curl_mime_subparts(PART, NULL));
}

/* What is nested somewhere already, which libcurl does not allow; it leaves the part empty. */
static void nest_what_is_nested(struct work *work, const char *unused)
{
    if (curl_mime_subparts(PART, work->structure[work->depth + 1]) != CURLE_BAD_FUNCTION_ARGUMENT)
        exit(3);
}

static void free_structure(struct work *work, const char *unused)
{
    curl_mime_free(work->structure[0]);
    memset(work->structure, 0, sizeof work->structure);
    memset(work->part, 0, sizeof work->part);
    work->depth = 0;
}

/* ------------------------------------------------------- lists of curl_formadd ---- */

#define ADD(...) curl_formadd(&work->form, &work->last, __VA_ARGS__, CURLFORM_END) ? exit(3) : (void)0 /* 0: done */

static void form_copy(struct work *work, const char *text)
{
    ADD(CURLFORM_COPYNAME, "copy", CURLFORM_COPYCONTENTS, text);
}

static void form_pointer(struct work *work, const char *text)
{
    work->pointer = strdup(text);
    ADD(CURLFORM_COPYNAME, "pointer", CURLFORM_PTRCONTENTS, work->pointer);
}

/* All but the last byte. */
static void form_sized(struct work *work, const char *text)
{
    work->pointer = strdup(text);
    ADD(CURLFORM_COPYNAME, "sized", CURLFORM_PTRCONTENTS, work->pointer, CURLFORM_CONTENTLEN,
        (curl_off_t)(strlen(text) - 1));
}

static void form_buffer(struct work *work, const char *text)
{
    work->pointer = strdup(text);
    ADD(CURLFORM_COPYNAME, "buffer", CURLFORM_BUFFER, "name.bin", CURLFORM_BUFFERPTR, work->pointer,
        CURLFORM_BUFFERLENGTH, (long)strlen(text));
}

static void change_pointer(struct work *work, const char *text)
{
    memcpy(work->pointer, text, strlen(text));
}

static void form_name(struct work *work, const char *name)
{
    work->name = strdup(name);
    ADD(CURLFORM_PTRNAME, work->name, CURLFORM_COPYCONTENTS, "named");
}

static void change_name(struct work *work, const char *name)
{
    memcpy(work->name, name, strlen(name));
}

static void form_header(struct work *work, const char *text)
{
    work->headers = curl_slist_append(work->headers, text);
    ADD(CURLFORM_COPYNAME, "header", CURLFORM_COPYCONTENTS, "headed", CURLFORM_CONTENTHEADER, work->headers);
}

static void form_file(struct work *work, const char *path)
{
    ADD(CURLFORM_COPYNAME, "file", CURLFORM_FILE, path);
}

/* Two of one section. */
static void form_files(struct work *work, const char *paths)
{
    char *first = strdup(paths), *second = strchr(first, ',');
    *second++ = '\0';
    ADD(CURLFORM_COPYNAME, "files", CURLFORM_FILE, first, CURLFORM_FILE, second);
    free(first);
}

static void form_content(struct work *work, const char *path)
{
    ADD(CURLFORM_COPYNAME, "content", CURLFORM_FILECONTENT, path);
}

static void form_stream(struct work *work, const char *begin)
{
    struct text *text = malloc(sizeof *text);
    *text = (struct text){begin, begin};
    curl_easy_setopt(work->easy, CURLOPT_READFUNCTION, give_text);
    ADD(CURLFORM_COPYNAME, "stream", CURLFORM_STREAM, text, CURLFORM_CONTENTLEN, (curl_off_t)strlen(begin));
}

/* ------------------------------------------------------------------- requests ---- */

static void print_result(CURL *easy, struct work *work, CURLcode code)
{
    long status = 0;
    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    work->body[work->body_length] = '\0';
    printf("%d %ld %s\n", code, status, work->body);
    work->body_length = 0;
}

static void perform(struct work *work, const char *key)
{
    char field[100];
    curl_slist_free_all(work->fields);
    snprintf(field, sizeof field, "Idempotency-Key: %s", key);
    work->fields = *key ? curl_slist_append(NULL, field) : NULL;
    curl_easy_setopt(work->easy, CURLOPT_HTTPHEADER, work->fields);
    if (work->structure[0])
        must(curl_easy_setopt(work->easy, CURLOPT_MIMEPOST, work->structure[0]));
    if (work->form)
        must(curl_easy_setopt(work->easy, CURLOPT_HTTPPOST, work->form));
    work->was_refused = false;
    print_result(work->easy, work, curl_easy_perform(work->easy));
}

/* What the last request was, by a copy of its handle. */
static void perform_copy(struct work *work, const char *unused)
{
    CURL *copy = curl_easy_duphandle(work->easy);
    print_result(copy, work, curl_easy_perform(copy));
    curl_easy_cleanup(copy);
}

static void change_directory(struct work *work, const char *path)
{
    if (chdir(path))
        exit(3);
}

static void write_file(struct work *work, const char *path)
{
    FILE *file = fopen(path, "w");
    if (!file || fputs("written", file) < 0 || fclose(file))
        exit(3);
}

static const struct word {
    const char *name;
    void (*obey)(struct work *work, const char *value);
} words[] = {
    {"part", add_part},
    {"data", set_data},
    {"nothing", set_nothing},
    {"file", set_file},
    {"missing", set_missing_file},
    {"seekable", set_seekable},
    {"once", set_once},
    {"unseekable", set_unseekable},
    {"headers", set_headers},
    {"change-headers", change_headers},
    {"encoder", set_encoder},
    {"name", set_name},
    {"nest", nest},
    {"end", end_nested},
    {"free-nested", free_nested},
    {"no-subparts", set_no_subparts},
    {"nest-nested", nest_what_is_nested},
    {"free", free_structure},
    {"form-copy", form_copy},
    {"form-pointer", form_pointer},
    {"form-sized", form_sized},
    {"form-buffer", form_buffer},
    {"change-pointer", change_pointer},
    {"form-name", form_name},
    {"change-name", change_name},
    {"form-header", form_header},
    {"form-file", form_file},
    {"form-files", form_files},
    {"form-content", form_content},
    {"form-stream", form_stream},
    {"perform", perform},
    {"perform-copy", perform_copy},
    {"chdir", change_directory},
    {"write", write_file},
};

static void obey(struct work *work, const char *word)
{
    size_t length = strcspn(word, "=");
    const char *value = word[length] ? word + length + 1 : "";
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strlen(words[i].name) == length && strncmp(words[i].name, word, length) == 0) {
            words[i].obey(work, value);
            return;
        }
    exit(2);
}

static void begin(struct work *work)
{
    memset(work, 0, sizeof *work);
    work->easy = curl_easy_init();
    if (!work->easy)
        exit(3);
    curl_easy_setopt(work->easy, CURLOPT_URL, url);
    curl_easy_setopt(work->easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(work->easy, CURLOPT_TIMEOUT, 60L);
    curl_easy_setopt(work->easy, CURLOPT_WRITEFUNCTION, receive);
    curl_easy_setopt(work->easy, CURLOPT_WRITEDATA, work);
    curl_easy_setopt(work->easy, CURLOPT_VERBOSE, 1L);
    curl_easy_setopt(work->easy, CURLOPT_DEBUGFUNCTION, on_debug);
    curl_easy_setopt(work->easy, CURLOPT_DEBUGDATA, work);
    curl_easy_setopt(work->easy, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(work->easy, CURLOPT_XFERINFOFUNCTION, on_progress);
    curl_easy_setopt(work->easy, CURLOPT_XFERINFODATA, work);
}

static void end(struct work *work)
{
    curl_easy_cleanup(work->easy);
    free_structure(work, "");
    curl_formfree(work->form);
    curl_slist_free_all(work->fields);
    curl_slist_free_all(work->headers);
    free(work->name);
    free(work->pointer);
}

/* -------------------------------------------------------------------- threads ---- */

static int times;

static void build(struct work *work, const char *const *script)
{
    for (; *script; script++)
        obey(work, *script);
}

static void *build_often(void *unused)
{
    static const char *const nested[] = {"part", "once=a", "part",        "nest", "once=b", "part", "nest",
                                         "end",  "end",    "no-subparts", "part", "nest",   "end",  NULL};
    static const char *const last[] = {"part", "data=c", "part", "nest", "data=d", "end", "perform=key", NULL};
    static const char *const form[] = {"form-copy=e", "perform=key", NULL};
    struct work work;
    begin(&work);
    for (int i = 0; i < times; i++) {
        build(&work, nested);
        free_structure(&work, "");
    }
    build(&work, last);
    perform_copy(&work, "");
    free_structure(&work, "");
    build(&work, form);
    end(&work);
    return NULL;
}

static int run_threads(int count)
{
    pthread_t *threads = calloc((size_t)count, sizeof *threads);
    for (int i = 0; i < count; i++)
        pthread_create(&threads[i], NULL, build_often, NULL);
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    free(threads);
    return 0;
}

int main(int argc, char **argv)
{
    struct work work;
    if (argc < 3)
        return 2;
    signal(SIGPIPE, SIG_IGN);
    curl_global_init(CURL_GLOBAL_ALL);
    url = argv[1];
    if (strcmp(argv[2], "threads") == 0 && argc == 5) {
        times = atoi(argv[4]);
        return run_threads(atoi(argv[3]));
    }
    begin(&work);
    for (int i = 2; i < argc; i++) {
        if (strcmp(argv[i], "then") == 0 && i + 1 < argc)
            work.later = argv[++i];
        else
            obey(&work, argv[i]);
    }
    end(&work);
    return 0;
}
