/* SPDX-License-Identifier: Apache-2.0
 *
 * The library of tests/cupti_fake/ as tests find it: $RIDGE_BUILD/tests/cupti_fake/fake.so. */
#ifndef TESTS_LIB_CUPTI_FAKE_H
#define TESTS_LIB_CUPTI_FAKE_H

#include "profilers/lib/cupti_backend.h"
#include "tests/cupti_fake/fake.h"

/* Path of the library. */
const char *fake_path(void);
/* NULL where CUPTI's headers were not there when building. */
const struct fake_control *fake_open(void);
/* The plug-in of this build; NULL and a reason where it was not built. */
const struct cupti_backend *cupti_plugin(char *reason, size_t size);

#endif
