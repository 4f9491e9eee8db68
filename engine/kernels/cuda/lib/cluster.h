/* SPDX-License-Identifier: Apache-2.0
 *
 * Clusters, from sm_90 on: blocks that run at the same time on neighbouring multiprocessors, wait
 * for each other and write into each other's shared memory. PTX ISA, "barrier.cluster", "mapa" and
 * "st.shared::cluster". A launch with `cluster` blocks in x makes them; a kernel that is compiled
 * for older chips, too, begins with "if (!HAS_CLUSTERS) return". */
#ifndef ENGINE_KERNELS_CUDA_LIB_CLUSTER_H
#define ENGINE_KERNELS_CUDA_LIB_CLUSTER_H

#include "engine/kernels/cuda/lib/kernel.h"
#include "engine/kernels/cuda/lib/ptx.h"

enum { CLUSTER_MOST = 8 }; /* blocks that every chip with clusters runs */

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
enum { HAS_CLUSTERS = false };
#define CLUSTER_PTX(instead, ...) (void)0
#else
enum { HAS_CLUSTERS = true };
#define CLUSTER_PTX(instead, ...) PTX(instead, __VA_ARGS__)
#endif

/* The block's number in its cluster. */
static __device__ __forceinline__ unsigned cluster_rank(void)
{
    unsigned rank = 0;
    CLUSTER_PTX(rank = host_cluster_rank(), "mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}

/* Two words to the place that `own` has in this block's shared memory, in that of block `rank`. */
static __device__ __forceinline__ void cluster_put(uint2 *own, unsigned rank, uint2 value)
{
    (void)own, (void)rank, (void)value; /* without clusters */
    CLUSTER_PTX(*(uint2 *)host_cluster_shared(own, rank) = value,
                "{\n\t.reg .u32 there;\n\tmapa.shared::cluster.u32 there, %0, %1;\n\t"
                "st.shared::cluster.v2.u32 [there], {%2, %3};\n\t}" ::"r"(
                    (unsigned)__cvta_generic_to_shared(own)),
                "r"(rank), "r"(value.x), "r"(value.y)
                : "memory");
}

/* The barrier of all threads of the cluster, in two halves: what was written before the first is
 * there for everybody after the second. What comes in between is ordered with neither what others
 * do after the second nor what they did before the first. */
static __device__ __forceinline__ void cluster_arrive(void)
{
    CLUSTER_PTX(host_arrive_cluster(), "barrier.cluster.arrive.aligned;" ::: "memory");
}

static __device__ __forceinline__ void cluster_wait(void)
{
    CLUSTER_PTX(host_wait_cluster(), "barrier.cluster.wait.aligned;" ::: "memory");
}

#endif
