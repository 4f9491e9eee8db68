/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/cli/command.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/shell.h"
#include "engine/graph/kernel.h"
#include "harness/machine/procfs.h"

#define X(name) extern const struct command command_##name;
#include "command_list.inc"
#undef X

static const struct command *const commands[] = {
#define X(name) &command_##name,
#include "command_list.inc"
#undef X
};

enum { USAGE_BYTES = 8192 };

int command_count(void)
{
    return ARRAY_COUNT(commands);
}

const struct command *command_at(int index)
{
    return commands[index];
}

const struct command *command_find(const char *name)
{
    for (int k = 0; k < command_count(); k++)
        if (strcmp(commands[k]->name, name) == 0)
            return commands[k];
    return NULL;
}

char *command_typed(struct arena *arena)
{
    enum fact_status known;
    size_t size = 0;
    char *typed = procfs_text("", "/proc/self/cmdline", arena, &size, &known);
    size_t program = typed ? strlen(typed) : 0;
    const char *line = "ridge";
    for (size_t k = program + 1; typed && line && k < size; k += strlen(typed + k) + 1) {
        const char *word = shell_word(arena, typed + k);
        line = word ? arena_printf(arena, "%s %s", line, word) : NULL;
    }
    return line ? arena_strdup(arena, line) : NULL;
}

int command_fail(const struct error *err)
{
    fprintf(stderr, "ridge: %s\n", err->message);
    return err->code == STATUS_INVALID       ? EXIT_WRONG
           : err->code == STATUS_LOST        ? EXIT_WRONG
           : err->code == STATUS_UNSUPPORTED ? EXIT_MISSING
                                             : EXIT_USAGE;
}

void command_print_help(const struct command *command, FILE *stream)
{
    char options[USAGE_BYTES];
    options_usage(command->options, options, sizeof(options));
    fprintf(stream, "%s\n\nUsage: ridge %s %s\n", command->summary, command->name,
            command->usage ? command->usage : "");
    fprintf(stream, "\nOptions:\n%s  -h, --help                 this text\n", options);
    if (command->help)
        fprintf(stream, "\n%s%s", command->help,
                command->help[strlen(command->help) - 1] == '\n' ? "" : "\n");
}

/* The code of what was written to standard output: another one where it could not be. */
static int written(const char *name, int code)
{
    if (!fflush(stdout) && !ferror(stdout))
        return code;
    fprintf(stderr, "ridge%s%s: cannot write the result\n", *name ? " " : "", name);
    return code == EXIT_FINE ? EXIT_USAGE : code;
}

/* What a newcomer types first. */
static int print_welcome(void)
{
    printf(
        "ridge measures what deep-learning work costs on this machine, and how close that comes\n"
        "to what the machine can do.\n\n"
        "Try:\n"
        "  ridge doctor               what this machine and this build can do\n"
        "  ridge list                 the workloads; `ridge help resnet50` explains one\n"
        "  ridge run                  measure the default suite and write a report\n"
        "  ridge run resnet50         measure one workload\n"
        "  ridge report               the latest run as a page, out/report/index.html\n"
        "  ridge help                 all commands\n");
    return written("", EXIT_FINE);
}

static int unknown_command(const char *word)
{
    enum { NAMES_MAX = 64 };
    const char *names[NAMES_MAX];
    int count = command_count() < NAMES_MAX ? command_count() : NAMES_MAX;
    for (int k = 0; k < count; k++)
        names[k] = commands[k]->name;
    const char *nearest = nearest_word(word, names, count);
    if (nearest)
        fprintf(stderr, "ridge: unknown command \"%s\", did you mean \"%s\"?\n", word, nearest);
    else
        fprintf(stderr, "ridge: unknown command \"%s\"; `ridge help` lists all\n", word);
    return EXIT_USAGE;
}

static bool wants_help(int count, char **words)
{
    for (int k = 0; k < count && strcmp(words[k], "--") != 0; k++)
        if (strcmp(words[k], "-h") == 0 || strcmp(words[k], "--help") == 0)
            return true;
    return false;
}

static int run_command(const struct command *command, int count, char **words)
{
    if (wants_help(count, words)) {
        command_print_help(command, stdout);
        return written(command->name, EXIT_FINE);
    }
    struct error err = {0};
    void *values = calloc(1, command->values_size ? command->values_size : 1);
    enum status status = values ? options_parse(command->options, &count, words, values, &err)
                                : FAIL_NO_MEMORY(&err);
    if (status == STATUS_OK)
        status = isa_check(&err);
    if (status == STATUS_OK && count < command->words_min)
        status = FAIL(&err, STATUS_FAILED, "usage: ridge %s %s (-h explains)", command->name,
                      command->usage ? command->usage : "");
    int code = EXIT_USAGE;
    if (status == STATUS_OK)
        code = command->main(count, words, values);
    else
        fprintf(stderr, "ridge %s: %s\n", command->name, err.message);
    free(values);
    return written(command->name, code);
}

int commands_dispatch(int word_count, char **words)
{
    if (word_count == 0)
        return print_welcome();
    const char *name = words[0];
    if (strcmp(name, "-h") == 0 || strcmp(name, "--help") == 0)
        name = "help";
    if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0)
        name = "version";
    const struct command *command = command_find(name);
    return command ? run_command(command, word_count - 1, words + 1) : unknown_command(name);
}
