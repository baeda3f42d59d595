/* Steps of an array by MPI-IO's collective calls on a derived type: an indexed view of a random map, or a subarray.
 *
 *   mpicc -O2 -o arrays_mpiio arrays_mpiio.c && mpiexec -n 4 ./arrays_mpiio random FOLDER STEPS TOTAL MAP
 *
 * One file holds the steps, one after another. A view's offsets must ascend: the program sorts the map once, and the
 * values at each step.
 */
#include "arrays.h"

static MPI_File file;
static MPI_Datatype view;
static int64_t *order;
static double *sorted;
static const array_share *comparing;

static int by_number(const void *a, const void *b) {
  int64_t x = comparing->map[*(const int64_t *)a], y = comparing->map[*(const int64_t *)b];
  return (x > y) - (x < y);
}

static void describe(array_share *own) {
  if (own->boxed) {
    int whole[3], extent[3], start[3];
    for (int d = 0; d < 3; d++) {
      whole[d] = (int)own->edge;
      extent[d] = (int)own->extent[d];
      start[d] = (int)own->start[d];
    }
    must(MPI_Type_create_subarray(3, whole, extent, start, MPI_ORDER_C, MPI_DOUBLE, &view), "create_subarray");
  } else {
    int *places = room((size_t)own->count * sizeof *places);
    order = room((size_t)own->count * sizeof *order);
    sorted = room((size_t)own->count * sizeof *sorted);
    for (int64_t i = 0; i < own->count; i++) order[i] = i;
    comparing = own;
    qsort(order, (size_t)own->count, sizeof *order, by_number);
    for (int64_t i = 0; i < own->count; i++) places[i] = (int)own->map[order[i]];
    must(MPI_Type_create_indexed_block((int)own->count, 1, places, MPI_DOUBLE, &view), "create_indexed_block");
    free(places);
  }
  must(MPI_Type_commit(&view), "commit");
}

static void open_all(array_share *own, int writing) {
  char path[4096];
  snprintf(path, sizeof path, "%s/steps", own->folder);
  int mode = writing ? MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_RDWR : MPI_MODE_RDONLY;
  describe(own);
  must(MPI_File_open(MPI_COMM_WORLD, path, mode, MPI_INFO_NULL, &file), "open");
}

static void at_step(array_share *own, int step) {
  must(MPI_File_set_view(file, own->total * 8 * step, MPI_DOUBLE, view, "native", MPI_INFO_NULL), "set_view");
}

static void write_step(array_share *own, int step, const double *values) {
  const double *from = values;
  if (!own->boxed) {
    for (int64_t i = 0; i < own->count; i++) sorted[i] = values[order[i]];
    from = sorted;
  }
  at_step(own, step);
  must(MPI_File_write_at_all(file, 0, from, (int)own->count, MPI_DOUBLE, MPI_STATUS_IGNORE), "write_at_all");
}

static void read_step(array_share *own, int step, double *values) {
  at_step(own, step);
  double *into = own->boxed ? values : sorted;
  must(MPI_File_read_at_all(file, 0, into, (int)own->count, MPI_DOUBLE, MPI_STATUS_IGNORE), "read_at_all");
  if (!own->boxed)
    for (int64_t i = 0; i < own->count; i++) values[order[i]] = sorted[i];
}

static void sync_all(array_share *own) {
  (void)own;
  must(MPI_File_sync(file), "sync");
}

static void close_all(array_share *own) {
  must(MPI_File_close(&file), "close");
  MPI_Type_free(&view);
  if (own->boxed) return;
  free(order);
  free(sorted);
}

int main(int argc, char **argv) {
  static const struct peer peer = {open_all, write_step, sync_all, read_step, close_all};
  array_share own;
  MPI_Init(&argc, &argv);
  int steps = arguments(argc, argv, &own);
  course(&own, steps, &peer);
  MPI_Finalize();
  return 0;
}
