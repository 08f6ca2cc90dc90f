/* SPDX-License-Identifier: MIT */
/*
 * The governor decides, for one request, when it may be sent and whether its outcome is the
 * program's or is tried again.  Whoever understands governor_admit and governor_outcome understands
 * the program; everything else asks them.
 */
#include "core/governor.h"

#include "core/backoff.h"
#include "core/segment.h"
#include "core/servers_word.h"

#include <string.h>

/* A program that asks again at once after a refusal is slowed, by up to this. */
#define REFUSAL_SPACING_NS NS_PER_SECOND

/* Of the caller's own timeout, the part that an attempt needs at least: starting one with less
 * would make ambiguous writes that the bare library would not have made. */
#define ROOM_PART 5

/* What only those need who have to wait, or whose response is not an ordinary one. */
#define OFF_THE_SHORT_WAY __attribute__((noinline))

static int64_t add_saturating(int64_t a, int64_t b)
{
    int64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? TIME_NEVER : sum;
}

static struct governor_step step(enum governor_action action, enum cause cause, int64_t until_ns)
{
    return (struct governor_step){.action = action, .cause = cause, .until_ns = until_ns};
}

/* The bucket that a server's word about this request concerns: the most specific one. */
static struct bucket *spoken_bucket(const struct governor_request *request)
{
    return request->places.count ? request->places.bucket[request->places.count - 1] : NULL;
}

/* A request is counted in each bucket that it draws on. */
#define FOR_EACH_BUCKET(bucket, request)                                                                               \
    for (unsigned bucket_number = 0;                                                                                   \
         bucket_number < (request)->places.count && ((bucket) = (request)->places.bucket[bucket_number], true);        \
         bucket_number++)

static void count_giveup(const struct governor_request *request, enum cause cause)
{
    struct bucket *bucket;
    FOR_EACH_BUCKET(bucket, request)
    metrics_giveup(bucket_counters(bucket), cause);
}

static inline void take_buckets(struct governor_request *request, const struct resolved_policy *resolved,
                                struct bucket *const *buckets)
{
    int64_t longest_ns = 0;
    places_clear(&request->places);
    for (unsigned i = 0; i < resolved->bucket_count; i++) {
        const struct limits *limits = &resolved->buckets[i].limits;
        int64_t max_wait_ns = limits_max_wait_ns(&resolved->values, limits);
        if (max_wait_ns > longest_ns)
            longest_ns = max_wait_ns;
        if (buckets[i])
            places_add(&request->places, buckets[i], limits);
    }
    request->max_wait_ns = longest_ns;
}

static enum mode least(enum mode a, enum mode b)
{
    return a < b ? a : b;
}

static inline bool operator_is_silent(const struct governor_request *request)
{
    const struct segment *segment = request->governor->segment;
    return (!segment || segment_has_no_mode(segment)) &&
           (request->places.count == 0 || bucket_has_no_mode(request->places.bucket[0]));
}

static enum mode mode_under_operator(const struct governor_request *request, enum mode mode, int64_t now_ns)
{
    const struct segment *segment = request->governor->segment;
    enum operator_mode everywhere = segment ? segment_mode(segment, now_ns, NULL) : OPERATOR_AUTO;
    enum operator_mode there = request->places.count ? bucket_mode(request->places.bucket[0], now_ns) : OPERATOR_AUTO;
    if (everywhere != OPERATOR_AUTO)
        mode = least(mode, operator_ceiling(everywhere));
    if (there != OPERATOR_AUTO)
        mode = least(mode, operator_ceiling(there));
    return mode;
}

static enum mode configured_mode(const struct governor_request *request)
{
    return least(request->policy->mode, request->ceiling);
}

enum mode governor_mode(const struct governor_request *request, int64_t now_ns)
{
    enum mode mode = configured_mode(request);
    return mode == MODE_OFF || operator_is_silent(request) ? mode : mode_under_operator(request, mode, now_ns);
}

