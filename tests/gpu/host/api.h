/* SPDX-License-Identifier: Apache-2.0
 *
 * What tests ask of the plug-in with the host's runtime (api.c); found by dlsym. */
#ifndef TESTS_GPU_HOST_API_H
#define TESTS_GPU_HOST_API_H

#include <stddef.h>

#define API_EXPORT __attribute__((visibility("default")))

/* The at-th use (from 1, counted from now) of a call by its name in lib/api.h gives `error`.
 * at 0: none does, uses are only counted. */
API_EXPORT void api_fail(const char *call, int at, int error);
API_EXPORT int api_calls(void);
/* From the at-th use of a call on, every call for the device that is current there gives `error`,
 * as after a kernel that crashed; of a launch from the next call on. at 0: the device is well. */
API_EXPORT void api_lose(const char *call, int at, int error);
/* The at-th launch that runs, from now on, keeps its device busy for so long by the host's clock;
 * ns below 0: for ever, and a call that would wait for it ends the program. at 0: none does. */
API_EXPORT void api_slow(int at, double ns);
/* How many things live that should be given back. */
API_EXPORT long api_live(void);

/* From now on every kernel, copy and fill takes so long by the clock that events read; 0: as long
 * as it takes. What is timed is then exact, and long enough after one round. */
API_EXPORT void api_clock(double command_ns);
/* Not 0: from now on kernels, copies and fills are taken and checked, but nothing is done. */
API_EXPORT void api_dry(int dry);
/* What roofs' kernels counted, since the plug-in was opened. */
API_EXPORT double api_counted(void);

/* Work of another library in a stream: called again and again until it says that it is done; what
 * comes behind it waits. In a capture: anew in each replay. */
typedef int api_work(void *context);
enum { API_REFUSED, API_QUEUED, API_CAPTURED };
typedef int api_enqueue_entry(void *stream, api_work *work, void *context);
API_EXPORT api_enqueue_entry api_enqueue;
/* For such work: from and to memory of the device; 0: it is none. */
typedef int api_move_entry(void *to, const void *from, size_t bytes);
API_EXPORT api_move_entry api_load, api_store;
/* The device of which calls speak now. */
typedef int api_device_entry(void);
API_EXPORT api_device_entry api_device;

#endif
