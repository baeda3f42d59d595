/* Steps of an array with a random map, as an expert writes them by hand: elements go to the owners of contiguous
 * ranges by MPI_Alltoallv, and each owner writes its range by one call.
 *
 *   mpicc -O2 -o arrays_alltoallv arrays_alltoallv.c && mpiexec -n 4 ./arrays_alltoallv random FOLDER STEPS TOTAL MAP
 *
 * The program makes one plan for writing and one for reading: for each element its place after those of lower owners
 * (a counting sort), and at the owner each element's place in the range. It checks nothing and swaps no byte.
 */
#include "arrays.h"

static int file, *sent, *sent_at, *taken, *taken_at;
static int32_t *place, *at;
static double *out, *in, *range;
static int64_t first, length, arriving;

static void offsets(const int *counts, int *starts, int ranks) {
  starts[0] = 0;
  for (int r = 1; r < ranks; r++) starts[r] = starts[r - 1] + counts[r - 1];
}

static void plan(array_share *own) {
  int ranks = own->ranks;
  int32_t *within = room((size_t)own->count * sizeof *within);
  unsigned char *owner = room((size_t)own->count);
  int64_t *begins = room((size_t)(ranks + 1) * sizeof *begins);
  int *next = room((size_t)ranks * sizeof *next);
  if (ranks > 256) stop("at most 256 ranks");
  for (int r = 0; r <= ranks; r++) begins[r] = own->total * r / ranks;
  first = begins[own->rank];
  length = begins[own->rank + 1] - first;
  sent = calloc((size_t)ranks, sizeof *sent);
  taken = room((size_t)ranks * sizeof *taken);
  sent_at = room((size_t)ranks * sizeof *sent_at);
  taken_at = room((size_t)ranks * sizeof *taken_at);
  for (int64_t i = 0; i < own->count; i++) {
    int r = (int)(own->map[i] * ranks / own->total);
    while (own->map[i] >= begins[r + 1]) r++;
    while (own->map[i] < begins[r]) r--;
    owner[i] = (unsigned char)r;
    sent[r]++;
  }
  must(MPI_Alltoall(sent, 1, MPI_INT, taken, 1, MPI_INT, MPI_COMM_WORLD), "alltoall");
  offsets(sent, sent_at, ranks);
  offsets(taken, taken_at, ranks);
  arriving = taken_at[ranks - 1] + taken[ranks - 1];
  place = room((size_t)own->count * sizeof *place);
  at = room((size_t)arriving * sizeof *at);
  memcpy(next, sent_at, (size_t)ranks * sizeof *next);
  for (int64_t i = 0; i < own->count; i++) {
    place[i] = next[owner[i]]++;
    within[place[i]] = (int32_t)(own->map[i] - begins[owner[i]]);
  }
  must(MPI_Alltoallv(within, sent, sent_at, MPI_INT32_T, at, taken, taken_at, MPI_INT32_T, MPI_COMM_WORLD), "alltoallv");
  out = room((size_t)own->count * sizeof *out);
  in = room((size_t)arriving * sizeof *in);
  range = room((size_t)length * sizeof *range);
  free(within);
  free(owner);
  free(begins);
  free(next);
}

static void open_all(array_share *own, int writing) {
  char path[4096];
  snprintf(path, sizeof path, "%s/steps", own->folder);
  plan(own);
  file = open(path, writing ? O_RDWR | O_CREAT : O_RDONLY, 0644);
  if (file < 0) stop("open");
}

static void write_step(array_share *own, int step, const double *values) {
  for (int64_t i = 0; i < own->count; i++) out[place[i]] = values[i];
  must(MPI_Alltoallv(out, sent, sent_at, MPI_DOUBLE, in, taken, taken_at, MPI_DOUBLE, MPI_COMM_WORLD), "alltoallv");
  for (int64_t k = 0; k < arriving; k++) range[at[k]] = in[k];
  if (pwrite(file, range, (size_t)length * 8, (own->total * step + first) * 8) != length * 8) stop("pwrite");
}

static void read_step(array_share *own, int step, double *values) {
  if (pread(file, range, (size_t)length * 8, (own->total * step + first) * 8) != length * 8) stop("pread");
  for (int64_t k = 0; k < arriving; k++) in[k] = range[at[k]];
  must(MPI_Alltoallv(in, taken, taken_at, MPI_DOUBLE, out, sent, sent_at, MPI_DOUBLE, MPI_COMM_WORLD), "alltoallv");
  for (int64_t i = 0; i < own->count; i++) values[i] = out[place[i]];
}

static void sync_all(array_share *own) {
  (void)own;
  if (fsync(file)) stop("fsync");
}

static void close_all(array_share *own) {
  (void)own;
  close(file);
  void *all[] = {sent, sent_at, taken, taken_at, place, at, out, in, range};
  for (size_t n = 0; n < sizeof all / sizeof *all; n++) free(all[n]);
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
