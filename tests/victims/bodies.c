/* SPDX-License-Identifier: MIT */
/*
 * A program that sends request bodies of every kind that libcurl has.
 *
 *     bodies SCRIPT
 *
 * Each line of the file is one request on a handle of its own, in words NAME=VALUE:
 *
 *     kind=read method=PUT url=http://127.0.0.1/x size=3000 known=1 key=1
 *
 * kind names the source of the body (the table at the end); of `size` bytes, of which the first
 * `offset` are skipped.  known=0: no size is told.  header=NAME:VALUE is sent along.  The body is the
 * numbers 0000000, 0000001 ... in hexadecimal, a line each, so that nothing can be missing or double
 * without being seen.
 *
 * The same handle makes a GET of before=URL before that, and one of after=URL after it, and then sends the
 * same body once more to again=URL, as far as they are given; and so does a copy of the handle, made after
 * a refusal while the transfer was still under way, to copy=URL.  A line of JSON per request tells what came of it and
 * what the callbacks were given.
 */
#define _GNU_SOURCE
#include <curl/curl.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CONTENT_MAX (2 << 20)
static char content[CONTENT_MAX];

enum reader { READER_NONE, READER_CALLBACK, READER_FILE };

struct kind {
    const char *name;
    enum reader reader;
    void (*build)(void); /* sets the options of the body */
};
static const struct kind *kind;

static struct cell {
    char kind[32], method[16], url[256], before[256], after[256], again[256], copy[256], file[512];
    long long size, offset, chunk, upload_buffer, known, low_speed, http2;
} cell;

static CURL *easy, *copy;
static curl_mime *mime;
static struct curl_httppost *form;
static struct curl_slist *list;
static FILE *input;
static char *fields;

static struct {
    long long position, given;
    int seeks, pauses;
    bool paused, was_refused, changed;
} source;

static struct received {
    char bytes[8192];
    size_t length;
} headers, body;

/* ------------------------------------------------------------------- the source ---- */

static bool is(const char *name)
{
    return strcmp(cell.kind, name) == 0;
}

static size_t on_read(char *buffer, size_t size, size_t count, void *unused)
{
    (void)unused;
    if (is("read-aborts") && source.position >= cell.size / 2)
        return CURL_READFUNC_ABORT;
    if (is("read-aborts-again") && source.seeks)
        return CURL_READFUNC_ABORT;
    if (is("read-pauses") && source.pauses < 2 && source.position >= (source.pauses ? cell.size * 3 / 4 : 1)) {
        source.pauses++;
        source.paused = true;
        return CURL_READFUNC_PAUSE;
    }
    long long room = (long long)size * (long long)count, left = cell.size - source.position;
    if (cell.chunk && room > cell.chunk)
        room = cell.chunk;
    if (room > left)
        room = left;
    memcpy(buffer, content + source.position, (size_t)room);
    source.position += room;
    source.given += room;
    return (size_t)room;
}

/* Something else altogether. */
static size_t read_nothing(char *buffer, size_t size, size_t count, void *unused)
{
    (void)buffer, (void)size, (void)count, (void)unused;
    return 0;
}

static int on_seek(void *unused, curl_off_t offset, int origin)
{
    (void)unused;
    source.seeks++;
    if (is("read-cantseek"))
        return CURL_SEEKFUNC_CANTSEEK;
    if (is("read-failseek"))
        return CURL_SEEKFUNC_FAIL;
    if (origin != SEEK_SET || offset < 0 || offset > cell.size)
        return CURL_SEEKFUNC_FAIL;
    source.position = offset;
    return CURL_SEEKFUNC_OK;
}

static curlioerr on_ioctl(CURL *handle, int command, void *unused)
{
    (void)handle;
    (void)unused;
    if (command != CURLIOCMD_RESTARTREAD)
        return CURLIOE_UNKNOWNCMD;
    source.seeks++;
    source.position = 0;
    return CURLIOE_OK;
}

static void write_file(const char *text, long long length)
{
    FILE *file = fopen(cell.file, "wb");
    if (!file || fwrite(text, 1, (size_t)length, file) != (size_t)length || fclose(file))
        exit(3);
}

struct filling {
    int descriptor;
    long long size;
};

static void *fill_pipe(void *userdata)
{
    struct filling filling = *(struct filling *)userdata;
    FILE *file = fdopen(filling.descriptor, "wb");
    free(userdata);
    fwrite(content, 1, (size_t)filling.size, file);
    fclose(file);
    return NULL;
}