/* The caller's own bound. */
static void keep_within(struct governor_request *request, int64_t timeout_ns, int64_t now_ns)
{
    request->deadline_ns = add_saturating(now_ns, timeout_ns);
    request->room_ns = timeout_ns / ROOM_PART;
    struct bucket *bucket;
    FOR_EACH_BUCKET(bucket, request)
    {
        int64_t usual_ns = bucket_usual_latency_ns(bucket);
        int64_t twice_usual_ns = add_saturating(usual_ns, usual_ns);
        /* A slow server must not make every timeout unmeetable: room is never more than half. */
        if (twice_usual_ns > request->room_ns)
            request->room_ns = twice_usual_ns < timeout_ns / 2 ? twice_usual_ns : timeout_ns / 2;
    }
}

void governor_set_timeout(struct governor_request *request, int64_t timeout_ns)
{
    request->deadline_ns = TIME_NEVER;
    request->room_ns = 0;
    if (timeout_ns > 0)
        keep_within(request, timeout_ns, request->begun_ns);
}

void governor_begin(struct governor_request *request, const struct governor *governor,
                    const struct resolved_policy *resolved, struct bucket *const *buckets,
                    const struct request_traits *traits, int64_t timeout_ns, int64_t now_ns)
{
    /* To clear the places, whose slots nobody looks at, would cost more than all the rest. */
    memset(request, 0, offsetof(struct governor_request, places));
    request->governor = governor;
    request->policy = &resolved->values;
    request->traits = *traits;
    request->ceiling = request->mode = MODE_ENFORCE;
    request->begun_ns = request->not_before_ns = now_ns;
    request->deadline_ns = TIME_NEVER;
    take_buckets(request, resolved, buckets);
    request->others_hold = !places_ask(&request->places, &governor->world, now_ns);
    if (timeout_ns > 0)
        keep_within(request, timeout_ns, now_ns);
    struct bucket *bucket;
    FOR_EACH_BUCKET(bucket, request)
    {
        bucket_retry_deposit(bucket, now_ns, request->policy->retry_budget);
        metrics_request(bucket_counters(bucket));
    }
}

static bool has_the_same_buckets(const struct places *a, const struct places *b)
{
    if (a->count != b->count)
        return false;
    for (unsigned i = 0; i < a->count; i++)
        if (a->bucket[i] != b->bucket[i])
            return false;
    return true;
}

void governor_rebase(struct governor_request *request, const struct governor *governor,
                     const struct resolved_policy *resolved, struct bucket *const *buckets, int64_t now_ns)
{
    struct places before = request->places;
    request->governor = governor;
    request->policy = &resolved->values;
    take_buckets(request, resolved, buckets);
    if (has_the_same_buckets(&before, &request->places))
        places_take_over(&request->places, &before);
    else
        places_give_back(&before);
    places_ask(&request->places, &governor->world, now_ns);
}

/* ------------------------------------------------------------------ admission ---- */

/* The block is over, but not yet for this one. */
static bool is_drawn_to_go_later(const struct governor_request *request, int64_t now_ns)
{
    return now_ns >= request->lift_ns && now_ns - request->lift_ns < request->lift_draw_ns;
}

/* The request's own cause, unless somebody has stopped one of its buckets. */
static enum cause cause_of_wait(const struct governor_request *request, int64_t now_ns)
{
    enum cause cause = request->next_cause ? request->next_cause : CAUSE_QUOTA;
    for (unsigned i = 0; i < request->places.count; i++) {
        enum block_kind kind = bucket_block_kind(request->places.bucket[i], now_ns);
        if (kind == BLOCK_HOLD)
            return CAUSE_HOLD;
        if (kind != BLOCK_NONE && cause == CAUSE_QUOTA)
            cause = CAUSE_BLOCK;
    }
    return cause == CAUSE_QUOTA && is_drawn_to_go_later(request, now_ns) ? CAUSE_BLOCK : cause;
}

static void end_wait(struct governor_request *request, int64_t now_ns)
{
    if (!request->wait_began_ns)
        return;
    int64_t waited_ns = now_ns - request->wait_began_ns;
    request->wait_began_ns = 0;
    if (waited_ns < 0)
        return;
    request->waited_ns = add_saturating(request->waited_ns, waited_ns);
    struct bucket *bucket;
    FOR_EACH_BUCKET(bucket, request)
    metrics_wait(bucket_counters(bucket), request->wait_cause, waited_ns);
}

static struct governor_step send_now(struct governor_request *request, int64_t now_ns)
{
    end_wait(request, now_ns);
    return step(GOVERNOR_SEND, CAUSE_NONE, now_ns);
}

