/* SPDX-License-Identifier: Apache-2.0
 *
 * The census income data ("Adult", UCI): CSV of fifteen columns, adult.data to learn from and
 * adult.test to be judged by. For wide_deep: numbers go in as they stand, words as their place in
 * the vocabularies of TensorFlow's tutorial or, where it hashes them, as a hash modulo 1000. */
#include <stdio.h>
#include <string.h>

#include "base/system/hash.h"
#include "workloads/data/lines.h"

enum { COLUMNS = 15, NUMBERS = 5, IDS = 7, BUCKETS = 1000, WORDS_MAX = 16 };

enum column { AGE, WORKCLASS, WEIGHT, EDUCATION, SCHOOL, MARITAL, OCCUPATION, RELATIONSHIP };
enum { GAIN = 10, LOSS, HOURS, COUNTRY, INCOME };

struct vocabulary {
    const char *input;
    int column, count;
    const char *words[WORDS_MAX];
};

static const struct vocabulary vocabularies[] = {
    {"education",
     EDUCATION,
     16,
     {"Bachelors", "HS-grad", "11th", "Masters", "9th", "Some-college", "Assoc-acdm", "Assoc-voc",
      "7th-8th", "Doctorate", "Prof-school", "5th-6th", "10th", "1st-4th", "Preschool", "12th"}},
    {"marital_status",
     MARITAL,
     7,
     {"Married-civ-spouse", "Divorced", "Married-spouse-absent", "Never-married", "Separated",
      "Married-AF-spouse", "Widowed"}},
    {"relationship",
     RELATIONSHIP,
     6,
     {"Husband", "Not-in-family", "Wife", "Own-child", "Unmarried", "Other-relative"}},
    {"workclass",
     WORKCLASS,
     9,
     {"Self-emp-not-inc", "Private", "State-gov", "Federal-gov", "Local-gov", "?", "Self-emp-inc",
      "Without-pay", "Never-worked"}},
};

static const char *const hashed[] = {"occupation", "education_x_occupation",
                                     "age_x_education_x_occupation"};

static const struct {
    const char *input;
    int column;
} numbers[NUMBERS] = {{"age", AGE},
                      {"capital_gain", GAIN},
                      {"capital_loss", LOSS},
                      {"education_num", SCHOOL},
                      {"hours_per_week", HOURS}};

struct person {
    float number[NUMBERS];
    int32_t id[IDS];
    bool rich;
    int line_bytes;
};

struct census {
    struct person *person[DATA_PARTS];
    size_t room[DATA_PARTS];
    struct data_split split;
    bool splits;
};

static const char *input_of(int id)
{
    return id < ARRAY_COUNT(vocabularies) ? vocabularies[id].input
                                          : hashed[id - ARRAY_COUNT(vocabularies)];
}

/* ---- a line ---- */

static enum status take_columns(const struct lines *at, const struct field *line,
                                struct field column[COLUMNS], struct error *err)
{
    struct field rest = *line, more;
    int count = 0;
    while (count < COLUMNS && field_take(&rest, ",", &column[count]))
        count++;
    if (count < COLUMNS || field_take(&rest, ",", &more))
        return FAIL(err, STATUS_FAILED,
                    "%s:%lld: %s%d columns; a line has %d, from age to income%s", at->name,
                    (long long)at->number, count < COLUMNS ? "" : "more than ", count, COLUMNS,
                    at->unended ? ". Is the file cut off?" : "");
    return STATUS_OK;
}

static int age_bucket(float age)
{
    static const float edges[] = {18, 25, 30, 35, 40, 45, 50, 55, 60, 65};
    int bucket = 0;
    while (bucket < ARRAY_COUNT(edges) && age >= edges[bucket])
        bucket++;
    return bucket;
}

static int32_t hash_of(const char *text)
{
    return (int32_t)(hash_fnv1a(text) % BUCKETS);
}

static void hash_words(const struct field *education, const struct field *work, struct person *p)
{
    int32_t *id = p->id + ARRAY_COUNT(vocabularies);
    char text[128];
    snprintf(text, sizeof(text), "%.*s", field_shown(work), work->text);
    id[0] = hash_of(text);
    snprintf(text, sizeof(text), "%.*s_X_%.*s", field_shown(education), education->text,
             field_shown(work), work->text);
    id[1] = hash_of(text);
    snprintf(text, sizeof(text), "%d_X_%.*s_X_%.*s", age_bucket(p->number[0]),
             field_shown(education), education->text, field_shown(work), work->text);
    id[2] = hash_of(text);
}

