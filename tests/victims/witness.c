/* SPDX-License-Identifier: MIT */
/*
 * A program that bears witness: every call of every callback that libcurl has for HTTP, with its
 * arguments and what getinfo says at that moment; and after each transfer all that getinfo and the
 * header API can tell.
 *
 *     witness WORD...
 *
 * obeys the words in order.  NAME=VALUE in capitals sets that option of libcurl's (a list's parts with |
 * between them); other words are in the table at the end.  EVENT:N=WORD and EVENT=WORD: see rules.h.
 *
 *     witness URL=http://127.0.0.1/ header:2=pause progress=continue perform
 *
 * Callbacks are given a text as their data, and tell whose it is.  What depends on time is put
 * together: how often progress was told, and in which pieces a large body came.
 */
#include "drive.h"
#include "rules.h"

#include <curl/curl.h>
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static CURL *easy, *copy;
static char message[CURL_ERROR_SIZE], other_message[CURL_ERROR_SIZE];

/* ------------------------------------------------------------------- the record ---- */

static char *pending; /* lines about the body since the last other line */
static size_t pending_length;
static size_t body_bytes;
static unsigned long body_sum;

#define BODY_TOLD_PIECEWISE 8192

static void flush_body(void)
{
    if (body_bytes > BODY_TOLD_PIECEWISE)
        printf("body of %zu bytes, sum %lx\n", body_bytes, body_sum);
    else if (pending)
        fputs(pending, stdout);
    free(pending);
    pending = NULL;
    pending_length = body_bytes = body_sum = 0;
}

static void tell(const char *format, ...)
{
    va_list arguments;
    flush_body();
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    putchar('\n');
}

/* Bytes in one line of text.  Valid until the call after the next. */
static const char *text(const char *data, size_t length)
{
    static char buffers[2][4 * 1000 + 32];
    static int which;
    char *buffer = buffers[which ^= 1], *end = buffer;
    for (size_t i = 0; i < length && i < 1000; i++) {
        unsigned char byte = (unsigned char)data[i];
        if (byte == '\r' || byte == '\n')
            end += sprintf(end, byte == '\r' ? "\\r" : "\\n");
        else
            end += sprintf(end, isprint(byte) ? "%c" : "\\x%02x", byte);
    }
    sprintf(end, length > 1000 ? "... of %zu" : "", length);
    return buffer;
}

static const char *or_none(const char *string)
{
    return string ? string : "none";
}

static long number(CURLINFO info)
{
    long value = -1;
    curl_easy_getinfo(easy, info, &value);
    return value;
}

static long long offset(CURLINFO info)
{
    curl_off_t value = -1;
    curl_easy_getinfo(easy, info, &value);
    return value;
}

static const char *string(CURLINFO info)
{
    char *value = NULL;
    curl_easy_getinfo(easy, info, &value);
    return or_none(value);
}

#define ANY_ORIGIN (CURLH_HEADER | CURLH_TRAILER | CURLH_CONNECT | CURLH_1XX | CURLH_PSEUDO)

static int count_headers(void)
{
    int count = 0;
    for (struct curl_header *header = NULL; (header = curl_easy_nextheader(easy, ANY_ORIGIN, -1, header));)
        count++;
    return count;
}

/* Whose response is it, as far as is known by now. */
static const char *whose(void)
{
    static char line[1024];
    snprintf(line, sizeof line, "status %ld proxy %ld url %s redirects %ld", number(CURLINFO_RESPONSE_CODE),
             number(CURLINFO_HTTP_CONNECTCODE), string(CURLINFO_EFFECTIVE_URL), number(CURLINFO_REDIRECT_COUNT));
    return line;
}

/* How far has it come. */
static const char *how_far(void)
{
    static char line[512];
    snprintf(line, sizeof line, "so far: down %lld of %lld up %lld of %lld header bytes %ld lines %d type %s",
             offset(CURLINFO_SIZE_DOWNLOAD_T), offset(CURLINFO_CONTENT_LENGTH_DOWNLOAD_T),
             offset(CURLINFO_SIZE_UPLOAD_T), offset(CURLINFO_CONTENT_LENGTH_UPLOAD_T), number(CURLINFO_HEADER_SIZE),
             count_headers(), string(CURLINFO_CONTENT_TYPE));
    return line;
}

