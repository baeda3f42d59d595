/* Simulates a slow metadata server: an `LD_PRELOAD` of this library makes every opening of a file whose path has
 * "/arrays/" take 10 ms longer, in any process. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>

static void wait_for(const char *path)
{
    const struct timespec delay = {0, 10 * 1000 * 1000};
    if (path && strstr(path, "/arrays/"))
        nanosleep(&delay, NULL);
}

#define MODE(flags, last)                                                                                                  \
    mode_t mode = 0;                                                                                                       \
    if ((flags) & (O_CREAT | O_TMPFILE)) {                                                                                 \
        va_list more;                                                                                                      \
        va_start(more, last);                                                                                              \
        mode = va_arg(more, mode_t);                                                                                       \
        va_end(more);                                                                                                      \
    }

#define OPEN(name)                                                                                                         \
    int name(const char *path, int flags, ...)                                                                             \
    {                                                                                                                      \
        static int (*next)(const char *, int, ...);                                                                        \
        MODE(flags, flags)                                                                                                 \
        if (!next)                                                                                                         \
            next = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, #name);                                               \
        wait_for(path);                                                                                                    \
        return next(path, flags, mode);                                                                                    \
    }

#define OPENAT(name)                                                                                                       \
    int name(int folder, const char *path, int flags, ...)                                                                 \
    {                                                                                                                      \
        static int (*next)(int, const char *, int, ...);                                                                   \
        MODE(flags, flags)                                                                                                 \
        if (!next)                                                                                                         \
            next = (int (*)(int, const char *, int, ...))dlsym(RTLD_NEXT, #name);                                          \
        wait_for(path);                                                                                                    \
        return next(folder, path, flags, mode);                                                                            \
    }

OPEN(open)
OPEN(open64)
OPENAT(openat)
OPENAT(openat64)
