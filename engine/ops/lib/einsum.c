/* SPDX-License-Identifier: Apache-2.0
 *
 * A term is read into one symbol per dimension: a letter, or for the dimensions under an ellipsis
 * their place counted from the right, since those broadcast like everywhere else in numpy.
 */
#include "engine/ops/lib/einsum.h"

#include <ctype.h>
#include <string.h>

enum { SYMBOL_ELLIPSIS = 128, SYMBOL_COUNT = SYMBOL_ELLIPSIS + RANK_MAX };

struct term {
    int rank, ellipsis_at; /* ellipsis_at -1: none; ellipsis takes no place in symbol yet */
    unsigned char symbol[RANK_MAX];
};

struct equation {
    int inputs;
    bool explicit_output;
    struct term in[EINSUM_OPERANDS_MAX], out;
};

static enum status bad(const struct node *node, const char *what, struct error *err)
{
    return FAIL(err, STATUS_FAILED, "Einsum: equation \"%s\": %s",
                node_string(node, "equation", ""), what);
}

/* One term; leaves *text at the character after it. */
static enum status read_term(const struct node *node, const char **text, struct term *term,
                             struct error *err)
{
    *term = (struct term){.ellipsis_at = -1};
    for (; **text && **text != ',' && **text != '-'; (*text)++) {
        if (isspace((unsigned char)**text))
            continue;
        if (strncmp(*text, "...", 3) == 0 && term->ellipsis_at < 0) {
            term->ellipsis_at = term->rank;
            *text += 2;
            continue;
        }
        if (!isalpha((unsigned char)**text))
            return bad(node, "only letters, one ellipsis per term, commas and -> are known", err);
        if (term->rank == RANK_MAX)
            return bad(node, "a term has more dimensions than a tensor can have", err);
        term->symbol[term->rank++] = (unsigned char)**text;
    }
    return STATUS_OK;
}

static enum status read_equation(const struct node *node, struct equation *e, struct error *err)
{
    const char *text = node_string(node, "equation", "");
    *e = (struct equation){.out.ellipsis_at = -1};
    for (;;) {
        if (e->inputs == EINSUM_OPERANDS_MAX)
            return bad(node, "too many operands", err);
        TRY(read_term(node, &text, &e->in[e->inputs++], err));
        if (*text != ',')
            break;
        text++;
    }
    if (!*text)
        return STATUS_OK;
    if (strncmp(text, "->", 2) != 0)
        return bad(node, "a minus without >", err);
    text += 2;
    e->explicit_output = true;
    TRY(read_term(node, &text, &e->out, err));
    return *text ? bad(node, "more than one result", err) : STATUS_OK;
}

/* Replaces the ellipsis by `count` symbols, the rightmost being SYMBOL_ELLIPSIS. */
static enum status expand(const struct node *node, struct term *term, int count, struct error *err)
{
    if (term->ellipsis_at < 0)
        return count == 0 ? STATUS_OK
                          : bad(node, "an operand has more dimensions than its term", err);
    if (count < 0 || term->rank + count > RANK_MAX)
        return bad(node, "an operand has fewer dimensions than its term", err);
    int at = term->ellipsis_at;
    memmove(term->symbol + at + count, term->symbol + at, (size_t)(term->rank - at));
    for (int k = 0; k < count; k++)
        term->symbol[at + k] = (unsigned char)(SYMBOL_ELLIPSIS + count - 1 - k);
    term->rank += count;
    return STATUS_OK;
}

/* Without ->: the ellipsis, then every letter that occurs once, in alphabetical order. */
static enum status implicit_output(const struct node *node, struct equation *e, struct error *err)
{
    int seen[SYMBOL_ELLIPSIS] = {0};
    for (int k = 0; k < e->inputs; k++) {
        if (e->in[k].ellipsis_at >= 0)
            e->out.ellipsis_at = 0;
        for (int d = 0; d < e->in[k].rank; d++)
            seen[e->in[k].symbol[d]]++;
    }
    for (int letter = 0; letter < SYMBOL_ELLIPSIS; letter++) {
        if (seen[letter] != 1)
            continue;
        if (e->out.rank == RANK_MAX)
            return bad(node, "the result has too many dimensions", err);
        e->out.symbol[e->out.rank++] = (unsigned char)letter;
    }
    return STATUS_OK;
}

