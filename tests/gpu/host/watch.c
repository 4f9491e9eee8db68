/* SPDX-License-Identifier: Apache-2.0
 *
 * A cell has the last write and the last read of a piece of memory, and whether reads that nothing
 * orders came of several threads. That is enough, since a later access that is ordered after the
 * last one is ordered after those before it, or they have been told of. A piece is a word, until a
 * launch touches parts of it: then it is a byte. */
#define _GNU_SOURCE
#include "tests/gpu/host/watch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/gpu/host/pattern.h"

enum { WARP = 32, FOUND_MAX = 16, READS_MAX = 65536, HOST = 0xffff /* as a thread */ };
/* Other reads that nothing orders: of other lanes, other warps, other blocks. */
enum several { LANES = 1, WARPS = 2, BLOCKS = 4 };

struct access {
    struct watch_moment when; /* launch 0: never */
    uint32_t code;            /* its place in the plug-in */
    uint8_t atomic, several;
};

struct cell {
    struct access write, read;
    bool split; /* of a word's cell: look at its bytes' */
};

struct space {
    const char *first; /* a multiple of WORD */
    size_t bytes;
    struct cell *words, *parts; /* per word, per byte */
};

enum { WORD = 4 };
enum { DEVICE, DYNAMIC, STATIC, SPACES };

struct finding {
    uint32_t before, now;
    enum { UNORDERED, UNWRITTEN } what;
};

static struct {
    struct space spaces[SPACES];
    struct finding found[FOUND_MAX];
    int found_count;
    bool running, patterns;
    const struct watch_moment *now;
    uint64_t reads, reads_max; /* of a block, and how many of them are watched */
    uint32_t block;            /* whose reads these are */
    unsigned cluster_block;    /* threads of a block of a cluster; 0: none */
} w;

/* Of this plug-in alone. */
extern char __bss_start[] __attribute__((visibility("hidden")));
extern char _end[] __attribute__((visibility("hidden")));
extern char __ehdr_start[] __attribute__((visibility("hidden")));

/* RIDGE_HOST_WATCH=0 is for what has no time to lose, "all" for what has. */
static bool is_watch(const char *wanted)
{
    static const char *text; /* asked for once: launches want to know */
    if (!text) {
        text = getenv("RIDGE_HOST_WATCH");
        text = text ? text : "";
    }
    return strcmp(text, wanted) == 0;
}

static bool watch_wanted(void)
{
    return !is_watch("0");
}

/* ---- what is watched ---- */

