/* SPDX-License-Identifier: Apache-2.0
 *
 * MovieLens: who rated which film when. For ncf, as He et al. (WWW 2017, section 4.1) do it: a
 * rating, whatever its stars, says that the user has seen the film; to each come four films that
 * the user has not rated, drawn anew in every epoch. Held out is the latest rating of each user,
 * to be found among 99 films that the user has not rated: how often it is among the best ten, and
 * how far up. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "workloads/data/lines.h"
#include "workloads/lib/lessons.h"

enum { DRAWN = 4, GROUP = 100, BEST = 10, TRIES = 1000 };

struct rating {
    int64_t user, item, when; /* in ids of the file, then as they are numbered here */
};

/* Ascending and without repetition: the place of an id is its number. */
struct ids {
    int64_t *id;
    int64_t count;
};

struct movielens {
    struct rating *ratings; /* by user, then film; those that are held out included */
    int64_t count, bytes;   /* ratings; of the file */
    int64_t *first;         /* per user: its first rating; one more at the end */
    int64_t *learnt;        /* ratings to learn from */
    int64_t *held_out;      /* ratings that are held out, one per user of two ratings or more */
    int64_t users, items;
};

/* ---- quality ---- */

/* How many of a group are placed above its first one, which is the film that was seen. A film of
 * the same score is: a network that says the same of all has found nothing. */
static int rank_of_first(const float *scores)
{
    int above = 0;
    for (int k = 1; k < GROUP; k++)
        above += !(scores[k] < scores[0]);
    return above;
}

static double hit_rate(const struct judged *j)
{
    int64_t groups = j->answer_count / GROUP, hits = 0;
    for (int64_t k = 0; k < groups; k++)
        hits += rank_of_first(j->answers + k * GROUP) < BEST;
    return groups ? (double)hits / (double)groups : (double)NAN;
}

static double gain(const struct judged *j)
{
    int64_t groups = j->answer_count / GROUP;
    double sum = 0;
    for (int64_t k = 0; k < groups; k++) {
        int rank = rank_of_first(j->answers + k * GROUP);
        sum += rank < BEST ? log(2) / log(rank + 2) : 0;
    }
    return groups ? sum / (double)groups : (double)NAN;
}

static const struct quality ndcg = {.name = "NDCG@10", .of = gain};
static const struct quality hits = {.name = "HR@10", .of = hit_rate, .also = &ndcg};

/* ---- the file ---- */

static const struct kind {
    const char *name, *separator;
    bool has_title;
} kinds[] = {{"ratings.csv", ",", true}, {"ratings.dat", "::", false}, {"u.data", "\t", false}};

static enum status read_rating(const struct lines *at, const struct field *line,
                               const char *separator, struct rating *rating, struct error *err)
{
    struct field rest = *line, field[4];
    int64_t *const to[4] = {&rating->user, &rating->item, NULL, &rating->when};
    static const char *const names[4] = {"user", "film", "rating", "time"};
    double stars;
    int count = 0;
    while (count < 4 && field_take(&rest, separator, &field[count]))
        count++;
    if (count < 4 || rest.text)
        return FAIL(err, STATUS_FAILED,
                    "%s:%lld: %s%d fields; a line has 4: user, film, rating, time%s", at->name,
                    (long long)at->number, count < 4 ? "" : "more than ", count,
                    at->unended ? ". Is the file cut off?" : "");
    for (int k = 0; k < 4; k++)
        if (k == 2 ? !field_number(&field[k], &stars) : !field_int(&field[k], to[k]))
            return FAIL(err, STATUS_FAILED, "%s:%lld: the %s is \"%.*s\"; it must be a number",
                        at->name, (long long)at->number, names[k], field_shown(&field[k]),
                        field[k].text);
    return STATUS_OK;
}

static enum status read_ratings(struct data_set *set, const struct kind *kind, struct error *err)
{
    struct movielens *m = set->state;
    struct data_text text;
    struct field line;
    size_t room = 0;
    TRY(data_map(&set->source, kind->name, &text, err));
    struct lines lines = lines_of(&text);
    m->bytes = (int64_t)text.size;
    while (lines_next(&lines, &line)) {
        if (line.length == 0 || (kind->has_title && lines.number == 1))
            continue;
        m->ratings = arena_grow(&set->source.arena, m->ratings, &room, (size_t)m->count + 1,
                                sizeof(*m->ratings));
        if (!m->ratings)
            return FAIL_NO_MEMORY(err);
        TRY(read_rating(&lines, &line, kind->separator, &m->ratings[m->count++], err));
    }
    if (m->count == 0)
        return FAIL(err, STATUS_FAILED, "%s: no ratings", text.name);
    return STATUS_OK;
}