/* ------------------------------------------------------------------------ rules ---- */

/* clang-format off */
#define EVENTS(X) \
    X(header) X(body) X(read) X(seek) X(ioctl) X(trailer) X(progress) X(answered) X(waiting) X(debug) \
    X(opensocket) X(sockopt) X(closesocket) X(prereq) X(resolver) X(ssl) X(hsts)
/* clang-format on */
#define EVENT(name) at_##name,
#define NAME(name) #name,
enum event { EVENTS(EVENT) EVENT_COUNT };
static const char *const event_names[] = {EVENTS(NAME)};

/* What becomes of the call is told, too. */
static enum verdict told(enum event event)
{
    enum verdict mine = happens(event);
    if (mine != TAKE)
        tell("  which %s", mine == PAUSE ? "pauses" : mine == REFUSE ? "is refused" : "is taken in part");
    return mine;
}

/* ---------------------------------------------------------------- response, upload ---- */

static size_t taken(enum event event, size_t length)
{
    switch (told(event)) {
    case PAUSE:
        return CURL_WRITEFUNC_PAUSE;
    case REFUSE:
        return 0;
    case SHORT:
        return length - 1;
    default:
        return length;
    }
}

static size_t on_header(char *data, size_t size, size_t count, void *name)
{
    tell("header for %s: %zu \"%s\"", or_none(name), size, text(data, count));
    tell("  %s", whose());
    tell("  %s", how_far());
    return taken(at_header, size * count);
}

static size_t on_body(char *data, size_t size, size_t count, void *name)
{
    char *line;
    int length = asprintf(&line, "body for %s: %zu %zu \"%s\"\n  %s\n  %s\n", or_none(name), size, count,
                          text(data, count), whose(), how_far());
    pending = realloc(pending, pending_length + (size_t)length + 1);
    memcpy(pending + pending_length, line, (size_t)length + 1);
    pending_length += (size_t)length;
    body_bytes += size * count;
    for (size_t i = 0; i < count; i++)
        body_sum = body_sum * 31 + (unsigned char)data[i];
    free(line);
    return taken(at_body, size * count);
}

static size_t on_other_body(char *data, size_t size, size_t count, void *name)
{
    tell("the other writer:");
    return on_body(data, size, count, name);
}

static size_t upload_size, upload_position;

static size_t on_read(char *buffer, size_t size, size_t count, void *name)
{
    size_t room = size * count, left = upload_size - upload_position, length = left < room ? left : room;
    tell("read for %s: %zu %zu from %zu, %s", or_none(name), size, count, upload_position, whose());
    switch (told(at_read)) {
    case PAUSE:
        return CURL_READFUNC_PAUSE;
    case REFUSE:
        return CURL_READFUNC_ABORT;
    default:
        break;
    }
    for (size_t i = 0; i < length; i++)
        buffer[i] = "0123456789abcdef"[(upload_position + i) / 16 * 7 % 16];
    upload_position += length;
    return length;
}

static int on_seek(void *name, curl_off_t to, int origin)
{
    tell("seek for %s: %lld %d", or_none(name), (long long)to, origin);
    switch (told(at_seek)) {
    case PAUSE:
        return CURL_SEEKFUNC_CANTSEEK;
    case REFUSE:
        return CURL_SEEKFUNC_FAIL;
    default:
        upload_position = (size_t)to;
        return CURL_SEEKFUNC_OK;
    }
}

static curlioerr on_ioctl(CURL *handle, int command, void *name)
{
    tell("ioctl for %s: %d, %s", or_none(name), command, handle == easy ? "its handle" : "another handle");
    if (told(at_ioctl) != TAKE)
        return CURLIOE_FAILRESTART;
    upload_position = 0;
    return CURLIOE_OK;
}

static int on_trailer(struct curl_slist **list, void *name)
{
    tell("trailer for %s, %s", or_none(name), whose());
    if (told(at_trailer) != TAKE)
        return CURL_TRAILERFUNC_ABORT;
    *list = curl_slist_append(NULL, "X-Trail: 1");
    return CURL_TRAILERFUNC_OK;
}

/* --------------------------------------------------------------------- progress ---- */

#define VIEWS_MAX 32
static struct {
    long long last[4]; /* to download, downloaded, to upload, uploaded */
    int went_back[4];
    char *views[VIEWS_MAX]; /* what getinfo told, each once */
    int view_count;
} progress;

