/* Macros for the test programs: a failed check names its line and Fieldstone's last error. */
#include <fieldstone.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                                                  \
    do {                                                                                                  \
        if (!(condition)) {                                                                               \
            fprintf(stderr, "%s:%d: %s\nlast error: %s (%s)\n", __FILE__, __LINE__, #condition,           \
                    fs_error_message(), fs_error_hint());                                                 \
            exit(1);                                                                                      \
        }                                                                                                 \
    } while (0)

/* The call succeeds. */
#define OK(call) CHECK((call) == FS_OK)

/* The call fails with this status, sets the thread's last error, and its message holds these words. */
#define FAILS(call, status, words)                                                                        \
    do {                                                                                                  \
        CHECK((call) == (status));                                                                        \
        CHECK(fs_error_kind() == (status));                                                               \
        CHECK(strstr(fs_error_message(), (words)));                                                       \
    } while (0)
