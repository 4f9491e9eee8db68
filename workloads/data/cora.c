/* SPDX-License-Identifier: Apache-2.0 */
#include "workloads/data/cora.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/file.h"

/* Entries and names stay far from the limits of 32 bits. */
static const size_t file_bytes_max = (size_t)1 << 30;

/* Not ended by 0. */
struct word {
    const char *text;
    int32_t length, index;
};

/* Walks over the fields of one line after the other. */
struct reader {
    const struct cora_text *file;
    size_t at, end; /* of the rest of the line */
    int64_t line;
};

struct names {
    struct word *sorted;
    int32_t count;
};

/* What is known of the papers while lines are read. */
struct papers {
    struct word *name, *subject;
    size_t name_room, subject_room;
    int32_t *column, *ends; /* of all rows of words; entries up to the end of each */
    size_t column_room, ends_room;
    int32_t count, entries, words;
};

struct link {
    int32_t from, to;
};

struct links {
    struct link *item;
    size_t item_capacity;
    int32_t count;
};

/* ---- lines and fields ---- */

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* False at the end of the file. Empty lines are passed over. */
static bool next_line(struct reader *r)
{
    const struct cora_text *f = r->file;
    while (r->end < f->size) {
        r->at = r->end + (r->line > 0);
        const char *stop = r->at < f->size ? memchr(f->data + r->at, '\n', f->size - r->at) : NULL;
        r->end = stop ? (size_t)(stop - f->data) : f->size;
        r->line++;
        while (r->at < r->end && is_space(f->data[r->at]))
            r->at++;
        if (r->at < r->end)
            return true;
    }
    return false;
}

static bool next_field(struct reader *r, struct word *field)
{
    const char *data = r->file->data;
    size_t begin = r->at;
    while (r->at < r->end && !is_space(data[r->at]))
        r->at++;
    *field = (struct word){.text = data + begin, .length = (int32_t)(r->at - begin)};
    while (r->at < r->end && is_space(data[r->at]))
        r->at++;
    return field->length > 0;
}

static int by_text(const void *a, const void *b)
{
    const struct word *x = a, *y = b;
    int32_t shorter = x->length < y->length ? x->length : y->length;
    int order = memcmp(x->text, y->text, (size_t)shorter);
    return order ? order : (x->length > y->length) - (x->length < y->length);
}

static int shown(const struct word *w)
{
    return w->length < 60 ? w->length : 60;
}

static bool sort_names(struct arena *arena, const struct word *words, int32_t count,
                       struct names *names)
{
    *names = (struct names){.count = count};
    names->sorted = arena_array(arena, (size_t)count + 1, sizeof(*words));
    if (names->sorted)
        for (int32_t k = 0; k < count; k++) {
            names->sorted[k] = words[k];
            names->sorted[k].index = k;
        }
    if (names->sorted)
        qsort(names->sorted, (size_t)count, sizeof(*words), by_text);
    return names->sorted;
}

/* ---- contents: papers, their words and subjects ---- */

/* The fields between the paper's name and its subject, which is the last. */
static enum status read_words(struct arena *arena, struct reader *r, struct papers *p,
                              struct word *subject, struct error *err)
{
    struct word field;
    int32_t words = -1;
    while (next_field(r, &field)) {
        bool word = words >= 0;
        if (word && (subject->length != 1 || (*subject->text != '0' && *subject->text != '1')))
            return FAIL(err, STATUS_FAILED,
                        "%s:%lld: word %d is \"%.*s\"; it must be 0 or 1, between the paper's "
                        "name and its subject",
                        r->file->name, (long long)r->line, (int)words + 1, shown(subject),
                        subject->text);
        if (word && *subject->text == '1') {
            p->column = arena_grow(arena, p->column, &p->column_room, (size_t)p->entries + 1,
                                   sizeof(*p->column));
            if (!p->column)
                return FAIL_NO_MEMORY(err);
            p->column[p->entries++] = words;
        }
        *subject = field;
        words++;
    }
    if (words < 1)
        return FAIL(err, STATUS_FAILED,
                    "%s:%lld: a line must have the paper's name, its words (0 or 1) and its "
                    "subject; this one ends early",
                    r->file->name, (long long)r->line);
    if (p->words && words != p->words)
        return FAIL(err, STATUS_FAILED,
                    "%s:%lld: %d words, but the first paper has %d; is the file cut off? Get it "
                    "again",
                    r->file->name, (long long)r->line, (int)words, (int)p->words);
    p->words = words;
    return STATUS_OK;
}

