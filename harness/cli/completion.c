/* SPDX-License-Identifier: Apache-2.0
 *
 * Completion for three shells: commands, their options, the values of those, and the words that a
 * usage names (completion_words.c); a usage like "[ops|kernels]" gives its words. Runs
 * and points are asked of the database when they are wanted. Files are left to the shell.
 */
#include "harness/cli/completion.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/registry.h"
#include "harness/cli/command.h"

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

/* The words of a kind on one line, each followed by a blank. */
static enum status put_words(const struct word_kind *kind, FILE *stream, struct error *err)
{
    char *text = NULL;
    size_t size = 0;
    FILE *lines = open_memstream(&text, &size);
    if (!lines)
        return FAIL_NO_MEMORY(err);
    enum status status = word_kind_print(kind, NULL, lines, err);
    if (fclose(lines) != 0 && status == STATUS_OK)
        status = FAIL_NO_MEMORY(err);
    for (size_t k = 0; status == STATUS_OK && k < size; k++)
        fputc(text[k] == '\n' ? ' ' : text[k], stream);
    free(text);
    return status;
}

/* All words that a command takes and that are known now. */
static enum status words_of(const struct command *command, FILE *stream, struct error *err)
{
    const char *usage = command->usage ? command->usage : "";
    usage_words(usage, stream);
    if (strcmp(command->name, "help") == 0) {
        for (int k = 0; k < command_count(); k++)
            fprintf(stream, "%s ", command_at(k)->name);
        fputs("suite.toml ", stream);
    }
    for (int k = 0; k < word_kind_count(); k++) {
        const struct word_kind *kind = word_kind_at(k);
        if (kind->usage && !kind->sql && strstr(usage, kind->usage))
            TRY(put_words(kind, stream, err));
    }
    return STATUS_OK;
}

/* The kind of words that it takes and that only a database knows; "": none. */
static const char *stored_words_of(const struct command *command)
{
    for (int k = 0; k < word_kind_count(); k++) {
        const struct word_kind *kind = word_kind_at(k);
        if (kind->sql && kind->usage && command->usage && strstr(command->usage, kind->usage))
            return kind->name;
    }
    return "";
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

/* After an option that wants a value come its words, or, without any, the shell's files. */
static enum status bash_value(const struct option *option, FILE *stream, struct error *err)
{
    const struct word_kind *kind = word_kind_of_option(option);
    fprintf(stream, "            --%s", option->name);
    if (option->letter)
        fprintf(stream, " | -%c", option->letter);
    fprintf(stream, ") value=1 kind=%s words='", kind && kind->sql ? kind->name : "");
    if (kind && !kind->sql)
        TRY(put_words(kind, stream, err));
    fputs("' ;;\n", stream);
    return STATUS_OK;
}

static enum status bash_command(const struct command *command, FILE *stream, struct error *err)
{
    fprintf(stream, "        %s)\n            options='", command->name);
    bash_options(command->options, stream);
    fputs("'\n            words='", stream);
    TRY(words_of(command, stream, err));
    fprintf(stream, "' kind=%s\n            case $before in\n", stored_words_of(command));
    for (const struct option *o = command->options; o && o->name; o++)
        if (o->kind != OPTION_FLAG)
            TRY(bash_value(o, stream, err));
    fputs("            esac ;;\n", stream);
    return STATUS_OK;
}

static enum status bash(FILE *stream, struct error *err)
{
    fputs("# bash completion of ridge: . <(ridge help --completion bash)\n"
          "_ridge() {\n"
          "    local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}\n"
          "    local options='--help --version' words= kind= value= db= head= k\n"
          "    # --db=FILE is three words: bash breaks at the equals sign.\n"
          "    if [ \"$current\" = = ]; then current=\n"
          "    elif [ \"$before\" = = ]; then before=${COMP_WORDS[COMP_CWORD - 2]}; fi\n"
          "    for ((k = 3; k < COMP_CWORD; k++)); do\n"
          "        case ${COMP_WORDS[k - 2]}${COMP_WORDS[k - 1]} in\n"
          "        --db= | *--db | *-d) db=${COMP_WORDS[k]/#\\~/$HOME} ;;\n"
          "        esac\n"
          "    done\n"
          "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n        words='",
          stream);
    for (int k = 0; k < command_count(); k++)
        fprintf(stream, "%s%s", k ? " " : "", command_at(k)->name);
    fputs("'\n    else\n        case ${COMP_WORDS[1]} in\n", stream);
    for (int k = 0; k < command_count(); k++)
        TRY(bash_command(command_at(k), stream, err));
    fputs("        esac\n    fi\n"
          "    [ \"$value\" ] || case $current in -*) words=$options kind= ;; esac\n"
          "    [ -z \"$kind\" ] ||\n"
          "        words+=\" $(\"${COMP_WORDS[0]}\" help --words \"$kind\" ${db:+--db \"$db\"} "
          "2>/dev/null)\"\n"
          "    case $current in *,*) head=${current%,*}, ;; esac\n"
          "    COMPREPLY=($(compgen -P \"$head\" -W \"$words\" -- \"${current##*,}\"))\n"
          "}\n"
          "complete -o default -F _ridge ridge\n",
          stream);
    return STATUS_OK;
}

/* ---- zsh ---- */

static enum status zsh_value(const struct option *option, FILE *stream, struct error *err)
{
    const struct word_kind *kind = word_kind_of_option(option);
    fputc(':', stream);
    put_quoted(stream, option->argument ? option->argument : "value", "[]:\\");
    if (!kind) {
        fputs(":_files", stream);
    } else if (kind->sql) {
        fprintf(stream, ":{ _ridge_words %s }", kind->name);
    } else {
        fputs(":(", stream);
        TRY(put_words(kind, stream, err));
        fputc(')', stream);
    }
    return STATUS_OK;
}

static enum status zsh_option(const struct option *option, FILE *stream, struct error *err)
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
        if (value)
            TRY(zsh_value(option, stream, err));
        fputc('\'', stream);
    }
    return STATUS_OK;
}

