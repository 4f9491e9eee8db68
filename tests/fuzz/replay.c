/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs a fuzz target without libFuzzer: every seed as it is, then mutations of seeds until the time
 * is over. The mutations follow from the seed number given, so that a failure comes again:
 *
 *     fuzz_onnx [--time SECONDS] [--random N] [--last FILE] [FILE or FOLDER]...
 *
 * Each input is written to --last before it is tried: after a crash it holds the culprit.
 */
#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/options.h"
#include "base/random.h"
#include "base/registry.h"
#include "tests/fuzz/fuzz.h"

enum { SEEDS_MAX = 4096, SEED_BYTES_MAX = 256 * 1024, CHANGES_MAX = 8 };

struct settings {
    double seconds;
    int64_t random;
    const char *last;
    bool help;
};

static const struct option table[] = {
    {"time", 't', OPTION_FLOAT, offsetof(struct settings, seconds), "SECONDS", "default 10"},
    {"random", 'r', OPTION_INT, offsetof(struct settings, random), "N", "number of the sequence"},
    {"last", 'l', OPTION_TEXT, offsetof(struct settings, last), "FILE",
     "holds the input that is being tried"},
    {"help", 'h', OPTION_FLAG, offsetof(struct settings, help), NULL, "print this"},
    {.name = NULL},
};

struct seed {
    uint8_t *bytes;
    size_t size;
};

struct fuzz {
    struct settings settings;
    struct seed seeds[SEEDS_MAX];
    int seed_count;
    uint64_t stream, drawn;
    uint8_t *bytes; /* the input being made */
    size_t size, cap;
};

static uint64_t draw(struct fuzz *f, uint64_t below)
{
    uint32_t word[4];
    random_words(f->stream, f->drawn++, word);
    return below ? ((uint64_t)word[0] << 32 | word[1]) % below : 0;
}

/* ---- seeds ---- */

static void add_seed(struct fuzz *f, uint8_t *bytes, size_t size)
{
    if (!bytes || f->seed_count == SEEDS_MAX || size > SEED_BYTES_MAX)
        free(bytes);
    else
        f->seeds[f->seed_count++] = (struct seed){bytes, size};
}

static void add_file(struct fuzz *f, const char *path)
{
    struct file file;
    if (file_map(path, &file, NULL) != STATUS_OK)
        return;
    uint8_t *copy = malloc(file.size + 1);
    if (copy && file.size)
        memcpy(copy, file.data, file.size);
    add_seed(f, copy, file.size);
    file_unmap(&file);
}

static void add_path(struct fuzz *f, const char *path, int depth)
{
    struct stat info;
    if (depth > 8 || stat(path, &info) != 0)
        return;
    if (!S_ISDIR(info.st_mode)) {
        size_t length = strlen(path), tail = strlen(fuzz_extension);
        if (depth == 0 || (length > tail && strcmp(path + length - tail, fuzz_extension) == 0))
            add_file(f, path);
        return;
    }
    struct dirent **entries;
    int count = scandir(path, &entries, NULL, alphasort);
    for (int k = 0; k < count; k++) {
        char inner[1024];
        snprintf(inner, sizeof(inner), "%s/%s", path, entries[k]->d_name);
        if (entries[k]->d_name[0] != '.')
            add_path(f, inner, depth + 1);
        free(entries[k]);
    }
    if (count >= 0)
        free(entries);
}

/* ---- mutations ---- */

static bool room(struct fuzz *f, size_t size)
{
    if (size <= f->cap)
        return true;
    uint8_t *grown = realloc(f->bytes, size * 2);
    if (!grown)
        return false;
    f->bytes = grown;
    f->cap = size * 2;
    return true;
}

static void overwrite(struct fuzz *f)
{
    static const uint64_t values[] = {0,
                                      1,
                                      0x7f,
                                      0x80,
                                      0xff,
                                      0x7fff,
                                      0xffff,
                                      0x7fffffff,
                                      0xffffffff,
                                      0x7fffffffffffffff,
                                      0xffffffffffffffff};
    static const size_t widths[] = {1, 2, 4, 8};
    size_t width = widths[draw(f, 4)];
    uint64_t value = values[draw(f, ARRAY_COUNT(values))];
    if (f->size >= width)
        memcpy(f->bytes + draw(f, f->size - width + 1), &value, width);
}

static void flip(struct fuzz *f)
{
    if (f->size)
        f->bytes[draw(f, f->size)] ^= (uint8_t)(1 << draw(f, 8));
}