static struct cell *make_cells(size_t count)
{
    void *cells = mmap(NULL, count * sizeof(struct cell), PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (cells == MAP_FAILED) {
        fprintf(stderr, "no address space to watch %zu places in\n", count);
        abort();
    }
    return cells;
}

static void watch_space(int which, const char *first, size_t bytes)
{
    size_t before = (size_t)first % WORD, words = (before + bytes + WORD - 1) / WORD;
    struct space *s = &w.spaces[which];
    if (s->first || !watch_wanted())
        return;
    *s = (struct space){first - before, words * WORD, make_cells(words), make_cells(words * WORD)};
}

void watch_region(const char *region, size_t bytes)
{
    watch_space(DEVICE, region, bytes);
}

/* Nobody is left who has written or read the cells. */
static void forget(struct cell *cells, size_t count)
{
    memset(cells, 0, count * sizeof(*cells));
}

void watch_taken(size_t at, size_t bytes)
{
    const struct space *s = &w.spaces[DEVICE];
    if (s->words)
        forget(s->words + at / WORD, bytes / WORD);
}

static void split(struct cell *word, struct cell *parts)
{
    if (word->split)
        return;
    for (int k = 0; k < WORD; k++)
        parts[k] = *word;
    word->split = true;
}

void watch_written(const void *memory, size_t bytes)
{
    const struct space *s = &w.spaces[DEVICE];
    size_t at = (size_t)((const char *)memory - s->first);
    if (!s->words)
        return;
    for (; bytes; at++, bytes--)
        if (at % WORD == 0 && bytes >= WORD) {
            s->words[at / WORD] = (struct cell){.write.when.thread = HOST};
            at += WORD - 1;
            bytes -= WORD - 1;
        } else {
            split(&s->words[at / WORD], &s->parts[at / WORD * WORD]);
            s->parts[at].write.when.thread = HOST;
        }
}

/* The space that holds `at`, or none: the stack, what a launch was given, constants. */
static inline const struct space *space_of(const void *at)
{
    for (int k = 0; k < SPACES; k++)
        if ((size_t)((const char *)at - w.spaces[k].first) < w.spaces[k].bytes)
            return &w.spaces[k];
    return NULL;
}

/* ---- order ---- */

/* Whether a barrier lies between: of two blocks of a cluster it must be the cluster's. */
static inline bool barrier_between(const struct watch_moment *a, const struct watch_moment *now)
{
    if (!w.cluster_block || a->thread / w.cluster_block == now->thread / w.cluster_block)
        return a->waits < now->waits;
    return a->waits >> 16 < now->waits >> 16;
}

/* Whether something orders an access of the running launch before what happens now. */
static inline bool ordered(const struct watch_moment *a, const struct watch_moment *now)
{
    if (a->block != now->block)
        return false;
    return a->thread == now->thread || barrier_between(a, now) ||
           (a->thread / WARP == now->thread / WARP && a->warp_waits < now->warp_waits);
}

static inline bool reads_ordered(const struct access *r, const struct watch_moment *now)
{
    if (r->several & BLOCKS || r->when.block != now->block)
        return false;
    if (barrier_between(&r->when, now))
        return true;
    if (r->several & WARPS || r->when.thread / WARP != now->thread / WARP)
        return false;
    return r->when.warp_waits < now->warp_waits ||
           (r->when.thread == now->thread && !(r->several & LANES));
}

/* What stays of earlier reads when there is one now. */
static inline uint8_t several_now(const struct access *r, const struct watch_moment *now)
{
    uint8_t kept = r->several & BLOCKS;
    if (r->when.launch != now->launch)
        return 0;
    if (r->when.block != now->block)
        return BLOCKS;
    if (barrier_between(&r->when, now))
        return kept;
    if (r->when.thread / WARP != now->thread / WARP)
        return kept | WARPS;
    kept |= r->several & WARPS;
    if (r->when.warp_waits < now->warp_waits)
        return kept;
    return r->when.thread == now->thread ? r->several : kept | LANES;
}

/* ---- telling ---- */

static __attribute__((noinline, cold)) void find(int what, uint32_t before, uint32_t now)
{
    for (int k = 0; k < w.found_count; k++)
        if (w.found[k].before == before && w.found[k].now == now && (int)w.found[k].what == what)
            return;
    if (w.found_count < FOUND_MAX)
        w.found[w.found_count++] = (struct finding){before, now, what};
}

/* Function and line of a place, by binutils; else the place. */
void watch_report_place(const char *what, uint32_t code)
{
    char command[600], line[200], file[400] = "";
    FILE *maps = fopen("/proc/self/maps", "r");
    unsigned long first = 0, last = 0, here = (unsigned long)__ehdr_start;
    while (maps && fgets(line, sizeof(line), maps))
        if (sscanf(line, "%lx-%lx %*s %*s %*s %*s %399s", &first, &last, file) == 3 &&
            here >= first && here < last)
            break;
    if (maps)
        fclose(maps);
    fprintf(stderr, "  %s, at %s+%#x\n", what, file, code);
    snprintf(command, sizeof(command), "addr2line -s -i -p -f -C -e '%s' %#x 2>/dev/null | head -4",
             file, code - 1);
    FILE *lines = popen(command, "r"); // NOLINT(cert-env33-c): a test, on its way to the end
    while (lines && fgets(line, sizeof(line), lines))
        fprintf(stderr, "    %s", line);
    if (lines)
        pclose(lines);
}

static void report(const struct finding *f)
{
    if (f->what == UNWRITTEN) {
        watch_report_place("read what nobody has written", f->now);
        return;
    }
    watch_report_place("nothing orders an access", f->now);
    watch_report_place("after that of another thread", f->before);
}

void watch_begin(const struct watch_moment *now, const char *shared, size_t shared_bytes,
                 unsigned cluster_block)
{
    w.now = now;
    w.cluster_block = cluster_block;
    w.patterns = pattern_wanted();
    watch_space(DYNAMIC, shared, shared_bytes);
    watch_space(STATIC, __bss_start, (uintptr_t)_end - (uintptr_t)__bss_start);
    w.found_count = 0;
    w.running = watch_wanted();
    w.block = 0;
    w.reads = 0;
    w.reads_max = is_watch("all") ? UINT64_MAX : READS_MAX;
}

void watch_end(void)
{
    w.running = false;
    if (!w.found_count)
        return;
    for (int k = 0; k < w.found_count; k++)
        report(&w.found[k]);
    abort();
}

/* ---- an access ---- */

static inline void check_write(const struct cell *c, const struct access *a)
{
    const struct access *write = &c->write;
    if (write->when.launch == a->when.launch && !ordered(&write->when, &a->when) &&
        !(a->atomic && write->atomic))
        find(UNORDERED, write->code, a->code);
}

static inline void check_reads(const struct cell *c, const struct access *a)
{
    const struct access *read = &c->read;
    if (read->when.launch == a->when.launch && !reads_ordered(read, &a->when) &&
        !(a->atomic && read->atomic))
        find(UNORDERED, read->code, a->code);
}

/* Whether somebody has written the cell; a block's shared memory begins with the block. */
static bool is_written(const struct cell *c, const struct watch_moment *now, bool device)
{
    const struct watch_moment *write = &c->write.when;
    return device ? write->launch || write->thread == HOST
                  : write->launch == now->launch && write->block == now->block;
}

/* Made anew for each kind of access: most of the time of a watched kernel goes here. */
#define ALWAYS_INLINE static inline __attribute__((always_inline))

/* Field by field: a copy of the whole would wait for the byte that was written into it last. */
ALWAYS_INLINE void keep(struct access *last, const struct access *a, uint8_t several)
{
    last->when = a->when;
    last->code = a->code;
    last->atomic = a->atomic;
    last->several = several;
}

ALWAYS_INLINE void watch_cell(struct cell *c, const struct access *a, enum watch_kind kind,
                              bool device)
{
    if (!device && c->read.when.block != a->when.block)
        c->read.when.launch = 0;
    if (!is_written(c, &a->when, device)) {
        c->write.when.launch = 0;
        if (kind != WATCH_WRITE)
            find(UNWRITTEN, 0, a->code);
    }
    check_write(c, a);
    if (kind == WATCH_READ || kind == WATCH_ATOMIC_READ) {
        keep(&c->read, a, several_now(&c->read, &a->when));
        return;
    }
    check_reads(c, a);
    keep(&c->write, a, 0);
}

/* Whether the running launch, or the block whose shared memory it is, has not touched the cell. */
static bool untouched(const struct cell *c, const struct watch_moment *now, bool device)
{
    const struct watch_moment *read = &c->read.when, *write = &c->write.when;
    return (read->launch != now->launch || (!device && read->block != now->block)) &&
           (write->launch != now->launch || (!device && write->block != now->block));
}

/* Makes a word of its bytes where nothing is lost by it. */
static void join(struct cell *word, const struct cell *parts, const struct watch_moment *now,
                 bool device)
{
    bool written = is_written(&parts[0], now, device);
    for (int k = 0; k < WORD; k++)
        if (!untouched(&parts[k], now, device) || is_written(&parts[k], now, device) != written)
            return;
    *word = parts[0];
    word->split = false;
}

/* A part of a word, or of a word whose bytes have been touched one by one. */
static __attribute__((noinline)) void watch_bytes(const struct space *s, size_t at, size_t end,
                                                  const struct access *a, enum watch_kind kind)
{
    bool device = s == &w.spaces[DEVICE];
    struct cell *word = &s->words[at / WORD], *parts = &s->parts[at / WORD * WORD];
    if (word->split)
        join(word, parts, &a->when, device);
    if (end - at == WORD && !word->split) {
        watch_cell(word, a, kind, device);
        return;
    }
    split(word, parts);
    for (; at < end; at++)
        watch_cell(&s->parts[at], a, kind, device);
}

ALWAYS_INLINE void watch_word(const struct space *s, size_t at, size_t end, const struct access *a,
                              enum watch_kind kind)
{
    struct cell *word = &s->words[at / WORD];
    if (end - at == WORD && !word->split)
        watch_cell(word, a, kind, s == &w.spaces[DEVICE]);
    else
        watch_bytes(s, at, end, a, kind);
}

static __attribute__((noinline)) void add_to_patterns(const void *memory, size_t bytes, bool shared,
                                                      bool write, const struct access *a)
{
    pattern_add(&(struct pattern_access){memory, (unsigned)bytes, a->code, shared, write},
                a->when.block, a->when.thread);
}

/* Counts a plain read of the running block. Whether it is watched: a block that reads many values
 * does the same again and again. */
ALWAYS_INLINE bool count_read(void)
{
    if (w.block != w.now->block) {
        w.block = w.now->block;
        w.reads = 0;
    }
    return w.reads++ < w.reads_max;
}

ALWAYS_INLINE void watch_at(const void *memory, size_t bytes, enum watch_kind kind,
                            const void *code)
{
    const struct space *s = w.running ? space_of(memory) : NULL;
    if (!s)
        return;
    if (kind == WATCH_READ && !count_read())
        return;
    struct access a = {.when = *w.now,
                       .code = (uint32_t)((const char *)code - __ehdr_start),
                       .atomic = kind == WATCH_ATOMIC || kind == WATCH_ATOMIC_READ};
    size_t at = (size_t)((const char *)memory - s->first), end = at + bytes;
    if (w.patterns)
        add_to_patterns(memory, bytes, s != &w.spaces[DEVICE], kind == WATCH_WRITE, &a);
    while (at < end) {
        size_t next = (at / WORD + 1) * WORD;
        next = next < end ? next : end;
        watch_word(s, at, next, &a, kind);
        at = next;
    }
}

void watch_access(const void *at, size_t bytes, enum watch_kind kind)
{
    watch_at(at, bytes, kind, __builtin_return_address(0));
}

/* ---- what the compiler calls ---- */

/* Their names are the compiler's. */
#define CALLED(name, bytes, kind)                                                                  \
    void __tsan_##name(const void *at);                                                            \
    void __tsan_##name(const void *at)                                                             \
    {                                                                                              \
        watch_at(at, bytes, kind, __builtin_return_address(0));                                    \
    }
#define CALLED_OF_SIZE(bytes)                                                                      \
    CALLED(read##bytes, bytes, WATCH_READ)                                                         \
    CALLED(write##bytes, bytes, WATCH_WRITE)                                                       \
    CALLED(unaligned_read##bytes, bytes, WATCH_READ)                                               \
    CALLED(unaligned_write##bytes, bytes, WATCH_WRITE)                                             \
    CALLED(volatile_read##bytes, bytes, WATCH_ATOMIC_READ)                                         \
    CALLED(volatile_write##bytes, bytes, WATCH_ATOMIC)                                             \
    CALLED(unaligned_volatile_read##bytes, bytes, WATCH_ATOMIC_READ)                               \
    CALLED(unaligned_volatile_write##bytes, bytes, WATCH_ATOMIC)
CALLED_OF_SIZE(1)
CALLED_OF_SIZE(2)
CALLED_OF_SIZE(4)
CALLED_OF_SIZE(8)
CALLED_OF_SIZE(16)

void __tsan_read_range(const void *at, size_t bytes);
void __tsan_read_range(const void *at, size_t bytes)
{
    watch_at(at, bytes, WATCH_READ, __builtin_return_address(0));
}

void __tsan_write_range(const void *at, size_t bytes);
void __tsan_write_range(const void *at, size_t bytes)
{
    watch_at(at, bytes, WATCH_WRITE, __builtin_return_address(0));
}

void __tsan_init(void);
void __tsan_init(void)
{
}

void __tsan_func_entry(const void *caller);
void __tsan_func_entry(const void *caller)
{
    (void)caller;
}

void __tsan_func_exit(void);
void __tsan_func_exit(void)
{
}
