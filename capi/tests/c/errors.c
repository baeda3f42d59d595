/* Every status that a caller can meet, and every mistake that a call can detect: an error, never a
   crash. */
#include "check.h"
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>

static const char *const key = "run=a,variable=t,step=6";
static const uint64_t shape[2] = {2, 3}, start[2] = {0, 0};
static const double grid[2][3] = {{1, 2, 3}, {4, 5, 6}};

static void mistaken_handles(fs_store *store)
{
    uint64_t nbytes;
    fs_list *list;
    fs_key *builder = fs_key_new();
    FAILS(fs_flush(NULL), FS_INVALID, "fs_store handle is null");
    FAILS(fs_flush((fs_store *)builder), FS_INVALID, "not an open fs_store");
    FAILS(fs_flush((fs_store *)&nbytes), FS_INVALID, "not an open fs_store");
    FAILS(fs_flush((fs_store *)(void *)1), FS_INVALID, "not an open fs_store");
    FAILS(fs_size((fs_store *)builder, key, &nbytes), FS_INVALID, "not an open fs_store");
    FAILS(fs_list_open(NULL, NULL, &list), FS_INVALID, "fs_store handle is null");
    CHECK(!list);
    const char *text;
    FAILS(fs_list_next(NULL, &text, &nbytes), FS_INVALID, "fs_list handle is null");
    FAILS(fs_list_next((fs_list *)store, &text, &nbytes), FS_INVALID, "not an open fs_list");
    FAILS(fs_list_close((fs_list *)store), FS_INVALID, "not an open fs_list");
    FAILS(fs_key_set(NULL, "run", "a"), FS_INVALID, "fs_key handle is null");
    FAILS(fs_key_set((fs_key *)store, "run", "a"), FS_INVALID, "not an open fs_key");
    FAILS(fs_key_set(builder, NULL, "a"), FS_INVALID, "keyword is null");
    FAILS(fs_key_set(builder, "", "a"), FS_INVALID, "keyword is empty");
    FAILS(fs_key_set(builder, "run", NULL), FS_INVALID, "value is null");
    FAILS(fs_key_set_int(builder, "\xff", 1), FS_INVALID, "UTF-8");
    OK(fs_key_free(builder));
    FAILS(fs_key_free(builder), FS_INVALID, "not an open fs_key"); /* freed twice */
    CHECK(!fs_key_text(builder));
    FAILS(fs_archive_bytes(store, fs_key_text(builder), "x", 1), FS_INVALID, "key is null");
}

static void wrong_arguments(fs_store *store)
{
    uint64_t nbytes = 1;
    char buffer[64];
    fs_store *other = store;
    FAILS(fs_open(NULL, "a", NULL, &other), FS_INVALID, "url is null");
    CHECK(!other);
    FAILS(fs_open("memory:", "a", NULL, NULL), FS_INVALID, "null");
    FAILS(fs_open("memory:", "w", NULL, &other), FS_INVALID, "'w'");
    CHECK(!strcmp(fs_error_code(), FS_CODE_OPTION) && !fs_error_is_retryable());
    FAILS(fs_open("\xc3(", "a", NULL, &other), FS_INVALID, "UTF-8");
    FAILS(fs_archive_bytes(store, NULL, "x", 1), FS_INVALID, "key is null");
    FAILS(fs_archive_bytes(store, "run=\xff", "x", 1), FS_INVALID, "UTF-8");
    FAILS(fs_archive_bytes(store, "run=a,step", "x", 1), FS_INVALID, "run=a,step");
    FAILS(fs_archive_bytes(store, "run=a/b,variable=t,step=6", "x", 1), FS_INVALID, "run");
    FAILS(fs_archive_bytes(store, "run=a,variable=t,step=soon", "x", 1), FS_INVALID, "step");
    FAILS(fs_archive_bytes(store, key, NULL, 1), FS_INVALID, "data is null");
    FAILS(fs_archive_bytes(store, key, "x", (size_t)-1), FS_INVALID, "memory");
    FAILS(fs_archive_array(store, key, NULL, 2, shape, grid), FS_INVALID, "dtype is null");
    FAILS(fs_archive_array(store, key, "f7", 2, shape, grid), FS_INVALID, "f7");
    CHECK(!strcmp(fs_error_code(), FS_CODE_DTYPE));
    FAILS(fs_archive_array(store, key, "f8", 2, NULL, grid), FS_INVALID, "shape is null");
    FAILS(fs_archive_array(store, key, "f8", 2, shape, NULL), FS_INVALID, "data is null");
    FAILS(fs_archive_array(store, key, "f8", -1, shape, grid), FS_INVALID, "-1 dimensions");
    FAILS(fs_archive_array(store, key, "f8", FS_MAX_RANK + 1, shape, grid), FS_INVALID, "33 dimensions");
    const uint64_t huge[2] = {UINT64_MAX, UINT64_MAX};
    FAILS(fs_archive_array(store, key, "f8", 2, huge, grid), FS_INVALID, "");
    FAILS(fs_archive_piece(store, key, "f8", 2, shape, NULL, shape, grid), FS_INVALID, "start is null");
    const uint64_t beyond[2] = {1, 0};
    FAILS(fs_archive_piece(store, key, "f8", 2, shape, beyond, shape, grid), FS_INVALID, "");
    FAILS(fs_archive_piece(store, key, "f8", 2, shape, huge, shape, grid), FS_INVALID, "");
    FAILS(fs_create_field(store, key, "f8", 2, NULL, NULL, NULL), FS_INVALID, "shape is null");

    OK(fs_archive_array(store, key, "f8", 2, shape, grid));
    OK(fs_flush(store));
    FAILS(fs_size(store, key, NULL), FS_INVALID, "nbytes is null");
    FAILS(fs_info(store, key, NULL), FS_INVALID, "null");
    FAILS(fs_get(store, key, buffer, sizeof buffer, NULL), FS_INVALID, "nbytes is null");
    FAILS(fs_get(store, key, NULL, 64, &nbytes), FS_INVALID, "buffer is null");
    FAILS(fs_get(store, key, buffer, 47, &nbytes), FS_INVALID, "needs 48 bytes");
    CHECK(nbytes == 48); /* the size that the buffer needs */
    FAILS(fs_get_box(store, key, 2, start, shape, buffer, 0, &nbytes), FS_INVALID, "needs 48 bytes");
    CHECK(nbytes == 48);
    FAILS(fs_get_box(store, key, 2, beyond, shape, buffer, 64, &nbytes), FS_INVALID, "{run=a}{variable=t}{step=6}");
    FAILS(fs_get_box(store, key, 1, start, shape, buffer, 64, &nbytes), FS_INVALID, "");
    FAILS(fs_get_array(store, key, "i8", 2, shape, buffer), FS_INVALID, "not");
    FAILS(fs_get_array(store, key, "f8", 2, huge, buffer), FS_INVALID, "shape");
    FAILS(fs_get_piece(store, key, "f4", 2, start, shape, buffer), FS_INVALID, "not");
    FAILS(fs_get_piece(store, key, "f8", 2, start, shape, NULL), FS_INVALID, "buffer is null");
    FAILS(fs_list_open(store, "run=", &(fs_list *){0}), FS_INVALID, "run");
    FAILS(fs_list_open(store, NULL, NULL), FS_INVALID, "null");

    OK(fs_archive_bytes(store, "run=a,variable=raw,step=6", "x", 1));
    OK(fs_flush(store));
    FAILS(fs_get_piece(store, "run=a,variable=raw,step=6", "u1", 0, NULL, NULL, buffer), FS_INVALID, "opaque");
}

