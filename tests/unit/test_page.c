/* SPDX-License-Identifier: Apache-2.0
 *
 * What the page says of a comparison, whose verdicts are made up here so that each of them occurs.
 * Everything else of the page is tested by tests/cli/report.sh. */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/registry.h"
#include "plots/page.h"
#include "tests/lib/made_results.h"
#include "tests/lib/unit.h"

struct place {
    char *folder, *path; /* of the program search: nothing is there, so that no plot is drawn */
    char db[600];
    struct store *store;
    int64_t run;
    struct error err;
};

static int place_open(void **state)
{
    struct place *place = calloc(1, sizeof(*place));
    struct run_head head = made_head("aaaabbbb-0000-4000-8000-000000000001", 0);
    struct made_record made;
    *state = place;
    if (!place || !(place->folder = made_folder()))
        return -1;
    place->path = strdup(getenv("PATH") ? getenv("PATH") : "");
    setenv("PATH", place->folder, 1);
    snprintf(place->db, sizeof(place->db), "%s/ridge.db", place->folder);
    if (store_open(place->db, STORE_WRITE, &place->store, &place->err) ||
        run_begin(place->store, &head, &place->run, &place->err) ||
        made_record(&made, 0, 0.02, 30, 2))
        return -1;
    enum status status = run_put(place->store, place->run, &made.record, &place->err);
    made_release(&made);
    return status == STATUS_OK ? 0 : -1;
}

static int place_close(void **state)
{
    struct place *place = *state;
    store_close(place->store);
    setenv("PATH", place->path, 1);
    made_folder_remove(place->folder);
    free(place->path);
    free(place);
    return 0;
}

static char *read_page(const char *path)
{
    FILE *file = fopen(path, "r");
    char *text = NULL;
    size_t size = 0;
    assert_non_null(file);
    ssize_t length = getdelim(&text, &size, '\0', file);
    fclose(file);
    assert_true(length > 0);
    return text;
}

/* The page of a run against itself, with these verdicts; the caller frees the text. */
static char *page_with(struct place *place, const char *const *verdicts, int count)
{
    struct report_change changes[16];
    struct report_outcome outcome;
    char folder[650];
    for (int k = 0; k < count; k++)
        changes[k] = (struct report_change){.key = "k",
                                            .label = "made",
                                            .verdict = verdicts[k],
                                            .why = "",
                                            .base_s = 0.02,
                                            .head_s = 0.03,
                                            .ratio = 1.5,
                                            .ci_low = NAN,
                                            .ci_high = NAN};
    struct report_against against = {.store = place->store,
                                     .run = place->run,
                                     .changes = changes,
                                     .change_count = count,
                                     .attribution = "nothing",
                                     .totals = "made up"};
    snprintf(folder, sizeof(folder), "%s/page", place->folder);
    if (report_write(place->store, place->run, &against, folder, &outcome, &place->err))
        fail_msg("%s", place->err.message);
    return read_page(outcome.file);
}

/* A verdict that says nothing of the program looks neither like a failure nor like doubt. */
TEST(the_machine_has_a_colour_and_a_word)
{
    static const char *const verdicts[] = {"machine", "regressed"};
    char *text = page_with(*state, verdicts, 2);
    assert_non_null(strstr(text, "<td data-label=\"Verdict\" class=\"reason\"><span class=\"chip "
                                 "machine\">machine</span>"));
    assert_non_null(strstr(text, "<li><span class=\"chip machine\">machine</span> the machine "
                                 "itself moved as the point did"));
    assert_non_null(strstr(text, ".chip.machine {"));
    assert_non_null(strstr(text, "<li><span class=\"chip bad\">regressed</span>"));
    assert_null(strstr(text, "<li><span class=\"chip good\">")); /* a word that does not occur */
    free(text);
}

/* Every word that `ridge compare` has is explained. */
TEST(every_verdict_is_explained)
{
    static const char *const verdicts[] = {"regressed",    "improved", "unchanged",
                                           "inconclusive", "machine",  "invalid",
                                           "failed",       "missing",  "new"};
    char *text = page_with(*state, verdicts, ARRAY_COUNT(verdicts));
    for (int k = 0; k < ARRAY_COUNT(verdicts); k++) {
        char item[64];
        snprintf(item, sizeof(item), "\">%s</span> ", verdicts[k]);
        const char *legend = strstr(text, "<ul class=\"legend\">");
        assert_non_null(legend);
        assert_non_null(strstr(legend, item));
    }
    free(text);
}

TEST(what_has_no_number_sorts_last)
{
    assert_string_equal(page_sort_key(0.0123).s, "0.0123");
    assert_string_equal(page_sort_key(-3).s, "-3");
    assert_string_equal(page_sort_key(NAN).s, "");
    assert_string_equal(page_sort_key(INFINITY).s, "");
}

const struct unit_fixture unit_fixture = {.before_each = place_open, .after_each = place_close};
