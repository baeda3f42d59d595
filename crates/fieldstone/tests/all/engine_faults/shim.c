/* Faults for calls that bypass our Disk seam: preloaded in front of the C library, it counts the changing
 * calls (open for writing, write, truncate, sync, unlink) on files whose path holds FAULT_PATH, and at the
 * FAULT_AT-th of them acts by FAULT_KIND:
 *
 *   count    no fault; the number of calls is written to the file FAULT_COUNT at the end
 *   kill     the process is killed before the call, or in the middle of a write (every other one)
 *   fail     the call fails with EIO, and all later ones too
 *   full     writes fail with ENOSPC from here on
 *   cut      the power fails: FAULT_IMAGE gets the files as a disk may hold them then, and the process is
 *            killed. Synced data are there; of each later write a seeded choice is there, absent, or
 *            there in part (sectors of 512 bytes); an unlinked file may be back.
 *
 * FAULT_SEED seeds the choice.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILES 64
#define FDS 4096

struct change { off_t offset; size_t length; char *bytes; struct change *next; }; /* bytes 0: truncate */

struct file {
    char path[512];
    char *durable; /* content at the last sync */
    size_t length;
    struct change *first, *last; /* since then */
    int unlinked;
};

static struct file files[FILES];
static int file_count;
static signed char of_fd[FDS]; /* index into files + 1; 0: not ours */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long calls, at = -1;
static const char *part, *kind = "count", *image, *count_file;
static uint64_t seed = 1;
static int broken;

static ssize_t (*real_write)(int, const void *, size_t);
static ssize_t (*real_pwrite)(int, const void *, size_t, off_t);
static int (*real_open)(const char *, int, ...);
static int (*real_close)(int), (*real_fsync)(int), (*real_fdatasync)(int), (*real_ftruncate)(int, off_t),
    (*real_unlink)(const char *);

static void setup(void) {
    if (real_write) return;
    real_open = dlsym(RTLD_NEXT, "open");
    real_close = dlsym(RTLD_NEXT, "close");
    real_pwrite = dlsym(RTLD_NEXT, "pwrite");
    real_fsync = dlsym(RTLD_NEXT, "fsync");
    real_fdatasync = dlsym(RTLD_NEXT, "fdatasync");
    real_ftruncate = dlsym(RTLD_NEXT, "ftruncate");
    real_unlink = dlsym(RTLD_NEXT, "unlink");
    real_write = dlsym(RTLD_NEXT, "write");
    part = getenv("FAULT_PATH");
    if (getenv("FAULT_KIND")) kind = getenv("FAULT_KIND");
    if (getenv("FAULT_AT")) at = atol(getenv("FAULT_AT"));
    if (getenv("FAULT_SEED")) seed = strtoull(getenv("FAULT_SEED"), 0, 10) * 2654435761u + 1;
    image = getenv("FAULT_IMAGE");
    count_file = getenv("FAULT_COUNT");
}

static uint64_t draw(void) {
    seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
    return seed * 0x2545F4914F6CDD1Dull >> 16;
}

/* The shared-memory file holds nothing that survives; SQLite makes it again. */
static int ours(const char *path) {
    size_t n = strlen(path);
    return part && strstr(path, part) && n < sizeof files[0].path && !(n > 4 && !strcmp(path + n - 4, "-shm"));
}

static void load(struct file *f) {
    struct stat s;
    int fd = real_open(f->path, O_RDONLY);
    free(f->durable);
    f->durable = 0, f->length = 0;
    if (fd < 0) return;
    if (!fstat(fd, &s) && s.st_size > 0 && (f->durable = malloc((size_t)s.st_size))) {
        ssize_t n = pread(fd, f->durable, (size_t)s.st_size, 0);
        f->length = n > 0 ? (size_t)n : 0;
    }
    real_close(fd);
}

