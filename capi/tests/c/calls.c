/* Every call once, with correct arguments: bytes, arrays, pieces, created fields, keys, lists. */
#include "check.h"

static void bytes_and_keys(fs_store *store)
{
    fs_key *key = fs_key_new();
    CHECK(key && strcmp(fs_key_text(key), "") == 0);
    OK(fs_key_set(key, "run", "first"));
    OK(fs_key_set(key, "run", "a/to/b, \"c\" = \xc3\xa4*")); /* replaces, and is one value as it is */
    OK(fs_key_set(key, "variable", "to"));
    OK(fs_key_set_int(key, "step", 6));
    OK(fs_archive_bytes(store, fs_key_text(key), "hello", 5));
    OK(fs_key_set_int(key, "step", 7));
    OK(fs_archive_bytes(store, fs_key_text(key), NULL, 0));
    OK(fs_flush(store));

    uint64_t nbytes = 99;
    char buffer[16] = {0};
    OK(fs_get(store, fs_key_text(key), NULL, 0, &nbytes));
    CHECK(nbytes == 0);
    OK(fs_key_set_int(key, "step", 6));
    OK(fs_size(store, fs_key_text(key), &nbytes));
    CHECK(nbytes == 5);
    OK(fs_get(store, fs_key_text(key), buffer, sizeof buffer, &nbytes));
    CHECK(nbytes == 5 && memcmp(buffer, "hello\0\0", 7) == 0);

    fs_field_info info;
    OK(fs_info(store, fs_key_text(key), &info));
    CHECK(info.nbytes == 5 && info.ndim == -1 && info.complete == 1 && info.dtype[0] == 0);
    OK(fs_key_free(key));
    OK(fs_key_free(NULL));
}

static void whole_arrays(fs_store *store)
{
    const int32_t grid[2][3] = {{1, 2, 3}, {4, 5, 6}};
    const uint64_t shape[2] = {2, 3};
    const char *key = "run=arrays,variable=grid,step=0";
    OK(fs_archive_array(store, key, "i4", 2, shape, grid));
    const double scalar = 2.5;
    OK(fs_archive_array(store, "run=arrays,variable=scalar,step=0", "float64", 0, NULL, &scalar));
    const uint64_t none[2] = {0, 3};
    OK(fs_archive_array(store, "run=arrays,variable=empty,step=0", "f4", 2, none, NULL));
    OK(fs_flush(store));

    fs_field_info info;
    OK(fs_info(store, key, &info));
    CHECK(info.nbytes == 24 && info.ndim == 2 && info.shape[0] == 2 && info.shape[1] == 3 && info.shape[2] == 0);
    CHECK(strcmp(info.dtype + 1, "i4") == 0);

    int32_t all[2][3] = {{0}}, column[2] = {0};
    OK(fs_get_array(store, key, "i4", 2, shape, all));
    CHECK(memcmp(all, grid, sizeof grid) == 0);
    const uint64_t start[2] = {0, 1}, count[2] = {2, 1};
    OK(fs_get_piece(store, key, "i4", 2, start, count, column));
    CHECK(column[0] == 2 && column[1] == 5);
    uint64_t nbytes;
    memset(column, 0, sizeof column);
    OK(fs_get_box(store, key, 2, start, count, column, sizeof column, &nbytes));
    CHECK(nbytes == 8 && column[0] == 2 && column[1] == 5);

    double value = 0;
    OK(fs_get_array(store, "run=arrays,variable=scalar,step=0", "f8", 0, NULL, &value));
    CHECK(value == 2.5);
    OK(fs_get_array(store, "run=arrays,variable=empty,step=0", "f4", 2, none, NULL));
}

static void pieces_and_generations(fs_store *store)
{
    const char *key = "run=arrays,variable=pieces,step=0";
    const uint64_t shape[1] = {4}, left[1] = {0}, right[1] = {2}, count[1] = {2};
    const float one[2] = {1, 2}, two[2] = {3, 4};
    OK(fs_archive_piece(store, key, "f4", 1, shape, left, count, one));
    OK(fs_flush(store));
    fs_field_info info;
    OK(fs_info(store, key, &info));
    CHECK(info.complete == 0 && info.nbytes == 16);
    OK(fs_archive_piece(store, key, "f4", 1, shape, right, count, two));
    OK(fs_flush(store));
    OK(fs_info(store, key, &info));
    CHECK(info.complete == 1);
    float all[4];
    OK(fs_get_array(store, key, "f4", 1, shape, all));
    CHECK(all[0] == 1 && all[3] == 4);

    /* A created field hides the earlier one, and its unwritten elements are missing. */
    const float fill = -1;
    const uint64_t chunks[1] = {2};
    OK(fs_create_field(store, key, "f4", 1, shape, &fill, chunks));
    OK(fs_archive_piece(store, key, "f4", 1, shape, left, count, two));
    OK(fs_flush(store));
    OK(fs_info(store, key, &info));
    CHECK(info.complete == 0);
    FAILS(fs_get_array(store, key, "f4", 1, shape, all), FS_NOT_FOUND, "2:4");
    OK(fs_get_piece(store, key, "f4", 1, left, count, all));
    CHECK(all[0] == 3 && all[1] == 4);
}

static void lists(fs_store *store)
{
    fs_list *list;
    const char *key;
    uint64_t nbytes, sum = 0;
    int fields = 0;
    OK(fs_list_open(store, NULL, &list));
    for (;;) {
        uint64_t again;
        OK(fs_list_next(list, &key, &nbytes));
        if (!key)
            break;
        OK(fs_size(store, key, &again)); /* the listed key names its field */
        CHECK(again == nbytes);
        sum += nbytes;
        fields++;
    }
    OK(fs_list_next(list, &key, &nbytes)); /* the end stays the end */
    CHECK(!key);
    OK(fs_list_close(list));
    CHECK(fields == 6 && sum == 5 + 0 + 24 + 8 + 0 + 16);

    OK(fs_list_open(store, "run=arrays,variable=grid/scalar", &list));
    OK(fs_list_next(list, &key, &nbytes));
    CHECK(strcmp(key, "{run=arrays}{variable=grid}{step=0}") == 0 && nbytes == 24);
    OK(fs_list_close(list));
    OK(fs_list_close(NULL));
}

int main(int argc, char **argv)
{
    fs_store *store;
    CHECK(argc == 2);
    OK(fs_open(argv[1], NULL, NULL, &store));
    bytes_and_keys(store);
    whole_arrays(store);
    pieces_and_generations(store);
    lists(store);

    OK(fs_archive_bytes(store, "run=kept,variable=x,step=0", "x", 1));
    OK(fs_discard(store));
    OK(fs_archive_bytes(store, "run=kept,variable=y,step=0", "y", 1));
    OK(fs_close(store)); /* flushes */
    OK(fs_close(NULL));

    uint64_t nbytes;
    OK(fs_open(argv[1], "r", "simulation", &store));
    FAILS(fs_size(store, "run=kept,variable=x,step=0", &nbytes), FS_NOT_FOUND, "kept");
    OK(fs_size(store, "run=kept,variable=y,step=0", &nbytes));
    OK(fs_close(store));
    CHECK(fs_version()[0] >= '0');
    return 0;
}
