/* SPDX-License-Identifier: MIT */
/*
 * Uploads whose body, or what is known of it, is not what it seems:
 *
 *     careless KIND URL
 *
 * The kinds are in the table at the end.  What is "late" is done by the progress callback as soon as all is sent,
 * when the answer is still to come.  Prints libcurl's result and the status.
 */
#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BEGINNING 19 /* where an upload of a part begins */

static CURL *easy;
static struct curl_slist *headers;
static curl_mime *form;
static char memory[] = "aaaaaaaaaa";
static FILE *other;
static void (*late)(void);

/* ----------------------------------------------------------------------- callbacks ---- */

static int on_progress(void *unused, curl_off_t a, curl_off_t b, curl_off_t to_send, curl_off_t sent)
{
    (void)unused, (void)a, (void)b;
    if (sent && sent == to_send && late) {
        late();
        late = NULL;
    }
    return 0;
}

static size_t read_nothing(char *buffer, size_t size, size_t count, void *unused)
{
    (void)buffer, (void)size, (void)count, (void)unused;
    return 0;
}

static size_t read_descriptor(char *buffer, size_t size, size_t count, void *descriptor)
{
    ssize_t length = read(*(int *)descriptor, buffer, size * count);
    return length < 0 ? CURL_READFUNC_ABORT : (size_t)length;
}

static int seek_descriptor(void *descriptor, curl_off_t offset, int origin)
{
    return lseek(*(int *)descriptor, offset, origin) < 0;
}

static int on_trailer(struct curl_slist **list, void *unused)
{
    (void)unused;
    *list = curl_slist_append(*list, "X-Sum: 1");
    return CURL_TRAILERFUNC_OK;
}

/* -------------------------------------------------------------------- what is late ---- */

static void change_memory(void)
{
    memset(memory, 'b', sizeof memory - 1);
}

static void change_key(void)
{
    headers->data[strlen(headers->data) - 1] = '2';
}

static void replace_file(void)
{
    curl_easy_setopt(easy, CURLOPT_READDATA, other);
}

static void build_form(const char *text)
{
    form = curl_mime_init(easy);
    curl_mimepart *part = curl_mime_addpart(form);
    curl_mime_name(part, "part");
    curl_mime_data(part, text, CURL_ZERO_TERMINATED);
}

static void rebuild_form(void)
{
    curl_mime_free(form);
    build_form("bbbbbbbbbb");
}

/* -------------------------------------------------------------------------- kinds ---- */

static FILE *file_of(const char *text)
{
    FILE *file = tmpfile();
    fputs(text, file);
    rewind(file);
    return file;
}

static void upload(FILE *file, long size)
{
    curl_easy_setopt(easy, CURLOPT_UPLOAD, 1L);
    curl_easy_setopt(easy, CURLOPT_READDATA, file);
    curl_easy_setopt(easy, CURLOPT_INFILESIZE, size);
}

static void add_header(const char *line)
{
    headers = curl_slist_append(headers, line);
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
}

/* Nothing is to be read, and what there is cannot be: no FILE at all. */
static void empty_put(void)
{
    static char no_file[64];
    memset(no_file, 0xff, sizeof no_file);
    upload((FILE *)(void *)no_file, 0);
}

static void empty_post(void)
{
    empty_put();
    curl_easy_setopt(easy, CURLOPT_POST, 1L);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE, 0L);
    add_header("Idempotency-Key: 1");
}

static void empty_reader(void)
{
    upload(NULL, -1);
    curl_easy_setopt(easy, CURLOPT_READFUNCTION, read_nothing);
}

static void trailers_of_file(void)
{
    upload(file_of("0123456789"), -1);
    add_header("Trailer: X-Sum");
    curl_easy_setopt(easy, CURLOPT_TRAILERFUNCTION, on_trailer);
}

static void trailers_of_form(void)
{
    build_form("aaaaaaaaaa");
    curl_easy_setopt(easy, CURLOPT_MIMEPOST, form);
    add_header("Trailer: X-Sum");
    add_header("Transfer-Encoding: chunked");
    add_header("Idempotency-Key: 1");
    curl_easy_setopt(easy, CURLOPT_TRAILERFUNCTION, on_trailer);
}

/* Its seek callback begins at the beginning of the file, where this body does not. */
static void part_of_file(void)
{
    static int descriptor;
    descriptor = fileno(tmpfile());
    for (int i = 0; i < 1000; i++)
        dprintf(descriptor, "line %05d\n", i);
    lseek(descriptor, BEGINNING, SEEK_SET);
    upload((FILE *)(void *)&descriptor, -1);
    curl_easy_setopt(easy, CURLOPT_READFUNCTION, read_descriptor);
    curl_easy_setopt(easy, CURLOPT_SEEKFUNCTION, seek_descriptor);
    curl_easy_setopt(easy, CURLOPT_SEEKDATA, &descriptor);
}

static void pushed_back(void)
{
    FILE *file = file_of("0123456789");
    getc(file);
    ungetc('X', file);
    upload(file, 10);
}

static void memory_as_file(void)
{
    upload(fmemopen(memory, sizeof memory - 1, "r"), sizeof memory - 1);
    late = change_memory;
}

static void file_replaced(void)
{
    other = file_of("bbbbbbbbbb");
    upload(file_of("aaaaaaaaaa"), 10);
    late = replace_file;
}

static void key_in_place(void)
{
    add_header("Idempotency-Key: 1");
    curl_easy_setopt(easy, CURLOPT_COPYPOSTFIELDS, "amount=10");
    late = change_key;
}

static void form_rebuilt(void)
{
    build_form("aaaaaaaaaa");
    curl_easy_setopt(easy, CURLOPT_MIMEPOST, form);
    add_header("Idempotency-Key: 1");
    late = rebuild_form;
}

static void made_up_file(void)
{
    upload(fopen("/proc/uptime", "r"), -1);
}

static void made_up_part(void)
{
    form = curl_mime_init(easy);
    curl_mimepart *part = curl_mime_addpart(form);
    curl_mime_name(part, "part");
    curl_mime_filedata(part, "/proc/uptime");
    curl_easy_setopt(easy, CURLOPT_MIMEPOST, form);
    add_header("Idempotency-Key: 1");
}

static const struct {
    const char *name;
    void (*set_up)(void);
} kinds[] = {
    {"empty-put", empty_put},
    {"empty-post", empty_post},
    {"empty-reader", empty_reader},
    {"trailers-of-file", trailers_of_file},
    {"trailers-of-form", trailers_of_form},
    {"part-of-file", part_of_file},
    {"pushed-back", pushed_back},
    {"memory-as-file", memory_as_file},
    {"file-replaced", file_replaced},
    {"key-in-place", key_in_place},
    {"form-rebuilt", form_rebuilt},
    {"made-up-file", made_up_file},
    {"made-up-part", made_up_part},
};

int main(int count, char **words)
{
    long status = 0;
    if (count != 3)
        return 2;
    easy = curl_easy_init();
    curl_easy_setopt(easy, CURLOPT_URL, words[2]);
    curl_easy_setopt(easy, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(easy, CURLOPT_XFERINFOFUNCTION, on_progress);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (!strcmp(kinds[i].name, words[1]))
            kinds[i].set_up();
    CURLcode code = curl_easy_perform(easy);
    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    printf("%d %ld\n", (int)code, status);
    curl_easy_cleanup(easy);
    curl_mime_free(form);
    curl_slist_free_all(headers);
    return 0;
}
