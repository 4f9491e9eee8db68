/* SPDX-License-Identifier: Apache-2.0 */
#include "base/numbers/distribution.h"

#include <float.h>
#include <math.h>

#define NORMAL_DF 1e6

double normal_cdf(double z)
{
    return 0.5 * erfc(-z * 0.7071067811865476);
}

/* x with cdf(x, df) = p, by halving: a few dozen evaluations and no table of coefficients. */
static double quantile(double (*cdf)(double x, double df), double p, double df)
{
    if (!(p > 0 && p < 1))
        return p == 0 ? -INFINITY : p == 1 ? INFINITY : NAN;
    double low = -1, high = 1;
    while (cdf(low, df) > p && low > -1e12)
        low *= 2;
    while (cdf(high, df) < p && high < 1e12)
        high *= 2;
    for (int k = 0; k < 200 && high - low > 1e-14 * (1 + fabs(low)); k++) {
        double middle = 0.5 * (low + high);
        if (cdf(middle, df) < p)
            low = middle;
        else
            high = middle;
    }
    return 0.5 * (low + high);
}

static double normal_cdf_df(double z, double df)
{
    (void)df;
    return normal_cdf(z);
}

double normal_quantile(double p)
{
    return quantile(normal_cdf_df, p, 0);
}

/* lgamma writes the sign to a global; lgamma_r is not in C11 and the sign is + here anyway. */
static double log_beta(double a, double b)
{
    return lgamma(a) + lgamma(b) - lgamma(a + b);
}

static double beta_fraction(double a, double b, double x)
{
    double c = 1, d = 1 - (a + b) * x / (a + 1);
    d = 1 / (fabs(d) < DBL_MIN ? DBL_MIN : d);
    double value = d;
    for (int m = 1; m < 10000; m++) {
        double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
        double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
        double step = 1;
        for (int half = 0; half < 2; half++) {
            double term = half ? odd : even;
            d = 1 + term * d;
            c = 1 + term / c;
            d = 1 / (fabs(d) < DBL_MIN ? DBL_MIN : d);
            c = fabs(c) < DBL_MIN ? DBL_MIN : c;
            step = d * c;
            value *= step;
        }
        if (fabs(step - 1) < 1e-15)
            break;
    }
    return value;
}

double beta_regularised(double a, double b, double x)
{
    if (x <= 0 || x >= 1)
        return x <= 0 ? 0 : 1;
    double front = exp(a * log(x) + b * log1p(-x) - log_beta(a, b));
    if (x < (a + 1) / (a + b + 2))
        return front * beta_fraction(a, b, x) / a;
    return 1 - front * beta_fraction(b, a, 1 - x) / b;
}

double student_cdf(double t, double df)
{
    if (isnan(t) || !(df > 0))
        return NAN;
    if (df >= NORMAL_DF)
        return normal_cdf(t);
    double tail = 0.5 * beta_regularised(0.5 * df, 0.5, df / (df + t * t));
    return t > 0 ? 1 - tail : tail;
}

double student_quantile(double p, double df)
{
    return df >= NORMAL_DF ? normal_quantile(p) : quantile(student_cdf, p, df);
}

/* Recurrence up to 6, then the asymptotic series (NIST DLMF 5.11.2): its error is below 1e-9. */
double digamma(double x)
{
    double sum = 0;
    while (x < 6) {
        sum -= 1 / x;
        x += 1;
    }
    double y = 1 / (x * x);
    return sum + log(x) - 0.5 / x -
           y * (1.0 / 12 - y * (1.0 / 120 - y * (1.0 / 252 - y * (1.0 / 240 - y / 132))));
}

double trigamma(double x)
{
    double sum = 0;
    while (x < 6) {
        sum += 1 / (x * x);
        x += 1;
    }
    double y = 1 / (x * x);
    return sum + 0.5 * y +
           (1 + y * (1.0 / 6 - y * (1.0 / 30 - y * (1.0 / 42 - y * (1.0 / 30 - y * 5 / 66))))) / x;
}

/* trigamma falls steadily: halving between powers of two. */
double trigamma_inverse(double y)
{
    double low = 1e-8, high = 1e8;
    for (int k = 0; k < 200 && high / low > 1 + 1e-12; k++) {
        double middle = sqrt(low * high);
        if (trigamma(middle) > y)
            low = middle;
        else
            high = middle;
    }
    return sqrt(low * high);
}
