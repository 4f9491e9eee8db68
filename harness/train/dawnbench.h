/* SPDX-License-Identifier: Apache-2.0
 *
 * Time to accuracy as DAWNBench takes it (github.com/stanford-futuredata/dawn-bench-entries): a
 * line of tab-separated values for each judgement. */
#ifndef HARNESS_TRAIN_DAWNBENCH_H
#define HARNESS_TRAIN_DAWNBENCH_H

#include "harness/train/trainer.h"

/* Columns: epoch, hours of training, top1Accuracy and, but for CIFAR-10, whose form has none,
 * top5Accuracy, both in percent. A quality other than accuracy is called by its name and given as
 * it is. data NULL: made up. */
enum status dawnbench_write(const char *path, const struct data_set *data,
                            const struct quality *quality, const struct train_result *result,
                            struct error *err);

#endif
