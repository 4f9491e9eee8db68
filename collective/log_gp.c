/* SPDX-License-Identifier: Apache-2.0 */
#include "collective/log_gp.h"

#include <math.h>
#include <string.h>

/* Of a trip: how often one way without bytes (L + 2 o), a gap, and a byte are in it. */
enum { WAYS, GAPS, BYTES, PARTS };

static void parts_of(double messages, double bytes, double parts[PARTS])
{
    parts[WAYS] = 2;
    parts[GAPS] = messages - 1;
    parts[BYTES] = messages * (bytes - 1) + TRIP_ANSWER - 1;
}

static double determinant(double a[PARTS][PARTS])
{
    return a[0][0] * (a[1][1] * a[2][2] - a[1][2] * a[2][1]) -
           a[0][1] * (a[1][0] * a[2][2] - a[1][2] * a[2][0]) +
           a[0][2] * (a[1][0] * a[2][1] - a[1][1] * a[2][0]);
}

/* a x = b by Cramer's rule, with x 0 where it is not used. False: there is no one answer. */
static bool solve(double a[PARTS][PARTS], const double b[PARTS], const bool used[PARTS],
                  double x[PARTS])
{
    double left[PARTS][PARTS], whole;
    for (int i = 0; i < PARTS; i++)
        for (int j = 0; j < PARTS; j++)
            left[i][j] = used[i] && used[j] ? a[i][j] : i == j;
    whole = determinant(left);
    for (int k = 0; k < PARTS && whole > 1e-9; k++) {
        double replaced[PARTS][PARTS];
        memcpy(replaced, left, sizeof(replaced));
        for (int i = 0; i < PARTS; i++)
            replaced[i][k] = used[i] ? b[i] : 0;
        x[k] = determinant(replaced) / whole;
    }
    return whole > 1e-9;
}

/* The sum of ((parts . x) / time - 1)^2 at its least. Columns are scaled to length 1, since a byte
 * costs so much less than a message. */
static bool fit_parts(const struct trip_time *trips, int count, const bool used[PARTS],
                      double x[PARTS])
{
    double a[PARTS][PARTS] = {{0}}, b[PARTS] = {0}, length[PARTS];
    for (int k = 0; k < count; k++) {
        double parts[PARTS];
        parts_of(trips[k].messages, trips[k].bytes, parts);
        for (int i = 0; i < PARTS && trips[k].apart_s == 0; i++) {
            b[i] += parts[i] / trips[k].seconds;
            for (int j = 0; j < PARTS; j++)
                a[i][j] += parts[i] * parts[j] / (trips[k].seconds * trips[k].seconds);
        }
    }
    for (int k = 0; k < PARTS; k++) {
        length[k] = sqrt(a[k][k]);
        if (!(length[k] > 0))
            return false;
    }
    for (int i = 0; i < PARTS; i++) {
        b[i] /= length[i];
        for (int j = 0; j < PARTS; j++)
            a[i][j] /= length[i] * length[j];
    }
    if (!solve(a, b, used, x))
        return false;
    for (int k = 0; k < PARTS; k++)
        x[k] /= length[k];
    return true;
}

/* The mean over trips with d; negative: there are none. */
static double overhead_of(const struct trip_time *trips, int count)
{
    double sum = 0;
    int found = 0;
    for (int k = 0; k < count; k++)
        for (int one = 0; one < count; one++)
            if (trips[k].apart_s > 0 && trips[k].messages > 1 && trips[one].apart_s == 0 &&
                trips[one].messages == 1 && trips[one].bytes == trips[k].bytes) {
                sum += (trips[k].seconds - trips[one].seconds) / (trips[k].messages - 1) -
                       trips[k].apart_s;
                found++;
            }
    return found ? fmax(0, sum / found) : -1;
}

double log_gp_seconds(const struct log_gp *model, double messages, double bytes)
{
    double parts[PARTS];
    parts_of(messages, bytes, parts);
    return parts[WAYS] * (model->latency_s + 2 * model->overhead_s) + parts[GAPS] * model->gap_s +
           parts[BYTES] * model->byte_s;
}

bool log_gp_fit(const struct trip_time *trips, int count, struct log_gp *out)
{
    bool used[PARTS] = {true, true, true};
    double x[PARTS], squares = 0, overhead = overhead_of(trips, count);
    *out = (struct log_gp){.points = 0};
    for (bool again = true; again;) {
        if (overhead < 0 || !fit_parts(trips, count, used, x))
            return false;
        int worst = 0;
        for (int k = 1; k < PARTS; k++)
            worst = x[k] < x[worst] ? k : worst;
        again = x[worst] < 0;
        used[worst] = !again && used[worst];
    }
    out->overhead_s = fmin(overhead, x[WAYS] / 2);
    out->latency_s = x[WAYS] - 2 * out->overhead_s;
    out->gap_s = x[GAPS];
    out->byte_s = x[BYTES];
    for (int k = 0; k < count; k++)
        if (trips[k].apart_s == 0) {
            double model = log_gp_seconds(out, trips[k].messages, trips[k].bytes);
            squares += (model / trips[k].seconds - 1) * (model / trips[k].seconds - 1);
            out->points++;
        }
    out->residual = sqrt(squares / out->points);
    return true;
}
