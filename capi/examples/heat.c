/*
 * A cooling plate: the heat equation on a grid. The program archives each step in pieces and
 * flushes it.
 *
 *   heat [STORE]    (the folder heat.store by default)
 *
 * The grid is cut into strips of rows as it would be between processes: each strip is a piece of
 * the same field, and separate processes could archive the strips without any communication.
 */
#include <fieldstone.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NX = 96, NY = 64, STRIPS = 4, STEPS = 20 };

static double temperature[NY][NX], before[NY][NX];

/* Stops with the message of a failed call. */
static void check(int status)
{
    if (status != FS_OK) {
        fprintf(stderr, "heat: %s: %s\n", fs_status_name(status), fs_error_message());
        if (*fs_error_hint())
            fprintf(stderr, "hint: %s\n", fs_error_hint());
        exit(status);
    }
}

static void begin(void)
{
    for (int y = 8; y < 16; y++)
        for (int x = 20; x < 44; x++)
            temperature[y][x] = 100.0;
}

static void advance(void)
{
    memcpy(before, temperature, sizeof before);
    for (int y = 1; y < NY - 1; y++)
        for (int x = 1; x < NX - 1; x++)
            temperature[y][x] = before[y][x] + 0.2 * (before[y][x - 1] + before[y][x + 1] + before[y - 1][x] +
                                                      before[y + 1][x] - 4.0 * before[y][x]);
}

static void archive(fs_store *store, int step)
{
    const uint64_t shape[2] = {NY, NX}, count[2] = {NY / STRIPS, NX};
    fs_key *key = fs_key_new();
    check(fs_key_set(key, "run", "heat-c"));
    check(fs_key_set(key, "variable", "temperature"));
    check(fs_key_set_int(key, "step", step));
    for (int strip = 0; strip < STRIPS; strip++) {
        const uint64_t start[2] = {strip * count[0], 0};
        check(fs_archive_piece(store, fs_key_text(key), "f8", 2, shape, start, count, temperature[start[0]]));
    }
    check(fs_key_free(key));
    check(fs_flush(store)); /* from here on all readers see the complete step */
}

int main(int argc, char **argv)
{
    fs_store *store;
    check(fs_open(argc > 1 ? argv[1] : "heat.store", "a", NULL, &store));

    begin();
    archive(store, 0);
    for (int step = 1; step <= STEPS; step++) {
        advance();
        archive(store, step);
    }

    /* List all fields. */
    fs_list *list;
    const char *key;
    uint64_t nbytes, fields = 0, bytes = 0;
    check(fs_list_open(store, "run=heat-c,variable=temperature", &list));
    for (;;) {
        check(fs_list_next(list, &key, &nbytes));
        if (!key)
            break;
        fields++;
        bytes += nbytes;
    }
    check(fs_list_close(list));
    printf("%llu fields, %llu bytes\n", (unsigned long long)fields, (unsigned long long)bytes);

    /* Read a box of 2 rows and 4 columns of the last step; only overlapping pieces are read. */
    const uint64_t start[2] = {12, 30}, count[2] = {2, 4};
    double box[2][4];
    check(fs_get_piece(store, "run=heat-c,variable=temperature,step=20", "f8", 2, start, count, box));
    for (int y = 0; y < 2; y++)
        printf("%8.3f %8.3f %8.3f %8.3f\n", box[y][0], box[y][1], box[y][2], box[y][3]);

    check(fs_close(store));
    return 0;
}
