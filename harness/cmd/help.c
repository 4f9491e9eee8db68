/* SPDX-License-Identifier: Apache-2.0 */
#include <stdbool.h>
#include <stdio.h>

#include "harness/command.h"

struct values {
    bool markdown;
};

static const struct option options[] = {
    {"markdown", 0, OPTION_FLAG, offsetof(struct values, markdown), NULL,
     "all commands as one reference page"},
    {0},
};

static void print_markdown(void)
{
    printf("# ridge: commands\n");
    for (int k = 0; k < command_count(); k++) {
        printf("\n## ridge %s\n\n```\n", command_at(k)->name);
        command_print_help(command_at(k));
        printf("```\n");
    }
}

static int help(int word_count, char **words, const void *values)
{
    const struct values *v = values;
    if (v->markdown) {
        print_markdown();
        return EXIT_FINE;
    }
    if (word_count > 0) {
        char flag[] = "-h", *ask[] = {words[0], flag};
        return commands_dispatch(2, ask);
    }
    printf("Usage: ridge COMMAND [options]\n\nCommands:\n");
    for (int k = 0; k < command_count(); k++)
        printf("  %-10s %s\n", command_at(k)->name, command_at(k)->summary);
    printf(
        "\n`ridge COMMAND -h` explains one.\n"
        "Exit codes: 0 fine, 1 regression, 2 usage or unusable input, 3 a workload failed or is\n"
        "wrong, 4 inconclusive or invalid, 5 a required capability is missing.\n");
    return EXIT_FINE;
}

REGISTER(command, help) = {
    .name = "help",
    .summary = "list the commands, or explain one",
    .usage = "[COMMAND]",
    .options = options,
    .values_size = sizeof(struct values),
    .main = help,
};
