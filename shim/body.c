/* SPDX-License-Identifier: MIT */
/*
 * Where a request's body comes from, by the rules of libcurl's setopt, and bringing it to its
 * beginning again.
 */
#include "shim/body.h"

#include "shim/governed.h"
#include "shim/mime.h"

#include "core/classify.h"
#include "core/hash.h"
#include "core/system/file_identity.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_CAPACITY 16384

/* What nearly every request does without. */
#define OFF_THE_SHORT_WAY __attribute__((noinline))

enum body_source body_source(const struct transfer *transfer)
{
    const struct options *options = &transfer->options;
    if (options->upload)
        return BODY_READER;
    switch (options->kind) {
    case REQUEST_PUT:
        return BODY_READER;
    case REQUEST_POST:
        return options->post_fields ? BODY_FIELDS : BODY_READER;
    case REQUEST_POST_FORM:
        return options->form ? BODY_FORM : BODY_NONE;
    case REQUEST_POST_MIME:
        return options->mime ? BODY_MIME : BODY_NONE;
    case REQUEST_GET:
    case REQUEST_HEAD:
        break;
    }
    return BODY_NONE;
}

/* All that the reader has given is kept. */
static bool is_whole(const struct kept_body *kept)
{
    return kept->reader_at == kept->start + (curl_off_t)kept->size;
}

/* -------------------------------------------------------------------- evidence ---- */

static uint64_t fields_evidence(const struct options *options)
{
    if (options->post_fields_are_copied)
        return 0;
    size_t size = options->post_field_size < 0 ? strlen(options->post_fields) : (size_t)options->post_field_size;
    return hash_number(hash_bytes(HASH_START, options->post_fields, size), size);
}

/* What is made by a program (fmemopen, fopencookie) has no descriptor, and may change at any time. */
static bool file_evidence(FILE *file, uint64_t *evidence)
{
    int error = errno;
    int descriptor = fileno(file);
    errno = error;
    *evidence = HASH_START;
    return descriptor >= 0 && file_identity_add_open(evidence, descriptor);
}

/* What proves that the body is the one that it was; false: nothing can. */
static bool evidence_of(const struct transfer *transfer, const struct body *body, uint64_t *evidence)
{
    switch (body->source) {
    case BODY_FIELDS:
        *evidence = fields_evidence(&transfer->options);
        return true;
    case BODY_MIME:
        return !transfer->options.mime_is_copied && mime_evidence(transfer->options.mime, evidence);
    case BODY_FORM:
        return form_evidence(transfer->options.form, evidence);
    case BODY_READER:
        return body->file && file_evidence(body->file, evidence);
    case BODY_NONE:
        break;
    }
    return false;
}

bool body_is_unchanged(const struct transfer *transfer)
{
    const struct body *body = &transfer->governed->body;
    uint64_t evidence;
    if (body->source == BODY_NONE || !body->has_evidence || (body->is_listened_to && is_whole(&body->kept)))
        return true;
    return evidence_of(transfer, body, &evidence) && evidence == body->evidence;
}

/* ------------------------------------------------------------------- beginning ---- */

/* libcurl knows a FILE* by its reader, its own default or one that the program has set by name. */
static bool reads_a_file(const struct options *options)
{
    return !options->read_function || options->read_function == (curl_read_callback)(uintptr_t)fread;
}

/* As it was announced; libcurl reads nothing then, and the program need not have set anything to be read. */
static bool is_empty(const struct options *options)
{
    return options->kind == REQUEST_POST ? options->post_field_size == 0 : options->infile_size == 0;
}

/* One that somebody else is busy with (a thread that waits for input holds the lock) is not waited for. */
static void begin_file(struct body *body, FILE *file)
{
    if (!file || ftrylockfile(file) != 0)
        return;
    body->file_start = ftello(file);
    if (body->file_start >= 0) {
        body->file = file;
        body->has_evidence = file_evidence(file, &body->evidence);
    }
    funlockfile(file);
}

static OFF_THE_SHORT_WAY void begin_body(struct transfer *transfer, const struct governor_request *request)
{
    struct body *body = &transfer->governed->body;
    const struct options *options = &transfer->options;
    int error = errno;
    body->may_repeat = classify_may_ever_repeat(request->policy, &request->traits) || request->policy->retry_unsent;
    body->is_listened_to = body->source == BODY_READER && body->may_repeat;
    if (body->is_listened_to && !is_empty(options) && reads_a_file(options) && !options->seek_function &&
        !options->ioctl_function)
        begin_file(body, options->read_data);
    else if (body->may_repeat && body->source != BODY_READER)
        body->has_evidence = evidence_of(transfer, body, &body->evidence);
    body->kept.limit = request->policy->replay_buffer;
    errno = error;
}

