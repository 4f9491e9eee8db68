/* SPDX-License-Identifier: Apache-2.0
 *
 * ridge compare: is HEAD slower than BASE? docs/method.md, "Comparing", says how that is decided;
 * docs/nightly.md shows it at work. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/system/output.h"
#include "harness/cli/command.h"
#include "harness/compare/comparison.h"
#include "harness/compare/kept_program.h"

static const char default_db[] = "out/ridge.db";

struct compare_options {
    const char *db, *output, *set_baseline, *note;
    double limit, detect;
    bool json, markdown, junit, github, keep_program;
};

static const struct option options[] = {
    {"db", 'd', OPTION_TEXT, offsetof(struct compare_options, db), "FILE",
     "where words are looked up (default out/ridge.db)"},
    {"limit", 'l', OPTION_PERCENT, offsetof(struct compare_options, limit), "PCT",
     "smallest change that counts (default 2)"},
    {"detect", 0, OPTION_PERCENT, offsetof(struct compare_options, detect), "PCT",
     "change that must be excluded before a point is called unchanged (default 15, in turns 5)"},
    {"json", 0, OPTION_FLAG, offsetof(struct compare_options, json), NULL, "machine-readable"},
    {"markdown", 0, OPTION_FLAG, offsetof(struct compare_options, markdown), NULL,
     "for the summary of a CI job"},
    {"junit", 0, OPTION_FLAG, offsetof(struct compare_options, junit), NULL,
     "XML, one test case per point"},
    {"github", 0, OPTION_FLAG, offsetof(struct compare_options, github), NULL,
     "workflow commands: errors and warnings that GitHub shows at the commit"},
    {"output", 'o', OPTION_TEXT, offsetof(struct compare_options, output), "FILE",
     "writes there instead of to standard output"},
    {"set-baseline", 0, OPTION_TEXT, offsetof(struct compare_options, set_baseline), "NAME",
     "compares nothing; gives run BASE this name"},
    {"keep-program", 0, OPTION_FLAG, offsetof(struct compare_options, keep_program), NULL,
     "with --set-baseline: keeps this program beside the database, for `ridge run --against`"},
    {"note", 0, OPTION_TEXT, offsetof(struct compare_options, note), "TEXT",
     "why, with --set-baseline"},
    {.name = NULL},
};

/* The baseline is stored before the program is kept, so that it exists even if keeping fails. */
static enum status keep_program(const char *db, const char *uid, struct error *err)
{
    struct arena arena = {0};
    const char *path = "";
    bool fresh = false;
    enum status status = kept_program_keep(db, uid, &arena, &path, &fresh, err);
    if (status == STATUS_OK)
        fprintf(stderr, "ridge: its program is kept in %s%s\n", path,
                fresh ? "" : ", as it was before");
    arena_release(&arena);
    return status;
}

static enum status suggest_keeping(const char *db, const char *uid, const char *name)
{
    struct arena arena = {0};
    struct kept_program kept;
    if (kept_program_find(db, uid, &arena, &kept))
        fprintf(stderr, "ridge: its program is kept in %s\n", kept.path);
    else
        fprintf(stderr,
                "ridge: its program is not kept; with --keep-program `ridge run --against "
                "baseline:%s` could measure later programs in turns with it\n",
                name);
    arena_release(&arena);
    return STATUS_OK;
}

static enum status set_baseline(const struct compare_options *o, const char *db, const char *word,
                                struct error *err)
{
    struct run_list list;
    struct store *store;
    TRY(run_list_open(&list, word, db, err));
    const char *uuid = list.runs[0].uuid, *uid = list.runs[0].build;
    enum status status = STATUS_OK;
    if (list.count != 1)
        status =
            FAIL(err, STATUS_FAILED, "a baseline is one run; \"%s\" names %d", word, list.count);
    if (status == STATUS_OK)
        status = store_open(store_path(list.runs[0].store), STORE_WRITE, &store, err);
    if (status == STATUS_OK) {
        status = baseline_set(store, o->set_baseline, uuid, o->note ? o->note : "", err);
        store_close(store);
    }
    if (status == STATUS_OK)
        fprintf(stderr, "ridge: baseline \"%s\" is run %s\n", o->set_baseline, uuid);
    if (status == STATUS_OK)
        status = o->keep_program
                     ? keep_program(store_path(list.runs[0].store), uid, err)
                     : suggest_keeping(store_path(list.runs[0].store), uid, o->set_baseline);
    run_list_close(&list);
    return status;
}

