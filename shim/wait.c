/* SPDX-License-Identifier: MIT */
/*
 * One slice of waiting.
 */
#include "shim/wait.h"

#include "core/system/clock.h"
#include "core/units.h"

#include <errno.h>
#include <poll.h>

/* Between two looks at the shared budget.  With a progress callback shorter: libcurl calls it at
 * least once a second, and programs abort through it. */
#define SLICE_MS 500
#define SLICE_WITH_PROGRESS_MS 200

/* As libcurl does: the newer callback before the older one, neither while NOPROGRESS is set. */
static bool program_goes_on(const struct options *options)
{
    int result = 0;
    if (options->no_progress)
        return true;
    if (options->xferinfo_function)
        result = options->xferinfo_function(options->progress_data, 0, 0, 0, 0);
    else if (options->progress_function)
        result = options->progress_function(options->progress_data, 0.0, 0.0, 0.0, 0.0);
    return result == 0 || result == CURL_PROGRESSFUNC_CONTINUE;
}

bool wait_slice(struct transfer *transfer, int64_t until_ns)
{
    const struct options *options = &transfer->options;
    bool has_callback = !options->no_progress && (options->xferinfo_function || options->progress_function);
    int64_t slice_ms = has_callback ? SLICE_WITH_PROGRESS_MS : SLICE_MS;
    int64_t left_ns = until_ns - clock_now_ns();
    if (left_ns > 0) {
        int saved_errno = errno;
        int64_t left_ms = (left_ns + NS_PER_MS - 1) / NS_PER_MS; /* never early */
        poll(NULL, 0, (int)(left_ms < slice_ms ? left_ms : slice_ms));
        errno = saved_errno;
    }
    return program_goes_on(options);
}
