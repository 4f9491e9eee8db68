/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "harness/bench/scale_launch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "collective/launcher.h"
#include "harness/scale/scale_text.h"
#include "harness/turns/asked_child.h"
#include "harness/watch/interrupt.h"

enum { WORDS_MAX = 256, TYPED_BYTES = 16 << 10, HOSTS_BYTES = 16 << 10, OUTPUT_BYTES = 64 << 20 };

/* Ranks keep deadlines of their own. */
#define LIMIT_S 1e7

static bool is_usable(const struct backend *backend, struct error *err)
{
    const struct backend *ready;
    struct launcher_command command;
    return backend->launcher && backend->launcher->hosts_option &&
           backend_ready(backend, &ready, err) == STATUS_OK &&
           launcher_command_init(&command, backend, 1, NULL, err) == STATUS_OK;
}

/* Of that name, or any; NULL: there is none. */
static const struct backend *usable_launcher(const char *name, struct error *err)
{
    for (int k = 0; k < backend_count(); k++)
        if ((!name || strcmp(name, backend_at(k)->name) == 0) && is_usable(backend_at(k), err))
            return backend_at(k);
    return NULL;
}

enum status scale_launch_backend(const char *name, const struct backend **out, struct error *err)
{
    const struct backend *named = name ? backend_find(name) : NULL;
    bool of_device = named && named->device;
    *out = usable_launcher(of_device ? NULL : name, err);
    if (*out && of_device)
        *out = named;
    if (*out)
        return STATUS_OK;
    if (name && err->message[0])
        return err->code;
    return FAIL(err, STATUS_FAILED,
                "--hosts needs a backend with a launcher%s%s: "
                "apt-get install openmpi-bin libopenmpi-dev, then make",
                name ? ", not " : "", name ? name : "");
}

/* One line, as " HOST:RANKS" or nothing. */
static bool read_host(char *line, FILE *to)
{
    char *rest = NULL;
    line[strcspn(line, "#\n")] = '\0';
    char *host = strtok_r(line, " \t", &rest), *more = strtok_r(NULL, " \t", &rest);
    char *colon = host ? strchr(host, ':') : NULL;
    if (!host)
        return true;
    if (colon)
        *colon = '\0';
    const char *number = colon ? colon + 1 : more ? more : "slots=1";
    number += strncmp(number, "slots=", strlen("slots=")) == 0 ? strlen("slots=") : 0;
    int ranks = (int)strtol(number, &rest, 10);
    fprintf(to, "%s%s:%d", ftell(to) > 0 ? "," : "", host, ranks);
    return *host && ranks > 0 && !*rest;
}

static enum status read_hosts(const char *path, char *list, size_t size, struct error *err)
{
    char line[512];
    int number = 0;
    bool good = true;
    FILE *file = fopen(path, "re");
    FILE *to = fmemopen(list, size, "w");
    while (file && to && good && fgets(line, sizeof(line), file)) {
        number++;
        good = read_host(line, to);
    }
    bool empty = !to || ftell(to) <= 0, whole = to && fclose(to) == 0;
    if (file)
        fclose(file);
    if (!file)
        return FAIL(err, STATUS_FAILED, "--hosts %s cannot be read", path);
    if (!good)
        return FAIL(err, STATUS_FAILED, "%s:%d: \"HOST\", \"HOST:2\" or \"HOST slots=2\"", path,
                    number);
    return whole && !empty ? STATUS_OK : FAIL(err, STATUS_FAILED, "%s names no host", path);
}

/* This command as it was typed, which its ranks read as their own. */
static enum status typed_words(struct arena *arena, const char **words, int *count,
                               struct error *err)
{
    char program[4096];
    char *typed = arena_alloc(arena, TYPED_BYTES);
    FILE *file = fopen("/proc/self/cmdline", "re");
    size_t bytes = file && typed ? fread(typed, 1, TYPED_BYTES - 1, file) : 0;
    ssize_t length = readlink("/proc/self/exe", program, sizeof(program) - 1);
    program[length > 0 ? length : 0] = '\0';
    if (file)
        fclose(file);
    if (bytes == 0 || bytes == TYPED_BYTES - 1)
        return FAIL(err, STATUS_FAILED,
                    "the command line cannot be read from /proc, or is too long");
    typed[bytes] = '\0';
    char *own = arena_strdup(arena, program);
    for (char *at = typed; at < typed + bytes && *count < WORDS_MAX; at += strlen(at) + 1)
        words[(*count)++] = at == typed ? own : at;
    return own && *count < WORDS_MAX ? STATUS_OK : FAIL_NO_MEMORY(err);
}

static enum status make_words(const struct launcher_command *launcher, struct arena *arena,
                              const char **words, struct error *err)
{
    int count = 0;
    for (; count < launcher->count; count++)
        words[count] = launcher->words[count];
    TRY(typed_words(arena, words, &count, err));
    words[count++] = "--points"; /* in place of --ranks, --hosts and --db */
    words[count] = NULL;
    return STATUS_OK;
}

enum status scale_launch(const struct backend *backend, const char *hosts, int ranks,
                         struct scale_result *out, struct error *err)
{
    static const char *const environment[] = {NULL};
    const char *words[WORDS_MAX + 2];
    char list[HOSTS_BYTES];
    struct launcher_command launcher;
    struct arena arena = {.head = NULL};
    *out = (struct scale_result){0};
    TRY(read_hosts(hosts, list, sizeof(list), err));
    if (backend->device)
        backend = usable_launcher(NULL, err);
    TRY(launcher_command_init(&launcher, backend, ranks, list, err));
    char *text = malloc(OUTPUT_BYTES);
    enum status status = text ? make_words(&launcher, &arena, words, err) : FAIL_NO_MEMORY(err);
    interrupt_install();
    if (status == STATUS_OK)
        status = asked_child_output(words, environment, LIMIT_S, text, OUTPUT_BYTES, err);
    interrupt_restore();
    if (status == STATUS_OK)
        status = scale_result_read(text, out, err);
    arena_release(&arena);
    free(text);
    return status;
}