static void forget(struct file *f) {
    while (f->first) {
        struct change *next = f->first->next;
        free(f->first->bytes);
        free(f->first);
        f->first = next;
    }
    f->last = 0;
}

static struct file *named(const char *path, int fresh) {
    for (int i = 0; i < file_count; i++)
        if (!strcmp(files[i].path, path)) return &files[i];
    if (!fresh || file_count == FILES) return 0;
    struct file *f = &files[file_count++];
    strcpy(f->path, path);
    load(f);
    return f;
}

static struct file *of(int fd) { return fd >= 0 && fd < FDS && of_fd[fd] ? &files[of_fd[fd] - 1] : 0; }

static void note(struct file *f, off_t offset, const void *bytes, size_t length) {
    struct change *c = calloc(1, sizeof *c);
    if (!c) return;
    c->offset = offset, c->length = length;
    if (bytes && (c->bytes = malloc(length ? length : 1))) memcpy(c->bytes, bytes, length);
    if (f->last) f->last->next = c; else f->first = c;
    f->last = c;
}

static void grow(char **to, size_t *length, size_t end) {
    if (end <= *length) return;
    char *bigger = realloc(*to, end);
    if (!bigger) return;
    memset(bigger + *length, 0, end - *length);
    *to = bigger, *length = end;
}

static void put(char **to, size_t *length, off_t offset, const char *bytes, size_t n) {
    grow(to, length, (size_t)offset + n);
    if (*length >= (size_t)offset + n) memcpy(*to + offset, bytes, n);
}

static void cut(void) {
    mkdir(image, 0755);
    for (int i = 0; i < file_count; i++) {
        struct file *f = &files[i];
        if (f->unlinked && draw() % 2) continue;
        char *now = malloc(f->length ? f->length : 1);
        size_t length = f->length;
        if (!now) continue;
        if (f->length) memcpy(now, f->durable, f->length);
        for (struct change *c = f->first; c; c = c->next) {
            uint64_t chance = draw() % 4;
            if (chance == 0) continue;
            if (!c->bytes) {
                if ((size_t)c->offset < length) length = (size_t)c->offset;
                continue;
            }
            if (chance > 1) put(&now, &length, c->offset, c->bytes, c->length);
            else
                for (size_t from = 0; from < c->length; from += 512)
                    if (draw() % 2)
                        put(&now, &length, c->offset + (off_t)from, c->bytes + from,
                            c->length - from < 512 ? c->length - from : 512);
        }
        char to[4096];
        const char *slash = strrchr(f->path, '/');
        if (snprintf(to, sizeof to, "%s/%s", image, slash ? slash + 1 : f->path) >= (int)sizeof to) _exit(3);
        int fd = real_open(to, O_WRONLY | O_CREAT | O_TRUNC, 0644);
        if (fd >= 0) {
            if (length && real_write(fd, now, length) < 0) _exit(3);
            real_close(fd);
        }
        free(now);
    }
}

/* Counts a call; 0: go on, else the errno to fail with. Called with the lock held. */
static int step(int writes) {
    long number = ++calls;
    if (broken && (writes || strcmp(kind, "full"))) return broken;
    if (number != at) return 0;
    if (!strcmp(kind, "kill")) {
        if (!writes || at % 2) kill(getpid(), SIGKILL);
    } else if (!strcmp(kind, "cut")) {
        cut();
        kill(getpid(), SIGKILL);
    } else if (!strcmp(kind, "fail")) return broken = EIO;
    else if (!strcmp(kind, "full")) { broken = ENOSPC; return writes ? ENOSPC : 0; }
    return 0;
}

static int dies_within(void) { return calls == at && !strcmp(kind, "kill"); }