static void open_pipe(void)
{
    int ends[2];
    pthread_t writer;
    struct filling *filling = malloc(sizeof *filling);
    if (!filling || pipe2(ends, O_CLOEXEC))
        exit(3);
    *filling = (struct filling){ends[1], cell.size};
    if (pthread_create(&writer, NULL, fill_pipe, filling))
        exit(3);
    pthread_detach(writer);
    input = fdopen(ends[0], "rb");
    for (long long i = 0; i < cell.offset; i++)
        getc(input);
    curl_easy_setopt(easy, CURLOPT_READDATA, input);
}

/* The source is as it was before the first request: what a program does before it sends again. */
static void rearm(void)
{
    int seeks = source.seeks;
    long long given = source.given;
    memset(&source, 0, sizeof source);
    source.seeks = is("read-aborts-again") ? 0 : seeks;
    source.given = given;
    if (fields)
        memcpy(fields, content, (size_t)cell.size);
    if (is("fields-replaced"))
        curl_easy_setopt(easy, CURLOPT_POSTFIELDS, fields);
    if (is("read-replaced"))
        curl_easy_setopt(easy, CURLOPT_READFUNCTION, on_read);
    if (strstr(cell.kind, "file-changed"))
        write_file(content, cell.size);
    if (is("pipe")) {
        fclose(input);
        open_pipe();
    } else if (input) {
        fseeko(input, is("resume-file") ? 0 : cell.offset, SEEK_SET);
    }
}

/* ------------------------------------------------------------------ the options ---- */

static void build_nothing(void)
{
}

static void build_fields(void)
{
    fields = malloc((size_t)cell.size + 1);
    memcpy(fields, content, (size_t)cell.size);
    fields[cell.size] = '\0';
    curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, cell.known ? (curl_off_t)cell.size : (curl_off_t)-1);
    curl_easy_setopt(easy, is("copyfields") ? CURLOPT_COPYPOSTFIELDS : CURLOPT_POSTFIELDS, fields);
    if (is("copyfields"))
        memset(fields, '-', (size_t)cell.size);
}

static void build_mime(void)
{
    mime = curl_mime_init(easy);
    curl_mimepart *field = curl_mime_addpart(mime), *part = curl_mime_addpart(mime);
    curl_mime_name(field, "field");
    curl_mime_data(field, "value", CURL_ZERO_TERMINATED);
    curl_mime_name(part, "part");
    if (is("mime-data")) {
        curl_mime_data(part, content, (size_t)cell.size);
    } else if (is("mime-file") || is("mime-file-changed")) {
        write_file(content, cell.size);
        curl_mime_filedata(part, cell.file);
        curl_mime_filename(part, "name.bin");
        curl_mime_type(part, "application/octet-stream");
    } else {
        curl_off_t size = cell.known ? (curl_off_t)cell.size : -1;
        curl_mime_data_cb(part, size, on_read, is("mime-seek") ? on_seek : NULL, NULL, NULL);
    }
}

static void build_form(void)
{
    struct curl_httppost *last = NULL;
    curl_formadd(&form, &last, CURLFORM_COPYNAME, "field", CURLFORM_COPYCONTENTS, "value", CURLFORM_END);
    if (is("form-contents")) {
        curl_formadd(&form, &last, CURLFORM_COPYNAME, "part", CURLFORM_COPYCONTENTS, content, CURLFORM_CONTENTLEN,
                     (curl_off_t)cell.size, CURLFORM_END);
    } else if (is("form-file")) {
        write_file(content, cell.size);
        curl_formadd(&form, &last, CURLFORM_COPYNAME, "part", CURLFORM_FILE, cell.file, CURLFORM_FILENAME, "name.bin",
                     CURLFORM_CONTENTTYPE, "application/octet-stream", CURLFORM_END);
    } else if (strstr(cell.kind, "pointer")) {
        fields = malloc((size_t)cell.size);
        memcpy(fields, content, (size_t)cell.size);
        curl_formadd(&form, &last, CURLFORM_COPYNAME, "part", CURLFORM_PTRCONTENTS, fields, CURLFORM_CONTENTLEN,
                     (curl_off_t)cell.size, CURLFORM_END);
    } else if (is("form-buffer-file")) {
        fields = malloc((size_t)cell.size);
        memcpy(fields, content, (size_t)cell.size);
        curl_formadd(&form, &last, CURLFORM_COPYNAME, "part", CURLFORM_BUFFER, "name.bin", CURLFORM_BUFFERPTR, fields,
                     CURLFORM_BUFFERLENGTH, (long)cell.size, CURLFORM_CONTENTTYPE, "application/octet-stream",
                     CURLFORM_END);
    } else {
        curl_easy_setopt(easy, CURLOPT_READFUNCTION, on_read);
        curl_formadd(&form, &last, CURLFORM_COPYNAME, "part", CURLFORM_STREAM, &source, CURLFORM_CONTENTLEN,
                     (curl_off_t)cell.size, CURLFORM_FILENAME, "name.bin", CURLFORM_CONTENTTYPE,
                     "application/octet-stream", CURLFORM_END);
    }
}