void body_begin(struct transfer *transfer, const struct governor_request *request)
{
    struct body *body = &transfer->governed->body;
    enum body_source source = body_source(transfer);
    if (source == BODY_NONE) {
        body->source = source;
        return;
    }
    body_end(body);
    *body = (struct body){.source = source};
    begin_body(transfer, request);
}

void body_end(struct body *body)
{
    if (body->kept.bytes)
        free(body->kept.bytes);
    body->kept.bytes = NULL;
}

bool body_is_listened_to(const struct transfer *transfer)
{
    return transfer->governed->body.source == BODY_READER && transfer->governed->body.is_listened_to;
}

/* ------------------------------------------------------------------- listening ---- */

static bool make_room(struct kept_body *kept, size_t needed)
{
    if (needed <= kept->capacity)
        return true;
    size_t capacity = kept->capacity ? kept->capacity : FIRST_CAPACITY;
    while (capacity < needed)
        capacity *= 2;
    if (capacity > kept->limit)
        capacity = kept->limit;
    char *larger = realloc(kept->bytes, capacity);
    if (!larger)
        return false;
    kept->bytes = larger;
    kept->capacity = capacity;
    return true;
}

static void keep(struct kept_body *kept, const char *data, size_t length)
{
    kept->reader_at += (curl_off_t)length;
    kept->given = kept->reader_at;
    if (kept->is_full)
        return;
    if (length > kept->limit - kept->size) {
        length = kept->limit - kept->size;
        kept->is_full = true;
    }
    if (length == 0)
        return;
    if (make_room(kept, kept->size + length)) {
        memcpy(kept->bytes + kept->size, data, length);
        kept->size += length;
    } else {
        kept->is_full = true;
    }
}

/* The reader is somewhere else now, by its own callback. */
static void keep_from(struct kept_body *kept, curl_off_t offset)
{
    kept->start = kept->reader_at = kept->given = offset;
    kept->size = 0;
    kept->is_full = kept->has_ended = false;
}

static bool is_kept(const struct kept_body *kept, curl_off_t offset)
{
    return is_whole(kept) && offset >= kept->start && offset <= kept->reader_at;
}

static size_t give_kept(struct kept_body *kept, char *buffer, size_t room)
{
    size_t left = (size_t)(kept->reader_at - kept->given);
    size_t length = left < room ? left : room;
    memcpy(buffer, kept->bytes + (kept->given - kept->start), length);
    kept->given += (curl_off_t)length;
    return length;
}

/* The program's own reader, or libcurl's default. */
static size_t ask_reader(const struct overrides *overrides, char *buffer, size_t size, size_t count)
{
    curl_read_callback read =
        overrides->read_function ? overrides->read_function : (curl_read_callback)(uintptr_t)fread;
    return read(buffer, size, count, overrides->read_data);
}

size_t body_on_read(char *buffer, size_t size, size_t count, void *userdata)
{
    struct transfer *transfer = userdata;
    struct body *body = &transfer->governed->body;
    struct kept_body *kept = &body->kept;
    const struct overrides *overrides = &transfer->governed->overrides;
    size_t room = size * count;
    body->reader_called = true;
    if (kept->given < kept->reader_at)
        return give_kept(kept, buffer, room);
    if (kept->has_ended)
        return 0;
    size_t length = ask_reader(overrides, buffer, size, count);
    if (length > room) /* CURL_READFUNC_ABORT, CURL_READFUNC_PAUSE, or a mistake: libcurl's to judge */
        return length;
    kept->has_ended = length == 0;
    keep(kept, buffer, length);
    return length;
}

/* A FILE* is rewound as libcurl would do it, which does not ask where it stood; to skip what an upload that is
 * resumed does not send libcurl reads. */
static int seek_in_file(struct body *body, curl_off_t offset, int origin)
{
    if (offset != 0 || origin != SEEK_SET)
        return CURL_SEEKFUNC_CANTSEEK;
    if (fseeko(body->file, 0, SEEK_SET) != 0)
        return CURL_SEEKFUNC_FAIL;
    body->file_start = 0;
    keep_from(&body->kept, 0);
    return CURL_SEEKFUNC_OK;
}

/* libcurl skips what an upload that is resumed does not send, or begins again within one transfer.  In
 * a repeat the program's reader stays where it is as long as what is kept will do. */
