/* The group that tests/array-files.sha256 describes: at each level and by each method, in stores of a folder. */
#include "check.h"

#include "fieldstone_mpi.h"

enum { A = 240, B = 60 };

static const uint64_t shape_a[2] = {24, 10}, shape_b[1] = {B};

static void write_steps(fs_arrays *job, fs_group *group, int rank, int size) {
  const char *const a = "a", *const b = "b";
  static int64_t map_a[A + 1], map_b[B];
  static double of_a[A + 1];
  static int32_t of_b[B];
  int64_t owned = 0, step;
  size_t length_b = 0, i;
  for (i = A; i-- > 0;)
    if ((int)(i * 7 % (size_t)size) == rank) map_a[owned++] = (int64_t)i;
  map_a[owned] = 5; /* a ghost */
  for (i = 0; i < B; i++)
    if (i % 7 != 3 && (int)(i / 4 % (size_t)size) == rank) map_b[length_b++] = (int64_t)i;
  OK(fs_group_view_irregular(group, 1, &a, (size_t)owned + 1, map_a, owned, -1));
  OK(fs_group_view_irregular(group, 1, &b, length_b, map_b, -1, 0));
  for (step = 0; step < 2; step++) {
    for (i = 0; i < (size_t)owned; i++) of_a[i] = (double)(1000 * step + map_a[i]) / 8;
    of_a[owned] = -1;
    for (i = 0; i < length_b; i++) of_b[i] = (int32_t)(1000 * step + map_b[i]);
    OK(fs_group_write(group, "a", step, "f8", 0, NULL, NULL, of_a, 1));
    OK(fs_group_write(group, "b", step, "i4", 0, NULL, NULL, of_b, 1));
    OK(fs_arrays_flush(job));
  }
}

int main(int argc, char **argv) {
  const char *const methods[4] = {"auto", "direct", "exchange", "view"};
  const int32_t fill = -1;
  fs_comm comm;
  int level, method;
  MPI_Init(&argc, &argv);
  CHECK(argc == 2);
  OK(fs_mpi_comm(MPI_COMM_WORLD, &comm));
  for (level = 1; level <= 3; level++)
    for (method = 0; method < 4; method++) {
      const fs_set sets[2] = {{"a", "f8", 2, shape_a, NULL, NULL, 0, NULL}, {"b", "i4", 1, shape_b, NULL, &fill, 0, NULL}};
      fs_group_options options;
      char path[1000];
      fs_store *store;
      fs_arrays *job;
      fs_group *group;
      memset(&options, 0, sizeof options);
      options.level = level;
      options.method = methods[method];
      snprintf(path, sizeof path, "%s/%d-%s", argv[1], level, methods[method]);
      OK(fs_open(path, "a", NULL, &store));
      OK(fs_arrays_open(store, "digest", &comm, NULL, &job));
      OK(fs_arrays_group(job, "g", 2, sets, &options, &group));
      write_steps(job, group, comm.rank, comm.size);
      OK(fs_arrays_close(job));
      OK(fs_close(store));
    }
  fs_mpi_comm_free(&comm);
  MPI_Finalize();
  return 0;
}
