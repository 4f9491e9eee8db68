/* SPDX-License-Identifier: Apache-2.0
 *
 * What tests ask of the plug-in with the host's runtime (api.c); found by dlsym. */
#ifndef TESTS_GPU_HOST_API_H
#define TESTS_GPU_HOST_API_H

#define API_EXPORT __attribute__((visibility("default")))

/* The at-th use (from 1, counted from now) of a call by its name in lib/api.h gives `error`.
 * at 0: none does, uses are only counted. */
API_EXPORT void api_fail(const char *call, int at, int error);
API_EXPORT int api_calls(void);
/* How many things live that should be given back. */
API_EXPORT long api_live(void);

/* From now on every kernel, copy and fill takes so long by the clock that events read; 0: as long
 * as it takes. What is timed is then exact, and long enough after one round. */
API_EXPORT void api_clock(double command_ns);
/* Not 0: from now on kernels, copies and fills are taken and checked, but nothing is done. */
API_EXPORT void api_dry(int dry);
/* What roofs' kernels counted, since the plug-in was opened. */
API_EXPORT double api_counted(void);

#endif