static enum status read_papers(struct arena *arena, const struct cora_text *content,
                               struct papers *p, struct error *err)
{
    struct reader r = {.file = content};
    while (next_line(&r)) {
        struct word name, subject = {0};
        size_t need = (size_t)p->count + 1;
        next_field(&r, &name);
        TRY(read_words(arena, &r, p, &subject, err));
        p->name = arena_grow(arena, p->name, &p->name_room, need, sizeof(name));
        p->subject = arena_grow(arena, p->subject, &p->subject_room, need, sizeof(subject));
        p->ends = arena_grow(arena, p->ends, &p->ends_room, need, sizeof(*p->ends));
        if (!p->name || !p->subject || !p->ends)
            return FAIL_NO_MEMORY(err);
        p->ends[p->count] = p->entries;
        p->name[p->count] = name;
        p->subject[p->count++] = subject;
    }
    if (p->count == 0 || p->entries == 0)
        return FAIL(err, STATUS_FAILED,
                    "%s: no paper with a word; a line is the paper's name, its words (0 or 1) and "
                    "its subject",
                    content->name);
    return STATUS_OK;
}

static enum status make_words(struct arena *arena, const struct papers *p, struct csr *m,
                              struct error *err)
{
    *m = (struct csr){.rows = p->count, .columns = p->words, .entries = p->entries};
    m->column = p->column;
    m->offsets = arena_array(arena, (size_t)p->count + 1, sizeof(int32_t));
    m->value = arena_array(arena, (size_t)p->entries, sizeof(float));
    if (!m->offsets || !m->value)
        return FAIL_NO_MEMORY(err);
    memcpy(m->offsets + 1, p->ends, (size_t)p->count * sizeof(int32_t));
    return STATUS_OK;
}

static enum status number_subjects(struct arena *arena, const struct papers *p, struct cora *out,
                                   struct error *err)
{
    struct names names;
    out->subjects = arena_array(arena, (size_t)p->count, sizeof(*out->subjects));
    out->names = arena_array(arena, (size_t)p->count, sizeof(*out->names));
    if (!sort_names(arena, p->subject, p->count, &names) || !out->subjects || !out->names)
        return FAIL_NO_MEMORY(err);
    int32_t classes = 0;
    for (int32_t k = 0; k < p->count; k++) {
        const struct word *w = &names.sorted[k];
        if (k == 0 || by_text(w, w - 1) != 0) {
            out->names[classes] = arena_printf(arena, "%.*s", (int)w->length, w->text);
            if (!out->names[classes++])
                return FAIL_NO_MEMORY(err);
        }
        out->subjects[w->index] = classes - 1;
    }
    out->size.classes = classes;
    return STATUS_OK;
}

static enum status check_names(const struct cora_text *content, const struct names *names,
                               struct error *err)
{
    for (int32_t k = 1; k < names->count; k++) {
        const struct word *w = &names->sorted[k];
        if (by_text(w, w - 1) == 0)
            return FAIL(err, STATUS_FAILED,
                        "%s: paper \"%.*s\" is there twice; leave one of its lines", content->name,
                        shown(w), w->text);
    }
    return STATUS_OK;
}

/* ---- citations ---- */

static enum status find_paper(const struct reader *r, const struct names *names,
                              const struct word *name, int32_t *index, struct error *err)
{
    const struct word *found =
        bsearch(name, names->sorted, (size_t)names->count, sizeof(*name), by_text);
    if (!found)
        return FAIL(err, STATUS_FAILED,
                    "%s:%lld: paper \"%.*s\" is not among the contents; take the line out, or add "
                    "the paper",
                    r->file->name, (long long)r->line, shown(name), name->text);
    *index = found->index;
    return STATUS_OK;
}

static enum status add_link(struct arena *arena, struct links *links, int32_t from, int32_t to,
                            struct error *err)
{
    links->item = arena_grow(arena, links->item, &links->item_capacity, (size_t)links->count + 1,
                             sizeof(*links->item));
    if (!links->item)
        return FAIL_NO_MEMORY(err);
    links->item[links->count++] = (struct link){from, to};
    return STATUS_OK;
}

