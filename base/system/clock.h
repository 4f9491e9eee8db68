/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_SYSTEM_CLOCK_H
#define BASE_SYSTEM_CLOCK_H

#include <stdint.h>

uint64_t clock_now_ns(void); /* monotonic wall clock */

#endif
