/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "harness/cli/enough_stack.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <ucontext.h>

enum { STACK_LEAST = 1 << 20, STACK_OWN = 8 << 20 };

struct call {
    int (*run)(int count, char **words);
    int count, code;
    char **words;
};

static bool has_small_stack(void)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur < STACK_LEAST;
}

/* makecontext passes integers only: a pointer comes in two halves. */
static void enter(unsigned low, unsigned high)
{
    struct call *call = (struct call *)((uintptr_t)high << 32 | low);
    call->code = call->run(call->count, call->words);
}

/* The same thread on another stack: its id, signal mask and counters stay the same. */
static bool run_on(void *stack, struct call *call)
{
    ucontext_t caller, larger;
    if (getcontext(&larger) != 0)
        return false;
    larger.uc_stack = (stack_t){.ss_sp = stack, .ss_size = STACK_OWN};
    larger.uc_link = &caller;
    uintptr_t pointer = (uintptr_t)call;
    makecontext(&larger, (void (*)(void))enter, 2, (unsigned)pointer, (unsigned)(pointer >> 32));
    return swapcontext(&caller, &larger) == 0;
}

int run_with_enough_stack(int (*run)(int count, char **words), int count, char **words)
{
    struct call call = {.run = run, .count = count, .words = words};
    pthread_attr_t attributes;
    if (!has_small_stack())
        return run(count, words);
    if (pthread_attr_init(&attributes) == 0) {
        if (pthread_attr_setstacksize(&attributes, STACK_OWN) == 0)
            pthread_setattr_default_np(&attributes);
        pthread_attr_destroy(&attributes);
    }
    void *stack = mmap(NULL, STACK_OWN, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK | MAP_NORESERVE, -1, 0);
    return stack != MAP_FAILED && run_on(stack, &call) ? call.code : run(count, words);
}