static enum status read_links(struct arena *arena, const struct cora_text *cites,
                              const struct names *names, struct links *links, struct error *err)
{
    struct reader r = {.file = cites};
    while (next_line(&r)) {
        struct word name[2], more;
        int32_t paper[2];
        if (!next_field(&r, &name[0]) || !next_field(&r, &name[1]) || next_field(&r, &more))
            return FAIL(err, STATUS_FAILED,
                        "%s:%lld: a line must name two papers, the cited and the citing one",
                        cites->name, (long long)r.line);
        for (int k = 0; k < 2; k++)
            TRY(find_paper(&r, names, &name[k], &paper[k], err));
        TRY(add_link(arena, links, paper[0], paper[1], err));
        TRY(add_link(arena, links, paper[1], paper[0], err));
    }
    for (int32_t k = 0; k < names->count; k++)
        TRY(add_link(arena, links, k, k, err));
    return STATUS_OK;
}

static int by_place(const void *a, const void *b)
{
    const struct link *x = a, *y = b;
    int order = (x->from > y->from) - (x->from < y->from);
    return order ? order : (x->to > y->to) - (x->to < y->to);
}

static enum status make_adjacency(struct arena *arena, struct links *links, int32_t papers,
                                  struct csr *m, struct error *err)
{
    *m = (struct csr){.rows = papers, .columns = papers};
    m->offsets = arena_array(arena, (size_t)papers + 1, sizeof(int32_t));
    m->column = arena_array(arena, (size_t)links->count, sizeof(int32_t));
    m->value = arena_array(arena, (size_t)links->count, sizeof(float));
    if (!m->offsets || !m->column || !m->value)
        return FAIL_NO_MEMORY(err);
    if (links->count)
        qsort(links->item, (size_t)links->count, sizeof(*links->item), by_place);
    for (int32_t k = 0; k < links->count; k++) {
        const struct link *l = &links->item[k];
        if (k > 0 && by_place(l, l - 1) == 0)
            continue;
        m->column[m->entries++] = l->to;
        m->offsets[l->from + 1] = m->entries; /* every row has its diagonal */
    }
    return STATUS_OK;
}

/* ---- both files ---- */

enum status cora_parse(struct arena *arena, const struct cora_text *content,
                       const struct cora_text *cites, struct cora *out, struct error *err)
{
    struct papers papers = {0};
    struct links links = {0};
    struct names names;
    *out = (struct cora){.subjects = NULL};
    for (int k = 0; k < 2; k++)
        if ((k ? cites : content)->size > file_bytes_max)
            return FAIL(err, STATUS_FAILED, "%s: larger than 1 GiB", (k ? cites : content)->name);
    TRY(read_papers(arena, content, &papers, err));
    if (!sort_names(arena, papers.name, papers.count, &names))
        return FAIL_NO_MEMORY(err);
    TRY(check_names(content, &names, err));
    TRY(make_words(arena, &papers, &out->words, err));
    TRY(number_subjects(arena, &papers, out, err));
    TRY(read_links(arena, cites, &names, &links, err));
    TRY(make_adjacency(arena, &links, papers.count, &out->adjacency, err));
    citations_normalise(&out->words, &out->adjacency);
    out->size.papers = papers.count;
    out->size.words = papers.words;
    out->size.word_entries = papers.entries;
    out->size.links = (out->adjacency.entries - papers.count) / 2;
    return STATUS_OK;
}

enum status cora_load(struct arena *arena, const char *folder, const char *name, struct cora *out,
                      struct error *err)
{
    struct file file[2] = {{0}};
    struct cora_text text[2];
    enum status status = STATUS_OK;
    for (int k = 0; k < 2 && status == STATUS_OK; k++) {
        text[k].name = arena_printf(arena, "%s/%s.%s", folder, name, k ? "cites" : "content");
        status = text[k].name ? file_map(text[k].name, &file[k], err) : FAIL_NO_MEMORY(err);
        text[k].data = file[k].data;
        text[k].size = file[k].size;
    }
    if (status != STATUS_OK)
        error_context(err, "the folder must have the files %s.content and %s.cites", name, name);
    else
        status = cora_parse(arena, &text[0], &text[1], out, err);
    file_unmap(&file[0]);
    file_unmap(&file[1]);
    return status;
}
