/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/restless.h"

#include <math.h>
#include <string.h>

#include "base/numbers/random.h"
#include "base/numbers/stats.h"

enum { SEED = 4711 };
static const double level_size[] = {0.742, 0.336, 0.095}; /* 2.1, 1.4 and 1.1 times as long */
static const enum level level_name[] = {LEVEL_HAND_OVER, LEVEL_DRAM, LEVEL_ARITHMETIC};

static double normal(struct restless *r)
{
    return random_normal(SEED, r->draw++);
}

static double uniform(struct restless *r)
{
    return random_uniform(SEED + 1, r->draw++);
}

/* 8 points hand over much work, 10 read much memory, 16 compute. */
static int level_of(int point)
{
    return point % 17 < 4 ? 0 : point % 17 < 9 ? 1 : 2;
}

/* How much of the level's move a point follows: from a fifth to all of it. */
static double share_of(int point)
{
    return 0.2 + 0.8 * (double)(point * 7 % RESTLESS_POINTS) / (RESTLESS_POINTS - 1);
}

void restless_start(struct restless *r, const struct restless_world *world, uint64_t seed)
{
    *r = (struct restless){.world = *world, .draw = seed << 32};
    for (int k = 0; k < 3; k++)
        r->is_slow[k] = uniform(r) < world->slow_share;
}

/* Two states, each left at a constant rate: where it is now follows from where it was. */
static double level_now(struct restless *r, int level)
{
    double q = r->world.slow_share, elapsed = r->now - r->since[level];
    double memory = exp(-elapsed / (r->world.dwell_s * (1 - q)));
    double slow = q + memory * (r->is_slow[level] - q);
    r->is_slow[level] = uniform(r) < slow;
    r->since[level] = r->now;
    return r->is_slow[level] ? r->world.strength * level_size[level] : 0;
}

static bool has_few(const struct restless_world *world, int point)
{
    return world->few && point % 4 == 3;
}

int restless_samples(const struct restless_world *world, int point)
{
    return has_few(world, point) ? world->few : RESTLESS_SAMPLES;
}

static void fill(struct restless *r, double sd, double level, double times[RESTLESS_SAMPLES])
{
    double e = normal(r);
    for (int k = 0; k < RESTLESS_SAMPLES; k++) {
        e = 0.3 * e + sqrt(1 - 0.09) * normal(r);
        double outlier = uniform(r) < 0.03 ? 0.3 : 0;
        times[k] = exp(level + sd * e + outlier);
    }
}

static double median_of(const double times[RESTLESS_SAMPLES])
{
    double sorted[RESTLESS_SAMPLES];
    memcpy(sorted, times, sizeof(sorted));
    stats_sort(sorted, RESTLESS_SAMPLES);
    return stats_median(sorted, RESTLESS_SAMPLES);
}

/* process: what this process adds. */
static void visit(struct restless *r, int point, int round, double level, double process,
                  struct restless_run *run)
{
    double own = process + r->world.visit * normal(r);
    double sd = has_few(&r->world, point) ? r->world.few_sample : r->world.sample;
    fill(r, sd, own + share_of(point) * level, run->times[point][round]);
    run->median[point][round] = median_of(run->times[point][round]);
    for (int k = 0; k < LEVEL_COUNT; k++) {
        bool moves = level_name[level_of(point)] == (enum level)k;
        double reading = (moves ? level : 0) + 0.03 * normal(r);
        run->slow[point][round][k] = r->world.no_levels ? 0 : 1e-6 * exp(reading);
    }
}

void restless_run(struct restless *r, double slower, int first, struct restless_run *run)
{
    double process[RESTLESS_POINTS];
    for (int point = 0; point < RESTLESS_POINTS; point++)
        process[point] =
            r->world.process * normal(r) + (slower != 0 && point % 3 == first ? log1p(slower) : 0);
    for (int round = 0; round < r->world.rounds; round++)
        for (int k = 0; k < RESTLESS_POINTS; k++) {
            int point = (k * 11 + 5 * round) % RESTLESS_POINTS; /* another order each round */
            visit(r, point, round, level_now(r, level_of(point)), process[point], run);
            r->now += r->world.round_s / RESTLESS_POINTS;
        }
    r->now += r->world.apart_s;
}

void restless_turns(struct restless *r, double slower, int first, struct restless_run run[2])
{
    for (int round = 0; round < r->world.rounds; round++)
        for (int k = 0; k < RESTLESS_POINTS; k++) {
            int point = (k * 11 + 5 * round) % RESTLESS_POINTS;
            double level = level_now(r, level_of(point));
            for (int side = 0; side < 2; side++)
                visit(r, point, round, level,
                      r->world.process * normal(r) +
                          (side && slower != 0 && point % 3 == first ? log1p(slower) : 0),
                      &run[side]);
            r->now += r->world.round_s / RESTLESS_POINTS;
        }
    r->now += r->world.apart_s;
}
