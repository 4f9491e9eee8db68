/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs a fuzz target without libFuzzer, so that every `make test` does: first all seeds of
 * tests/fuzz/seeds/NAME, then damaged copies of them for RIDGE_FUZZ_SECONDS (default 2). The damage
 * depends on the round alone, so a crash comes back. The input that crashed is kept. `make fuzz`
 * links libFuzzer instead of this file and goes on for longer. */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/numbers/random.h"
#include "base/system/clock.h"

enum { SEEDS_MAX = 1024, INPUT_MAX = 1 << 20 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
    uint8_t *data;
    size_t size;
};

/* For the signal handler alone. */
static struct input now;
static char crash_path[512];

static void keep_input(int number)
{
    int file = open(crash_path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (file >= 0 && write(file, now.data, now.size) == (ssize_t)now.size) {
        static const char text[] = "not ok - crashed; the input is kept beside the logs\n";
        ssize_t ignored = write(STDOUT_FILENO, text, sizeof(text) - 1);
        (void)ignored;
    }
    signal(number, SIG_DFL);
    raise(number);
}

static void run(const uint8_t *data, size_t size)
{
    /* A copy of exact size: a read past the end is then found by the sanitizer. */
    uint8_t *copy = malloc(size ? size : 1);
    if (!copy)
        abort();
    memcpy(copy, data, size);
    now = (struct input){copy, size};
    LLVMFuzzerTestOneInput(copy, size);
    now = (struct input){NULL, 0};
    free(copy);
}

static bool read_seed(const char *folder, const char *name, struct input *seed)
{
    char path[1024];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *file = name[0] == '.' ? NULL : fopen(path, "rb");
    if (!file)
        return false;
    seed->data = malloc(INPUT_MAX);
    seed->size = seed->data ? fread(seed->data, 1, INPUT_MAX, file) : 0;
    fclose(file);
    return seed->data != NULL;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static int read_seeds(const char *folder, struct input *seeds)
{
    struct dirent **entries;
    int count = 0, found = scandir(folder, &entries, NULL, by_name);
    for (int k = 0; k < found; k++) {
        if (count < SEEDS_MAX && read_seed(folder, entries[k]->d_name, &seeds[count]))
            count++;
        free(entries[k]);
    }
    if (found >= 0)
        free(entries);
    return count;
}

/* One of five kinds of damage. buffer holds INPUT_MAX bytes. */
static void damage(struct input *x, const struct input *other, uint64_t round, uint64_t step)
{
    uint32_t word[4];
    random_words(round, step, word);
    size_t at = x->size ? word[1] % x->size : 0, length = 1 + word[2] % 16;
    switch (word[0] % 5) {
    case 0: /* another byte */
        if (x->size)
            x->data[at] = (uint8_t)word[3];
        break;
    case 1: /* another bit */
        if (x->size)
            x->data[at] ^= (uint8_t)(1 << word[3] % 8);
        break;
    case 2: /* the end is missing */
        x->size = at;
        break;
    case 3: /* some bytes twice */
        if (at + length <= x->size && x->size + length <= INPUT_MAX) {
            memmove(x->data + at + length, x->data + at, x->size - at);
            x->size += length;
        }
        break;
    default: /* a piece of another seed */
        if (length > other->size)
            length = other->size;
        if (at + length <= x->size)
            memcpy(x->data + at, other->data + word[3] % (other->size - length + 1), length);
    }
}

static long run_damaged(const struct input *seeds, int count, double seconds)
{
    long rounds = 0;
    uint8_t *buffer = malloc(INPUT_MAX);
    uint64_t until = clock_now_ns() + (uint64_t)(seconds * 1e9);
    while (buffer && clock_now_ns() < until) {
        uint32_t word[4];
        random_words(0, (uint64_t)rounds, word);
        const struct input *seed = &seeds[word[0] % (uint32_t)count];
        struct input x = {buffer, seed->size};
        memcpy(buffer, seed->data, seed->size);
        for (uint32_t step = 0; step <= word[1] % 6; step++)
            damage(&x, &seeds[word[2] % (uint32_t)count], (uint64_t)rounds + 1, step);
        run(x.data, x.size);
        rounds++;
    }
    free(buffer);
    return rounds;
}

int main(int argc, char **argv)
{
    static struct input seeds[SEEDS_MAX + 1];
    const char *slash = strrchr(argv[0], '/'), *name = slash ? slash + 1 : argv[0];
    const char *seconds = getenv("RIDGE_FUZZ_SECONDS"), *build = getenv("RIDGE_BUILD");
    char folder[512];
    name += strncmp(name, "fuzz_", 5) == 0 ? 5 : 0;
    snprintf(folder, sizeof(folder), "%s%s", argc > 1 ? argv[1] : "tests/fuzz/seeds/",
             argc > 1 ? "" : name);
    snprintf(crash_path, sizeof(crash_path), "%s/test-logs/fuzz_%s.crash", build ? build : ".",
             name);
    const int fatal[] = {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL};
    for (size_t k = 0; k < sizeof(fatal) / sizeof(fatal[0]); k++)
        signal(fatal[k], keep_input);
    int count = read_seeds(folder, seeds);
    for (int k = 0; k < count; k++)
        run(seeds[k].data, seeds[k].size);
    if (count == 0) /* damage needs something to begin with */
        seeds[count++] = (struct input){calloc(1, INPUT_MAX), 64};
    long rounds = run_damaged(seeds, count, seconds ? strtod(seconds, NULL) : 2);
    printf("%d seeds of %s, %ld damaged inputs\n%ld passed, 0 failed\n", count, folder, rounds,
           rounds ? count + 1L : (long)count);
    for (int k = 0; k < count; k++)
        free(seeds[k].data);
    return 0;
}
