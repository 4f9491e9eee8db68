/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/gpu/host/pattern.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/gpu/host/watch.h"

enum { LANES = 32, WARPS = 8, ROUNDS = 16, BLOCKS = 3, SITES = 4096, WORST = 40 };
enum { VECTOR = 16, SECTOR = 32, BANKS = 32, WORD = 4, PARTS_MAX = LANES * 16 };

/* What the lanes of a warp do in one round. */
struct request {
    uint32_t mask;
    const char *at[LANES];
};

struct site {
    struct pattern_access what; /* code 0: free */
    uint64_t requests, lanes, moved, least;
    struct request *rounds;             /* WARPS of ROUNDS; made when it is used */
    unsigned char round[WARPS * LANES]; /* of each thread, in this block */
    bool used;                          /* in this block */
};

static struct {
    struct site sites[SITES];
    int used[SITES], used_count;
    struct pattern_access open[WARPS * LANES]; /* each thread's last one; bytes 0: none */
} p;

/* ---- telling ---- */

static int by_waste(const void *a, const void *b)
{
    const struct site *x = a, *y = b;
    uint64_t of_x = x->moved - x->least, of_y = y->moved - y->least;
    return of_x < of_y ? 1 : of_x > of_y ? -1 : 0;
}

static void tell_patterns(void)
{
    qsort(p.sites, SITES, sizeof(p.sites[0]), by_waste);
    for (int k = 0; k < WORST && p.sites[k].moved > p.sites[k].least; k++) {
        const struct site *s = &p.sites[k];
        fprintf(stderr, "%s %s, %u bytes, %.1f lanes: %.2f %s per request, %.2f at least\n",
                s->what.shared ? "shared" : "device", s->what.write ? "write" : "read",
                s->what.bytes, (double)s->lanes / (double)s->requests,
                (double)s->moved / (double)s->requests, s->what.shared ? "turns" : "sectors",
                (double)s->least / (double)s->requests);
        watch_report_place("place", s->what.code);
    }
}

bool pattern_wanted(void)
{
    static int wanted = -1;
    if (wanted >= 0)
        return wanted;
    const char *text = getenv("RIDGE_HOST_PATTERNS"); /* once: accesses ask */
    wanted = text && strcmp(text, "1") == 0;
    if (wanted)
        atexit(tell_patterns);
    return wanted;
}

/* ---- one request ---- */

static int by_number(const void *a, const void *b)
{
    uintptr_t x = *(const uintptr_t *)a, y = *(const uintptr_t *)b;
    return x < y ? -1 : x > y;
}

/* Distinct pieces of `size` bytes that lanes first to last touch; sorted. */
static int pieces(const struct request *r, unsigned bytes, unsigned size, int first, int last,
                  uintptr_t *piece)
{
    int count = 0, kept = 0;
    for (int lane = first; lane < last; lane++)
        for (uintptr_t b = 0; r->mask >> lane & 1 && b < bytes; b += size < WORD ? size : WORD)
            if (count < PARTS_MAX)
                piece[count++] = ((uintptr_t)r->at[lane] + b) / size;
    qsort(piece, (size_t)count, sizeof(*piece), by_number);
    for (int k = 0; k < count; k++)
        if (k == 0 || piece[k] != piece[k - 1])
            piece[kept++] = piece[k];
    return kept;
}

static int turns_of_banks(const uintptr_t *word, int count)
{
    int per_bank[BANKS] = {0}, largest = 0;
    for (int k = 0; k < count; k++) {
        int n = ++per_bank[word[k] % BANKS];
        largest = n > largest ? n : largest;
    }
    return largest;
}

static void add_request(struct site *s, const struct request *r)
{
    uintptr_t piece[PARTS_MAX];
    unsigned bytes = s->what.bytes;
    int words = pieces(r, bytes, WORD, 0, LANES, piece);
    s->requests++;
    s->lanes += (uint64_t)__builtin_popcount(r->mask);
    if (!s->what.shared) {
        s->least += (uint64_t)(words * WORD + SECTOR - 1) / SECTOR;
        s->moved += (uint64_t)pieces(r, bytes, SECTOR, 0, LANES, piece);
        return;
    }
    /* 128 bytes are a turn: of 16 bytes a lane, 8 lanes. */
    int step = bytes <= WORD ? LANES : LANES * WORD / (int)bytes;
    s->least += (uint64_t)(words + BANKS - 1) / BANKS;
    for (int first = 0; first < LANES; first += step) {
        int count = pieces(r, bytes, WORD, first, first + step, piece);
        s->moved += (uint64_t)turns_of_banks(piece, count);
    }
}

/* ---- collecting ---- */

static struct site *site_of(const struct pattern_access *a)
{
    uint32_t at = a->code * 2654435761u % SITES;
    for (int tries = 0; tries < SITES; tries++, at = (at + 1) % SITES) {
        struct site *s = &p.sites[at];
        if (s->what.code == a->code && s->what.write == a->write && s->what.bytes == a->bytes)
            return s;
        if (s->what.code == 0) {
            s->what = *a;
            s->rounds = calloc(WARPS * ROUNDS, sizeof(*s->rounds));
            return s->rounds ? s : NULL;
        }
    }
    return NULL;
}

static void add(const struct pattern_access *access, unsigned thread)
{
    struct site *s = site_of(access);
    if (!s || s->round[thread] == ROUNDS)
        return;
    if (!s->used)
        p.used[p.used_count++] = (int)(s - p.sites);
    s->used = true;
    struct request *r = &s->rounds[thread / LANES * ROUNDS + s->round[thread]++];
    r->mask |= 1u << thread % LANES;
    r->at[thread % LANES] = access->at;
}

/* The host's compiler takes vectors apart: what follows on the thread's last access, from another
 * place in the code and within the same 16 bytes, is a part of it. */
static bool belongs(const struct pattern_access *open, const struct pattern_access *next)
{
    return open->at + open->bytes == next->at && open->write == next->write &&
           open->code != next->code && (uintptr_t)open->at % VECTOR + open->bytes < VECTOR;
}

void pattern_add(const struct pattern_access *access, unsigned block, unsigned thread)
{
    if (block > BLOCKS || thread >= WARPS * LANES)
        return;
    struct pattern_access *open = &p.open[thread];
    if (open->bytes && belongs(open, access)) {
        open->bytes += access->bytes;
        return;
    }
    if (open->bytes)
        add(open, thread);
    *open = *access;
}

void pattern_end_block(void)
{
    for (unsigned thread = 0; thread < WARPS * LANES; thread++)
        if (p.open[thread].bytes)
            add(&p.open[thread], thread);
    memset(p.open, 0, sizeof(p.open));
    for (int k = 0; k < p.used_count; k++) {
        struct site *s = &p.sites[p.used[k]];
        for (int n = 0; n < WARPS * ROUNDS; n++)
            if (s->rounds[n].mask)
                add_request(s, &s->rounds[n]);
        memset(s->rounds, 0, WARPS * ROUNDS * sizeof(*s->rounds));
        memset(s->round, 0, sizeof(s->round));
        s->used = false;
    }
    p.used_count = 0;
}
