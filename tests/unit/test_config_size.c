/* SPDX-License-Identifier: MIT */
/*
 * Config size: ten thousand sections are ten times the work of a thousand, not a hundred times.
 * Work is counted, not timed: comparisons of texts (the strcmp of this program, which core's calls
 * are linked to) and bytes of memory.
 */
#include "core/policy.h"

#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static uint64_t comparisons;

int strcmp(const char *a, const char *b)
{
    comparisons++;
    for (; *a != '\0' && *a == *b; a++)
        b++;
    return (unsigned char)*a - (unsigned char)*b;
}

#define SECTIONS_MOST 10000

/* The shapes that sections come in. */
static const char *const shapes[] = {
    "[host%u.example.com]\nquota = %u/h\nmax_attempts = 3\n",
    "[*.zone%u.example.com]\nrate = %u/s\nmax_wait = 10s\n",
    "[api.example.com/v%u/*]\nquota = %u/min\nmethods = GET, POST\n",
    "[api.example.com \"program %u\"]\nburst = %u\nprograms = git, curl\n",
    "[host%u.example.net:8443]\nhosts = other%u.example.net\n",
};
#define SHAPE_COUNT (sizeof shapes / sizeof shapes[0])

static char *write_sections(const char *shape, unsigned count)
{
    char *text = malloc((size_t)count * 128 + 1);
    size_t used = 0;

    assert_non_null(text);
    text[0] = '\0';
    for (unsigned i = 0; i < count; i++)
        used += (size_t)sprintf(text + used, shape, i, i + 1);
    return text;
}

static void fail_on_diagnostic(void *context, const struct diagnostic *diagnostic)
{
    (void)context;
    fail_msg("%u: %s", diagnostic->line, diagnostic->message);
}

static struct config *load(const char *text)
{
    struct config_builder *builder = config_builder_new(fail_on_diagnostic, NULL);

    assert_true(config_builder_add(builder, "a", text, strlen(text)));
    struct config *config = config_builder_finish(builder);
    assert_non_null(config);
    return config;
}

static uint64_t comparisons_of_loading(const char *shape, unsigned count)
{
    char *text = write_sections(shape, count);
    uint64_t before = comparisons;
    struct config *config = load(text);
    uint64_t used = comparisons - before;

    assert_int_equal(config->section_count, count + 1);
    config_free(config);
    free(text);
    return used;
}

/* Sorting ten thousand takes 13.3 times as many comparisons as sorting a thousand; a scan over all
 * sections for each would take a hundred times as many. */
static void loading_grows_with_the_number_of_sections(void **state)
{
    (void)state;
    for (size_t i = 0; i < SHAPE_COUNT; i++) {
        uint64_t thousand = comparisons_of_loading(shapes[i], SECTIONS_MOST / 10);
        uint64_t ten_thousand = comparisons_of_loading(shapes[i], SECTIONS_MOST);
        assert_true(thousand > 1000);
        if (ten_thousand > thousand * 16)
            fail_msg("%s%llu comparisons for 1,000, and %llu for 10,000", shapes[i], (unsigned long long)thousand,
                     (unsigned long long)ten_thousand);
    }
}

/* Asking for a host does not depend on how many others there are. */
static void resolving_does_not_grow(void **state)
{
    static const unsigned counts[] = {10, SECTIONS_MOST};
    struct resolved_policy resolved;
    uint64_t used[2];

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        char *text = write_sections(shapes[0], counts[i]);
        struct config *config = load(text);
        const struct policy_target target = {"host7.example.com", 443, "/", "GET", "curl", false};
        uint64_t before = comparisons;
        policy_resolve(config, &target, &resolved);
        used[i] = comparisons - before;
        assert_int_equal(resolved.values.quota.item[0].count, 8);
        config_free(config);
        free(text);
    }
    assert_true(used[0] > 0 && used[1] <= used[0] + 8);
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define ALLOCATOR_IS_REPLACED true
#else
#define ALLOCATOR_IS_REPLACED false
#endif

/* What each section takes, in every process that the library lives in. */
static void a_section_takes_a_few_kilobytes(void **state)
{
    char *text = write_sections(shapes[0], SECTIONS_MOST);
    struct mallinfo2 before = mallinfo2();
    struct config *config = load(text);
    struct mallinfo2 after = mallinfo2();
    size_t used = after.uordblks + after.hblkhd - before.uordblks - before.hblkhd;

    (void)state;
    config_free(config);
    free(text);
    if (ALLOCATOR_IS_REPLACED)
        skip();
    assert_in_range(used / SECTIONS_MOST, 100, 4096);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loading_grows_with_the_number_of_sections),
        cmocka_unit_test(resolving_does_not_grow),
        cmocka_unit_test(a_section_takes_a_few_kilobytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
