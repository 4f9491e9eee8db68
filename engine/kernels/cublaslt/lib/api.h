/* SPDX-License-Identifier: Apache-2.0
 *
 * Every function of cuBLASLt that ridge calls, as a table of pointers. The plug-in fills it from
 * the library when it is opened (lib/api.c); tests fill it with functions that fail on demand.
 * Nothing else in this folder calls cuBLASLt by name. */
#ifndef ENGINE_KERNELS_CUBLASLT_LIB_API_H
#define ENGINE_KERNELS_CUBLASLT_LIB_API_H

#include <cublasLt.h>

#include "engine/run/plugin.h"

#define CUBLASLT_CALLS(X)                                                                          \
    X(version, cublasLtGetVersion)                                                                 \
    X(status_name, cublasLtGetStatusName)                                                          \
    X(handle_new, cublasLtCreate)                                                                  \
    X(handle_free, cublasLtDestroy)                                                                \
    X(desc_new, cublasLtMatmulDescCreate)                                                          \
    X(desc_free, cublasLtMatmulDescDestroy)                                                        \
    X(desc_set, cublasLtMatmulDescSetAttribute)                                                    \
    X(layout_new, cublasLtMatrixLayoutCreate)                                                      \
    X(layout_free, cublasLtMatrixLayoutDestroy)                                                    \
    X(layout_set, cublasLtMatrixLayoutSetAttribute)                                                \
    X(preference_new, cublasLtMatmulPreferenceCreate)                                              \
    X(preference_free, cublasLtMatmulPreferenceDestroy)                                            \
    X(preference_set, cublasLtMatmulPreferenceSetAttribute)                                        \
    X(heuristic, cublasLtMatmulAlgoGetHeuristic)                                                   \
    X(algo_get, cublasLtMatmulAlgoConfigGetAttribute)                                              \
    X(matmul, cublasLtMatmul)

struct cublaslt_api {
#define X(field, symbol) __typeof__(symbol) *field;
    CUBLASLT_CALLS(X)
#undef X
};

/* Filled once, at the plug-in's entry; tests fill it themselves. */
extern struct cublaslt_api cublaslt;
extern const struct plugin_host *cublaslt_host;

/* From the major version of libcublasLt.so that this was built for. */
enum status cublaslt_api_open(struct cublaslt_api *api, struct error *why);

/* "cublasLtMatmul: CUBLAS_STATUS_NOT_SUPPORTED (15)" into why. UNSUPPORTED for what cuBLASLt does
 * not offer, NO_MEMORY, else FAILED. */
enum status cublaslt_refuse(struct error *why, cublasStatus_t status, const char *call);
#define CUBLASLT_TRY(call, why)                                                                    \
    do {                                                                                           \
        cublasStatus_t cublaslt_status_ = (call);                                                  \
        if (cublaslt_status_ != CUBLAS_STATUS_SUCCESS)                                             \
            return cublaslt_refuse(why, cublaslt_status_, #call);                                  \
    } while (0)
#define REFUSE(why, ...) cublaslt_host->refuse(why, STATUS_UNSUPPORTED, __VA_ARGS__)

/* This thread's handle for the device, made at the first call: launching takes no lock. */
enum status cublaslt_handle(const struct device *device, cublasLtHandle_t *handle,
                            struct error *why);
void cublaslt_handles_release(void); /* this thread's; tests */

#endif