/* ---- numbering ---- */

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static enum status number_ids(struct arena *arena, int64_t *all, int64_t count, struct ids *ids,
                              struct error *err)
{
    qsort(all, (size_t)count, sizeof(*all), by_value);
    *ids = (struct ids){.id = arena_array(arena, (size_t)count + 1, sizeof(*all))};
    if (!ids->id)
        return FAIL_NO_MEMORY(err);
    for (int64_t k = 0; k < count; k++)
        if (k == 0 || all[k] != all[k - 1])
            ids->id[ids->count++] = all[k];
    return STATUS_OK;
}

static int64_t number_of(const struct ids *ids, int64_t id)
{
    const int64_t *found = bsearch(&id, ids->id, (size_t)ids->count, sizeof(id), by_value);
    return found ? found - ids->id : 0;
}

static enum status number_all(struct arena *arena, struct movielens *m, struct error *err)
{
    struct ids users, items;
    int64_t *all = arena_array(arena, (size_t)m->count, sizeof(*all));
    if (!all)
        return FAIL_NO_MEMORY(err);
    for (int64_t k = 0; k < m->count; k++)
        all[k] = m->ratings[k].user;
    TRY(number_ids(arena, all, m->count, &users, err));
    for (int64_t k = 0; k < m->count; k++)
        all[k] = m->ratings[k].item;
    TRY(number_ids(arena, all, m->count, &items, err));
    for (int64_t k = 0; k < m->count; k++) {
        m->ratings[k].user = number_of(&users, m->ratings[k].user);
        m->ratings[k].item = number_of(&items, m->ratings[k].item);
    }
    m->users = users.count;
    m->items = items.count;
    return STATUS_OK;
}

static int by_pair(const void *a, const void *b)
{
    const struct rating *x = a, *y = b;
    int order = (x->user > y->user) - (x->user < y->user);
    return order ? order : (x->item > y->item) - (x->item < y->item);
}

static int by_pair_and_time(const void *a, const void *b)
{
    const struct rating *x = a, *y = b;
    int order = by_pair(a, b);
    return order ? order : (x->when > y->when) - (x->when < y->when);
}

/* Who rated a film twice has rated it the second time. */
static void sort_ratings(struct movielens *m)
{
    int64_t kept = 0;
    qsort(m->ratings, (size_t)m->count, sizeof(*m->ratings), by_pair_and_time);
    for (int64_t k = 0; k < m->count; k++) {
        if (kept && by_pair(&m->ratings[kept - 1], &m->ratings[k]) == 0)
            kept--;
        m->ratings[kept++] = m->ratings[k];
    }
    m->count = kept;
}

/* ---- parts ---- */

static int64_t latest_of(const struct movielens *m, int64_t user)
{
    int64_t latest = m->first[user];
    for (int64_t k = latest; k < m->first[user + 1]; k++)
        if (m->ratings[k].when > m->ratings[latest].when)
            latest = k;
    return m->first[user + 1] - m->first[user] > 1 ? latest : -1;
}

static enum status part_ratings(struct data_set *set, struct error *err)
{
    struct movielens *m = set->state;
    struct arena *arena = &set->source.arena;
    int64_t learnt = 0, held_out = 0;
    m->first = arena_array(arena, (size_t)m->users + 1, sizeof(int64_t));
    m->learnt = arena_array(arena, (size_t)m->count, sizeof(int64_t));
    m->held_out = arena_array(arena, (size_t)m->users, sizeof(int64_t));
    if (!m->first || !m->learnt || !m->held_out)
        return FAIL_NO_MEMORY(err);
    for (int64_t k = 0; k < m->count; k++)
        m->first[m->ratings[k].user + 1] = k + 1;
    for (int64_t user = 0; user < m->users; user++) {
        int64_t latest = latest_of(m, user);
        if (m->first[user + 1] - m->first[user] == m->items)
            return FAIL(err, STATUS_FAILED,
                        "a user has rated all %lld films: no film is left that was not seen",
                        (long long)m->items);
        if (latest >= 0)
            m->held_out[held_out++] = latest;
        for (int64_t k = m->first[user]; k < m->first[user + 1]; k++)
            if (k != latest)
                m->learnt[learnt++] = k;
    }
    set->count[DATA_LEARNT] = learnt * (1 + DRAWN);
    set->count[DATA_HELD_OUT] = held_out * GROUP;
    return STATUS_OK;
}

