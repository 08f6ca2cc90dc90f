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

/* -------------------------------------------------------------------- evidence ---- */

static uint64_t fields_evidence(const struct options *options)
{
    if (options->post_fields_are_copied)
        return 0;
    size_t size = options->post_field_size < 0 ? strlen(options->post_fields) : (size_t)options->post_field_size;
    return hash_number(hash_bytes(HASH_START, options->post_fields, size), size);
}

/* Something in memory that is read as a file has no identity, and no need of one. */
static bool file_evidence(FILE *file, uint64_t *evidence)
{
    int descriptor = fileno(file);
    *evidence = HASH_START;
    return descriptor < 0 || file_identity_add_open(evidence, descriptor);
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
    if (body->source == BODY_NONE || body->is_listened_to || !body->has_evidence)
        return true;
    return evidence_of(transfer, body, &evidence) && evidence == body->evidence;
}

/* ------------------------------------------------------------------- beginning ---- */

/* libcurl knows a FILE* by its reader, its own default or one that the program has set by name. */
static bool reads_a_file(const struct options *options)
{
    return !options->read_function || options->read_function == (curl_read_callback)(uintptr_t)fread;
}

/* Left to libcurl, which seeks in it when a redirect asks for the body again. */
static void begin_file(struct body *body, FILE *file)
{
    off_t start = file ? ftello(file) : -1;
    if (start < 0 || !file_evidence(file, &body->evidence))
        return;
    body->file = file;
    body->file_start = start;
    body->has_evidence = true;
}

static OFF_THE_SHORT_WAY void begin_body(struct transfer *transfer, const struct governor_request *request)
{
    struct body *body = &transfer->governed->body;
    const struct options *options = &transfer->options;
    int error = errno;
    body->may_repeat = classify_may_ever_repeat(request->policy, &request->traits) || request->policy->retry_unsent;
    if (body->source == BODY_READER && reads_a_file(options) && !options->seek_function && !options->ioctl_function)
        begin_file(body, options->read_data);
    else if (body->may_repeat && body->source != BODY_READER)
        body->has_evidence = evidence_of(transfer, body, &body->evidence);
    body->is_listened_to = body->source == BODY_READER && body->may_repeat && !body->file;
    body->kept.is_whole = true;
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

static void stop_keeping(struct kept_body *kept)
{
    free(kept->bytes);
    kept->bytes = NULL;
    kept->capacity = 0;
    kept->is_whole = false;
}

static bool make_room(struct kept_body *kept, size_t needed)
{
    if (needed > kept->limit)
        return false;
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
    size_t size = (size_t)(kept->reader_at - kept->start);
    if (kept->is_whole && make_room(kept, size + length))
        memcpy(kept->bytes + size, data, length);
    else if (kept->is_whole)
        stop_keeping(kept);
    kept->reader_at += (curl_off_t)length;
    kept->given = kept->reader_at;
}

/* The reader is somewhere else now, by its own callback. */
static void keep_from(struct kept_body *kept, curl_off_t offset)
{
    kept->start = kept->reader_at = kept->given = offset;
    kept->is_whole = true;
    kept->has_ended = false;
}

static bool is_kept(const struct kept_body *kept, curl_off_t offset)
{
    return kept->is_whole && offset >= kept->start && offset <= kept->reader_at;
}

static size_t give_kept(struct kept_body *kept, char *buffer, size_t room)
{
    size_t left = (size_t)(kept->reader_at - kept->given);
    size_t length = left < room ? left : room;
    memcpy(buffer, kept->bytes + (kept->given - kept->start), length);
    kept->given += (curl_off_t)length;
    return length;
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
    curl_read_callback read =
        overrides->read_function ? overrides->read_function : (curl_read_callback)(uintptr_t)fread;
    size_t length = read(buffer, size, count, overrides->read_data);
    if (length > room) /* CURL_READFUNC_ABORT, CURL_READFUNC_PAUSE, or a mistake: libcurl's to judge */
        return length;
    kept->has_ended = length == 0;
    keep(kept, buffer, length);
    return length;
}

/* libcurl skips what an upload that is resumed does not send, or begins again within one transfer.  In
 * a repeat the program's reader stays where it is as long as what is kept will do. */
int body_on_seek(void *userdata, curl_off_t offset, int origin)
{
    struct transfer *transfer = userdata;
    struct governed *governed = transfer->governed;
    struct kept_body *kept = &governed->body.kept;
    if (governed->request.attempts > 1 && origin == SEEK_SET && is_kept(kept, offset)) {
        kept->given = offset;
        return CURL_SEEKFUNC_OK;
    }
    int result = governed->overrides.seek_function(governed->overrides.seek_data, offset, origin);
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

static bool can_ask_for_beginning(const struct overrides *overrides)
{
    return overrides->seek_function || overrides->ioctl_function;
}

static bool reader_is_repeatable(const struct governed *governed, bool request_sent)
{
    const struct body *body = &governed->body;
    if (body->file)
        return true;
    if (!body->is_listened_to)
        return !request_sent;
    return !body->reader_called || body->kept.is_whole || can_ask_for_beginning(&governed->overrides);
}

bool body_is_repeatable(const struct transfer *transfer, bool request_sent)
{
    const struct governed *governed = transfer->governed;
    const struct body *body = &governed->body;
    if (body->source == BODY_NONE)
        return true;
    /* The callback that makes the trailers of a chunked upload has been called already. */
    if (transfer->options.has_trailers && body->source == BODY_READER && body->kept.has_ended)
        return false;
    if (body->source == BODY_READER)
        return reader_is_repeatable(governed, request_sent) && body_is_unchanged(transfer);
    return !request_sent || (body->has_evidence && body_is_unchanged(transfer));
}

/* The program's reader begins again, by its own callback: what it has given is too much to be kept. */
static bool ask_for_beginning(struct transfer *transfer)
{
    const struct overrides *overrides = &transfer->governed->overrides;
    struct kept_body *kept = &transfer->governed->body.kept;
    bool begins =
        overrides->seek_function    ? overrides->seek_function(overrides->seek_data, 0, SEEK_SET) == CURL_SEEKFUNC_OK
        : overrides->ioctl_function ? overrides->ioctl_function(transfer_handle(transfer), CURLIOCMD_RESTARTREAD,
                                                                overrides->ioctl_data) == CURLIOE_OK
                                    : false;
    if (begins) {
        keep_from(kept, 0);
        stop_keeping(kept); /* it would be too much again */
    }
    return begins;
}

bool body_rewind(struct transfer *transfer)
{
    struct body *body = &transfer->governed->body;
    struct kept_body *kept = &body->kept;
    if (body->source == BODY_MIME)
        return mime_begins_again(transfer->options.mime);
    if (body->source != BODY_READER)
        return true;
    if (body->file)
        return fseeko(body->file, body->file_start, SEEK_SET) == 0;
    if (!body->is_listened_to || !body->reader_called)
        return true;
    if (!kept->is_whole)
        return ask_for_beginning(transfer);
    kept->given = kept->start;
    return true;
}

bool body_is_one_shot(const struct transfer *transfer)
{
    const struct options *options = &transfer->options;
    const struct body *body = &transfer->governed->body;
    return body->source == BODY_READER && !body->file && !options->seek_function && !options->ioctl_function;
}