static struct governor_step wait_until(struct governor_request *request, int64_t until_ns, int64_t now_ns)
{
    if (!request->wait_began_ns)
        request->wait_began_ns = now_ns;
    request->expected_ns = until_ns;
    request->wait_cause = cause_of_wait(request, now_ns);
    return step(GOVERNOR_WAIT, request->wait_cause, until_ns);
}

/* Time in which the program was stopped, or the machine asleep, is not time that it waited. */
static void note_lateness(struct governor_request *request, int64_t now_ns)
{
    if (request->wait_began_ns && now_ns > request->expected_ns)
        request->late_ns = add_saturating(request->late_ns, now_ns - request->expected_ns);
}

/* A hold is the operator's own word: programs wait for its end, however long, unless they wait for nothing. */
static void note_holds(struct governor_request *request, int64_t now_ns)
{
    for (unsigned i = 0; i < request->places.count && request->max_wait_ns > 0; i++) {
        int64_t held_ns = bucket_held_until_ns(request->places.bucket[i], now_ns) - request->begun_ns;
        if (held_ns > request->held_ns)
            request->held_ns = held_ns;
    }
}

static int64_t longest_wait_ns(const struct governor_request *request)
{
    int64_t allowed_ns = add_saturating(request->max_wait_ns, add_saturating(request->held_ns, request->late_ns));
    return add_saturating(request->begun_ns, allowed_ns);
}

/* Without an attempt there is no response to hand over, only an error that cost nothing: a loop
 * around it would spin.  So it comes at once the first time, and then once a second; but always at
 * once where nothing is to be waited for at all. */
static int64_t time_to_refuse(const struct governor_request *request, int64_t now_ns)
{
    if (request->max_wait_ns == 0)
        return now_ns;
    int64_t last_ns = bucket_note_refusal(spoken_bucket(request), now_ns);
    int64_t at_ns = now_ns;
    if (last_ns > 0 && last_ns <= now_ns && now_ns - last_ns < REFUSAL_SPACING_NS)
        at_ns = last_ns + REFUSAL_SPACING_NS;
    return at_ns < request->deadline_ns ? at_ns : request->deadline_ns;
}

static struct governor_step refuse(struct governor_request *request, enum cause cause, int64_t until_ns, int64_t now_ns)
{
    places_give_back(&request->places);
    if ((cause == CAUSE_MAX_WAIT || cause == CAUSE_APP_TIMEOUT) && request->attempts == 0 && request->places.count) {
        if (!request->refuse_at_ns)
            request->refuse_at_ns = time_to_refuse(request, now_ns);
        if (now_ns < request->refuse_at_ns)
            return wait_until(request, request->refuse_at_ns, now_ns);
        bucket_note_refusal(spoken_bucket(request), now_ns);
    }
    end_wait(request, now_ns);
    count_giveup(request, cause);
    return step(GOVERNOR_REFUSE, cause, until_ns);
}

/* Nothing to wait for, now or before: what the bare library would do with little time left is the
 * program's own affair. */
static bool is_not_held_up(const struct governor_request *request, int64_t until_ns, int64_t now_ns)
{
    return until_ns <= now_ns && request->attempts == 0 && !request->wait_began_ns;
}

/* The bound that a wait until until_ns would break, or CAUSE_NONE.  max_wait is for hard waits: a
 * block by a refusal, or a configured limit. */
static enum cause broken_bound(const struct governor_request *request, int64_t until_ns, int64_t now_ns)
{
    if (is_not_held_up(request, until_ns, now_ns))
        return CAUSE_NONE;
    /* It may have become later than it was meant to: the rest of what was refused had to come first. */
    if (request->attempts > 0 && until_ns < now_ns)
        until_ns = now_ns;
    if (request->attempts > 0 && until_ns > add_saturating(request->first_sent_ns, request->policy->total_budget))
        return CAUSE_TOTAL_BUDGET;
    if (add_saturating(until_ns, request->room_ns) > request->deadline_ns)
        return CAUSE_APP_TIMEOUT;
    if (request->attempts == 0 && until_ns > longest_wait_ns(request) &&
        places_look_hard(&request->places, now_ns) > longest_wait_ns(request))
        return CAUSE_MAX_WAIT;
    return CAUSE_NONE;
}

/* Waits until until_ns, or says why that cannot be.  A soft wait ends at max_wait, and then the
 * request goes without a place in the queue: what the server would have served is never failed. */
