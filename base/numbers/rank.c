/* SPDX-License-Identifier: Apache-2.0 */
#include "base/numbers/rank.h"

#include <math.h>

enum { EXACT_MAX = 20 };

double mann_whitney_u(const double *x, int nx, const double *y, int ny)
{
    double u = 0;
    for (int i = 0, below = 0, upto = 0; i < nx; i++) {
        while (below < ny && y[below] < x[i])
            below++;
        while (upto < ny && y[upto] <= x[i])
            upto++;
        u += below + 0.5 * (upto - below);
    }
    return u;
}

/* Sum of t^3 - t over groups of equal values in both sets together. */
static double tie_sum(const double *x, int nx, const double *y, int ny)
{
    double sum = 0;
    for (int i = 0, j = 0; i < nx || j < ny;) {
        double value = j >= ny || (i < nx && x[i] <= y[j]) ? x[i] : y[j];
        double t = 0;
        for (; i < nx && x[i] == value; i++)
            t++;
        for (; j < ny && y[j] == value; j++)
            t++;
        sum += t * t * t - t;
    }
    return sum;
}

/* Number of arrangements with U = u, for every u: the coefficients of the Gaussian binomial, made
 * by multiplying with (1 - q^(nx+i)) and dividing by (1 - q^i). Exact in doubles up to 20 + 20. */
static int arrangements(int nx, int ny, double *ways)
{
    int last = nx * ny;
    for (int u = 0; u <= last; u++)
        ways[u] = u == 0;
    for (int i = 1; i <= ny; i++) {
        for (int u = last; u >= nx + i; u--)
            ways[u] -= ways[u - nx - i];
        for (int u = i; u <= last; u++)
            ways[u] += ways[u - i];
    }
    return last;
}

static double exact_p(int nx, int ny, double u)
{
    double ways[EXACT_MAX * EXACT_MAX + 1], total = 0, tail = 0;
    int last = arrangements(nx, ny, ways);
    double near = fmin(u, last - u);
    for (int k = 0; k <= last; k++) {
        total += ways[k];
        tail += k <= near ? ways[k] : 0;
    }
    return fmin(1, 2 * tail / total);
}

double mann_whitney_p(const double *x, int nx, const double *y, int ny, double inflation)
{
    if (nx < 1 || ny < 1)
        return 1;
    double u = mann_whitney_u(x, nx, y, ny), ties = tie_sum(x, nx, y, ny);
    if (ties == 0 && nx <= EXACT_MAX && ny <= EXACT_MAX && inflation <= 1)
        return exact_p(nx, ny, u);
    double pairs = (double)nx * ny, n = (double)nx + ny;
    double variance = pairs / 12 * (n + 1 - ties / (n * (n - 1))) * fmax(inflation, 1);
    double off = fmax(0, fabs(u - pairs / 2) - 0.5);
    return variance > 0 ? erfc(off / sqrt(2 * variance)) : 1;
}

/* How many differences are <= d, and the largest of those. */
static int64_t differences_upto(const double *x, int nx, const double *y, int ny, double d)
{
    int64_t count = 0;
    for (int i = 0, upto = 0; i < nx; i++) {
        while (upto < ny && y[upto] - x[i] <= d)
            upto++;
        count += upto;
    }
    return count;
}

double difference_at(const double *x, int nx, const double *y, int ny, int64_t k)
{
    double low = y[0] - x[nx - 1], high = y[ny - 1] - x[0];
    if (differences_upto(x, nx, y, ny, low) > k)
        return low;
    /* low never holds k + 1 differences, high always does; 1e-15 of the span is below any clock. */
    double fine = 1e-15 * fmax(fabs(low), fabs(high));
    for (int step = 0; step < 200 && high - low > fine; step++) {
        double middle = low + 0.5 * (high - low);
        if (differences_upto(x, nx, y, ny, middle) > k)
            high = middle;
        else
            low = middle;
    }
    return high;
}

double shift_estimate(const double *x, int nx, const double *y, int ny)
{
    if (nx < 1 || ny < 1)
        return NAN;
    int64_t pairs = (int64_t)nx * ny;
    double upper = difference_at(x, nx, y, ny, pairs / 2);
    return pairs % 2 ? upper : 0.5 * (upper + difference_at(x, nx, y, ny, pairs / 2 - 1));
}

void adjust_false_discovery(const double *p, int count, int *order, double *adjusted)
{
    int tests = 0;
    for (int k = 0; k < count; k++) {
        adjusted[k] = NAN;
        if (isnan(p[k]))
            continue;
        int at = tests++;
        for (; at > 0 && p[order[at - 1]] > p[k]; at--)
            order[at] = order[at - 1];
        order[at] = k;
    }
    double least = 1;
    for (int rank = tests; rank > 0; rank--) {
        int k = order[rank - 1];
        least = fmin(least, p[k] * ((double)tests / rank));
        adjusted[k] = least;
    }
}
