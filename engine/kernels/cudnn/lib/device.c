/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/kernels/cudnn/lib/device.h"

#include <string.h>

struct chip {
    cudnn_desc properties;
    bool described;
};

static struct chip chips[DEVICES_MAX];
static _Thread_local cudnnHandle_t handles[DEVICES_MAX];

static enum status chip_new(int index, cudnnBackendAttributeName_t name,
                            cudnnBackendAttributeType_t type, int64_t count, const void *value,
                            struct error *why)
{
    cudnn_desc chip;
    TRY(desc_new(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, &chip, why));
    enum status status = desc_set(chip, name, type, count, value, why);
    if (status == STATUS_OK)
        status = desc_finalize(chip, why);
    if (status != STATUS_OK) {
        desc_free(&chip);
        return status;
    }
    desc_free(&chips[index].properties);
    chips[index].properties = chip;
    return STATUS_OK;
}

static enum status check(const struct device *device, struct error *why)
{
    if (!device || device->index < 0 || device->index >= DEVICES_MAX)
        return REFUSE(why, "no device, or one beyond the first %d", DEVICES_MAX);
    return STATUS_OK;
}

enum status device_chip(const struct kernel_query *q, cudnn_desc *chip, struct error *why)
{
    TRY(check(q->device, why));
    int32_t index = q->device->index;
    if (!chips[index].properties)
        TRY(chip_new(index, CUDNN_ATTR_DEVICEPROP_DEVICE_ID, CUDNN_TYPE_INT32, 1, &index, why));
    *chip = chips[index].properties;
    return STATUS_OK;
}

enum status device_chip_from_json(int index, const char *json, struct error *why)
{
    TRY(chip_new(index, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
                 (int64_t)strlen(json) + 1, json, why));
    chips[index].described = true;
    return STATUS_OK;
}

bool device_is_described(const struct device *device)
{
    return chips[device->index].described;
}

void device_chips_release(void)
{
    for (int k = 0; k < DEVICES_MAX; k++)
        desc_free(&chips[k].properties);
    memset(chips, 0, sizeof(chips));
}

enum status device_handle(const struct device *device, cudnnHandle_t *handle, struct error *why)
{
    TRY(check(device, why));
    cudnnHandle_t *own = &handles[device->index];
    if (!*own)
        CUDNN_TRY(cudnn.handle_new(own), why);
    *handle = *own;
    return STATUS_OK;
}

void device_handle_rest(const struct device *device)
{
    if (check(device, NULL) == STATUS_OK && handles[device->index])
        cudnn.set_stream(handles[device->index], NULL);
}

void device_handles_release(void)
{
    for (int k = 0; k < DEVICES_MAX; k++) {
        if (handles[k])
            cudnn.handle_free(handles[k]);
        handles[k] = NULL;
    }
}