static struct governor_step wait_within_bounds(struct governor_request *request, int64_t until_ns, int64_t now_ns)
{
    enum cause broken = broken_bound(request, until_ns, now_ns);
    bool may_go_anyway = broken == CAUSE_MAX_WAIT && request->policy->on_max_wait == ON_MAX_WAIT_SEND;
    if (broken && !may_go_anyway)
        return refuse(request, broken, until_ns, now_ns);
    if (!may_go_anyway && request->attempts == 0 && until_ns > longest_wait_ns(request)) {
        until_ns = longest_wait_ns(request);
        may_go_anyway = until_ns <= now_ns;
        places_give_back(&request->places);
    }
    if (may_go_anyway || until_ns <= now_ns)
        return send_now(request, now_ns);
    return wait_until(request, until_ns, now_ns);
}

int64_t governor_latest_ns(const struct governor_request *request)
{
    int64_t latest_ns = request->attempts > 0 ? add_saturating(request->first_sent_ns, request->policy->total_budget)
                                              : longest_wait_ns(request);
    int64_t fits_ns = request->deadline_ns == TIME_NEVER ? TIME_NEVER : request->deadline_ns - request->room_ns;
    return latest_ns < fits_ns ? latest_ns : fits_ns;
}

/* When a server's block lets it go.  Where a limit paces those who wait it lets them go one after the other;
 * else each goes by a draw of his own, or they would all go in the same moment, from every process on the
 * machine.  It is drawn when the wait begins, and anew only if the end of the block is moved.  If that comes
 * earlier by the operator's word there is nothing left to wait for.  The draw is soft: it fails nothing that the
 * block itself would not. */
static OFF_THE_SHORT_WAY int64_t lets_go_ns(struct governor_request *request, int64_t now_ns)
{
    int64_t end_ns = places_unpaced_ns(&request->places, now_ns);
    if (end_ns > now_ns && end_ns != request->lift_ns) {
        request->lift_ns = end_ns;
        request->lift_draw_ns = backoff_spread_ns(request->policy, end_ns - now_ns, request->governor->random);
    }
    if (request->lift_ns == 0 || end_ns < request->lift_ns)
        return now_ns;
    int64_t goes_ns = add_saturating(request->lift_ns, request->lift_draw_ns);
    int64_t most_ns = governor_latest_ns(request);
    return goes_ns <= most_ns ? goes_ns : most_ns > request->lift_ns ? most_ns : request->lift_ns;
}

static int64_t not_before_ns(struct governor_request *request, int64_t now_ns)
{
    int64_t lets_go = lets_go_ns(request, now_ns);
    return lets_go > request->not_before_ns ? lets_go : request->not_before_ns;
}

static void count_observed_wait(const struct governor_request *request)
{
    struct bucket *bucket;
    FOR_EACH_BUCKET(bucket, request)
    atomic_fetch_add_explicit(&bucket_counters(bucket)->observed_waits, 1, memory_order_relaxed);
}

static bool would_break_a_bound(const struct governor_request *request, int64_t until_ns, int64_t now_ns)
{
    return broken_bound(request, until_ns, now_ns) || (request->attempts == 0 && until_ns > longest_wait_ns(request));
}

/* Nothing waits, and nothing is tried again: who waits already goes, or gets the response that was
 * refused.  Under observe it is told what would have been. */
static struct governor_step admit_freely(struct governor_request *request, int64_t until_ns, int64_t now_ns)
{
    bool has_waited = request->wait_began_ns != 0;
    if (request->attempts > 0) {
        places_give_back(&request->places);
        end_wait(request, now_ns);
        return step(GOVERNOR_REFUSE, CAUSE_MODE, TIME_NEVER);
    }
    struct governor_step send = send_now(request, now_ns);
    if (request->mode == MODE_OBSERVE && until_ns > now_ns && !has_waited) {
        enum cause broken = broken_bound(request, until_ns, now_ns);
        count_observed_wait(request);
        send.cause = broken ? broken : cause_of_wait(request, now_ns);
        send.would_wait_ns = until_ns - now_ns;
    }
    return send;
}

