/* SPDX-License-Identifier: Apache-2.0
 *
 * How a function says that it failed.
 *
 * Every function that can fail returns an enum status and takes a struct error last. The callee
 * fills the error once, where the cause is known (FAIL); callers pass the status on (TRY) and may
 * put what they were doing in front of the message (error_context). Libraries never print or exit.
 */
#ifndef BASE_ERROR_H
#define BASE_ERROR_H

enum status {
    STATUS_OK = 0,
    STATUS_UNSUPPORTED, /* a feature or shape is missing: skip the point, keep the reason */
    STATUS_FAILED,      /* the environment or the input is at fault */
    STATUS_INVALID,     /* the numbers are wrong: stored, never ranked */
    STATUS_NO_MEMORY,
    STATUS_LOST, /* the device is gone for this process: whatever else it is asked for will fail */
};

struct error {
    enum status code;
    const char *file; /* where it was raised, static string */
    int line;
    char message[512];
};

/* Fills err (which may be NULL) and returns code. Use FAIL, which adds file and line. */
__attribute__((format(printf, 5, 6))) enum status
error_set(struct error *err, enum status code, const char *file, int line, const char *format, ...);

/* Puts "text: " before the message and returns the code that err holds. */
__attribute__((format(printf, 2, 3))) enum status error_context(struct error *err,
                                                                const char *format, ...);

/* The code again, in a form that a static analyser sees through: a failure is never OK. */
static inline enum status fail_code(enum status set, enum status code)
{
    (void)set;
    return code;
}

#define FAIL(err, code, ...)  fail_code(error_set(err, code, __FILE__, __LINE__, __VA_ARGS__), code)
#define FAIL_NO_MEMORY(err)   FAIL(err, STATUS_NO_MEMORY, "out of memory")
#define UNSUPPORTED(err, ...) FAIL(err, STATUS_UNSUPPORTED, __VA_ARGS__)

#define TRY(call)                                                                                  \
    do {                                                                                           \
        enum status try_status_ = (call);                                                          \
        if (try_status_ != STATUS_OK)                                                              \
            return try_status_;                                                                    \
    } while (0)

#endif
