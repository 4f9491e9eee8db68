/* SPDX-License-Identifier: Apache-2.0 */
#include "collective/fit.h"

#include <math.h>

double alpha_beta_seconds(const struct alpha_beta *fit, double messages, double bytes)
{
    return fit->message_s * messages + fit->byte_s * bytes;
}

/* With x = messages / time, y = bytes / time: the sum of (alpha x + beta y - 1)^2 at its least. */
bool alpha_beta_fit(const struct fit_point *points, int count, struct alpha_beta *out)
{
    double xx = 0, xy = 0, yy = 0, x1 = 0, y1 = 0, squares = 0;
    *out = (struct alpha_beta){.points = count};
    for (int k = 0; k < count; k++) {
        double x = points[k].messages / points[k].seconds, y = points[k].bytes / points[k].seconds;
        xx += x * x;
        xy += x * y;
        yy += y * y;
        x1 += x;
        y1 += y;
    }
    double determinant = xx * yy - xy * xy;
    if (count < 2 || !(determinant > 1e-9 * xx * yy))
        return false;
    out->message_s = (x1 * yy - y1 * xy) / determinant;
    out->byte_s = (y1 * xx - x1 * xy) / determinant;
    if (out->message_s < 0) {
        out->message_s = 0;
        out->byte_s = y1 / yy;
    } else if (out->byte_s < 0) {
        out->byte_s = 0;
        out->message_s = x1 / xx;
    }
    for (int k = 0; k < count; k++) {
        double model = alpha_beta_seconds(out, points[k].messages, points[k].bytes);
        double off = model / points[k].seconds - 1;
        squares += off * off;
    }
    out->residual = sqrt(squares / count);
    return true;
}