static enum status check_size(const struct movielens *m, const struct value *user,
                              const struct value *item, const struct graph *g, struct error *err)
{
    if (m->users > data_ids(user) || m->items > data_ids(item))
        return FAIL(err, STATUS_FAILED,
                    "the data have %lld users and %lld films, the network %lld and %lld: "
                    "%s:users=%lld,items=%lld",
                    (long long)m->users, (long long)m->items, (long long)data_ids(user),
                    (long long)data_ids(item), g->name, (long long)m->users, (long long)m->items);
    return STATUS_OK;
}

static enum status movielens_open(struct data_set *set, const struct graph *graph,
                                  struct error *err)
{
    const struct value *user, *item, *seen;
    struct movielens *m = arena_alloc(&set->source.arena, sizeof(*m));
    int kind = 0;
    if (!m)
        return FAIL_NO_MEMORY(err);
    set->state = m;
    set->quality = &hits;
    TRY(data_input(set, graph, "user", DTYPE_I32, 1, &user, err));
    TRY(data_input(set, graph, "item", DTYPE_I32, 1, &item, err));
    TRY(data_input(set, graph, "seen", DTYPE_F32, 2, &seen, err));
    while (kind + 1 < ARRAY_COUNT(kinds) && !data_has(&set->source, kinds[kind].name))
        kind++;
    TRY(read_ratings(set, &kinds[kind], err));
    TRY(number_all(&set->source.arena, m, err));
    TRY(check_size(m, user, item, graph, err));
    sort_ratings(m);
    return part_ratings(set, err);
}

/* ---- samples ---- */

static bool has_rated(const struct movielens *m, int64_t user, int64_t item)
{
    const struct rating wanted = {.user = user, .item = item};
    return bsearch(&wanted, m->ratings + m->first[user],
                   (size_t)(m->first[user + 1] - m->first[user]), sizeof(wanted), by_pair);
}

static int64_t draw_unrated(const struct movielens *m, struct draw *draw, int64_t user)
{
    int64_t item = draw_index(draw, m->items);
    for (int tries = 0; tries < TRIES && has_rated(m, user, item); tries++)
        item = draw_index(draw, m->items);
    while (has_rated(m, user, item)) /* one is left: part_ratings has made sure */
        item = (item + 1) % m->items;
    return item;
}

/* Those that are held out are the same in every training, whatever its seed. */
static struct draw draw_of(const struct batch *batch, int64_t row)
{
    struct batch same = *batch;
    same.seed = batch->held_out ? 0 : batch->seed;
    return draw_begin(&same, row);
}

static enum status movielens_read(const struct data_set *set, struct data_rows *rows,
                                  struct error *err)
{
    const struct movielens *m = set->state;
    const struct batch *batch = rows->batch;
    int32_t *user = batch_input(batch, "user"), *item = batch_input(batch, "item");
    float *seen = batch_input(batch, "seen");
    int64_t each = batch->held_out ? GROUP : 1 + DRAWN;
    const int64_t *part = batch->held_out ? m->held_out : m->learnt;
    (void)err;
    for (int64_t k = 0; k < rows->count; k++) {
        int64_t row = rows->first + k, place = rows->record[k] % each;
        const struct rating *rating = &m->ratings[part[rows->record[k] / each]];
        struct draw draw = draw_of(batch, row);
        user[row] = (int32_t)rating->user;
        item[row] = (int32_t)(place ? draw_unrated(m, &draw, rating->user) : rating->item);
        seen[row] = place == 0;
        rows->bytes += place ? 0 : m->bytes / m->count;
    }
    return STATUS_OK;
}

REGISTER(data_format, movielens) = {
    .name = "movielens",
    .summary = "MovieLens: ratings.csv, ratings.dat or u.data",
    .marks = {"ratings.csv", "ratings.dat", "u.data"},
    .inside = {"ml-1m", "ml-100k", "ml-latest-small", "ml-20m"},
    .open = movielens_open,
    .read = movielens_read,
};
