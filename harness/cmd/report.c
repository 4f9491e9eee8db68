/* SPDX-License-Identifier: Apache-2.0
 *
 * ridge report: a stored run as one page of HTML. */
#include "plots/report.h"

#include <stdio.h>

#include "harness/command.h"

struct report_options {
    const char *run, *db, *output;
};

static const struct option options[] = {
    {"run", 'r', OPTION_TEXT, offsetof(struct report_options, run), "RUN",
     "latest (default), latest~1, a tag, baseline, commit or id"},
    {"db", 'd', OPTION_TEXT, offsetof(struct report_options, db), "FILE",
     "the database; default out/ridge.db"},
    {"output", 'o', OPTION_TEXT, offsetof(struct report_options, output), "FOLDER",
     "where index.html and plots/ go; default out/report"},
    {.name = NULL},
};

static int report_main(int word_count, char **words, const void *values)
{
    const struct report_options *o = values;
    struct error err = {0};
    struct store *store = NULL;
    struct report_outcome outcome;
    int64_t run = 0;
    if (word_count) {
        FAIL(&err, STATUS_FAILED, "\"%s\" is too much; a run is chosen by --run", words[0]);
        return command_fail(&err);
    }
    enum status status = store_open(o->db ? o->db : "out/ridge.db", STORE_READ, &store, &err);
    if (status == STATUS_OK)
        status = query_find_run(store, o->run ? o->run : "latest", &run, &err);
    if (status == STATUS_OK)
        status = report_write(store, run, o->output ? o->output : "out/report", &outcome, &err);
    store_close(store);
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
    .summary = "write a stored run as one HTML page",
    .usage = "[--run RUN] [--db FILE] [--output FOLDER]",
    .help = "The page needs no network and no other file. The plots lie beside it in plots/ with\n"
            "their data and scripts. Without gnuplot the page has everything but the pictures.\n",
    .options = options,
    .values_size = sizeof(struct report_options),
    .main = report_main,
};
