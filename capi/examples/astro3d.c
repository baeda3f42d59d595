/*
 * A simulation that writes three groups of arrays, each for its own purpose and at its own
 * frequency: analysis every 2 steps, pictures every step, restart every 4 steps. It continues from
 * the last complete restart step, on any number of ranks. This is the program of SDM's Figure 1
 * (after ASTRO3D), on a smaller cube.
 *
 *   mpicc astro3d.c -o astro3d -lfieldstone && mpiexec -n 4 ./astro3d astro3d.store
 *
 * No call names a file: a set and a step are enough.
 */
#include <stdio.h>
#include <stdlib.h>

#include "fieldstone_mpi.h"

#define N 16 /* the cube's side */
#define ANALYSIS 6
#define RESTART 6
#define PICTURES 7
#define STEPS 4 /* of one start of the program */

/* Ends the program with the error's message. All ranks get every error, so each ends by itself. */
static void check(int status) {
  if (status == FS_OK) return;
  fprintf(stderr, "%s (%s)\n", fs_error_message(), fs_error_hint());
  MPI_Finalize();
  exit(status);
}

/* A group of `count` sets a0, a1, ... of one type and shape. Fieldstone chooses all other
   properties. */
static fs_group *declare(fs_arrays *job, const char *group, char letter, int count, const char *dtype) {
  static const uint64_t shape[3] = {N, N, N};
  static const char *const dims[3] = {"z", "y", "x"};
  char names[8][8];
  fs_set sets[8] = {{0}};
  fs_group *made;
  int i;
  for (i = 0; i < count; i++) {
    snprintf(names[i], sizeof names[i], "%c%d", letter, i);
    sets[i].name = names[i];
    sets[i].dtype = dtype;
    sets[i].ndim = 3;
    sets[i].shape = shape;
    sets[i].dims = dims;
  }
  check(fs_arrays_group(job, group, count, sets, NULL, &made));
  return made;
}

/* Cell (z, y, x) of set `set` at a step. */
static double value(int set, int64_t step, uint64_t z, uint64_t y, uint64_t x) {
  return 1000.0 * set + 100.0 * (double)step + (double)(z * N * N + y * N + x) / 64;
}

int main(int argc, char **argv) {
  static double restart[RESTART][N * N * N];
  static float analysis[N * N * N];
  static unsigned char pixels[N * N * N];
  fs_comm comm;
  fs_store *store;
  fs_arrays *job;
  fs_group *a, *r, *p;
  uint64_t grid[3] = {1, 1, 1}, part[FS_MAX_RANK], begin[3], z, y, x, i;
  int64_t first = 0, step;
  int ndim, found, set, goes_on;
  char name[8];
  MPI_Init(&argc, &argv);
  check(fs_mpi_comm(MPI_COMM_WORLD, &comm));
  check(fs_open(argc > 1 ? argv[1] : "astro3d.store", "a", NULL, &store));
  check(fs_arrays_open(store, "astro3d", &comm, NULL, &job));

  a = declare(job, "analysis", 'a', ANALYSIS, "f4");
  r = declare(job, "restart", 'r', RESTART, "f8");
  p = declare(job, "pictures", 'p', PICTURES, "u1");

  /* Each rank holds its part of a balanced cut: 2 x 2 x 1 for four ranks, else slabs. */
  grid[0] = comm.size == 4 ? 2 : (uint64_t)comm.size;
  grid[1] = comm.size == 4 ? 2 : 1;
  check(fs_group_view_grid(a, 0, NULL, 3, grid, NULL));
  check(fs_group_view_grid(r, 0, NULL, 3, grid, NULL));
  check(fs_group_view_grid(p, 0, NULL, 3, grid, NULL));
  check(fs_group_local_shape(r, "r0", &ndim, part));
  begin[0] = (uint64_t)comm.rank / grid[1] * part[0]; /* N is a multiple of 1, 2 and 4 */
  begin[1] = (uint64_t)comm.rank % grid[1] * part[1];
  begin[2] = 0;

  /* Continue from the last restart step, or start at the beginning. */
  check(fs_group_last_step(r, &step, &goes_on));
  if (goes_on) {
    first = step + 1;
    for (set = 0; set < RESTART; set++) {
      snprintf(name, sizeof name, "r%d", set);
      check(fs_group_read(r, name, step, "f8", 3, part, NULL, restart[set]));
      for (i = 0, z = 0; z < part[0]; z++)
        for (y = 0; y < part[1]; y++)
          for (x = 0; x < part[2]; x++, i++)
            if (restart[set][i] != value(set, step, begin[0] + z, begin[1] + y, begin[2] + x))
              MPI_Abort(MPI_COMM_WORLD, 99);
    }
    if (comm.rank == 0) printf("goes on after step %lld\n", (long long)step);
  }

  for (step = first; step < first + STEPS; step++) {
    /* The computation. */
    for (set = 0; set < RESTART; set++)
      for (i = 0, z = 0; z < part[0]; z++)
        for (y = 0; y < part[1]; y++)
          for (x = 0; x < part[2]; x++, i++)
            restart[set][i] = value(set, step, begin[0] + z, begin[1] + y, begin[2] + x);

    for (set = 0; set < ANALYSIS && step % 2 == 0; set++) {
      for (i = 0; i < part[0] * part[1] * part[2]; i++) analysis[i] = (float)restart[set][i];
      snprintf(name, sizeof name, "a%d", set);
      check(fs_group_write(a, name, step, "f4", 3, part, NULL, analysis, 1));
    }
    for (set = 0; set < RESTART && step % 4 == 3; set++) {
      snprintf(name, sizeof name, "r%d", set);
      /* Last argument 0: a thread writes while the job computes; the job may change the array at once. */
      check(fs_group_write(r, name, step, "f8", 3, part, NULL, restart[set], 0));
    }
    for (set = 0; set < PICTURES; set++) {
      for (i = 0; i < part[0] * part[1] * part[2]; i++)
        pixels[i] = (unsigned char)(restart[set % RESTART][i] / 16 + set);
      snprintf(name, sizeof name, "p%d", set);
      check(fs_group_write(p, name, step, "u1", 3, part, NULL, pixels, 1));
    }
    check(fs_arrays_flush(job)); /* durable and visible, all of the step or nothing */
  }

  check(fs_group_last_step(p, &step, &found));
  {
    int level = 0;
    check(fs_group_level(a, &level));
    if (comm.rank == 0) printf("level %d, pictures up to step %lld\n", level, (long long)step);
  }
  check(fs_arrays_close(job));
  check(fs_close(store));
  fs_mpi_comm_free(&comm);
  MPI_Finalize();
  return 0;
}