int body_on_seek(void *userdata, curl_off_t offset, int origin)
{
    struct transfer *transfer = userdata;
    struct governed *governed = transfer->governed;
    struct kept_body *kept = &governed->body.kept;
    const struct overrides *overrides = &governed->overrides;
    if (governed->request.attempts > 1 && origin == SEEK_SET && is_kept(kept, offset)) {
        kept->given = offset;
        return CURL_SEEKFUNC_OK;
    }
    if (governed->body.file)
        return seek_in_file(&governed->body, offset, origin);
    if (!overrides->seek_function)
        return CURL_SEEKFUNC_CANTSEEK;
    int result = overrides->seek_function(overrides->seek_data, offset, origin);
    if (result == CURL_SEEKFUNC_OK && origin == SEEK_SET)
        keep_from(kept, offset);
    return result;
}

curlioerr body_on_ioctl(CURL *handle, int command, void *userdata)
{
    struct transfer *transfer = userdata;
    const struct overrides *overrides = &transfer->governed->overrides;
    curlioerr result = overrides->ioctl_function(handle, command, overrides->ioctl_data);
    if (result == CURLIOE_OK && command == CURLIOCMD_RESTARTREAD)
        keep_from(&transfer->governed->body.kept, 0);
    return result;
}

/* ------------------------------------------------------------------- repeating ---- */

static bool can_begin_again(const struct governed *governed)
{
    const struct overrides *overrides = &governed->overrides;
    if (governed->body.file)
        return governed->body.has_evidence;
    /* Nothing but what is kept tells whether it does. */
    if (governed->body.kept.size == 0)
        return false;
    return overrides->seek_function || (overrides->ioctl_function && governed->body.kept.start == 0);
}

static bool reader_is_repeatable(const struct governed *governed, bool request_sent)
{
    const struct body *body = &governed->body;
    if (!body->is_listened_to)
        return !request_sent;
    return !body->reader_called || is_whole(&body->kept) || can_begin_again(governed);
}

/* The callback that makes the trailers of a chunked upload is called at its end, and libcurl cannot begin with them
 * again. */
static bool may_have_sent_trailers(const struct transfer *transfer, bool request_sent)
{
    const struct body *body = &transfer->governed->body;
    return transfer->options.has_trailers && request_sent && !(body->is_listened_to && !body->kept.has_ended);
}

bool body_is_repeatable(const struct transfer *transfer, bool request_sent)
{
    const struct governed *governed = transfer->governed;
    const struct body *body = &governed->body;
    if (body->source == BODY_NONE)
        return true;
    if (may_have_sent_trailers(transfer, request_sent))
        return false;
    if (body->source == BODY_READER)
        return reader_is_repeatable(governed, request_sent) && body_is_unchanged(transfer);
    return !request_sent || (body->has_evidence && body_is_unchanged(transfer));
}

static bool go_to_beginning(struct transfer *transfer)
{
    const struct overrides *overrides = &transfer->governed->overrides;
    const struct body *body = &transfer->governed->body;
    if (body->file)
        return fseeko(body->file, body->file_start, SEEK_SET) == 0;
    if (overrides->seek_function)
        return overrides->seek_function(overrides->seek_data, body->kept.start, SEEK_SET) == CURL_SEEKFUNC_OK;
    return overrides->ioctl_function &&
           overrides->ioctl_function(transfer_handle(transfer), CURLIOCMD_RESTARTREAD, overrides->ioctl_data) ==
               CURLIOE_OK;
}

/* A callback may take another place for its beginning than the one where this body began. */
static bool gives_the_same_again(const struct overrides *overrides, const struct kept_body *kept)
{
    char buffer[4096];
    for (size_t at = 0; at < kept->size;) {
        size_t left = kept->size - at;
        size_t room = left < sizeof buffer ? left : sizeof buffer;
        size_t length = ask_reader(overrides, buffer, 1, room);
        if (length == 0 || length > room || memcmp(buffer, kept->bytes + at, length) != 0)
            return false;
        at += length;
    }
    return true;
}

/* It has given more than is kept. */
static bool begin_again(struct transfer *transfer)
{
    struct kept_body *kept = &transfer->governed->body.kept;
    if (!go_to_beginning(transfer) || !gives_the_same_again(&transfer->governed->overrides, kept))
        return false;
    kept->reader_at = kept->start + (curl_off_t)kept->size;
    kept->has_ended = false;
    return true;
}

bool body_rewind(struct transfer *transfer)
{
    struct body *body = &transfer->governed->body;
    struct kept_body *kept = &body->kept;
    if (body->source == BODY_MIME)
        return mime_begins_again(transfer->options.mime);
    if (body->source != BODY_READER || !body->is_listened_to || !body->reader_called)
        return true;
    if (!is_whole(kept) && !begin_again(transfer))
        return false;
    kept->given = kept->start;
    return true;
}

bool body_is_one_shot(const struct transfer *transfer)
{
    const struct options *options = &transfer->options;
    const struct body *body = &transfer->governed->body;
    return body->source == BODY_READER && !body->file && !options->seek_function && !options->ioctl_function;
}
