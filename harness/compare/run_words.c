/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/compare/run_words.h"

#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>

/* Splits FILE.db:WORD; a word without a file keeps the default database. */
static void split(char *word, const char **path, const char **name)
{
    char *colon = strstr(word, ".db:");
    size_t length = strlen(word);
    struct stat info;
    if (colon) {
        *name = colon + strlen(".db:");
        colon[strlen(".db")] = 0;
        *path = word;
    } else if ((length > 3 && strcmp(word + length - 3, ".db") == 0) ||
               (strchr(word, '/') && stat(word, &info) == 0)) {
        *path = word;
        *name = "latest";
    } else {
        *name = word;
    }
}

static enum status open_store(struct run_list *list, const char *path, struct store **store,
                              struct error *err)
{
    for (int k = 0; k < list->count; k++)
        if (strcmp(store_path(list->runs[k].store), path) == 0) {
            *store = list->runs[k].store;
            return STATUS_OK;
        }
    return store_open(path, STORE_READ, store, err);
}

static bool text_of(struct run_list *list, const struct grid *grid, const char *column,
                    const char **out)
{
    *out = arena_strdup(&list->arena, grid_text(grid, 0, column));
    return *out != NULL;
}

static enum status describe(struct run_list *list, struct run_ref *run, struct error *err)
{
    const struct {
        const char *column;
        const char **to;
    } texts[] = {
        {"uuid", &run->uuid},         {"started_utc", &run->started},
        {"tag", &run->tag},           {"host", &run->host},
        {"host_uid", &run->host_uid}, {"environment", &run->environment},
        {"build", &run->build},       {"version", &run->version},
        {"git", &run->git},           {"config", &run->config},
        {"compiler", &run->compiler}, {"flags", &run->flags},
        {"features", &run->features}, {"turns_uuid", &run->turns},
    };
    struct query_value value = {"run", NULL, (double)run->id};
    struct grid grid;
    TRY(query_view(run->store, "compare_run", &value, 1, &grid, err));
    bool fine = grid.row_count == 1;
    for (size_t k = 0; fine && k < sizeof(texts) / sizeof(*texts); k++)
        fine = text_of(list, &grid, texts[k].column, texts[k].to);
    if (fine && strcmp(grid_text(&grid, 0, "verdict"), "valid") != 0)
        fine = text_of(list, &grid, "reason", &run->invalid);
    grid_release(&grid);
    return fine ? STATUS_OK : FAIL_NO_MEMORY(err);
}

static enum status add(struct run_list *list, char *word, const char *db, struct error *err)
{
    const char *path = db, *name;
    struct run_ref *run = &list->runs[list->count];
    if (list->count == RUNS_MAX)
        return FAIL(err, STATUS_FAILED, "more than %d runs on one side", RUNS_MAX);
    run->word = arena_strdup(&list->arena, word);
    split(word, &path, &name);
    TRY(open_store(list, path, &run->store, err));
    list->count++;
    TRY(query_find_run(run->store, name, &run->id, err));
    TRY(describe(list, run, err));
    for (int k = 0; k + 1 < list->count; k++) /* a copy of a database has copies of its runs */
        if (strcmp(list->runs[k].uuid, run->uuid) == 0)
            return FAIL(err, STATUS_FAILED, "\"%s\" and \"%s\" are the same run",
                        list->runs[k].word, run->word);
    return STATUS_OK;
}

enum status run_list_open(struct run_list *list, const char *words, const char *db,
                          struct error *err)
{
    *list = (struct run_list){.count = 0};
    char *rest = arena_strdup(&list->arena, words);
    if (!rest)
        return FAIL_NO_MEMORY(err);
    enum status status = STATUS_OK;
    while (status == STATUS_OK && rest) {
        char *word = rest;
        rest = strchr(rest, ',');
        if (rest)
            *rest++ = 0;
        status = *word ? add(list, word, db, err)
                       : FAIL(err, STATUS_FAILED, "\"%s\" has an empty word for a run", words);
    }
    if (status != STATUS_OK)
        run_list_close(list);
    return status;
}

void run_list_close(struct run_list *list)
{
    for (int k = 0; k < list->count; k++) {
        bool first = true;
        for (int i = 0; i < k; i++)
            first = first && list->runs[i].store != list->runs[k].store;
        if (first)
            store_close(list->runs[k].store);
    }
    list->count = 0;
    arena_release(&list->arena);
}

enum status run_name_check(const char *option, const char *name, struct error *err)
{
    size_t length = strlen(name);
    bool latest = strcmp(name, "latest") == 0 || strncmp(name, "latest~", strlen("latest~")) == 0;
    bool file = strstr(name, ".db:") || (length >= 3 && strcmp(name + length - 3, ".db") == 0);
    if (!latest && !file && !strchr(name, ',') && name[0] != '-')
        return STATUS_OK;
    return FAIL(err, STATUS_FAILED,
                "%s \"%.100s\": by this word a run could not be found. Allowed is any text without "
                "a comma that is not \"latest\" or \"latest~N\", does not begin with \"-\", and "
                "neither ends in \".db\" nor has \".db:\" in it",
                option, name);
}
