/* SPDX-License-Identifier: Apache-2.0
 *
 * The time of an operation as alpha for each message and beta for each byte, fitted to
 * measurements: what a schedule says of itself (schedule_work) is what both are multiplied with. */
#ifndef COLLECTIVE_FIT_H
#define COLLECTIVE_FIT_H

#include <stdbool.h>

struct fit_point {
    double messages, bytes; /* one after another, of the busiest rank */
    double seconds;
};

struct alpha_beta {
    double message_s, byte_s;
    double residual; /* root of the mean square of (model - time) / time */
    int points;
};

/* Least squares of relative errors, since times span many orders of magnitude; neither alpha nor
 * beta becomes negative. False: fewer than two points, or all with one ratio of messages to
 * bytes. */
bool alpha_beta_fit(const struct fit_point *points, int count, struct alpha_beta *out);
double alpha_beta_seconds(const struct alpha_beta *fit, double messages, double bytes);

#endif