static void build_read(void)
{
    curl_easy_setopt(easy, CURLOPT_READFUNCTION, on_read);
    if (strstr(cell.kind, "seek") || is("read-aborts-again"))
        curl_easy_setopt(easy, CURLOPT_SEEKFUNCTION, on_seek);
    if (is("read-ioctl"))
        curl_easy_setopt(easy, CURLOPT_IOCTLFUNCTION, on_ioctl);
}

static void build_file(void)
{
    write_file(content, cell.size);
    input = is("file-memory") ? fmemopen(content, (size_t)cell.size, "rb") : fopen(cell.file, "rb");
    if (is("file-fread"))
        curl_easy_setopt(easy, CURLOPT_READFUNCTION, fread);
    fseeko(input, is("resume-file") ? 0 : cell.offset, SEEK_SET);
    curl_easy_setopt(easy, CURLOPT_READDATA, input);
}

/* Of a body by reader; by method. */
static void tell_size(void)
{
    bool resumes = strncmp(cell.kind, "resume", 6) == 0, posts = strcmp(cell.method, "POST") == 0;
    curl_off_t size = resumes ? cell.size : cell.size - cell.offset;
    curl_easy_setopt(easy, posts ? CURLOPT_POSTFIELDSIZE_LARGE : CURLOPT_INFILESIZE_LARGE,
                     cell.known ? size : (curl_off_t)-1);
    curl_easy_setopt(easy, CURLOPT_RESUME_FROM_LARGE, (curl_off_t)(resumes ? cell.offset : 0));
}

static void set_request(const char *url)
{
    bool posts = strcmp(cell.method, "POST") == 0;
    curl_easy_setopt(easy, CURLOPT_URL, url);
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, list);
    if (kind->reader) {
        curl_easy_setopt(easy, posts ? CURLOPT_POST : CURLOPT_UPLOAD, 1L);
        tell_size();
    } else if (mime) {
        curl_easy_setopt(easy, CURLOPT_MIMEPOST, mime);
        posts = false;
    } else if (form) {
        curl_easy_setopt(easy, CURLOPT_HTTPPOST, form);
        posts = false;
    } else if (fields) {
        curl_easy_setopt(easy, CURLOPT_POST, 1L);
    } else {
        posts = false;
    }
    bool by_itself = posts || (kind->reader && strcmp(cell.method, "PUT") == 0);
    curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, by_itself ? NULL : cell.method);
}

/* ---------------------------------------------------------------- the callbacks ---- */

static size_t receive(char *data, size_t size, size_t count, void *userdata)
{
    struct received *received = userdata;
    size_t length = size * count;
    if (received->length + length >= sizeof received->bytes)
        return 0;
    memcpy(received->bytes + received->length, data, length);
    received->length += length;
    return length;
}

/* The status line of a refusal passes, of whichever attempt. */
static int on_debug(CURL *handle, curl_infotype type, char *data, size_t size, void *unused)
{
    (void)handle;
    (void)unused;
    if (type == CURLINFO_HEADER_IN && size > 9 && memcmp(data, "HTTP/", 5) == 0 && (data[9] == '4' || data[9] == '5'))
        source.was_refused = true;
    return 0;
}

