/* SPDX-License-Identifier: Apache-2.0
 *
 * Which calls of the made runtime fail, and when its work ends: as tests want it (api.h), or
 * RIDGE_HOST_FAIL and RIDGE_HOST_LOSE (api.c). */
#ifndef TESTS_GPU_HOST_SCRIPT_H
#define TESTS_GPU_HOST_SCRIPT_H

#include <stdbool.h>
#include <stdint.h>

/* 0, or the error that the script wants of this use of the call. */
int scripted(const char *call);
/* The device of which calls speak from now on. */
void script_device(int index);
/* Another launch was taken by a stream that runs. */
void script_launched(void);
/* When what was launched is done, by the clock of the host; 0: it is. */
uint64_t script_busy_until(void);
/* Waits for it; ends the program where that would take for ever. */
void script_wait(const char *call);

/* As the runtime's (errors.c). */
const char *host_error_name(int error);
const char *host_error_text(int error);

#endif