/* The whole of it; governor_admit is the glance before. */
static OFF_THE_SHORT_WAY struct governor_step admit_closely(struct governor_request *request, int64_t now_ns)
{
    if (request->wait_began_ns)
        places_ask(&request->places, &request->governor->world, now_ns);
    note_lateness(request, now_ns);
    request->mode = governor_mode(request, now_ns);
    if (request->mode == MODE_ENFORCE && places_are_open(&request->places, now_ns))
        return wait_within_bounds(request, request->lift_ns ? not_before_ns(request, now_ns) : request->not_before_ns,
                                  now_ns);
    if (request->mode == MODE_ENFORCE && now_ns >= request->not_before_ns && places_take_due(&request->places, now_ns))
        return send_now(request, now_ns);

    note_holds(request, now_ns);
    int64_t until_ns = places_look(&request->places, now_ns);
    if (request->mode != MODE_ENFORCE)
        return admit_freely(request, until_ns, now_ns);
    int64_t floor_ns = not_before_ns(request, now_ns);
    if (until_ns < floor_ns)
        until_ns = floor_ns;
    /* Looked at before anything is booked: a wait that cannot fit is not begun, and costs nobody a
     * place.  The places themselves may then turn out later than the look. */
    if (!would_break_a_bound(request, until_ns, now_ns))
        until_ns = places_arrange(&request->places, floor_ns, now_ns);
    return wait_within_bounds(request, until_ns, now_ns);
}

/* A first attempt where nobody has ever limited anything and no operator says anything: a look more
 * closely would come to the same. */
struct governor_step governor_admit(struct governor_request *request, int64_t now_ns)
{
    if (!is_not_held_up(request, request->not_before_ns, now_ns) || !operator_is_silent(request) ||
        configured_mode(request) != MODE_ENFORCE || !places_are_untouched(&request->places))
        return admit_closely(request, now_ns);
    request->mode = MODE_ENFORCE;
    return step(GOVERNOR_SEND, CAUSE_NONE, now_ns);
}

void governor_charge(struct governor_request *request, uint64_t requests, int64_t now_ns)
{
    for (unsigned i = 0; i < request->places.count; i++)
        bucket_charge(request->places.bucket[i], now_ns, requests);
}

void governor_sent(struct governor_request *request, int64_t now_ns)
{
    if (!places_are_untouched(&request->places))
        places_use(&request->places, now_ns);
    request->next_cause = CAUSE_NONE;
    request->last_sent_ns = now_ns;
    if (request->attempts++ == 0)
        request->first_sent_ns = now_ns;
    struct bucket *bucket;
    FOR_EACH_BUCKET(bucket, request)
    metrics_attempt(bucket_counters(bucket));
}

/* -------------------------------------------------------------------- outcome ---- */

static unsigned attempts_max(const struct governor_request *request)
{
    return request->is_own_retry ? 1 : request->policy->max_attempts;
}

bool governor_holds(const struct governor_request *request, int status)
{
    if (request->mode != MODE_ENFORCE || !status_set_has(&request->policy->retry_status, status))
        return false;
    static const struct headers no_headers;
    const struct outcome likely = {
        .status = status, .request_sent = true, .body_resendable = true, .headers = &no_headers};
    return request->attempts < attempts_max(request) &&
           classify(request->policy, &request->traits, &likely, request->attempts).verdict == VERDICT_RETRYABLE;
}

/* When the next attempt may be made, and who says so: the server, or (wait_ns == 0) nobody. */
struct word {
    int64_t wait_ns;
    int64_t spread_ns; /* how much later than that, so that a fleet does not return as a herd */
    enum cause cause;
};

static struct word word_of(const struct policy *policy, const struct outcome *outcome, bool is_refusal, int64_t now_s)
{
    struct word word = {.cause = outcome->failure == FAILURE_NONE ? CAUSE_BACKOFF : CAUSE_CONNECTION};
    if (!outcome->headers || outcome->from_proxy || !headers_say_something(outcome->headers))
        return word;
    struct servers_word said = servers_word_read(outcome->headers, outcome->status, is_refusal,
                                                 policy->retry_after == RETRY_AFTER_OBEY, now_s);
    if (said.cause) {
        word.cause = said.cause;
        word.wait_ns = said.wait_ns;
    }
    return word;
}

/* A server's word is everyone's word.  What a success says is pacing (soft); what a refusal says is
 * hard.  Capped, since one forged header must not stop a machine for ever.  Where a limit paces those who wait,
 * the first of them goes as late as this request; else each goes by a draw of his own, and this is ours. */
