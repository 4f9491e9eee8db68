/* SPDX-License-Identifier: Apache-2.0
 *
 * Completion for three shells: commands, their options, and, where a usage says MODEL or SUITE,
 * workloads and suites; a usage like "[ops|kernels]" gives its words. Files are left to the shell.
 */
#include <ctype.h>
#include <string.h>

#include "base/embedded.h"
#include "base/registry.h"
#include "harness/command.h"
#include "harness/reference.h"
#include "workloads/workload.h"

/* ---- words that a command takes ---- */

/* The alternatives of "[ops|kernels] [--json]": words in lower case between | signs. */
static void usage_words(const char *usage, FILE *stream)
{
    const char *open = strchr(usage, '['), *end = open ? strchr(open, ']') : NULL;
    const char *bar = open ? strchr(open, '|') : NULL;
    if (!end || !bar || bar > end || !islower((unsigned char)open[1]))
        return;
    for (const char *word = open + 1; word < end;) {
        int length = (int)strcspn(word, "|]");
        fprintf(stream, "%.*s ", length, word);
        word += length + 1;
    }
}

static bool takes(const struct command *command, const char *word)
{
    return command->usage && strstr(command->usage, word);
}

/* All words on one line, each with a blank behind it. */
static void words_of(const struct command *command, FILE *stream)
{
    if (command->usage)
        usage_words(command->usage, stream);
    if (strcmp(command->name, "help") == 0) {
        for (int k = 0; k < command_count(); k++)
            fprintf(stream, "%s ", command_at(k)->name);
        fputs("suite.toml ", stream);
    }
    for (int k = 0; takes(command, "MODEL") && k < workload_count(); k++)
        fprintf(stream, "%s ", workload_at(k)->name);
    if (!takes(command, "SUITE"))
        return;
    for (const struct embedded *file = embedded_next("suites/", NULL); file;
         file = embedded_next("suites/", file)) {
        const char *name = file->path + strlen("suites/");
        fprintf(stream, "%.*s ", (int)strcspn(name, "."), name);
    }
}

/* Text inside of single quotes of a shell; `more` are characters that want a backslash. */
static void put_quoted(FILE *stream, const char *text, const char *more)
{
    for (; *text; text++) {
        if (*text == '\'')
            fputs("'\\''", stream);
        else if (strchr(more, *text))
            fprintf(stream, "\\%c", *text);
        else
            fputc(*text, stream);
    }
}

/* ---- bash ---- */

static void bash_options(const struct option *options, FILE *stream)
{
    for (; options && options->name; options++) {
        fprintf(stream, "--%s ", options->name);
        if (options->letter)
            fprintf(stream, "-%c ", options->letter);
    }
    fputs("--help", stream);
}

static void bash(FILE *stream)
{
    fputs("# bash completion of ridge: . <(ridge help --completion bash)\n"
          "_ridge() {\n"
          "    local current=${COMP_WORDS[COMP_CWORD]} options='--help --version' words=\n"
          "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n        words='",
          stream);
    for (int k = 0; k < command_count(); k++)
        fprintf(stream, "%s%s", k ? " " : "", command_at(k)->name);
    fputs("'\n    else\n        case ${COMP_WORDS[1]} in\n", stream);
    for (int k = 0; k < command_count(); k++) {
        fprintf(stream, "        %s)\n            options='", command_at(k)->name);
        bash_options(command_at(k)->options, stream);
        fputs("'\n            words='", stream);
        words_of(command_at(k), stream);
        fputs("' ;;\n", stream);
    }
    fputs("        esac\n    fi\n"
          "    case $current in -*) words=$options ;; esac\n"
          "    COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
          "}\n"
          "complete -o default -F _ridge ridge\n",
          stream);
}

/* ---- zsh ---- */

static void zsh_option(const struct option *option, FILE *stream)
{
    bool value = option->kind != OPTION_FLAG;
    for (int shorter = 0; shorter < (option->letter ? 2 : 1); shorter++) {
        if (shorter)
            fprintf(stream, " \\\n            '%s-%c%s[", option->kind == OPTION_LIST ? "*" : "",
                    option->letter, value ? "+" : "");
        else
            fprintf(stream, " \\\n            '%s--%s%s[", option->kind == OPTION_LIST ? "*" : "",
                    option->name, value ? "=" : "");
        put_quoted(stream, option->help, "[]:\\");
        fputc(']', stream);
        if (value) {
            fputc(':', stream);
            put_quoted(stream, option->argument ? option->argument : "value", "[]:\\");
            fputs(":_files", stream);
        }
        fputc('\'', stream);
    }
}

static void zsh(FILE *stream)
{
    fputs("#compdef ridge\n"
          "# zsh completion of ridge: ridge help --completion zsh >~/.zfunc/_ridge\n"
          "_ridge() {\n    local line state\n    local -a commands\n    commands=(\n",
          stream);
    for (int k = 0; k < command_count(); k++) {
        fprintf(stream, "        '%s:", command_at(k)->name);
        put_quoted(stream, command_at(k)->summary, ":\\");
        fputs("'\n", stream);
    }
    fputs("    )\n    _arguments -C '1: :->command' '*:: :->rest'\n    case $state in\n"
          "    command) _describe -t commands command commands ;;\n"
          "    rest)\n        case $line[1] in\n",
          stream);
    for (int k = 0; k < command_count(); k++) {
        fprintf(stream, "        %s)\n            _arguments '--help[explain this command]'",
                command_at(k)->name);
        for (const struct option *o = command_at(k)->options; o && o->name; o++)
            zsh_option(o, stream);
        fputs(" \\\n            '*: :{ compadd -- ", stream);
        words_of(command_at(k), stream);
        fputs("; _files }' ;;\n", stream);
    }
    fputs("        esac ;;\n    esac\n}\n_ridge \"$@\"\n", stream);
}

/* ---- fish ---- */

static void fish(FILE *stream)
{
    fputs("# fish completion of ridge: ridge help --completion fish | source\n", stream);
    for (int k = 0; k < command_count(); k++) {
        const struct command *command = command_at(k);
        fprintf(stream, "complete -c ridge -n __fish_use_subcommand -f -a %s -d '", command->name);
        put_quoted(stream, command->summary, "\\");
        fputs("'\n", stream);
        for (const struct option *o = command->options; o && o->name; o++) {
            fprintf(stream, "complete -c ridge -n '__fish_seen_subcommand_from %s' -l %s",
                    command->name, o->name);
            if (o->letter)
                fprintf(stream, " -s %c", o->letter);
            fprintf(stream, "%s -d '", o->kind == OPTION_FLAG ? "" : " -r");
            put_quoted(stream, o->help, "\\");
            fputs("'\n", stream);
        }
        fprintf(stream, "complete -c ridge -n '__fish_seen_subcommand_from %s' -a '",
                command->name);
        words_of(command, stream);
        fputs("'\n", stream);
    }
}

enum status reference_completion(const char *shell, FILE *stream, struct error *err)
{
    static const char *const names[] = {"bash", "zsh", "fish"};
    static void (*const writers[])(FILE * stream) = {bash, zsh, fish};
    for (int k = 0; k < ARRAY_COUNT(names); k++) {
        if (strcmp(shell, names[k]) != 0)
            continue;
        writers[k](stream);
        return STATUS_OK;
    }
    const char *near = nearest_word(shell, names, ARRAY_COUNT(names));
    return FAIL(err, STATUS_FAILED, "--completion \"%.60s\" is none of bash, zsh, fish%s%s%s",
                shell, near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
}