static enum status write_out(const struct comparison_set *set, const char *format, const char *path,
                             struct error *err)
{
    struct output out;
    TRY(output_open(&out, path, OUTPUT_PRECIOUS, err));
    comparison_writer_find(format)->write(set, out.stream);
    return output_close(&out, STATUS_OK, err);
}

/* An option of comparing that was given, or NULL: with --set-baseline it has no effect. */
static const char *option_of_comparing(const struct compare_options *o)
{
    return o->limit > 0    ? "--limit"
           : o->detect > 0 ? "--detect"
           : o->json       ? "--json"
           : o->markdown   ? "--markdown"
           : o->junit      ? "--junit"
           : o->github     ? "--github"
           : o->output     ? "--output"
                           : NULL;
}

static enum status check_options(const struct compare_options *o, int word_count, struct error *err)
{
    if (o->json + o->markdown + o->junit + o->github > 1)
        return FAIL(err, STATUS_FAILED, "only one of --json, --markdown, --junit and --github");
    if (o->note && !o->set_baseline)
        return FAIL(err, STATUS_FAILED, "--note goes with --set-baseline");
    if (o->keep_program && !o->set_baseline)
        return FAIL(err, STATUS_FAILED, "--keep-program goes with --set-baseline");
    if (o->set_baseline && option_of_comparing(o))
        return FAIL(err, STATUS_FAILED, "%s has no effect: --set-baseline compares nothing",
                    option_of_comparing(o));
    if (o->set_baseline && !*o->set_baseline)
        return FAIL(err, STATUS_FAILED, "--set-baseline needs a name");
    if (o->set_baseline)
        TRY(run_name_check("--set-baseline", o->set_baseline, err));
    int words = o->set_baseline ? 1 : 2;
    if (word_count != words)
        return FAIL(err, STATUS_FAILED, "%s, not %d",
                    o->set_baseline ? "--set-baseline NAME takes one run"
                                    : "two runs are compared, BASE and HEAD (commas join runs of "
                                      "one side)",
                    word_count);
    return STATUS_OK;
}

static int compare_main(int word_count, char **words, const void *values)
{
    const struct compare_options *o = values;
    const char *db = o->db ? o->db : default_db;
    struct compare_rules rules = {.limit = o->limit / 100, .detect = o->detect / 100};
    struct comparison_set set;
    struct error err = {0};
    enum status status = check_options(o, word_count, &err);
    if (status == STATUS_OK && o->set_baseline) {
        status = set_baseline(o, db, words[0], &err);
        return status == STATUS_OK ? EXIT_FINE : command_fail(&err);
    }
    if (status == STATUS_OK)
        status = comparison_open(&set, words[0], words[1], db, &rules, &err);
    if (status != STATUS_OK)
        return command_fail(&err);
    const char *format = o->json       ? "json"
                         : o->markdown ? "markdown"
                         : o->junit    ? "junit"
                         : o->github   ? "github"
                                       : "text";
    int code = comparison_exit_code(&set);
    if (write_out(&set, format, o->output, &err) != STATUS_OK)
        code = command_fail(&err);
    comparison_close(&set);
    return code;
}

REGISTER(command, compare) = {
    .name = "compare",
    .summary = "say which points became slower or faster between two runs",
    .usage = "BASE HEAD [options]",
    .help =
        "BASE and HEAD are runs: latest, latest~1, a uuid or its beginning, a tag, a baseline's\n"
        "name, a git commit; or database files: other.db is its latest run, other.db:WORD one of\n"
        "its runs. Commas join several runs of one side: differences between them are noise.\n"
        "Points are matched by what they measure. Exit code: 0 nothing became slower, 1 a\n"
        "regression, 3 a point failed, 4 a point is inconclusive, invalid or missing, or moved as\n"
        "the machine did. Earlier runs of BASE's program on this machine count as runs of BASE.\n"
        "\"detectable\" is the slowdown that would have been found with probability 0.95.\n"
        "Of the scenario offline the throughput is judged as well; a server's rate is shown "
        "only.\n",
    .options = options,
    .values_size = sizeof(struct compare_options),
    .words_min = 1,
    .main = compare_main,
};
