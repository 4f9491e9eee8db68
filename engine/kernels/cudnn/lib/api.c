/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/kernels/cudnn/lib/api.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

struct cudnn_api cudnn;
const struct plugin_host *cudnn_host;

struct call_name {
    const char *field, *symbol;
};

static const struct call_name names[] = {
#define X(field, symbol) {#field, #symbol},
    CUDNN_CALLS(X)
#undef X
};

/* All members of the table are pointers to functions, in the order of the names. */
enum status cudnn_api_open(struct cudnn_api *api, struct error *why)
{
    char *table = (char *)api;
    void *library = dlopen("libcudnn.so.9", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return REFUSE(why, "%s: install cuDNN 9, or put its folder into LD_LIBRARY_PATH",
                      dlerror());
    for (int k = 0; k < ARRAY_COUNT(names); k++) {
        void *symbol = dlsym(library, names[k].symbol);
        if (!symbol)
            return REFUSE(why, "libcudnn.so.9 has no %s: a newer one is needed (built for %d.%d)",
                          names[k].symbol, CUDNN_MAJOR, CUDNN_MINOR);
        memcpy(table + (size_t)k * sizeof(symbol), &symbol, sizeof(symbol));
    }
    size_t version = api->version();
    if (version / 10000 != CUDNN_MAJOR || version < 90800)
        return REFUSE(why, "libcudnn.so.9 is version %zu: 9.8 or newer is needed", version);
    return STATUS_OK;
}

/* The function's own name: of "cudnn.set_stream(handle, stream)" cudnnSetStream. */
static const char *symbol_of(const char *call)
{
    static const char prefix[] = "cudnn.";
    size_t length = strcspn(call, "(");
    if (strncmp(call, prefix, sizeof(prefix) - 1) != 0)
        return call;
    call += sizeof(prefix) - 1;
    length -= sizeof(prefix) - 1;
    for (int k = 0; k < ARRAY_COUNT(names); k++)
        if (strlen(names[k].field) == length && strncmp(names[k].field, call, length) == 0)
            return names[k].symbol;
    return call;
}

static enum status code_of(cudnnStatus_t status)
{
    if (status == CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED ||
        status == CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED)
        return STATUS_NO_MEMORY;
    int category = CUDNN_STATUS_CATEGORY((int)status);
    bool refusal = category == CUDNN_STATUS_NOT_SUPPORTED || category == CUDNN_STATUS_BAD_PARAM;
    return refusal ? STATUS_UNSUPPORTED : STATUS_FAILED;
}

enum status cudnn_refuse(struct error *why, cudnnStatus_t status, const char *call)
{
    char detail[160] = "";
    cudnn.last_error(detail, sizeof(detail));
    detail[sizeof(detail) - 1] = 0;
    detail[strcspn(detail, "\n")] = 0;
    return cudnn_host->refuse(why, code_of(status), "%.80s: %s (%d)%s%s", symbol_of(call),
                              cudnn.error_string(status), (int)status, detail[0] ? ": " : "",
                              detail);
}
