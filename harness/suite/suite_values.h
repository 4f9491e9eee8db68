/* SPDX-License-Identifier: Apache-2.0
 *
 * From a TOML value to the checked values of a key: types, limits, choices, lists and ranges. */
#ifndef HARNESS_SUITE_SUITE_VALUES_H
#define HARNESS_SUITE_SUITE_VALUES_H

#include "harness/suite/suite.h"

/* Where a value stands, for messages: "suite.toml:14: workload.batch: ". */
struct suite_place {
    const char *file;
    int line;          /* 0: a command line; file is the option or word, or "" */
    const char *table; /* "workload"; "": the top */
    const char *key;
};

/* Raises "PLACE: text" as a failure. */
__attribute__((format(printf, 3, 4))) enum status
suite_complain(const struct suite_place *place, struct error *err, const char *format, ...);

/* Reads `value` as key `key` into `axis`, whose memory comes from the suite. */
enum status suite_axis_read(struct suite *suite, const struct suite_key *key,
                            const struct suite_place *place, const struct toml_value *value,
                            struct suite_axis *axis, struct error *err);

/* A workload's parameter as a key. */
struct suite_key suite_key_of_param(const struct param *param);

#endif
