/* SPDX-License-Identifier: Apache-2.0
 *
 * Probabilities: normal and Student's t, from the C library's erfc and lgamma and the incomplete
 * beta function (continued fraction by Lentz's method; NIST DLMF 8.17.22). Errors are
 * below 1e-10, checked against closed forms and published tables in tests/unit/test_stats_rank.c.
 */
#ifndef BASE_NUMBERS_DISTRIBUTION_H
#define BASE_NUMBERS_DISTRIBUTION_H

double normal_cdf(double z);
double normal_quantile(double p);
/* I_x(a, b), a and b > 0. */
double beta_regularised(double a, double b, double x);
/* df may be any positive number; from 1e6 on it is the normal distribution. */
double student_cdf(double t, double df);
double student_quantile(double p, double df);
/* First and second derivative of log gamma, x > 0, and the x with trigamma(x) = y > 0. */
double digamma(double x);
double trigamma(double x);
double trigamma_inverse(double y);

#endif