static int on_progress(void *unused, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
    (void)unused, (void)a, (void)b, (void)c, (void)d;
    if (source.paused) {
        source.paused = false;
        curl_easy_pause(easy, CURLPAUSE_CONT);
    }
    if (source.was_refused && !source.changed) {
        source.changed = true;
        if (is("fields-changed") || is("form-pointer-changed"))
            fields[cell.size / 2] = '!';
        if (strstr(cell.kind, "file-changed"))
            write_file(content + 8, cell.size);
        if (is("fields-replaced"))
            curl_easy_setopt(easy, CURLOPT_POSTFIELDS, content + 8);
        if (is("read-replaced"))
            curl_easy_setopt(easy, CURLOPT_READFUNCTION, read_nothing);
        if (cell.copy[0])
            copy = curl_easy_duphandle(easy);
    }
    return 0;
}

static void set_callbacks(void)
{
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, receive);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, &body);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, receive);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, &headers);
    curl_easy_setopt(easy, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(easy, CURLOPT_XFERINFOFUNCTION, on_progress);
    curl_easy_setopt(easy, CURLOPT_TIMEOUT, 30L);
    if (strstr(cell.kind, "changed") || strstr(cell.kind, "replaced") || cell.copy[0]) {
        curl_easy_setopt(easy, CURLOPT_VERBOSE, 1L);
        curl_easy_setopt(easy, CURLOPT_DEBUGFUNCTION, on_debug);
    }
    if (cell.upload_buffer)
        curl_easy_setopt(easy, CURLOPT_UPLOAD_BUFFERSIZE, (long)cell.upload_buffer);
    if (cell.low_speed) {
        curl_easy_setopt(easy, CURLOPT_LOW_SPEED_LIMIT, 1000000L);
        curl_easy_setopt(easy, CURLOPT_LOW_SPEED_TIME, 1L);
    }
    if (cell.http2)
        curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE);
}

/* ------------------------------------------------------------------- a request ---- */

static void print_text(const char *name, const struct received *received)
{
    printf(", \"%s\": \"", name);
    for (size_t i = 0; i < received->length; i++) {
        unsigned char byte = (unsigned char)received->bytes[i];
        if (byte < ' ' || byte > '~' || byte == '"' || byte == '\\')
            printf("\\u%04x", byte);
        else
            putchar(byte);
    }
    putchar('"');
}

static void perform(const char *what)
{
    long status = 0;
    headers.length = body.length = 0;
    int result = curl_easy_perform(easy);
    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    printf("\"%s\": {\"code\": %d, \"status\": %ld, \"given\": %lld, \"seeks\": %d", what, result, status, source.given,
           source.seeks);
    print_text("headers", &headers);
    print_text("body", &body);
    putchar('}');
}

static void perform_get(const char *what, const char *url)
{
    curl_easy_setopt(easy, CURLOPT_HTTPGET, 1L);
    curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, NULL);
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, NULL);
    curl_easy_setopt(easy, CURLOPT_RESUME_FROM_LARGE, (curl_off_t)0);
    curl_easy_setopt(easy, CURLOPT_URL, url);
    perform(what);
}

static void perform_again(void)
{
    rearm();
    /* What was read of such a part cannot be read again by libcurl either. */
    if (is("mime-read")) {
        curl_mime_free(mime);
        build_mime();
    }
    set_request(cell.again);
    printf(", ");
    perform("again");
}

/* What the program goes on with is the copy. */
static void perform_copy(void)
{
    curl_easy_cleanup(easy);
    easy = copy;
    copy = NULL;
    curl_easy_setopt(easy, CURLOPT_URL, cell.copy);
    rearm();
    printf(", ");
    perform("copy");
}

static void clean_up(void)
{
    curl_easy_cleanup(easy);
    curl_mime_free(mime);
    curl_formfree(form);
    curl_slist_free_all(list);
    if (input)
        fclose(input);
    free(fields);
    easy = NULL, mime = NULL, form = NULL, list = NULL, input = NULL, fields = NULL;
}

static void build_pipe(void)
{
    open_pipe();
}