static enum status read_person(const struct lines *at, const struct field column[COLUMNS],
                               struct person *p, struct error *err)
{
    for (int k = 0; k < NUMBERS; k++) {
        const struct field *f = &column[numbers[k].column];
        double value;
        if (!field_number(f, &value) || value < 0 || value > 1e6)
            return FAIL(err, STATUS_FAILED, "%s:%lld: %s is \"%.*s\"; it must be a number",
                        at->name, (long long)at->number, numbers[k].input, field_shown(f), f->text);
        p->number[k] = (float)value;
    }
    for (int k = 0; k < ARRAY_COUNT(vocabularies); k++) {
        const struct vocabulary *v = &vocabularies[k];
        const struct field *f = &column[v->column];
        p->id[k] = field_among(f, v->words, v->count);
        if (p->id[k] < 0)
            return FAIL(err, STATUS_FAILED, "%s:%lld: %s is \"%.*s\"; that is none of its words",
                        at->name, (long long)at->number, v->input, field_shown(f), f->text);
    }
    hash_words(&column[EDUCATION], &column[OCCUPATION], p);
    static const char *const incomes[] = {"<=50K", ">50K", "<=50K.", ">50K."};
    int income = field_among(&column[INCOME], incomes, ARRAY_COUNT(incomes));
    if (income < 0)
        return FAIL(err, STATUS_FAILED, "%s:%lld: the income is \"%.*s\"; it must be <=50K or >50K",
                    at->name, (long long)at->number, field_shown(&column[INCOME]),
                    column[INCOME].text);
    p->rich = income % 2;
    return STATUS_OK;
}

/* ---- the files ---- */

static enum status read_file(struct data_set *set, const char *name, int part, struct error *err)
{
    struct census *c = set->state;
    struct data_text text;
    TRY(data_map(&set->source, name, &text, err));
    struct lines lines = lines_of(&text);
    struct field line, column[COLUMNS];
    while (lines_next(&lines, &line)) {
        if (line.length == 0 || (lines.number == 1 && *line.text == '|')) /* adult.test's title */
            continue;
        TRY(take_columns(&lines, &line, column, err));
        c->person[part] = arena_grow(&set->source.arena, c->person[part], &c->room[part],
                                     (size_t)set->count[part] + 1, sizeof(struct person));
        if (!c->person[part])
            return FAIL_NO_MEMORY(err);
        struct person *p = &c->person[part][set->count[part]++];
        TRY(read_person(&lines, column, p, err));
        p->line_bytes = line.length + 1;
    }
    return STATUS_OK;
}

static enum status check_inputs(const struct data_set *set, const struct graph *graph,
                                struct error *err)
{
    const struct value *value;
    for (int k = 0; k < NUMBERS; k++)
        TRY(data_input(set, graph, numbers[k].input, DTYPE_F32, 2, &value, err));
    TRY(data_input(set, graph, "rich", DTYPE_F32, 2, &value, err));
    for (int k = 0; k < IDS; k++) {
        int64_t ids = k < ARRAY_COUNT(vocabularies) ? vocabularies[k].count : BUCKETS;
        TRY(data_input(set, graph, input_of(k), DTYPE_I32, 1, &value, err));
        if (data_ids(value) < ids)
            return UNSUPPORTED(err, "%s: \"%s\" has %lld ids, the data have %lld", graph->name,
                               input_of(k), (long long)data_ids(value), (long long)ids);
    }
    return STATUS_OK;
}

static enum status census_open(struct data_set *set, const struct graph *graph, struct error *err)
{
    struct census *c = arena_alloc(&set->source.arena, sizeof(*c));
    if (!c)
        return FAIL_NO_MEMORY(err);
    set->state = c;
    TRY(check_inputs(set, graph, err));
    TRY(read_file(set, "adult.data", DATA_LEARNT, err));
    c->splits = !data_has(&set->source, "adult.test");
    if (!c->splits)
        return read_file(set, "adult.test", DATA_HELD_OUT, err);
    TRY(data_split(&set->source.arena, set->count[DATA_LEARNT], &c->split, err));
    memcpy(set->count, c->split.count, sizeof(set->count));
    return STATUS_OK;
}

static enum status census_read(const struct data_set *set, struct data_rows *rows,
                               struct error *err)
{
    const struct census *c = set->state;
    const struct batch *batch = rows->batch;
    float *number[NUMBERS], *rich = batch_input(batch, "rich");
    int32_t *id[IDS];
    (void)err;
    for (int k = 0; k < NUMBERS; k++)
        number[k] = batch_input(batch, numbers[k].input);
    for (int k = 0; k < IDS; k++)
        id[k] = batch_input(batch, input_of(k));
    for (int64_t n = 0; n < rows->count; n++) {
        int64_t row = rows->first + n, record = rows->record[n];
        const struct person *p = c->splits ? &c->person[0][c->split.index[batch->held_out][record]]
                                           : &c->person[batch->held_out][record];
        for (int k = 0; k < NUMBERS; k++)
            number[k][row] = p->number[k];
        for (int k = 0; k < IDS; k++)
            id[k][row] = p->id[k];
        rich[row] = p->rich;
        rows->bytes += p->line_bytes;
    }
    return STATUS_OK;
}

REGISTER(data_format, census) = {
    .name = "census",
    .summary = "census income (Adult, UCI): adult.data, adult.test",
    .marks = {"adult.data"},
    .open = census_open,
    .read = census_read,
};
