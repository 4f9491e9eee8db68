/* SPDX-License-Identifier: Apache-2.0
 *
 * From what a person types to a run. Exact names come before beginnings, so that a tag "abc" is
 * found although a uuid starts with it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/registry.h"
#include "results/query.h"

/* One way to understand the word; the rows of its SELECT are run ids, the latest first. */
struct reading {
    const char *what, *sql;
    bool unique; /* several runs are an error, not a choice of the latest */
};

static const struct reading readings[] = {
    {"uuid", "SELECT id FROM run WHERE uuid = :word", true},
    {"baseline",
     "SELECT u.id FROM baseline AS b JOIN run AS u ON u.uuid = b.run_uuid "
     "WHERE b.name = :word",
     true},
    {"tag",
     "SELECT id FROM run WHERE tag = :word AND tag <> '' "
     "ORDER BY started_utc DESC, id DESC",
     false},
    {"uuid",
     "SELECT id FROM run WHERE length(:word) >= 4 "
     "AND substr(uuid, 1, length(:word)) = :word",
     true},
    {"commit",
     "SELECT u.id FROM run AS u JOIN build AS b ON b.id = u.build "
     "WHERE length(:word) >= 4 AND substr(b.git, 1, length(:word)) = :word "
     "ORDER BY u.started_utc DESC, u.id DESC",
     false},
    /* A commit longer than what the build kept of it. */
    {"commit",
     "SELECT u.id FROM run AS u JOIN build AS b ON b.id = u.build "
     "WHERE length(b.git) >= 7 AND b.git NOT LIKE '%-dirty' "
     "AND substr(:word, 1, length(b.git)) = b.git "
     "ORDER BY u.started_utc DESC, u.id DESC",
     false},
};

/* Runs that measured no point (ridge peaks --save) come last: they are hardly ever meant. */
static enum status find_latest(struct store *store, const char *word, int64_t *run,
                               struct error *err)
{
    struct grid grid;
    char *end;
    const char *tilde = word + strlen("latest");
    long back = *tilde ? strtol(tilde + 1, &end, 10) : 0;
    if (*tilde && (end == tilde + 1 || *end || back < 0))
        return FAIL(err, STATUS_FAILED, "run \"%s\": write latest~N with a number N", word);
    struct query_value value = {"back", NULL, (double)back};
    TRY(query_sql(store,
                  "SELECT id FROM run ORDER BY planned = 0, started_utc DESC, id DESC "
                  "LIMIT 1 OFFSET :back",
                  &value, 1, &grid, err));
    *run = grid.row_count ? grid_at(&grid, 0, 0)->integer : 0;
    grid_release(&grid);
    return STATUS_OK;
}

/* What there is, for the message. */
static enum status fail_not_found(struct store *store, const char *word, struct error *err)
{
    struct grid grid;
    char list[360] = "";
    size_t used = 0;
    TRY(query_sql(store,
                  "SELECT substr(uuid, 1, 8) || iif(tag = '', '', ' (' || tag || ')') FROM run "
                  "ORDER BY started_utc DESC, id DESC LIMIT 5",
                  NULL, 0, &grid, err));
    for (int64_t k = 0; k < grid.row_count && used < sizeof(list); k++)
        used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s", k ? ", " : "",
                                 grid_at(&grid, k, 0)->text);
    grid_release(&grid);
    if (!list[0])
        return FAIL(err, STATUS_FAILED, "%s holds no run yet; `ridge run` makes one",
                    store_path(store));
    return FAIL(err, STATUS_FAILED,
                "%s has no run \"%s\"; give latest, latest~N, a uuid, tag, baseline or commit. "
                "The latest are %s",
                store_path(store), word, list);
}

enum status query_find_run(struct store *store, const char *word, int64_t *run, struct error *err)
{
    *run = 0;
    if (strcmp(word, "latest") == 0 || strncmp(word, "latest~", 7) == 0)
        TRY(find_latest(store, word, run, err));
    struct query_value value = {"word", word, 0};
    for (int k = 0; k < ARRAY_COUNT(readings) && !*run; k++) {
        struct grid grid;
        TRY(query_sql(store, readings[k].sql, &value, 1, &grid, err));
        *run = grid.row_count ? grid_at(&grid, 0, 0)->integer : 0;
        bool ambiguous = readings[k].unique && grid.row_count > 1;
        long long count = grid.row_count;
        grid_release(&grid);
        if (ambiguous)
            return FAIL(err, STATUS_FAILED, "\"%s\" is the beginning of the %s of %lld runs", word,
                        readings[k].what, count);
    }
    return *run ? STATUS_OK : fail_not_found(store, word, err);
}
