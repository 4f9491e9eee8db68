/* SPDX-License-Identifier: Apache-2.0
 *
 * What cuDNN needs to know of a device: its properties, for choosing engines, and a handle, for
 * launching. Properties are asked of the device, or come from text (tests do that for devices that
 * are not there). Handles belong to one thread each: cuDNN wants that, and launching takes no lock.
 */
#ifndef ENGINE_KERNELS_CUDNN_LIB_DEVICE_H
#define ENGINE_KERNELS_CUDNN_LIB_DEVICE_H

#include "engine/kernels/cudnn/lib/opgraph.h"

enum { DEVICES_MAX = 16 };

/* Of q->device; made at the first call, kept until the program ends. */
enum status device_chip(const struct kernel_query *q, cudnn_desc *chip, struct error *why);
/* The same for the device of that index from cuDNN's JSON form. */
enum status device_chip_from_json(int index, const char *json, struct error *why);
bool device_is_described(const struct device *device); /* by such text: it need not be there */
void device_chips_release(void);                       /* tests */

/* This thread's handle for the device, made at the first call; its stream is the caller's to set.
 */
enum status device_handle(const struct device *device, cudnnHandle_t *handle, struct error *why);
/* The stream that this thread's handle was given may end: the handle outlives executables, and
 * would go on naming it. */
void device_handle_rest(const struct device *device);
void device_handles_release(void); /* this thread's; tests */

#endif