static void tell_everyone(struct governor_request *request, struct bucket *bucket, const struct word *word,
                          enum block_kind kind, int64_t now_ns)
{
    int64_t block_ns = word->wait_ns < request->policy->max_block ? word->wait_ns : request->policy->max_block;
    bool is_paced = bucket_has_limits(bucket, now_ns);
    int64_t until_ns = add_saturating(now_ns, add_saturating(block_ns, is_paced ? word->spread_ns : 0));
    if (!is_paced && bucket == spoken_bucket(request)) {
        request->lift_ns = until_ns;
        request->lift_draw_ns = word->spread_ns;
    }
    bool was_free = bucket_block_kind(bucket, now_ns) == BLOCK_NONE;
    if (bucket_block(bucket, &request->governor->world, now_ns, until_ns, kind) && was_free)
        request->stopped_ns = until_ns - now_ns;
}

static struct governor_step deliver(struct governor_request *request, enum cause cause, const char *why)
{
    request->why = why;
    if (cause)
        count_giveup(request, cause);
    return step(GOVERNOR_DELIVER, cause, TIME_NEVER);
}

static bool words_are_used_up(const struct governor_request *request)
{
    const struct policy *policy = request->policy;
    unsigned most = policy->retry_after_attempts == COUNT_AUTO ? policy->max_attempts : policy->retry_after_attempts;
    return request->words_obeyed >= most;
}

static void count_retry(struct governor_request *request, const struct word *word)
{
    struct bucket *bucket;
    if (word->wait_ns)
        request->words_obeyed++;
    else
        request->backoffs++;
    FOR_EACH_BUCKET(bucket, request)
    metrics_retry(bucket_counters(bucket), word->cause);
}

static struct governor_step decline(struct governor_request *request, enum cause cause, const char *why)
{
    request->why = why;
    return step(GOVERNOR_DELIVER, cause, TIME_NEVER);
}

/* May one more attempt be made, and when?  The outcome itself is retryable.  Nothing is counted. */
static struct governor_step plan_retry(struct governor_request *request, const struct classification *class,
                                       const struct word *word, int64_t now_ns)
{
    const struct policy *policy = request->policy;
    if (request->attempts >= attempts_max(request) || request->attempts >= class->attempts_max)
        return decline(request, CAUSE_MAX_ATTEMPTS,
                       request->is_own_retry ? "the program tries again by itself" : "attempts are used up");
    if (word->wait_ns && words_are_used_up(request))
        return decline(request, CAUSE_MAX_ATTEMPTS, "the server's word was waited out often enough");

    int64_t delay_ns = word->wait_ns
                           ? add_saturating(word->wait_ns, word->spread_ns)
                           : backoff_draw_ns(policy, request->backoffs, class->is_throttle, request->governor->random);
    int64_t not_before_ns = add_saturating(now_ns, delay_ns);
    int64_t possible_ns = places_look(&request->places, now_ns);
    enum cause broken = broken_bound(request, possible_ns > not_before_ns ? possible_ns : not_before_ns, now_ns);
    if (broken)
        return decline(request, broken, "the wait does not fit");
    return step(GOVERNOR_RETRY, word->cause, not_before_ns);
}

static struct governor_step retry(struct governor_request *request, const struct classification *class,
                                  const struct word *word, int64_t now_ns)
{
    struct governor_step planned = plan_retry(request, class, word, now_ns);
    if (planned.action != GOVERNOR_RETRY)
        return deliver(request, planned.cause, request->why);
    /* Retries at a time that the server named do not draw on the budget. */
    if (!word->wait_ns && request->places.count &&
        !bucket_retry_withdraw(spoken_bucket(request), now_ns, request->policy->retry_reserve))
        return deliver(request, CAUSE_RETRY_BUDGET, "too many retries over requests");
    request->not_before_ns = planned.until_ns;
    request->next_cause = word->cause;
    count_retry(request, word);
    return planned;
}

static void count_observed_retry(const struct governor_request *request)
{
    struct bucket *bucket;
    FOR_EACH_BUCKET(bucket, request)
    atomic_fetch_add_explicit(&bucket_counters(bucket)->observed_retries, 1, memory_order_relaxed);
}