static enum status zsh_command(const struct command *command, FILE *stream, struct error *err)
{
    const char *stored = stored_words_of(command);
    fprintf(stream, "        %s)\n            _arguments '--help[explain this command]'",
            command->name);
    for (const struct option *o = command->options; o && o->name; o++)
        TRY(zsh_option(o, stream, err));
    fputs(" \\\n            '*: :{ compadd -- ", stream);
    TRY(words_of(command, stream, err));
    if (*stored)
        fprintf(stream, "; _ridge_words %s", stored);
    fputs("; _files }' ;;\n", stream);
    return STATUS_OK;
}

static enum status zsh(FILE *stream, struct error *err)
{
    fputs("#compdef ridge\n"
          "# zsh completion of ridge: ridge help --completion zsh >~/.zfunc/_ridge\n"
          "# Words that are in the database.\n"
          "_ridge_words() {\n"
          "    local db=${words[${words[(ie)--db]} + 1]}\n"
          "    compadd -- ${(f)\"$(ridge help --words $1 ${db:+--db} ${db:+$db} 2>/dev/null)\"}\n"
          "}\n"
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
    for (int k = 0; k < command_count(); k++)
        TRY(zsh_command(command_at(k), stream, err));
    fputs("        esac ;;\n    esac\n}\n_ridge \"$@\"\n", stream);
    return STATUS_OK;
}

/* ---- fish ---- */

static enum status fish_option(const struct command *command, const struct option *option,
                               FILE *stream, struct error *err)
{
    const struct word_kind *kind = word_kind_of_option(option);
    fprintf(stream, "complete -c ridge -n '__fish_seen_subcommand_from %s' -l %s", command->name,
            option->name);
    if (option->letter)
        fprintf(stream, " -s %c", option->letter);
    if (kind && kind->sql) {
        fprintf(stream, " -x -a '(ridge help --words %s 2>/dev/null)'", kind->name);
    } else if (kind) {
        fputs(" -x -a '", stream);
        TRY(put_words(kind, stream, err));
        fputc('\'', stream);
    } else if (option->kind != OPTION_FLAG) {
        fputs(" -r", stream);
    }
    fputs(" -d '", stream);
    put_quoted(stream, option->help, "\\");
    fputs("'\n", stream);
    return STATUS_OK;
}

static enum status fish(FILE *stream, struct error *err)
{
    fputs("# fish completion of ridge: ridge help --completion fish | source\n", stream);
    for (int k = 0; k < command_count(); k++) {
        const struct command *command = command_at(k);
        const char *stored = stored_words_of(command);
        fprintf(stream, "complete -c ridge -n __fish_use_subcommand -f -a %s -d '", command->name);
        put_quoted(stream, command->summary, "\\");
        fputs("'\n", stream);
        for (const struct option *o = command->options; o && o->name; o++)
            TRY(fish_option(command, o, stream, err));
        fprintf(stream, "complete -c ridge -n '__fish_seen_subcommand_from %s' -a '",
                command->name);
        TRY(words_of(command, stream, err));
        if (*stored)
            fprintf(stream, "(ridge help --words %s 2>/dev/null)", stored);
        fputs("'\n", stream);
    }
    return STATUS_OK;
}

enum status completion_print(const char *shell, FILE *stream, struct error *err)
{
    static const char *const names[] = {"bash", "zsh", "fish"};
    static enum status (*const writers[])(FILE *, struct error *) = {bash, zsh, fish};
    for (int k = 0; k < ARRAY_COUNT(names); k++)
        if (strcmp(shell, names[k]) == 0)
            return writers[k](stream, err);
    const char *near = nearest_word(shell, names, ARRAY_COUNT(names));
    return FAIL(err, STATUS_FAILED, "--completion \"%.60s\" is none of bash, zsh, fish%s%s%s",
                shell, near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
}