static void note_view(const char *name)
{
    char *view;
    int at = 0;
    if (number(CURLINFO_RESPONSE_CODE) / 100 == 1) /* until the next packet */
        return;
    if (asprintf(&view, "%s: %s type %s", or_none(name), whose(), string(CURLINFO_CONTENT_TYPE)) < 0)
        abort();
    while (at < progress.view_count && strcmp(progress.views[at], view) != 0)
        at++;
    if (at == progress.view_count && at < VIEWS_MAX)
        progress.views[progress.view_count++] = view;
    else
        free(view);
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static double called_last;

/* libcurl notes before each call how long the transfer has taken. */
static int nothing_is_under_way(void)
{
    double since = seconds() - called_last;
    called_last = seconds();
    return since > 0.05 && offset(CURLINFO_TOTAL_TIME_T) == 0;
}

static int on_xferinfo(void *name, curl_off_t to_download, curl_off_t down, curl_off_t to_upload, curl_off_t up)
{
    const long long now[4] = {to_download, down, to_upload, up};
    for (int i = 0; i < 4; i++) {
        progress.went_back[i] += now[i] < progress.last[i];
        progress.last[i] = now[i];
    }
    note_view(name);
    int end = told(at_progress) == REFUSE;
    end |= number(CURLINFO_RESPONSE_CODE) && told(at_answered) == REFUSE;
    end |= nothing_is_under_way() && told(at_waiting) == REFUSE;
    return end;
}

static int on_progress(void *name, double to_download, double down, double to_upload, double up)
{
    return on_xferinfo(name, (curl_off_t)to_download, (curl_off_t)down, (curl_off_t)to_upload, (curl_off_t)up);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void tell_progress(void)
{
    static const char *const what[4] = {"to download", "downloaded", "to upload", "uploaded"};
    for (int i = 0; i < 4; i++)
        tell("progress: %s %lld%s", what[i], progress.last[i], progress.went_back[i] ? ", went back" : "");
    qsort(progress.views, (size_t)progress.view_count, sizeof *progress.views, by_text);
    for (int i = 0; i < progress.view_count; i++)
        tell("progress for %s", progress.views[i]);
    memset(&progress, 0, sizeof progress);
}

/* ------------------------------------------------------------ connections, debug ---- */

static size_t debug_bytes[CURLINFO_END];

static int on_debug(CURL *handle, curl_infotype type, char *data, size_t size, void *name)
{
    static const char *const types[] = {"text", "header in", "header out"};
    if (type > CURLINFO_HEADER_OUT)
        debug_bytes[type] += size;
    else
        tell("debug for %s: %s \"%s\"%s", or_none(name), types[type], text(data, size),
             handle == easy || handle == copy ? "" : " of another handle");
    told(at_debug);
    return 0;
}

static curl_socket_t on_opensocket(void *name, curlsocktype purpose, struct curl_sockaddr *address)
{
    tell("opensocket for %s: %d %d %d %d", or_none(name), purpose, address->family, address->socktype,
         address->protocol);
    if (told(at_opensocket) == REFUSE)
        return CURL_SOCKET_BAD;
    return socket(address->family, address->socktype, address->protocol);
}

static int on_sockopt(void *name, curl_socket_t socket, curlsocktype purpose)
{
    tell("sockopt for %s: %s %d", or_none(name), socket >= 0 ? "open" : "bad", purpose);
    return told(at_sockopt) == REFUSE ? CURL_SOCKOPT_ERROR : CURL_SOCKOPT_OK;
}

static int on_closesocket(void *name, curl_socket_t socket)
{
    tell("closesocket for %s", or_none(name));
    told(at_closesocket);
    return close(socket);
}

static int on_prereq(void *name, char *there, char *here, int port_there, int port_here)
{
    tell("prereq for %s: %s %s %d %s", or_none(name), there, here, port_there, port_here > 0 ? "some port" : "no port");
    return told(at_prereq) == REFUSE ? CURL_PREREQFUNC_ABORT : CURL_PREREQFUNC_OK;
}

static int on_resolver(void *state, void *reserved, void *name)
{
    (void)state;
    tell("resolver for %s%s", or_none(name), reserved ? " with something" : "");
    return told(at_resolver) == REFUSE;
}

static CURLcode on_ssl(CURL *handle, void *context, void *name)
{
    tell("ssl for %s: %s, %s", or_none(name), context ? "a context" : "none",
         handle == easy ? "its handle" : "another handle");
    return told(at_ssl) == REFUSE ? CURLE_ABORTED_BY_CALLBACK : CURLE_OK;
}

static CURLSTScode on_hsts_read(CURL *handle, struct curl_hstsentry *entry, void *name)
{
    tell("hsts read for %s: room %zu, %s", or_none(name), entry->namelen,
         handle == easy ? "its handle" : "another handle");
    return told(at_hsts) == REFUSE ? CURLSTS_FAIL : CURLSTS_DONE;
}

static CURLSTScode on_hsts_write(CURL *handle, struct curl_hstsentry *entry, struct curl_index *index, void *name)
{
    tell("hsts write for %s: %s %zu of %zu, %s", or_none(name), entry->name, index->index, index->total,
         handle == easy ? "its handle" : "another handle");
    return CURLSTS_OK;
}

/* --------------------------------------------------------------- what is told after ---- */

/* clang-format off */
#define INFOS(X)                                                                                                       \
    X(EFFECTIVE_URL) X(RESPONSE_CODE) X(SIZE_UPLOAD) X(SIZE_UPLOAD_T) X(SIZE_DOWNLOAD) X(SIZE_DOWNLOAD_T)              \
    X(HEADER_SIZE) X(REQUEST_SIZE) X(SSL_VERIFYRESULT) X(FILETIME) X(FILETIME_T) X(CONTENT_LENGTH_DOWNLOAD)            \
    X(CONTENT_LENGTH_DOWNLOAD_T) X(CONTENT_LENGTH_UPLOAD) X(CONTENT_LENGTH_UPLOAD_T) X(CONTENT_TYPE) X(REDIRECT_COUNT) \
    X(PRIVATE) X(HTTP_CONNECTCODE) X(HTTPAUTH_AVAIL) X(PROXYAUTH_AVAIL) X(OS_ERRNO) X(NUM_CONNECTS) X(SSL_ENGINES)     \
    X(COOKIELIST) X(LASTSOCKET) X(FTP_ENTRY_PATH) X(REDIRECT_URL) X(PRIMARY_IP) X(CERTINFO) X(CONDITION_UNMET)         \
    X(RTSP_SESSION_ID) X(RTSP_CLIENT_CSEQ) X(RTSP_SERVER_CSEQ) X(RTSP_CSEQ_RECV) X(LOCAL_IP) X(TLS_SESSION)            \
    X(ACTIVESOCKET) X(TLS_SSL_PTR) X(HTTP_VERSION) X(PROXY_SSL_VERIFYRESULT) X(PROTOCOL) X(SCHEME) X(RETRY_AFTER)      \
    X(EFFECTIVE_METHOD) X(PROXY_ERROR) X(REFERER) X(CAINFO) X(CAPATH)
/* Times, speeds, ports and ids: the numbers are those of newer headers (CONN_ID, XFER_ID, QUEUE_TIME_T, ...). */
static const int not_told[] = {
    CURLINFO_TOTAL_TIME, CURLINFO_NAMELOOKUP_TIME, CURLINFO_CONNECT_TIME, CURLINFO_PRETRANSFER_TIME,
    CURLINFO_STARTTRANSFER_TIME, CURLINFO_REDIRECT_TIME, CURLINFO_APPCONNECT_TIME, CURLINFO_TOTAL_TIME_T,
    CURLINFO_NAMELOOKUP_TIME_T, CURLINFO_CONNECT_TIME_T, CURLINFO_PRETRANSFER_TIME_T, CURLINFO_STARTTRANSFER_TIME_T,
    CURLINFO_REDIRECT_TIME_T, CURLINFO_APPCONNECT_TIME_T, CURLINFO_SPEED_DOWNLOAD, CURLINFO_SPEED_DOWNLOAD_T,
    CURLINFO_SPEED_UPLOAD, CURLINFO_SPEED_UPLOAD_T, CURLINFO_PRIMARY_PORT, CURLINFO_LOCAL_PORT,
    CURLINFO_OFF_T + 63, CURLINFO_OFF_T + 64, CURLINFO_OFF_T + 65, CURLINFO_OFF_T + 67,
};
/* clang-format on */

static const char *info_name(int info)
{
    static char buffer[32];
#define INFO(name)                                                                                                     \
    if (info == CURLINFO_##name)                                                                                       \
        return #name;
    INFOS(INFO)
    snprintf(buffer, sizeof buffer, "0x%x", info);
    return buffer;
}

static void tell_list(int info, const char *name)
{
    struct curl_slist *list = NULL;
    CURLcode code = curl_easy_getinfo(easy, (CURLINFO)info, &list);
    tell("info %s: %d%s", name, code, list ? "" : " empty");
    for (struct curl_slist *item = list; item; item = item->next)
        tell("info %s \"%s\"", name, item->data);
    curl_slist_free_all(list);
}

static void tell_pointer(int info, const char *name)
{
    void *value = NULL;
    CURLcode code = curl_easy_getinfo(easy, (CURLINFO)info, &value);
    if (info == CURLINFO_CERTINFO)
        tell("info %s: %d, %d", name, code, value ? ((struct curl_certinfo *)value)->num_of_certs : -1);
    else if (value)
        tell("info %s: %d, backend %d, %s", name, code, ((struct curl_tlssessioninfo *)value)->backend,
             ((struct curl_tlssessioninfo *)value)->internals ? "something" : "nothing");
    else
        tell("info %s: %d, none", name, code);
}

static void tell_info(int info)
{
    union {
        long number;
        curl_off_t offset;
        double real;
        char *string;
        curl_socket_t socket;
    } value = {0};
    const char *name = info_name(info);
    CURLcode code;
    for (size_t i = 0; i < sizeof not_told / sizeof *not_told; i++)
        if (not_told[i] == info)
            return;
    if (info == CURLINFO_SSL_ENGINES || info == CURLINFO_COOKIELIST)
        return tell_list(info, name);
    if ((info & CURLINFO_TYPEMASK) == CURLINFO_PTR) {
        if (info == CURLINFO_CERTINFO || info == CURLINFO_TLS_SESSION || info == CURLINFO_TLS_SSL_PTR)
            tell_pointer(info, name);
        return;
    }
    code = curl_easy_getinfo(easy, (CURLINFO)info, &value);
    if (code == CURLE_UNKNOWN_OPTION)
        return;
    if (info == CURLINFO_ACTIVESOCKET || info == CURLINFO_LASTSOCKET)
        tell("info %s: %d, %s", name, code, value.socket == -1 ? "none" : "one");
    else if ((info & CURLINFO_TYPEMASK) == CURLINFO_STRING)
        tell("info %s: %d, %s", name, code, or_none(value.string));
    else if ((info & CURLINFO_TYPEMASK) == CURLINFO_LONG)
        tell("info %s: %d, %ld", name, code, value.number);
    else if ((info & CURLINFO_TYPEMASK) == CURLINFO_DOUBLE)
        tell("info %s: %d, %g", name, code, value.real);
    else if ((info & CURLINFO_TYPEMASK) == CURLINFO_OFF_T)
        tell("info %s: %d, %lld", name, code, (long long)value.offset);
}

/* All of them: those that the headers this was compiled with do not know yet, too. */
static void tell_infos(void)
{
    for (int at = 1; at < 100; at++)
        for (int type = CURLINFO_STRING; type <= CURLINFO_OFF_T; type += CURLINFO_STRING)
            tell_info(type + at);
}

static void tell_headers(int request)
{
    static const struct {
        unsigned origin;
        const char *name;
    } origins[] = {{CURLH_HEADER, "header"}, {CURLH_TRAILER, "trailer"}, {CURLH_CONNECT, "connect"},
                   {CURLH_1XX, "1xx"},       {CURLH_PSEUDO, "pseudo"},   {ANY_ORIGIN, "any"}};
    for (size_t i = 0; i < sizeof origins / sizeof *origins; i++) {
        struct curl_header *header = NULL, *found = NULL;
        while ((header = curl_easy_nextheader(easy, origins[i].origin, request, header))) {
            CURLHcode code = curl_easy_header(easy, header->name, header->index, origins[i].origin, request, &found);
            tell("%s of request %d: %s=%s %zu/%zu origin %u, %s", origins[i].name, request, header->name, header->value,
                 header->index, header->amount, header->origin,
                 code                            ? "not found"
                 : found->value == header->value ? "found"
                                                 : "found another");
        }
    }
}

static void tell_all(void)
{
    struct curl_header *header;
    tell_infos();
    for (int request = -1; request < 8; request++)
        tell_headers(request);
    tell("no such header %d", curl_easy_header(easy, "X-None", 0, ANY_ORIGIN, -1, &header));
    tell("no such index %d", curl_easy_header(easy, "Content-Length", 9, CURLH_HEADER, -1, &header));
    tell("no such request %d", curl_easy_header(easy, "Content-Length", 0, CURLH_HEADER, 9, &header));
}

static void tell_end(const char *what, int code)
{
    static const char *const types[] = {"", "", "", "data in", "data out"};
    for (int type = CURLINFO_DATA_IN; type <= CURLINFO_DATA_OUT; type++)
        tell("debug in all: %s %zu", types[type], debug_bytes[type]);
    memset(debug_bytes, 0, sizeof debug_bytes);
    tell_progress();
    tell("%s: %d \"%s\" \"%s\"", what, code, message, other_message);
    tell_all();
}

/* ------------------------------------------------------------------------ words ---- */

static void perform(void)
{
    called_last = seconds();
    strcpy(message, "older");
    strcpy(other_message, "other");
    tell("perform");
    tell_end("result", curl_easy_perform(easy));
}

static void tell_end_in_multi(int result)
{
    tell_end("result in multi", result);
}

static struct curl_slist *list_of(const char *words)
{
    struct curl_slist *list = NULL;
    char *copy_of_words = strdup(words);
    for (char *word = strtok(copy_of_words, "|"); word; word = strtok(NULL, "|"))
        list = curl_slist_append(list, word);
    free(copy_of_words);
    return list;
}

static void set_option(const char *name, char *value)
{
    const struct curl_easyoption *option = curl_easy_option_by_name(name);
    CURLcode code;
    if (!option)
        exit(2);
    switch (option->type) {
    case CURLOT_LONG:
    case CURLOT_VALUES:
        code = curl_easy_setopt(easy, option->id, atol(value));
        break;
    case CURLOT_OFF_T:
        code = curl_easy_setopt(easy, option->id, (curl_off_t)atoll(value));
        break;
    case CURLOT_SLIST:
        code = curl_easy_setopt(easy, option->id, list_of(value));
        break;
    case CURLOT_FUNCTION:
        code = curl_easy_setopt(easy, option->id, NULL);
        break;
    default: /* texts, and data of callbacks */
        code = curl_easy_setopt(easy, option->id, strcmp(value, "NULL") ? value : NULL);
    }
    if (code)
        tell("setting %s: %d", name, code);
}

#define SET(option, argument) curl_easy_setopt(easy, CURLOPT_##option, argument)

static void set_callbacks(void)
{
    SET(ERRORBUFFER, message);
    SET(HEADERFUNCTION, on_header), SET(HEADERDATA, "header data");
    SET(WRITEFUNCTION, on_body), SET(WRITEDATA, "body data");
    SET(READFUNCTION, on_read), SET(READDATA, "read data");
    SET(XFERINFOFUNCTION, on_xferinfo), SET(XFERINFODATA, "progress data"), SET(NOPROGRESS, 0L);
    SET(DEBUGFUNCTION, on_debug), SET(DEBUGDATA, "debug data"), SET(VERBOSE, 1L);
    SET(OPENSOCKETFUNCTION, on_opensocket), SET(OPENSOCKETDATA, "opensocket data");
    SET(SOCKOPTFUNCTION, on_sockopt), SET(SOCKOPTDATA, "sockopt data");
    SET(CLOSESOCKETFUNCTION, on_closesocket), SET(CLOSESOCKETDATA, "closesocket data");
    SET(PREREQFUNCTION, on_prereq), SET(PREREQDATA, "prereq data");
    SET(RESOLVER_START_FUNCTION, on_resolver), SET(RESOLVER_START_DATA, "resolver data");
    SET(SSL_CTX_FUNCTION, on_ssl), SET(SSL_CTX_DATA, "ssl data");
    SET(HSTSREADFUNCTION, on_hsts_read), SET(HSTSREADDATA, "hsts data");
    SET(HSTSWRITEFUNCTION, on_hsts_write), SET(HSTSWRITEDATA, "hsts data");
    SET(PRIVATE, "private data");
}

/* A body of so many bytes by the read callback; -1: its size is not told. */
static void upload(const char *size, int is_told)
{
    upload_size = (size_t)atol(size);
    SET(INFILESIZE_LARGE, is_told ? (curl_off_t)upload_size : (curl_off_t)-1);
    SET(UPLOAD, 1L);
}

static void post_mime(const char *value)
{
    curl_mime *mime = curl_mime_init(easy); /* for the whole life of the program */
    curl_mimepart *part = curl_mime_addpart(mime);
    curl_mime_name(part, "field");
    curl_mime_data(part, value, CURL_ZERO_TERMINATED);
    SET(MIMEPOST, mime);
}

static void post_form(const char *value)
{
    struct curl_httppost *first = NULL, *last = NULL; /* the same */
    curl_formadd(&first, &last, CURLFORM_COPYNAME, "field", CURLFORM_COPYCONTENTS, value, CURLFORM_END);
    SET(HTTPPOST, first);
}

static void set_url_handle(const char *url)
{
    CURLU *handle = curl_url(); /* the same */
    curl_url_set(handle, CURLUPART_URL, url, 0);
    SET(CURLU, handle);
}

static void duplicate(void)
{
    if (!copy)
        copy = curl_easy_duphandle(easy);
}

/* From now on it is about the copy. */
static void take_copy(void)
{
    tell("the copy");
    curl_easy_cleanup(easy);
    easy = copy;
    copy = NULL;
}

/* clang-format off */
static void obey(char *word)
{
    char name[64];
    char *value = strchr(word, '=');
    snprintf(name, sizeof name, "%.*s", value ? (int)(value - word) : (int)strlen(word), word);
    value = value ? value + 1 : NULL;
#define IS(word) !strcmp(name, word)
    if (value && isupper(name[0]))  set_option(name, value);
    /* settings */
    else if (IS("put"))             upload(value, 1);
    else if (IS("put-chunked"))     upload(value, 0);
    else if (IS("post"))            upload_size = (size_t)atol(value), SET(POST, 1L), SET(POSTFIELDSIZE, atol(value));
    else if (IS("mime"))            post_mime(value);
    else if (IS("form"))            post_form(value);
    else if (IS("curlu"))           set_url_handle(value);
    else if (IS("seekable"))        SET(SEEKFUNCTION, on_seek), SET(SEEKDATA, "seek data");
    else if (IS("ioctl"))           SET(IOCTLFUNCTION, on_ioctl), SET(IOCTLDATA, "ioctl data");
    else if (IS("trailers"))        SET(TRAILERFUNCTION, on_trailer), SET(TRAILERDATA, "trailer data");
    else if (IS("old-progress"))    SET(XFERINFOFUNCTION, NULL), SET(PROGRESSFUNCTION, on_progress);
    else if (IS("other-writer"))    SET(WRITEFUNCTION, on_other_body);
    else if (IS("other-buffer"))    SET(ERRORBUFFER, other_message);
    else if (IS("callbacks"))       set_callbacks();
    /* what to do */
    else if (IS("perform"))         perform();
    else if (IS("multi"))           strcpy(message, "older"), drive_in_multi(easy, tell_end_in_multi);
    else if (IS("infos"))           tell_all();
    else if (IS("dup"))             duplicate();
    else if (IS("take-copy"))       take_copy();
    else if (IS("reset"))           curl_easy_reset(easy);
    else if (IS("rewind"))          upload_position = 0;
    /* what callbacks can do besides */
    else if (IS("pause"))           verdict = PAUSE;
    else if (IS("refuse"))          verdict = REFUSE;
    else if (IS("short"))           verdict = SHORT;
    else if (IS("continue"))        curl_easy_pause(easy, CURLPAUSE_CONT);
    else if (!value || add_rule(name, value, EVENT_COUNT) < 0) exit(2);
}
/* clang-format on */

int main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    easy = curl_easy_init();
    set_callbacks();
    for (int i = 1; i < argc; i++)
        obey(argv[i]);
    tell("cleanup");
    curl_easy_cleanup(easy);
    tell("end");
    return 0;
}