static const struct kind kinds[] = {
    {"none", READER_NONE, build_nothing},
    {"fields", READER_NONE, build_fields},
    {"fields-changed", READER_NONE, build_fields},
    {"fields-replaced", READER_NONE, build_fields},
    {"copyfields", READER_NONE, build_fields},
    {"mime-data", READER_NONE, build_mime},
    {"mime-file", READER_NONE, build_mime},
    {"mime-file-changed", READER_NONE, build_mime},
    {"mime-seek", READER_NONE, build_mime},
    {"mime-read", READER_NONE, build_mime},
    {"form-contents", READER_NONE, build_form},
    {"form-file", READER_NONE, build_form},
    {"form-stream", READER_NONE, build_form},
    {"form-pointer", READER_NONE, build_form},
    {"form-pointer-changed", READER_NONE, build_form},
    {"form-buffer-file", READER_NONE, build_form},
    {"read", READER_CALLBACK, build_read},
    {"read-seek", READER_CALLBACK, build_read},
    {"read-cantseek", READER_CALLBACK, build_read},
    {"read-failseek", READER_CALLBACK, build_read},
    {"read-ioctl", READER_CALLBACK, build_read},
    {"read-pauses", READER_CALLBACK, build_read},
    {"read-replaced", READER_CALLBACK, build_read},
    {"read-aborts", READER_CALLBACK, build_read},
    {"read-aborts-again", READER_CALLBACK, build_read},
    {"resume-read", READER_CALLBACK, build_read},
    {"resume-seek", READER_CALLBACK, build_read},
    {"resume-file", READER_FILE, build_file},
    {"file", READER_FILE, build_file},
    {"file-changed", READER_FILE, build_file},
    {"file-fread", READER_FILE, build_file},
    {"file-memory", READER_FILE, build_file},
    {"pipe", READER_FILE, build_pipe},
};

static void obey(char *word)
{
    char *value = strchr(word, '=');
    if (!value)
        exit(2);
    *value++ = '\0';
    const struct {
        const char *name;
        char *text;
        size_t room;
        long long *number;
    } words[] = {
        {"kind", cell.kind, sizeof cell.kind, NULL},
        {"method", cell.method, sizeof cell.method, NULL},
        {"url", cell.url, sizeof cell.url, NULL},
        {"before", cell.before, sizeof cell.before, NULL},
        {"after", cell.after, sizeof cell.after, NULL},
        {"again", cell.again, sizeof cell.again, NULL},
        {"copy", cell.copy, sizeof cell.copy, NULL},
        {"file", cell.file, sizeof cell.file, NULL},
        {"size", NULL, 0, &cell.size},
        {"offset", NULL, 0, &cell.offset},
        {"chunk", NULL, 0, &cell.chunk},
        {"upload_buffer", NULL, 0, &cell.upload_buffer},
        {"known", NULL, 0, &cell.known},
        {"low_speed", NULL, 0, &cell.low_speed},
        {"http2", NULL, 0, &cell.http2},
    };
    if (strcmp(word, "header") == 0) {
        list = curl_slist_append(list, value);
        return;
    }
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strcmp(words[i].name, word) != 0)
            continue;
        if (words[i].number)
            *words[i].number = atoll(value);
        else
            snprintf(words[i].text, words[i].room, "%s", value);
        return;
    }
    exit(2);
}

static void run(char *line)
{
    memset(&cell, 0, sizeof cell);
    memset(&source, 0, sizeof source);
    for (char *rest, *word = strtok_r(line, " \n", &rest); word; word = strtok_r(NULL, " \n", &rest))
        obey(word);
    for (kind = kinds; kind < kinds + sizeof kinds / sizeof kinds[0] && strcmp(kind->name, cell.kind) != 0; kind++)
        continue;
    if (kind == kinds + sizeof kinds / sizeof kinds[0] || cell.size + 8 > CONTENT_MAX)
        exit(2);
    easy = curl_easy_init();
    set_callbacks();
    kind->build();
    putchar('{');
    if (cell.before[0]) {
        perform_get("before", cell.before);
        printf(", ");
    }
    set_request(cell.url);
    perform("first");
    if (cell.after[0]) {
        printf(", ");
        perform_get("after", cell.after);
    }
    if (cell.again[0])
        perform_again();
    if (copy)
        perform_copy();
    printf("}\n");
    fflush(stdout);
    clean_up();
}

int main(int argc, char **argv)
{
    static char line[8192];
    signal(SIGPIPE, SIG_IGN);
    for (int i = 0; i < CONTENT_MAX; i++)
        content[i] = i % 8 == 7 ? '\n' : "0123456789abcdef"[(i / 8) >> (4 * (6 - i % 8)) & 15];
    FILE *script = argc == 2 ? fopen(argv[1], "r") : NULL;
    if (!script)
        return 2;
    while (fgets(line, sizeof line, script))
        run(line);
    fclose(script);
    return 0;
}
