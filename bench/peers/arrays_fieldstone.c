/* Steps of an array through libfieldstone from C: the counterpart of bench/arrays_work.py, which does them from Python.
 *
 *   mpicc -O2 -I capi/include arrays_fieldstone.c -o arrays_fieldstone -L target/release -lfieldstone
 *   mpiexec -n 4 ./arrays_fieldstone random FOLDER STEPS TOTAL MAP
 *
 * The clock leaves out opening the store and the job, like MPI_Init; view and declaration of the group belong to the
 * first step, and to the first read, which another job makes.
 */
#include "arrays.h"

#include "fieldstone_mpi.h"

static fs_comm comm;
static fs_store *store;
static fs_arrays *job;
static fs_group *group;

static void check(int status) {
  if (status != FS_OK) {
    fprintf(stderr, "%s (%s)\n", fs_error_message(), fs_error_hint());
    MPI_Abort(MPI_COMM_WORLD, status);
  }
}

static void open_job(array_share *own) {
  char path[4096];
  snprintf(path, sizeof path, "%s/run.store", own->folder);
  check(fs_open(path, "a", NULL, &store));
  check(fs_arrays_open(store, "steps", &comm, NULL, &job));
}

static void open_all(array_share *own, int writing) {
  if (own->boxed) {
    uint64_t shape[3], start[3], count[3];
    for (int d = 0; d < 3; d++) {
      shape[d] = (uint64_t)own->edge;
      start[d] = (uint64_t)own->start[d];
      count[d] = (uint64_t)own->extent[d];
    }
    const fs_set set = {"u", "f8", 3, shape, NULL, NULL, 0, NULL};
    check(writing ? fs_arrays_group(job, "g", 1, &set, NULL, &group) : fs_arrays_declared_group(job, "g", &group));
    check(fs_group_view_block(group, 0, NULL, 3, start, count, NULL, NULL));
  } else {
    const uint64_t shape[1] = {(uint64_t)own->total};
    const fs_set set = {"u", "f8", 1, shape, NULL, NULL, 0, NULL};
    check(writing ? fs_arrays_group(job, "g", 1, &set, NULL, &group) : fs_arrays_declared_group(job, "g", &group));
    check(fs_group_view_irregular(group, 0, NULL, (size_t)own->count, own->map, -1, 0));
  }
}

static void write_step(array_share *own, int step, const double *values) {
  (void)own;
  check(fs_group_write(group, "u", step, "f8", 0, NULL, NULL, values, 1));
}

static void read_step(array_share *own, int step, double *values) {
  (void)own;
  check(fs_group_read(group, "u", step, "f8", 0, NULL, NULL, values));
}

static void sync_all(array_share *own) {
  (void)own;
  check(fs_arrays_flush(job));
}

static void close_all(array_share *own) {
  check(fs_arrays_close(job));
  check(fs_close(store));
  open_job(own);
}

int main(int argc, char **argv) {
  static const struct peer peer = {open_all, write_step, sync_all, read_step, close_all};
  array_share own;
  MPI_Init(&argc, &argv);
  int steps = arguments(argc, argv, &own);
  check(fs_mpi_comm(MPI_COMM_WORLD, &comm));
  open_job(&own);
  course(&own, steps, &peer);
  check(fs_arrays_close(job));
  check(fs_close(store));
  fs_mpi_comm_free(&comm);
  MPI_Finalize();
  return 0;
}