static int opened(const char *path, int flags, mode_t mode) {
    setup();
    if (!ours(path) || !(flags & (O_WRONLY | O_RDWR))) return real_open(path, flags, mode);
    pthread_mutex_lock(&lock);
    struct file *f = named(path, 1);
    int error = f ? step(0) : EMFILE, fd = -1;
    if (error) errno = error;
    else if ((fd = real_open(path, flags, mode)) >= 0 && fd < FDS) {
        of_fd[fd] = (signed char)(f - files + 1);
        if (f->unlinked) f->unlinked = 0, forget(f), free(f->durable), f->durable = 0, f->length = 0;
    }
    pthread_mutex_unlock(&lock);
    return fd;
}

static mode_t mode_of(int flags, va_list rest) { return flags & O_CREAT ? (mode_t)va_arg(rest, int) : 0; }

int open(const char *path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    mode_t mode = mode_of(flags, rest);
    va_end(rest);
    return opened(path, flags, mode);
}

int open64(const char *path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    mode_t mode = mode_of(flags, rest);
    va_end(rest);
    return opened(path, flags, mode);
}

int close(int fd) {
    setup();
    pthread_mutex_lock(&lock);
    if (of(fd)) of_fd[fd] = 0;
    pthread_mutex_unlock(&lock);
    return real_close(fd);
}

static ssize_t wrote(int fd, const void *bytes, size_t n, off_t offset, int positioned) {
    pthread_mutex_lock(&lock);
    int error = step(1);
    if (error) {
        pthread_mutex_unlock(&lock);
        errno = error;
        return -1;
    }
    if (!positioned) offset = lseek(fd, 0, SEEK_CUR);
    note(of(fd), offset, bytes, n);
    size_t length = dies_within() ? n / 2 : n;
    ssize_t done = positioned ? real_pwrite(fd, bytes, length, offset) : real_write(fd, bytes, length);
    if (dies_within()) kill(getpid(), SIGKILL);
    pthread_mutex_unlock(&lock);
    return done;
}

ssize_t write(int fd, const void *bytes, size_t n) {
    setup();
    return of(fd) ? wrote(fd, bytes, n, 0, 0) : real_write(fd, bytes, n);
}

ssize_t pwrite(int fd, const void *bytes, size_t n, off_t offset) {
    setup();
    return of(fd) ? wrote(fd, bytes, n, offset, 1) : real_pwrite(fd, bytes, n, offset);
}

ssize_t pwrite64(int fd, const void *bytes, size_t n, off_t offset) { return pwrite(fd, bytes, n, offset); }

int ftruncate(int fd, off_t length) {
    setup();
    if (!of(fd)) return real_ftruncate(fd, length);
    pthread_mutex_lock(&lock);
    int error = step(0);
    if (!error) note(of(fd), length, 0, 0);
    pthread_mutex_unlock(&lock);
    if (error) return errno = error, -1;
    return real_ftruncate(fd, length);
}

int ftruncate64(int fd, off_t length) { return ftruncate(fd, length); }

static int synced(int fd, int (*real)(int)) {
    if (!of(fd)) return real(fd);
    pthread_mutex_lock(&lock);
    int error = step(0), done = -1;
    if (error) errno = error;
    else if (!(done = real(fd))) forget(of(fd)), load(of(fd));
    pthread_mutex_unlock(&lock);
    return done;
}

int fsync(int fd) { setup(); return synced(fd, real_fsync); }
int fdatasync(int fd) { setup(); return synced(fd, real_fdatasync); }

int unlink(const char *path) {
    setup();
    if (!ours(path)) return real_unlink(path);
    pthread_mutex_lock(&lock);
    struct file *f = named(path, 0);
    int error = step(0);
    if (!error && f) f->unlinked = 1;
    pthread_mutex_unlock(&lock);
    if (error) return errno = error, -1;
    return real_unlink(path);
}

__attribute__((destructor)) static void ended(void) {
    setup();
    int fd = count_file ? real_open(count_file, O_WRONLY | O_CREAT | O_TRUNC, 0644) : -1;
    char text[32];
    if (fd >= 0 && real_write(fd, text, (size_t)snprintf(text, sizeof text, "%ld\n", calls)) > 0) real_close(fd);
}
