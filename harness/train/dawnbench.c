/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/train/dawnbench.h"

#include <stdio.h>
#include <string.h>

#include "base/system/output.h"

static void write_lines(FILE *file, const struct data_set *data, const struct quality *quality,
                        const struct train_result *r)
{
    bool accuracy = quality == &quality_accuracy;
    bool top_5 = accuracy && !(data && strcmp(data->format->name, "cifar10") == 0);
    double unit = accuracy ? 100 : 1;
    fprintf(file, "epoch\thours\t%s%s\n", accuracy ? "top1Accuracy" : quality->name,
            top_5 ? "\ttop5Accuracy" : "");
    for (int k = 0; k < r->judged_count; k++) {
        const struct train_judgement *j = &r->judged[k];
        fprintf(file, "%.10g\t%.9g\t%.6g", j->epoch, (double)j->time_ns * 1e-9 / 3600,
                unit * j->quality);
        if (top_5)
            fprintf(file, "\t%.6g", unit * j->also);
        fputc('\n', file);
    }
}

enum status dawnbench_write(const char *path, const struct data_set *data,
                            const struct quality *quality, const struct train_result *r,
                            struct error *err)
{
    struct output out;
    if (!quality)
        return FAIL(err, STATUS_FAILED, "--tsv: this workload is judged by its loss alone");
    TRY(output_open(&out, path, OUTPUT_DERIVED, err));
    write_lines(out.stream, data, quality, r);
    return output_close(&out, STATUS_OK, err);
}
