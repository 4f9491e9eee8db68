/* SPDX-License-Identifier: Apache-2.0
 *
 * What messages between two ranks cost by the model LogGP (Alexandrov et al., SPAA 1995): the first
 * byte is under way for L, each end is busy with a message for o, one message can follow another
 * after g, and each further byte takes G.
 *
 * Measured as Hoefler et al. do (IPDPS 2007, "Low-overhead LogGP parameter assessment"): a trip is
 * n messages of s bytes from one rank to the other, each begun d after the one before has left, and
 * then one of TRIP_ANSWER bytes back. Without d it takes
 *     2 (L + 2 o) + (n - 1) g + (n (s - 1) + TRIP_ANSWER - 1) G,
 * and where d is longer than all that happens meanwhile, (n - 1) (d + o) more than a trip of one
 * message, which shows o. */
#ifndef COLLECTIVE_LOG_GP_H
#define COLLECTIVE_LOG_GP_H

#include <stdbool.h>

enum { TRIP_ANSWER = 8 };

struct trip_time {
    double messages, bytes; /* of each */
    double apart_s, seconds;
};

struct log_gp {
    double latency_s, overhead_s, gap_s, byte_s; /* L, o, g, G */
    double residual; /* root of the mean square of (model - time) / time, of trips without d */
    int points;      /* those */
};

/* Least squares of relative errors, none of the costs negative. False: too few trips; it takes two
 * sizes, two numbers of messages, and one trip with d whose size has a trip of one message. */
bool log_gp_fit(const struct trip_time *trips, int count, struct log_gp *out);
/* Of a trip without d. */
double log_gp_seconds(const struct log_gp *model, double messages, double bytes);

#endif
