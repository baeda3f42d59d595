/* One handle, many threads: each archives and reads its own fields; errors stay with their thread. */
#include "check.h"
#include <pthread.h>

enum { THREADS = 8, STEPS = 25 };
static fs_store *store;

static void *work(void *argument)
{
    const int number = *(const int *)argument;
    char key[80], wrong[80];
    snprintf(wrong, sizeof wrong, "run=none,variable=thread-%d,step=0", number);
    for (int step = 0; step < STEPS; step++) {
        const uint64_t shape[1] = {1000};
        int32_t out[1000], back[1000];
        for (int i = 0; i < 1000; i++)
            out[i] = number * 1000000 + step * 1000 + i;
        snprintf(key, sizeof key, "run=threads,variable=v%d,step=%d", number, step);
        OK(fs_archive_array(store, key, "i4", 1, shape, out));
        OK(fs_flush(store));
        OK(fs_get_array(store, key, "i4", 1, shape, back));
        CHECK(memcmp(out, back, sizeof out) == 0);
        uint64_t nbytes;
        FAILS(fs_size(store, wrong, &nbytes), FS_NOT_FOUND, strstr(wrong, "thread-"));
    }
    return NULL;
}

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    OK(fs_open(argv[1], "a", NULL, &store));
    pthread_t threads[THREADS];
    int numbers[THREADS];
    for (int i = 0; i < THREADS; i++) {
        numbers[i] = i;
        CHECK(pthread_create(&threads[i], NULL, work, &numbers[i]) == 0);
    }
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(fs_error_kind() == FS_OK); /* the failures were in other threads */
    OK(fs_close(store));
    return 0;
}
