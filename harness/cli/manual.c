/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/cli/manual.h"

#include <stdlib.h>
#include <string.h>

#include "base/build_info.h"
#include "harness/cli/command.h"
#include "harness/suite/suite.h"

const char manual_exit_codes[] =
    "0 fine, 1 a regression, or a difference (checkpoint diff), 2 usage or\n"
    "unusable input, 3 a workload failed or is wrong, 4 inconclusive or invalid,\n"
    "5 a required capability is missing.\n";

void manual_markdown(FILE *stream)
{
    fprintf(stream, "# ridge: commands\n");
    for (int k = 0; k < command_count(); k++) {
        fprintf(stream, "\n## ridge %s\n\n```\n", command_at(k)->name);
        command_print_help(command_at(k), stream);
        fprintf(stream, "```\n");
    }
    fprintf(stream, "\n# ridge: suite files\n\n");
    suite_print_reference(stream, true);
}

/* ---- man ---- */

/* Text as groff must see it: hyphens are minus signs, and no line begins with a request. */
static void put_groff(FILE *stream, const char *text)
{
    bool start = true;
    for (; *text; text++) {
        if (start && (*text == '.' || *text == '\''))
            fputs("\\&", stream);
        start = *text == '\n';
        if (*text == '-')
            fputs("\\-", stream);
        else if (*text == '\\')
            fputs("\\e", stream);
        else if (*text == '`')
            fputs("\\(ga", stream);
        else if (*text == '~')
            fputs("\\(ti", stream);
        else
            fputc(*text, stream);
    }
}

static void man_option(FILE *stream, const struct option *option)
{
    fputs(".TP\n", stream);
    if (option->letter)
        fprintf(stream, "\\fB\\-%c\\fR, ", option->letter);
    fputs("\\fB\\-\\-", stream);
    put_groff(stream, option->name);
    fputs("\\fR", stream);
    if (option->kind != OPTION_FLAG && option->argument) {
        fputs(" \\fI", stream);
        put_groff(stream, option->argument);
        fputs("\\fR", stream);
    }
    fputc('\n', stream);
    put_groff(stream, option->help);
    fputs(option->kind == OPTION_LIST ? " (may be given again)\n" : "\n", stream);
}

static void man_command(FILE *stream, const struct command *command)
{
    fprintf(stream, ".SS \"ridge ");
    put_groff(stream, command->name);
    fprintf(stream, "\"\n.B ridge ");
    put_groff(stream, command->name);
    fputs("\n", stream);
    if (command->usage) {
        put_groff(stream, command->usage);
        fputc('\n', stream);
    }
    fputs(".PP\n", stream);
    put_groff(stream, command->summary);
    fputs(".\n", stream);
    if (command->help) {
        fputs(".PP\n.nf\n", stream); /* not filled: helps hold lists and examples */
        put_groff(stream, command->help);
        fputs(command->help[strlen(command->help) - 1] == '\n' ? ".fi\n" : "\n.fi\n", stream);
    }
    for (const struct option *o = command->options; o && o->name; o++)
        man_option(stream, o);
}

static void man_suites(FILE *stream)
{
    char *text = NULL;
    size_t size = 0;
    FILE *memory = open_memstream(&text, &size);
    if (!memory)
        return;
    suite_print_reference(memory, false);
    if (fclose(memory) == 0) {
        fputs(".SH SUITE FILES\n.nf\n", stream);
        put_groff(stream, text);
        fputs(".fi\n", stream);
    }
    free(text);
}

void manual_man(FILE *stream)
{
    fprintf(stream,
            ".TH RIDGE 1 \"\" \"ridge %s\" \"User Commands\"\n.SH NAME\n"
            "ridge \\- measure what deep\\-learning work costs on this machine\n"
            ".SH SYNOPSIS\n.B ridge\n\\fICOMMAND\\fR [\\fIoptions\\fR]\n"
            ".SH DESCRIPTION\nTimes whole networks and their layers, counts their operations and\n"
            "bytes, measures what the machine can do, and shows how close the one comes to the\n"
            "other. Every command explains itself with\n.BR \\-h .\n.SH COMMANDS\n",
            build_info.version);
    for (int k = 0; k < command_count(); k++)
        man_command(stream, command_at(k));
    man_suites(stream);
    fputs(".SH EXIT STATUS\n", stream);
    put_groff(stream, manual_exit_codes);
}