/* The outcome is the program's, and what would have been done about it is told. */
static struct governor_step observe_retry(struct governor_request *request, const struct classification *class,
                                          const struct word *word, int64_t now_ns)
{
    struct governor_step planned = plan_retry(request, class, word, now_ns);
    if (planned.action != GOVERNOR_RETRY)
        return deliver(request, CAUSE_NONE, request->why);
    count_observed_retry(request);
    struct governor_step delivered = deliver(request, CAUSE_NONE, "mode is observe");
    delivered.cause = word->cause;
    delivered.would_wait_ns = planned.until_ns - now_ns;
    return delivered;
}

/* By who answered: another host's refusal is counted there, if it is governed at all. */
static void count_refusal(const struct governor_request *request, const struct outcome *outcome, struct bucket *speaker)
{
    struct bucket *bucket;
    if (outcome->from_elsewhere) {
        if (speaker)
            metrics_refusal(bucket_metrics(speaker), outcome->status);
        return;
    }
    FOR_EACH_BUCKET(bucket, request)
    metrics_refusal(bucket_counters(bucket), outcome->status);
}

/* What is noted of each outcome, whatever is done about it. */
static void note_answer(struct governor_request *request, const struct outcome *outcome, bool is_refusal,
                        int64_t now_ns)
{
    request->stopped_ns = 0;
    request->was_refused = is_refusal;
    if (outcome->status && request->places.count && now_ns >= request->last_sent_ns)
        bucket_note_latency(request->places.bucket[0], now_ns - request->last_sent_ns);
}

/* What the server says about when to come back, which everybody is told. */
static OFF_THE_SHORT_WAY struct word hear(struct governor_request *request, const struct outcome *outcome,
                                          struct bucket *speaker, bool is_refusal, int64_t now_ns, int64_t now_s)
{
    struct word word = word_of(request->policy, outcome, is_refusal, now_s);
    if (!word.wait_ns)
        return word;
    word.spread_ns = backoff_spread_ns(request->policy, word.wait_ns, request->governor->random);
    if (!outcome->from_elsewhere)
        speaker = spoken_bucket(request);
    if (speaker)
        tell_everyone(request, speaker, &word, is_refusal ? BLOCK_HARD : BLOCK_SOFT, now_ns);
    return word;
}

/* To a refusal, a failure, or anything else that may be tried again. */
static OFF_THE_SHORT_WAY struct governor_step react(struct governor_request *request, const struct outcome *outcome,
                                                    struct bucket *speaker, int64_t now_ns, int64_t now_s)
{
    struct classification class = classify(request->policy, &request->traits, outcome, request->attempts);
    if (class.is_refusal)
        count_refusal(request, outcome, speaker);
    note_answer(request, outcome, class.is_refusal, now_ns);
    struct word word = hear(request, outcome, speaker, class.is_refusal, now_ns, now_s);

    if (class.verdict == VERDICT_DELIVER)
        return deliver(request, CAUSE_NONE, class.why);
    if (class.verdict == VERDICT_MUST_NOT)
        return deliver(request, CAUSE_NOT_REPEATABLE, class.why);
    enum mode mode = governor_mode(request, now_ns);
    if (mode == MODE_ENFORCE)
        return retry(request, &class, &word, now_ns);
    if (mode == MODE_OFF)
        return deliver(request, CAUSE_NONE, "switched off");
    return observe_retry(request, &class, &word, now_ns);
}

struct governor_step governor_outcome(struct governor_request *request, const struct outcome *outcome,
                                      struct bucket *speaker, int64_t now_ns, int64_t now_s)
{
    places_leave_strangers(&request->places);
    if (!classify_is_ordinary(request->policy, outcome))
        return react(request, outcome, speaker, now_ns, now_s);
    note_answer(request, outcome, false, now_ns);
    if (outcome->headers && headers_say_something(outcome->headers))
        hear(request, outcome, speaker, false, now_ns, now_s);
    return deliver(request, CAUSE_NONE, CLASSIFY_WHY_ORDINARY);
}

void governor_note_progress(struct governor_request *request, int64_t now_ns)
{
    request->first_sent_ns = now_ns;
    request->backoffs = 0;
}

void governor_end(struct governor_request *request, int64_t now_ns)
{
    places_give_back(&request->places);
    end_wait(request, now_ns);
}
