/* SPDX-License-Identifier: Apache-2.0
 *
 * Every function of NCCL that ridge calls, as a table of pointers, which is filled from the library
 * while the program runs: what lacks NCCL says so. Nothing else here calls NCCL by name. */
#ifndef COLLECTIVE_PLUGINS_NCCL_API_H
#define COLLECTIVE_PLUGINS_NCCL_API_H

#include <nccl.h>

#include "base/error.h"

#define NCCL_CALLS(X)                                                                              \
    X(version, ncclGetVersion)                                                                     \
    X(error_text, ncclGetErrorString)                                                              \
    X(last_error, ncclGetLastError)                                                                \
    X(unique_id, ncclGetUniqueId)                                                                  \
    X(init_rank, ncclCommInitRankConfig)                                                           \
    X(finalize, ncclCommFinalize)                                                                  \
    X(destroy, ncclCommDestroy)                                                                    \
    X(abort, ncclCommAbort)                                                                        \
    X(state, ncclCommGetAsyncError)                                                                \
    X(all_reduce, ncclAllReduce)                                                                   \
    X(reduce, ncclReduce)                                                                          \
    X(reduce_scatter, ncclReduceScatter)                                                           \
    X(all_gather, ncclAllGather)                                                                   \
    X(broadcast, ncclBroadcast)                                                                    \
    X(send, ncclSend)                                                                              \
    X(receive, ncclRecv)                                                                           \
    X(group_start, ncclGroupStart)                                                                 \
    X(group_end, ncclGroupEnd)

struct nccl_api {
#define X(field, symbol) __typeof__(symbol) *field;
    NCCL_CALLS(X)
#undef X
};

/* UNSUPPORTED, with what to do, where there is no NCCL or one that is too old. */
enum status nccl_api_open(struct nccl_api *api, struct error *why);
/* "2.28.9" */
void nccl_version_text(const struct nccl_api *api, char *text, size_t size);

#endif