static enum status expand_all(const struct node *node, struct equation *e,
                              const struct shape *const *in, struct error *err)
{
    int widest = 0;
    if (!e->explicit_output)
        TRY(implicit_output(node, e, err));
    for (int k = 0; k < e->inputs; k++) {
        int count = in[k]->rank - e->in[k].rank;
        if (count < 0)
            return bad(node, "an operand has fewer dimensions than its term", err);
        TRY(expand(node, &e->in[k], count, err));
        widest = count > widest ? count : widest;
    }
    return e->out.ellipsis_at < 0 ? STATUS_OK : expand(node, &e->out, widest, err);
}

/* Gives every symbol of a term its place among the labels; index -1: not seen yet. */
static enum status number_symbols(const struct node *node, const struct term *term, int *index,
                                  struct einsum *r, struct error *err)
{
    for (int d = 0; d < term->rank; d++) {
        if (index[term->symbol[d]] >= 0)
            continue;
        if (r->labels == EINSUM_LABELS_MAX)
            return bad(node, "too many labels", err);
        index[term->symbol[d]] = r->labels++;
    }
    return STATUS_OK;
}

static enum status add_operand(const struct node *node, const struct term *term,
                               const struct shape *shape, const int *index, struct einsum *r,
                               struct error *err)
{
    unsigned char *labels = r->label[r->operands];
    int64_t step = 1, *stride = r->stride[r->operands++];
    for (int d = term->rank - 1; d >= 0; d--) {
        int label = index[term->symbol[d]];
        int64_t size = shape->dim[d];
        labels[d] = (unsigned char)label;
        if (size != 1 && r->size[label] != 1 && r->size[label] != size)
            return bad(node, "operands differ in the size of a label", err);
        if (size != 1) {
            r->size[label] = size;
            stride[label] += step;
        }
        step *= size;
    }
    return STATUS_OK;
}

enum status einsum_from(const struct node *node, const struct shape *const *in, int in_count,
                        struct einsum *einsum, struct error *err)
{
    struct equation e;
    int index[SYMBOL_COUNT];
    TRY(read_equation(node, &e, err));
    if (e.inputs != in_count)
        return bad(node, "the number of terms differs from the number of inputs", err);
    TRY(expand_all(node, &e, in, err));
    *einsum = (struct einsum){0};
    for (int k = 0; k < SYMBOL_COUNT; k++)
        index[k] = -1;
    TRY(number_symbols(node, &e.out, index, einsum, err));
    einsum->out_labels = einsum->labels;
    if (einsum->out_labels != e.out.rank)
        return bad(node, "a label occurs twice in the result", err);
    for (int k = 0; k < in_count; k++)
        TRY(number_symbols(node, &e.in[k], index, einsum, err));
    for (int k = 0; k < einsum->labels; k++)
        einsum->size[k] = 1;
    for (int k = 0; k < in_count; k++)
        TRY(add_operand(node, &e.in[k], in[k], index, einsum, err));
    bool used[SYMBOL_COUNT] = {false};
    for (int k = 0; k < in_count; k++)
        for (int d = 0; d < e.in[k].rank; d++)
            used[e.in[k].symbol[d]] = true;
    for (int d = 0; d < e.out.rank; d++)
        if (!used[e.out.symbol[d]])
            return bad(node, "the result has a label that no operand has", err);
    return STATUS_OK;
}

int64_t einsum_span(const struct einsum *einsum, int first, int last)
{
    int64_t span = 1;
    for (int k = first; k < last; k++)
        span *= einsum->size[k];
    return span;
}