static void nudge(struct fuzz *f)
{
    if (f->size)
        f->bytes[draw(f, f->size)] += (uint8_t)(draw(f, 9) - 4);
}

static void cut(struct fuzz *f)
{
    size_t at = draw(f, f->size), count = draw(f, 16) + 1;
    if (at + count > f->size)
        return;
    memmove(f->bytes + at, f->bytes + at + count, f->size - at - count);
    f->size -= count;
}

/* A piece of some seed, put in at some place. */
static void splice(struct fuzz *f)
{
    const struct seed *seed = &f->seeds[draw(f, (uint64_t)f->seed_count)];
    if (!seed->size)
        return;
    size_t from = draw(f, seed->size), at = draw(f, f->size + 1);
    size_t count = draw(f, 64) + 1;
    count = from + count > seed->size ? seed->size - from : count;
    if (!room(f, f->size + count))
        return;
    memmove(f->bytes + at + count, f->bytes + at, f->size - at);
    memcpy(f->bytes + at, seed->bytes + from, count);
    f->size += count;
}

static void truncate_end(struct fuzz *f)
{
    f->size = draw(f, f->size + 1);
}

typedef void mutation(struct fuzz *f);

static mutation *const mutations[] = {overwrite, flip, nudge, nudge, cut, splice, truncate_end};

static bool mutate(struct fuzz *f)
{
    const struct seed *seed = &f->seeds[draw(f, (uint64_t)f->seed_count)];
    if (!room(f, seed->size + 1))
        return false;
    memcpy(f->bytes, seed->bytes, seed->size);
    f->size = seed->size;
    for (uint64_t k = draw(f, CHANGES_MAX) + 1; k > 0; k--)
        mutations[draw(f, ARRAY_COUNT(mutations) - (k > 1))](f); /* cutting off comes last */
    return true;
}

/* ---- the loop ---- */

static void try_input(const struct fuzz *f, const uint8_t *bytes, size_t size)
{
    if (f->settings.last) {
        FILE *stream = fopen(f->settings.last, "wb");
        if (stream) {
            fwrite(bytes, 1, size, stream);
            fclose(stream);
        }
    }
    /* A copy of exactly this size: reading past the end is found. */
    uint8_t *copy = malloc(size ? size : 1);
    if (!copy)
        return;
    memcpy(copy, bytes, size);
    LLVMFuzzerTestOneInput(copy, size);
    free(copy);
}

static int run(struct fuzz *f)
{
    int tried = 0;
    uint64_t slowest = 0;
    double limit = f->settings.seconds > 0 ? f->settings.seconds : 10;
    for (int k = 0; k < f->seed_count; k++, tried++)
        try_input(f, f->seeds[k].bytes, f->seeds[k].size);
    uint64_t start = clock_now_ns();
    while ((double)(clock_now_ns() - start) * 1e-9 < limit && mutate(f)) {
        uint64_t begin = clock_now_ns();
        try_input(f, f->bytes, f->size);
        uint64_t took = clock_now_ns() - begin;
        slowest = took > slowest ? took : slowest;
        tried++;
    }
    printf("%d seeds, %d inputs tried, slowest %.1f ms\n", f->seed_count, tried,
           (double)slowest * 1e-6);
    bool hangs = slowest > 5000000000u;
    printf("%d passed, %d failed\n", hangs ? tried - 1 : tried, hangs);
    return hangs;
}

int main(int argc, char **argv)
{
    struct error err;
    struct fuzz *f = calloc(1, sizeof(*f));
    if (!f)
        return 2;
    if (options_parse(table, &argc, argv, &f->settings, &err) != STATUS_OK) {
        fprintf(stderr, "%s: %s\n", argv[0], err.message);
        return 2;
    }
    if (f->settings.help) {
        char text[1024];
        options_usage(table, text, sizeof(text));
        printf("usage: %s [options] [FILE or FOLDER]...\n%s", argv[0], text);
        return 0;
    }
    f->stream = (uint64_t)f->settings.random + 1;
    size_t size;
    for (uint8_t *seed; (seed = fuzz_seed(f->seed_count, &size));)
        add_seed(f, seed, size);
    for (int k = 1; k < argc; k++)
        add_path(f, argv[k], 0);
    int code = run(f);
    for (int k = 0; k < f->seed_count; k++)
        free(f->seeds[k].bytes);
    free(f->bytes);
    free(f);
    return code;
}
