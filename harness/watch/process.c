/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "harness/watch/process.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <ucontext.h>
#include <unistd.h>

enum { STACK_LEAST = 1 << 20, STACK_OWN = 8 << 20 };

/* Part of the sanitizers' libraries, NULL without them: the check for leaks that exit() would make.
 */
extern void __lsan_do_leak_check(void) __attribute__((weak));

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

/* The same thread on another stack: its number, mask and counters stay what they are. */
static bool run_on(void *stack, struct call *call)
{
    ucontext_t here, there;
    if (getcontext(&there) != 0)
        return false;
    there.uc_stack = (stack_t){.ss_sp = stack, .ss_size = STACK_OWN};
    there.uc_link = &here;
    uintptr_t pointer = (uintptr_t)call;
    makecontext(&there, (void (*)(void))enter, 2, (unsigned)pointer, (unsigned)(pointer >> 32));
    return swapcontext(&here, &there) == 0;
}

int process_run(int (*run)(int count, char **words), int count, char **words)
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

_Noreturn void process_end(int code)
{
    fflush(stdout);
    fflush(stderr);
    if (__lsan_do_leak_check)
        __lsan_do_leak_check();
    _exit(code);
}
