/* SPDX-License-Identifier: Apache-2.0
 * ridge ingest and ridge export --format as a user types them, on made databases. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/made_results.h"
#include "tests/lib/unit.h"
#include "tests/lib/unit/place.h"

static const char *const uuids[] = {"aaaaaaaa-0000-4000-8000-000000000001",
                                    "bbbbbbbb-0000-4000-8000-000000000002"};

static char output[1 << 16]; /* both streams of the last command */

static void fill(struct place *place, int number)
{
    char path[600];
    struct run_head head = made_head(uuids[number], number);
    int64_t run;
    snprintf(path, sizeof(path), "%s/%d.db", place->folder, number);
    struct store *store = place_store(path);
    head.tag = number ? "second" : "first";
    MUST(run_begin, store, &head, &run);
    put_result(store, run, 0, 0.02, 10);
    MUST(run_end, store, run, true, true, "");
    store_close(store);
}

static int open_both(void **state)
{
    if (place_open(state))
        return -1;
    fill(*state, 0);
    fill(*state, 1);
    return 0;
}

/* Runs "ridge WORDS" in the folder of the databases; `then` is what its output goes through. */
static int ridge(struct place *place, const char *words, const char *then)
{
    char command[2048], here[512];
    const char *program = getenv("RIDGE") ? getenv("RIDGE") : "./ridge";
    assert_non_null(getcwd(here, sizeof(here)));
    snprintf(command, sizeof(command),
             "program=$(realpath '%s'); cd '%s'; exec 2>&1; "
             "\"$program\" %s %s",
             program, place->folder, words, then);
    FILE *stream = popen(command, "r");
    assert_non_null(stream);
    output[fread(output, 1, sizeof(output) - 1, stream)] = 0;
    return WEXITSTATUS(pclose(stream));
}

static void runs(struct place *place, const char *words, const char *then)
{
    if (ridge(place, words, then) != 0)
        fail_msg("ridge %s %s: %s", words, then, output);
}

static void fails(struct place *place, const char *words, const char *why)
{
    assert_int_equal(ridge(place, words, ""), 2);
    if (!strstr(output, why))
        fail_msg("ridge %s: \"%s\" does not say \"%s\"", words, output, why);
}

TEST(ingest_counts_what_is_new)
{
    struct place *place = *state;
    runs(place, "ingest 1.db --db 0.db --json",
         "| jq -e '.[0] | .runs_new == 1 and .results_new == 1 and .samples_new == 10 "
         "and .error == null'");
    runs(place, "ingest 1.db --db 0.db --json",
         "| jq -e '.[0] | .runs_new == 0 and "
         ".runs_known == 1 and .results_new == 0'");
    runs(place, "ingest 0.db 1.db", "");
    assert_non_null(strstr(output, "0.db"));
    runs(place, "export --format json --run all", "| jq -e 'length == 2'"); /* out/ridge.db */
}

TEST(one_bad_file_keeps_no_other_out)
{
    struct place *place = *state;
    assert_int_equal(ridge(place, "ingest absent.db 1.db --db 0.db", ""), 2);
    assert_non_null(strstr(output, "absent.db: no such file"));
    runs(place, "export --format json --run all --db 0.db", "| jq -e 'length == 2'");
    fails(place, "ingest", "usage: ridge ingest OTHER.db");
    fails(place, "ingest 0.db --db 0.db", "itself");
}

TEST(export_finds_the_run)
{
    struct place *place = *state;
    runs(place, "ingest 1.db --db 0.db", "");
    runs(place, "export --format json --db 0.db",
         "| jq -e 'length == 1 and .[0].tag == \"second\"'");
    runs(place, "export --format json --db 0.db --run first", "| jq -e '.[0].tag == \"first\"'");
    runs(place, "export --format json --db 0.db --run latest~1",
         "| jq -e '.[0].tag == \"first\" and (.[0].metrics | map(.step) | max == null)'");
    runs(place, "export --format json --db 0.db --steps",
         "| jq -e '.[0].metrics | map(.step) | max == 3'");
    runs(place, "export -f csv --db 0.db --run all -o all.csv", "&& wc -l < all.csv");
    assert_non_null(strstr(output, "17")); /* a head, twice 8 metrics */
}

TEST(mistakes_are_explained)
{
    struct place *place = *state;
    fails(place, "export --format cvs --db 0.db", "did you mean \"csv\"");
    fails(place, "export --format csv", "out/ridge.db: no such file");
    fails(place, "export --format csv --db 0.db --run nope", "no run \"nope\"");
    fails(place, "export --format csv --db 0.db ncf", "need no model");
    fails(place, "export ncf --run latest", "--format is missing");
    fails(place, "export", "a model is missing");
    fails(place, "export --format csv --db 0.db -o no/such/folder.csv", "no/such/folder.csv");
    fails(place, "export --format csv --db 0.db -o .", "is a folder");
}

const struct unit_fixture unit_fixture = {.before_each = open_both, .after_each = place_close};
