/* SPDX-License-Identifier: MIT */
/*
 * As libcurl does: the newer callback before the older one, neither while NOPROGRESS is set.
 */
#include "shim/progress.h"

#include "shim/governed.h"
#include "shim/resume.h"

static int tell(const struct options *options, curl_off_t download_total, curl_off_t downloaded,
                curl_off_t upload_total, curl_off_t uploaded)
{
    if (options->no_progress)
        return 0;
    if (options->xferinfo_function)
        return options->xferinfo_function(options->progress_data, download_total, downloaded, upload_total, uploaded);
    if (options->progress_function)
        return options->progress_function(options->progress_data, (double)download_total, (double)downloaded,
                                          (double)upload_total, (double)uploaded);
    return 0;
}

/* Of the body that is gone on with; 0 where there is none, or it is not known, as libcurl has it. */
static curl_off_t whole_of_resumed(const struct governed *governed)
{
    curl_off_t total = governed->is_resumed ? resume_total(governed->resume) : 0;
    return total > 0 ? total : 0;
}

bool progress_tell_waiting(const struct transfer *transfer)
{
    const struct governed *governed = transfer->governed;
    curl_off_t downloaded = governed->is_resumed ? governed->gate.body_bytes : 0;
    int result = tell(&transfer->options, whole_of_resumed(governed), downloaded, 0, 0);
    return result == 0 || result == CURL_PROGRESSFUNC_CONTINUE;
}

int progress_on_attempt(void *userdata, curl_off_t download_total, curl_off_t downloaded, curl_off_t upload_total,
                        curl_off_t uploaded)
{
    const struct transfer *transfer = userdata;
    const struct governed *governed = transfer->governed;
    if (governed->is_resumed) {
        download_total = whole_of_resumed(governed);
        downloaded = governed->gate.body_bytes;
    } else if (gate_hides_answer(&governed->gate)) {
        download_total = downloaded = 0;
    }
    int result = tell(&transfer->options, download_total, downloaded, upload_total, uploaded);
    /* That asks for libcurl's own meter, which would tell of what is hidden. */
    return result == CURL_PROGRESSFUNC_CONTINUE && governed->is_resumed ? 0 : result;
}
