/* SPDX-License-Identifier: Apache-2.0
 *
 * ridge report: a stored run as one page of HTML, alone or against another run. */
#include "plots/report.h"

#include <stdio.h>
#include <string.h>

#include "harness/cli/command.h"
#include "harness/compare/against.h"

struct report_options {
    const char *run, *against, *db, *output;
};

static const struct option options[] = {
    {"run", 'r', OPTION_TEXT, offsetof(struct report_options, run), "RUN",
     "the same as one argument: latest (default), latest~1, a tag, baseline, commit or id"},
    {"against", 'a', OPTION_TEXT, offsetof(struct report_options, against), "RUN",
     "also compares with this run: the same as BASE of two arguments"},
    {"db", 'd', OPTION_TEXT, offsetof(struct report_options, db), "FILE",
     "the database; default " STORE_DEFAULT},
    {"output", 'o', OPTION_TEXT, offsetof(struct report_options, output), "FOLDER",
     "where index.html and plots/ go; default out/report"},
    {.name = NULL},
};

/* What the arguments of the command line mean. */
struct asked {
    const char *base, *head; /* base NULL: one run alone */
};

static enum status read_words(const struct report_options *o, int count, char **words,
                              struct asked *asked, struct error *err)
{
    if (count > 2)
        return FAIL(err, STATUS_FAILED, "one run, or BASE and HEAD; \"%s\" is too much", words[2]);
    if (count && o->run)
        return FAIL(err, STATUS_FAILED, "\"%s\" and --run %s: say the run once", words[count - 1],
                    o->run);
    if (count == 2 && o->against)
        return FAIL(err, STATUS_FAILED, "\"%s\" and --against %s: say the other run once", words[0],
                    o->against);
    asked->base = count == 2 ? words[0] : o->against;
    asked->head = count ? words[count - 1] : o->run ? o->run : "latest";
    return STATUS_OK;
}

/* A database may hold runs of many machines: say which one this is. */
static void print_run(const struct run_ref *run)
{
    fprintf(stderr, "run %.8s of %s, %.16s UTC%s%s\n", run->uuid, run->host, run->started,
            *run->tag ? ", " : "", run->tag);
}

static enum status write_one(const char *word, const char *db, const char *folder,
                             struct report_outcome *outcome, struct error *err)
{
    struct run_list list;
    TRY(run_list_open(&list, word, db, err));
    enum status status = STATUS_OK;
    if (list.count > 1)
        status =
            FAIL(err, STATUS_FAILED, "a page shows one run; \"%s\" names %d", word, list.count);
    if (status == STATUS_OK) {
        print_run(&list.runs[0]);
        status = report_write(list.runs[0].store, list.runs[0].id, NULL, folder, outcome, err);
    }
    run_list_close(&list);
    return status;
}

static enum status write_two(const struct asked *asked, const char *db, const char *folder,
                             struct report_outcome *outcome, struct error *err)
{
    struct comparison_set set;
    struct report_against against;
    TRY(comparison_open(&set, asked->base, asked->head, db, NULL, err));
    const struct run_ref *head = &set.head.runs[0];
    print_run(&set.base.runs[0]);
    print_run(head);
    enum status status = against_make(&set, &against, err);
    if (status == STATUS_OK)
        status = report_write(head->store, head->id, &against, folder, outcome, err);
    comparison_close(&set);
    return status;
}

static int report_main(int word_count, char **words, const void *values)
{
    const struct report_options *o = values;
    const char *db = o->db ? o->db : STORE_DEFAULT, *folder = o->output ? o->output : "out/report";
    struct error err = {0};
    struct report_outcome outcome;
    struct asked asked;
    enum status status = read_words(o, word_count, words, &asked, &err);
    if (status == STATUS_OK)
        status = asked.base ? write_two(&asked, db, folder, &outcome, &err)
                            : write_one(asked.head, db, folder, &outcome, &err);
    if (status != STATUS_OK)
        return command_fail(&err);
    printf("%s\n", outcome.file);
    if (outcome.not_drawn)
        fprintf(stderr, "ridge report: %d of %d plots are missing: %s\n", outcome.not_drawn,
                outcome.not_drawn + outcome.drawn, outcome.plot_reason);
    return EXIT_FINE;
}

REGISTER(command, report) = {
    .name = "report",
    .summary = "write a stored run as one HTML page, alone or against another",
    .usage = "[RUN | BASE HEAD] [options]",
    .help =
        "The page needs no network and no other file. The plots are beside it in plots/ with\n"
        "their data and scripts. Without gnuplot the page has everything but the pictures.\n"
        "Runs are named as in `ridge compare`, and `ridge list runs` shows them: nightly.db\n"
        "is the latest run of that file, nightly.db:release one of its runs. With two runs the\n"
        "page of HEAD begins with their rooflines in one plot and a verdict per point.\n",
    .options = options,
    .values_size = sizeof(struct report_options),
    .main = report_main,
};
