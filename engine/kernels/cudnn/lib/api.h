/* SPDX-License-Identifier: Apache-2.0
 *
 * Every function of cuDNN that ridge calls, as a table of pointers. The plug-in fills it from the
 * library when it is opened (lib/api.c); tests fill it with functions that fail on demand. Nothing
 * else in this folder may call cuDNN by name, so that a call without a test of its failure cannot
 * slip in, and so that the plug-in opens, and says what is missing, where cuDNN is not installed.
 */
#ifndef ENGINE_KERNELS_CUDNN_LIB_API_H
#define ENGINE_KERNELS_CUDNN_LIB_API_H

#include <cudnn.h>

#include "engine/run/plugin.h"

#define CUDNN_CALLS(X)                                                                             \
    X(version, cudnnGetVersion)                                                                    \
    X(cudart_version, cudnnGetCudartVersion)                                                       \
    X(error_string, cudnnGetErrorString)                                                           \
    X(last_error, cudnnGetLastErrorString)                                                         \
    X(handle_new, cudnnCreate)                                                                     \
    X(handle_free, cudnnDestroy)                                                                   \
    X(set_stream, cudnnSetStream)                                                                  \
    /* the graph API */                                                                            \
    X(create, cudnnBackendCreateDescriptor)                                                        \
    X(destroy, cudnnBackendDestroyDescriptor)                                                      \
    X(set, cudnnBackendSetAttribute)                                                               \
    X(get, cudnnBackendGetAttribute)                                                               \
    X(finalize, cudnnBackendFinalize)                                                              \
    X(execute, cudnnBackendExecute)                                                                \
    /* softmax and recurrent networks have no form there */                                        \
    X(tensor_new, cudnnCreateTensorDescriptor)                                                     \
    X(tensor_free, cudnnDestroyTensorDescriptor)                                                   \
    X(tensor_set, cudnnSetTensorNdDescriptor)                                                      \
    X(softmax, cudnnSoftmaxForward)                                                                \
    X(transform, cudnnTransformTensor)                                                             \
    X(dropout_new, cudnnCreateDropoutDescriptor)                                                   \
    X(dropout_free, cudnnDestroyDropoutDescriptor)                                                 \
    X(dropout_set, cudnnSetDropoutDescriptor)                                                      \
    X(rnn_new, cudnnCreateRNNDescriptor)                                                           \
    X(rnn_free, cudnnDestroyRNNDescriptor)                                                         \
    X(rnn_set, cudnnSetRNNDescriptor_v8)                                                           \
    X(rnn_data_new, cudnnCreateRNNDataDescriptor)                                                  \
    X(rnn_data_free, cudnnDestroyRNNDataDescriptor)                                                \
    X(rnn_data_set, cudnnSetRNNDataDescriptor)                                                     \
    X(rnn_temp_sizes, cudnnGetRNNTempSpaceSizes)                                                   \
    X(rnn_weight_size, cudnnGetRNNWeightSpaceSize)                                                 \
    X(rnn_weight_place, cudnnGetRNNWeightParams)                                                   \
    X(rnn_build_dynamic, cudnnBuildRNNDynamic)                                                     \
    X(rnn_forward, cudnnRNNForward)

struct cudnn_api {
#define X(field, symbol) __typeof__(symbol) *field;
    CUDNN_CALLS(X)
#undef X
};

/* Filled once, at the plug-in's entry; tests fill it themselves. */
extern struct cudnn_api cudnn;
extern const struct plugin_host *cudnn_host;

/* The operation of attention came with 9.13.0, and NVIDIA's own frontend uses it from the patch
 * after that on. The Makefile looks for headers as new. */
enum { CUDNN_LEAST = 91301 };

/* From libcudnn.so.9, which must be of the major version that this was built for. */
enum status cudnn_api_open(struct cudnn_api *api, struct error *why);
enum status cudnn_version_check(size_t version, struct error *why);
/* "9.19.0", or "9.19.0 without libnvrtc.so.13": then no engine that is compiled at run time can
 * be had. It is opened here, so that cuDNN finds it; RIDGE_NVRTC names one that lies elsewhere. */
void cudnn_version_text(const struct cudnn_api *api, char *text, size_t size);

/* "cudnnBackendFinalize: CUDNN_STATUS_NOT_SUPPORTED (3000): what the library says" into why.
 * UNSUPPORTED for what cuDNN does not offer, NO_MEMORY, else FAILED. */
enum status cudnn_refuse(struct error *why, cudnnStatus_t status, const char *call);
#define CUDNN_TRY(call, why)                                                                       \
    do {                                                                                           \
        cudnnStatus_t cudnn_status_ = (call);                                                      \
        if (cudnn_status_ != CUDNN_STATUS_SUCCESS)                                                 \
            return cudnn_refuse(why, cudnn_status_, #call);                                        \
    } while (0)
#define REFUSE(why, ...) cudnn_host->refuse(why, STATUS_UNSUPPORTED, __VA_ARGS__)

#endif
