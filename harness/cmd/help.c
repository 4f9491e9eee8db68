/* SPDX-License-Identifier: Apache-2.0 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/embedded.h"
#include "base/text/options.h"
#include "engine/graph/cost.h"
#include "harness/cli/command.h"
#include "harness/cli/completion.h"
#include "harness/cli/manual.h"
#include "harness/suite/suite.h"
#include "results/store.h"
#include "workloads/workload.h"

struct values {
    bool markdown, man;
    const char *completion, *words, *db;
};

static const struct option options[] = {
    {"markdown", 0, OPTION_FLAG, offsetof(struct values, markdown), NULL,
     "everything as one reference page; with suite.toml: that alone"},
    {"man", 0, OPTION_FLAG, offsetof(struct values, man), NULL,
     "everything as a man page: ridge help --man | man -l -"},
    {"completion", 0, OPTION_TEXT, offsetof(struct values, completion), "SHELL",
     "completion for bash, zsh or fish"},
    {"words", 0, OPTION_TEXT, offsetof(struct values, words), "KIND",
     "what may be typed for a run, a point ..., one per line; `--words kinds` lists the kinds"},
    {"db", 'd', OPTION_TEXT, offsetof(struct values, db), "FILE",
     "with --words: the database (default " STORE_DEFAULT ")"},
    {0},
};

/* ---- pages of workloads ---- */

static enum status cost_of(const char *spec, int64_t batch, struct graph_cost *cost,
                           struct error *err)
{
    struct graph *graph;
    TRY(workload_open(spec, batch, PRECISION_F32, &graph, err));
    graph_cost(graph, cost);
    graph_free(graph);
    return STATUS_OK;
}

static void print_numbers(int64_t batch, const struct graph_cost *cost)
{
    printf("| %lld | %.0f | %.4g | %.4g | %.4g | %.4g |\n", (long long)batch, cost->params,
           cost->work.macs * 1e-9, cost->flops * 1e-9, cost->bytes_compulsory * 1e-6,
           cost->bytes_streamed * 1e-6);
}

static void print_params(const struct workload *w)
{
    for (const struct param *p = w->params; p && p->name; p++)
        printf("%s`%s=%s` %s\n", p == w->params ? "\nParameters, with their defaults:\n\n- " : "- ",
               p->name, p->value, p->help);
}

/* Its page under docs/workloads/, and the numbers of its graph, which are computed. */
static enum status print_page(const struct workload *w, const char *spec, struct error *err)
{
    bool two = w->table1_batch && w->table1_batch != w->batch;
    struct graph_cost cost, cost_table1;
    char path[128];
    TRY(cost_of(spec, w->batch, &cost, err)); /* before anything is printed */
    if (two)
        TRY(cost_of(spec, w->table1_batch, &cost_table1, err));
    snprintf(path, sizeof(path), "docs/workloads/%s.md", w->name);
    const struct embedded *page = embedded_find(path);
    if (page)
        printf("%s\n", page->text);
    else
        printf("# %s\n\n%s. %s. Source: %s.\n\n", w->name, w->task, w->summary, w->source);
    printf("| batch | parameters | GMAC | GFLOP | compulsory MB | streamed MB |\n"
           "|---|---|---|---|---|---|\n");
    print_numbers(w->batch, &cost);
    if (two)
        print_numbers(w->table1_batch, &cost_table1);
    print_params(w);
    return STATUS_OK;
}

/* ---- the rest ---- */

static void print_commands(void)
{
    printf("Usage: ridge COMMAND [options]\n\nCommands:\n");
    for (int k = 0; k < command_count(); k++)
        printf("  %-10s %s\n", command_at(k)->name, command_at(k)->summary);
    printf("\n`ridge COMMAND -h` explains one; `ridge help suite.toml` the files that say what to\n"
           "measure; `ridge help resnet50` a workload.\nExit codes: %s",
           manual_exit_codes);
}

static int unknown_topic(const char *word)
{
    enum { NAMES_MAX = 256 };
    const char *names[NAMES_MAX] = {"suite.toml"};
    int count = 1;
    for (int k = 0; k < command_count() && count < NAMES_MAX; k++)
        names[count++] = command_at(k)->name;
    for (int k = 0; k < workload_count() && count < NAMES_MAX; k++)
        names[count++] = workload_at(k)->name;
    const char *near = nearest_word(word, names, count);
    fprintf(stderr, "ridge help: \"%s\" is neither a command nor a workload%s%s%s\n", word,
            near ? ", did you mean \"" : "; `ridge help` and `ridge list` show both",
            near ? near : "", near ? "\"?" : "");
    return EXIT_USAGE;
}

/* A command, suite.toml, or a workload, written as MODEL elsewhere: NAME:param=value. */
static int help_topic(const struct values *v, const char *word)
{
    char name[128], flag[] = "-h", *ask[] = {name, flag};
    struct error err = {0};
    snprintf(name, sizeof(name), "%s", word);
    if (command_find(word))
        return commands_dispatch(2, ask);
    if (strcmp(word, "suite.toml") == 0) {
        suite_print_reference(stdout, v->markdown);
        return EXIT_FINE;
    }
    const struct workload *workload = workload_of(word);
    if (!workload)
        return unknown_topic(word);
    return print_page(workload, word, &err) == STATUS_OK ? EXIT_FINE : command_fail(&err);
}

static int print_words(const struct values *v)
{
    const struct word_kind *kind;
    struct error err = {0};
    enum status status = word_kind_find(v->words, &kind, &err);
    if (status == STATUS_OK)
        status = word_kind_print(kind, v->db ? v->db : STORE_DEFAULT, stdout, &err);
    return status == STATUS_OK ? EXIT_FINE : command_fail(&err);
}

static int help(int word_count, char **words, const void *values)
{
    const struct values *v = values;
    struct error err = {0};
    if ((v->markdown && !word_count) + v->man + (v->completion != NULL) + (v->words != NULL) > 1) {
        fprintf(stderr, "ridge help: only one of --markdown, --man, --completion and --words\n");
        return EXIT_USAGE;
    }
    if (v->db && !v->words) {
        fprintf(stderr, "ridge help: --db belongs to --words\n");
        return EXIT_USAGE;
    }
    if (word_count > 1 || (word_count && (v->man || v->completion || v->words))) {
        fprintf(stderr, "ridge help: \"%s\" is one word too many\n", words[word_count - 1]);
        return EXIT_USAGE;
    }
    if (word_count)
        return help_topic(v, words[0]);
    if (v->words)
        return print_words(v);
    if (v->completion) {
        if (completion_print(v->completion, stdout, &err) != STATUS_OK)
            return command_fail(&err);
    } else if (v->man) {
        manual_man(stdout);
    } else if (v->markdown) {
        manual_markdown(stdout);
    } else {
        print_commands();
    }
    return EXIT_FINE;
}

REGISTER(command, help) = {
    .name = "help",
    .summary = "list the commands, or explain one",
    .usage = "[COMMAND|WORKLOAD|suite.toml]",
    .help = "Completion: . <(ridge help --completion bash), or for good\n"
            "  ridge help --completion bash >~/.local/share/bash-completion/completions/ridge\n",
    .options = options,
    .values_size = sizeof(struct values),
    .main = help,
};
