/* SPDX-License-Identifier: MIT */
/*
 * One slice of waiting.
 */
#include "shim/wait.h"

#include "shim/progress.h"

#include "core/system/clock.h"
#include "core/units.h"

#include <errno.h>
#include <poll.h>

/* Between two looks at the shared budget.  With a progress callback shorter: libcurl calls it at
 * least once a second, and programs abort through it. */
#define SLICE_MS 500
#define SLICE_WITH_PROGRESS_MS 200

bool wait_slice(struct transfer *transfer, int64_t until_ns)
{
    int64_t slice_ms = progress_is_wanted(&transfer->options) ? SLICE_WITH_PROGRESS_MS : SLICE_MS;
    int64_t left_ns = until_ns - clock_now_ns();
    if (left_ns > 0) {
        int saved_errno = errno;
        int64_t left_ms = (left_ns + NS_PER_MS - 1) / NS_PER_MS; /* never early */
        poll(NULL, 0, (int)(left_ms < slice_ms ? left_ms : slice_ms));
        errno = saved_errno;
    }
    return progress_tell_waiting(transfer);
}
