/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/machine/redact.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/registry.h"
#include "harness/machine/procfs.h"

enum { WORD_MIN = 3 }; /* shorter names would be found inside of other words */

void redaction_init(struct redaction *words, const char *root)
{
    const char *user = getenv("USER"), *home = getenv("HOME");
    procfs_line(root, "/proc/sys/kernel/hostname", words->host, sizeof(words->host));
    snprintf(words->user, sizeof(words->user), "%s", user ? user : "");
    snprintf(words->home, sizeof(words->home), "%s", home ? home : "");
    if (strcmp(words->user, "root") == 0) /* everybody's, and part of "root=" */
        words->user[0] = '\0';
    if (strcmp(words->home, "/") == 0)
        words->home[0] = '\0';
}

static void append(char *text, size_t size, const char *piece, size_t length)
{
    size_t used = strlen(text);
    if (used + 1 < size)
        snprintf(text + used, size - used, "%.*s", (int)length, piece);
}

/* Copies `from` with every `word` replaced. */
static void replace(const char *from, const char *word, const char *by, char *text, size_t size)
{
    size_t length = strlen(word);
    text[0] = '\0';
    for (const char *hit; length >= WORD_MIN && (hit = strstr(from, word)); from = hit + length) {
        append(text, size, from, (size_t)(hit - from));
        append(text, size, by, strlen(by));
    }
    append(text, size, from, strlen(from));
}

/* Folders of homes, whoever's: /home/NAME, /Users/NAME, /root and all below. */
static void replace_homes(const char *from, char *text, size_t size)
{
    static const char *const tops[] = {"/home/", "/Users/", "/root/"};
    text[0] = '\0';
    while (*from) {
        bool home = false;
        for (int k = 0; k < ARRAY_COUNT(tops); k++)
            home |= strncmp(from, tops[k], strlen(tops[k])) == 0;
        size_t length = home ? strcspn(from, ": ,;\"'") : 1;
        append(text, size, home ? "<home>" : from, home ? strlen("<home>") : 1);
        from += length;
    }
}

static void redact_text(const struct redaction *words, const char *from, char *text, size_t size)
{
    char a[8192], b[8192];
    replace(from, words->home, "<home>", a, sizeof(a));
    replace(a, words->host, "<host>", b, sizeof(b));
    replace(b, words->user, "<user>", a, sizeof(a));
    replace_homes(a, text, size);
}

/* The kernel's command line: values with a path or an identifier of a disk go. */
static void redact_command_line(const char *from, char *text, size_t size)
{
    text[0] = '\0';
    while (*from) {
        size_t blank = strspn(from, " "), length = strcspn(from + blank, " ");
        const char *word = from + blank, *equals = memchr(word, '=', length);
        bool secret =
            equals && (memchr(equals, '/', length - (size_t)(equals - word)) ||
                       strncmp(equals, "=UUID", 5) == 0 || strncmp(equals, "=PARTUUID", 9) == 0 ||
                       strncmp(equals, "=LABEL", 6) == 0);
        append(text, size, from, blank);
        append(text, size, word, secret ? (size_t)(equals + 1 - word) : length);
        if (secret)
            append(text, size, "<path>", strlen("<path>"));
        from = word + length;
    }
}

static bool is_secret(const struct fact *fact)
{
    static const char *const keys[] = {
        "identity/serial",     "identity/board_serial", "identity/uuid", "identity/hostname",
        "limit/control_group", "storage/mount_point",   "storage/device"};
    char name[256];
    snprintf(name, sizeof(name), "%s/%s", fact->category, fact->key);
    for (int k = 0; k < ARRAY_COUNT(keys); k++)
        if (strcmp(name, keys[k]) == 0)
            return true;
    size_t length = strlen(name);
    return strcmp(fact->category, "gpu") == 0 &&
           (strstr(name, "serial") || (length > 5 && strcmp(name + length - 5, "_uuid") == 0));
}

void redact_value(const struct redaction *words, const struct fact *fact, char *text, size_t size)
{
    char line[8192];
    if (fact->status == FACT_OK && is_secret(fact)) {
        snprintf(text, size, "redacted");
        return;
    }
    snprintf(line, sizeof(line), "%s", fact->value);
    if (strcmp(fact->category, "kernel") == 0 && strcmp(fact->key, "command_line") == 0)
        redact_command_line(fact->value, line, sizeof(line));
    redact_text(words, line, text, size);
}

void redact_source(const struct redaction *words, const struct fact *fact, char *text, size_t size)
{
    redact_text(words, fact->source, text, size);
    if (strcmp(fact->category, "limit") == 0 && strncmp(fact->source, "/sys/fs/cgroup", 14) == 0) {
        const char *name = strrchr(fact->source, '/');
        snprintf(text, size, "/sys/fs/cgroup/...%s", name);
    }
}

/* Line by line, since a line has a bounded length and a suite has not. */
char *redact_lines(const char *text, struct arena *arena)
{
    struct redaction words;
    char line[8192], clean[8192];
    redaction_init(&words, "");
    size_t capacity = 2 * strlen(text) + sizeof(clean), used = 0;
    char *out = arena_alloc(arena, capacity);
    while (out && *text) {
        size_t length = strcspn(text, "\n");
        size_t part = length < sizeof(line) - 1 ? length : sizeof(line) - 1;
        snprintf(line, sizeof(line), "%.*s", (int)part, text);
        redact_text(&words, line, clean, sizeof(clean));
        size_t more = strlen(clean);
        if (used + more + 2 > capacity)
            out = arena_grow(arena, out, &capacity, used + more + 2, 1);
        if (!out)
            break;
        memcpy(out + used, clean, more + 1);
        used += more;
        text += part;
        if (*text == '\n') {
            memcpy(out + used, "\n", 2);
            used++;
            text++;
        }
    }
    return out;
}
