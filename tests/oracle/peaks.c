/* SPDX-License-Identifier: Apache-2.0
 *
 * A second opinion on `ridge peaks`: loops of its own in plain C, vectorised by the compiler
 * (-O3 -march=native), one thread, best of many short runs. Shares no code with ridge. Prints
 * "name value" lines. Usage: peaks L1_BYTES L2_BYTES DRAM_BYTES (working sets). */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

enum { CHAINS = 14, WIDE_F32 = 16, WIDE_F64 = 8, TRIES = 60, BLOCK = 256 };

typedef float wide_f32 __attribute__((vector_size(WIDE_F32 * sizeof(float))));
typedef double wide_f64 __attribute__((vector_size(WIDE_F64 * sizeof(double))));

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static volatile float sink;

/* sum = a sum + b in CHAINS independent vectors; written out, so that they stay in registers. */
#define FMA_LOOP(name, wide, lanes)                                                                \
    static double name(long rounds)                                                                \
    {                                                                                              \
        wide a = {0}, b = {0}, s0 = {0}, s1 = {1}, s2 = {2}, s3 = {3}, s4 = {4}, s5 = {5},         \
             s6 = {6}, s7 = {7}, s8 = {8}, s9 = {9}, sa = {10}, sb = {11}, sc = {12}, sd = {13};   \
        a += 0.999f;                                                                               \
        b += 0.001f;                                                                               \
        for (long r = 0; r < rounds; r++) {                                                        \
            s0 = s0 * a + b, s1 = s1 * a + b, s2 = s2 * a + b, s3 = s3 * a + b;                    \
            s4 = s4 * a + b, s5 = s5 * a + b, s6 = s6 * a + b, s7 = s7 * a + b;                    \
            s8 = s8 * a + b, s9 = s9 * a + b, sa = sa * a + b, sb = sb * a + b;                    \
            sc = sc * a + b, sd = sd * a + b;                                                      \
        }                                                                                          \
        s0 += s1 + s2 + s3 + s4 + s5 + s6 + s7 + s8 + s9 + sa + sb + sc + sd;                      \
        sink = (float)s0[0];                                                                       \
        return 2.0 * CHAINS * (lanes) * (double)rounds;                                            \
    }
FMA_LOOP(fma_f32, wide_f32, WIDE_F32)
FMA_LOOP(fma_f64, wide_f64, WIDE_F64)

struct set {
    float *a, *b, *c;
    long n;
};

static double copy(const struct set *x)
{
    float *restrict a = x->a;
    const float *restrict b = x->b;
    for (long block = 0; block < x->n; block += BLOCK) {
        for (long i = block; i < block + BLOCK; i++)
            a[i] = b[i];
        __asm__ volatile("" : : : "memory"); /* not one call of memcpy */
    }
    return 2.0 * sizeof(float) * (double)x->n;
}

static double triad(const struct set *x)
{
    float *restrict a = x->a;
    const float *restrict b = x->b, *restrict c = x->c;
    for (long i = 0; i < x->n; i++)
        a[i] = b[i] + 3 * c[i];
    return 3.0 * sizeof(float) * (double)x->n;
}

static double best_compute(double (*run)(long))
{
    double best = 0;
    for (int k = 0; k < TRIES; k++) {
        double start = now(), work = run(20000), rate = work / (now() - start);
        best = rate > best ? rate : best;
    }
    return best;
}

/* Walks over pieces of the set, so that a sample is short even when the set is large. */
static double typical_stream(double (*run)(const struct set *), struct set x)
{
    static double rates[TRIES];
    long piece = x.n > 1 << 19 ? 1 << 18 : x.n, repeats = (1 << 20) / piece + 1;
    for (int warm = 0; warm < 2; warm++)
        run(&x);
    for (int k = 0; k < TRIES; k++) {
        long at = k * piece % (x.n - piece + 1);
        struct set part = {x.a + at, x.b + at, x.c + at, piece};
        double start = now(), bytes = 0;
        for (long r = 0; r < (piece == x.n ? repeats : 1); r++)
            bytes += run(&part);
        rates[k] = bytes / (now() - start);
    }
    for (int i = 1; i < TRIES; i++) /* insertion sort: the median */
        for (int k = i; k > 0 && rates[k] < rates[k - 1]; k--) {
            double swap = rates[k];
            rates[k] = rates[k - 1];
            rates[k - 1] = swap;
        }
    return rates[TRIES / 2];
}

static void stream(const char *level, long bytes)
{
    struct set x = {NULL, NULL, NULL, 0};
    size_t room = (size_t)bytes + 65536;
    float *block = aligned_alloc(1 << 21, (room + (1 << 21) - 1) >> 21 << 21);
    if (!block)
        exit(1);
    madvise(block, room, MADV_HUGEPAGE);
    for (size_t k = 0; k < room / sizeof(float); k++)
        block[k] = 1;
    for (int arrays = 2; arrays <= 3; arrays++) {
        x.n = bytes / arrays / (long)sizeof(float) / BLOCK * BLOCK;
        x.a = block;
        x.b = x.a + x.n + 208;
        x.c = arrays == 3 ? x.b + x.n + 208 : x.a;
        printf("%s %s\t%.4e\n", arrays == 2 ? "copy" : "triad", level,
               typical_stream(arrays == 2 ? copy : triad, x));
    }
    free(block);
}

int main(int argc, char **argv)
{
    if (argc != 4)
        return 2;
    printf("fma f32\t%.4e\n", best_compute(fma_f32));
    printf("fma f64\t%.4e\n", best_compute(fma_f64));
    stream("L1", strtol(argv[1], NULL, 10));
    stream("L2", strtol(argv[2], NULL, 10));
    stream("DRAM", strtol(argv[3], NULL, 10));
    return 0;
}