/* Changes bytes of a payload, found by its text, without the store's knowledge. */
static void damage(const char *folder)
{
    char command[1000];
    snprintf(command, sizeof command, "grep -rlaF DAMAGE-ME-HERE '%s' | xargs sed -i s/DAMAGE-ME-HERE/damage-me-here/",
             folder);
    CHECK(system(command) == 0);
}

int main(int argc, char **argv)
{
    CHECK(argc == 2 && fs_error_kind() == FS_OK && fs_error_message()[0] == 0 && fs_error_hint()[0] == 0);
    fs_store *store, *other;
    uint64_t nbytes;
    char buffer[64], path[500];

    FAILS(fs_open(argv[1], "r", NULL, &other), FS_NOT_FOUND, argv[1]);
    OK(fs_open(argv[1], "x", NULL, &store));
    mistaken_handles(store);
    wrong_arguments(store);

    FAILS(fs_get(store, "run=nobody,variable=t,step=6", buffer, sizeof buffer, &nbytes), FS_NOT_FOUND, "nobody");
    CHECK(nbytes == 0);
    FAILS(fs_open(argv[1], "x", NULL, &other), FS_CONFLICT, argv[1]);
    FAILS(fs_open(argv[1], "a", "mars", &other), FS_CONFLICT, "schema");

    OK(fs_open(argv[1], "r", NULL, &other));
    FAILS(fs_archive_bytes(other, key, "x", 1), FS_DENIED, "");
    OK(fs_close(other));
    FAILS(fs_close(other), FS_INVALID, "not an open fs_store"); /* closed twice */
    FAILS(fs_get(other, key, buffer, sizeof buffer, &nbytes), FS_INVALID, "not an open fs_store");

    OK(fs_archive_bytes(store, "run=a,variable=damaged,step=6", "DAMAGE-ME-HERE", 14));
    OK(fs_close(store));
    damage(argv[1]);
    OK(fs_open(argv[1], "a", NULL, &store));
    FAILS(fs_get(store, "run=a,variable=damaged,step=6", buffer, sizeof buffer, &nbytes), FS_CORRUPT, "");
    OK(fs_close(store));

    /* A full medium: the limit keeps files of this process from growing. */
    snprintf(path, sizeof path, "%s-full", argv[1]);
    OK(fs_open(path, "a", NULL, &store));
    OK(fs_archive_bytes(store, key, "x", 1));
    OK(fs_flush(store));
    signal(SIGXFSZ, SIG_IGN);
    const struct rlimit full = {0, RLIM_INFINITY};
    CHECK(setrlimit(RLIMIT_FSIZE, &full) == 0);
    int status = fs_archive_bytes(store, key, "y", 1);
    if (status == FS_OK)
        status = fs_flush(store);
    CHECK(status == FS_UNAVAILABLE && fs_error_kind() == FS_UNAVAILABLE && fs_error_message()[0]);
    fs_close(store);

    /* A binding may make its own errors; this is also the way for a program to see the last kind,
       Internal. */
    FAILS(fs_fail(FS_INTERNAL, "a message", "a hint"), FS_INTERNAL, "a message");
    CHECK(strcmp(fs_error_hint(), "a hint") == 0 && strcmp(fs_status_name(FS_INTERNAL), "Internal") == 0);
    FAILS(fs_fail(FS_DENIED, "no hint", NULL), FS_DENIED, "no hint");
    CHECK(fs_error_hint()[0] == 0);
    FAILS(fs_fail(FS_OK, "no error", NULL), FS_INVALID, "0 is not the status");
    FAILS(fs_fail(FS_DENIED, NULL, NULL), FS_INVALID, "message is null");
    CHECK(fs_status_name(8)[0] == 0 && strcmp(fs_status_name(FS_NOT_FOUND), "NotFound") == 0);
    return 0;
}
