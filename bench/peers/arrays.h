/* Code that the peers of bench/arrays.py share: timing by the slowest rank, counted spans, values that can be checked,
 * and the course of a run: a first step, which plans, some later ones, then reading all of them.
 *
 * A program fills in `struct peer` and calls `course`, which prints one line of JSON. Each call is timed from a barrier
 * to its return on the slowest rank; writing a step and making it durable are timed separately.
 */
#ifndef FIELDSTONE_BENCH_ARRAYS_H
#define FIELDSTONE_BENCH_ARRAYS_H
#include <fcntl.h>
#include <inttypes.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define MOST_STEPS 64

/* The share of this rank: the global numbers of its elements, and for boxes their place in the cube. */
typedef struct {
  int rank, ranks, boxed;
  int64_t total, count, *map;
  int64_t edge, start[3], extent[3];
  const char *folder;
} array_share;

struct peer {
  void (*open)(array_share *own, int writing); /* and makes the plan, as part of the first step or first read */
  void (*write)(array_share *own, int step, const double *values);
  void (*sync)(array_share *own);
  void (*read)(array_share *own, int step, double *values);
  void (*close)(array_share *own);
};

static inline void stop(const char *why) {
  fprintf(stderr, "%s\n", why);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static inline void *room(size_t bytes) {
  void *made = malloc(bytes ? bytes : 1);
  if (made == NULL) stop("no memory");
  return made;
}

static inline void must(int status, const char *call) {
  if (status != MPI_SUCCESS) stop(call);
}

/* Under strace, rank 0 marks the calls that follow. */
static inline void mark(const char *name) {
  char path[64] = "/fieldstone-bench-mark/";
  int rank;
  if (getenv("BENCH_TRACE") == NULL) return;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0 && access(strcat(path, name), F_OK) == 0) stop("a mark is a file");
  MPI_Barrier(MPI_COMM_WORLD);
}

static inline double begin(void) {
  MPI_Barrier(MPI_COMM_WORLD);
  return MPI_Wtime();
}

static inline double reduced(double own, MPI_Op how) {
  double all;
  MPI_Allreduce(&own, &all, 1, MPI_DOUBLE, how, MPI_COMM_WORLD);
  return all;
}

/* Seconds since `start`, on the slowest rank. */
static inline double since(double start) {
  return reduced(MPI_Wtime() - start, MPI_MAX);
}

static inline double processor(void) {
  struct rusage use;
  getrusage(RUSAGE_SELF, &use);
  return (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) + 1e-6 * (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec);
}

static inline int ascending(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static inline double median(double *values, int count) {
  if (count == 0) return 0;
  qsort(values, (size_t)count, sizeof *values, ascending);
  return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

static inline double value(int64_t number, int step) {
  return (double)number * 1.5 + step;
}

/* `random FOLDER STEPS TOTAL MAP`: a share of a file of numbers (8 bytes each); `grid FOLDER STEPS EDGE A B C`: a box. */
static inline int arguments(int argc, char **argv, array_share *own) {
  MPI_Comm_rank(MPI_COMM_WORLD, &own->rank);
  MPI_Comm_size(MPI_COMM_WORLD, &own->ranks);
  if (argc < 6) stop("random FOLDER STEPS TOTAL MAP, or grid FOLDER STEPS EDGE A B C");
  own->folder = argv[2];
  own->boxed = strcmp(argv[1], "grid") == 0;
  if (own->boxed) {
    int64_t at = own->rank, n = 0, z, y, x;
    if (argc < 8) stop("grid FOLDER STEPS EDGE A B C");
    own->edge = atoll(argv[4]);
    own->total = own->edge * own->edge * own->edge;
    for (int d = 2; d >= 0; d--) {
      int64_t parts = atoll(argv[5 + d]), part = at % parts;
      own->start[d] = own->edge * part / parts;
      own->extent[d] = own->edge * (part + 1) / parts - own->start[d];
      at /= parts;
    }
    own->count = own->extent[0] * own->extent[1] * own->extent[2];
    own->map = room((size_t)own->count * sizeof *own->map);
    for (z = 0; z < own->extent[0]; z++)
      for (y = 0; y < own->extent[1]; y++)
        for (x = 0; x < own->extent[2]; x++)
          own->map[n++] = ((own->start[0] + z) * own->edge + own->start[1] + y) * own->edge + own->start[2] + x;
  } else {
    own->total = atoll(argv[4]);
    int64_t first = own->total * own->rank / own->ranks;
    own->count = own->total * (own->rank + 1) / own->ranks - first;
    size_t bytes = (size_t)own->count * sizeof *own->map;
    int file = open(argv[5], O_RDONLY);
    own->map = room(bytes);
    if (file < 0 || pread(file, own->map, bytes, first * 8) != (ssize_t)bytes) stop("the map cannot be read");
    close(file);
  }
  return atoi(argv[3]);
}

static inline void course(array_share *own, int steps, const struct peer *peer) {
  double *values = room((size_t)own->count * sizeof *values), writes[MOST_STEPS], syncs[MOST_STEPS], reads[MOST_STEPS];
  double used = processor(), reading;
  if (steps > MOST_STEPS) stop("too many steps");
  mark("write");
  for (int step = 0; step < steps; step++) {
    for (int64_t i = 0; i < own->count; i++) values[i] = value(own->map[i], step);
    double start = begin();
    if (step == 0) peer->open(own, 1);
    peer->write(own, step, values);
    writes[step] = since(start);
    start = begin();
    peer->sync(own);
    syncs[step] = since(start);
  }
  mark("");
  peer->close(own);
  used = reduced(processor() - used, MPI_SUM);
  reading = processor();
  mark("read");
  for (int step = 0; step < steps; step++) {
    memset(values, 0, (size_t)own->count * sizeof *values);
    double start = begin();
    if (step == 0) peer->open(own, 0);
    peer->read(own, step, values);
    reads[step] = since(start);
    for (int64_t i = 0; i < own->count; i++)
      if (values[i] != value(own->map[i], step)) stop("another value was read than was written");
  }
  mark("");
  peer->close(own);
  reading = reduced(processor() - reading, MPI_SUM);
  if (own->rank == 0) {
    printf("{\"first\": %.6f, \"first sync\": %.6f, \"first read\": %.6f, ", writes[0], syncs[0], reads[0]);
    printf("\"later\": %.6f, \"later sync\": %.6f, ", median(writes + 1, steps - 1), median(syncs + 1, steps - 1));
    printf("\"later read\": %.6f, \"cpu\": %.6f, \"read cpu\": %.6f}\n", median(reads + 1, steps - 1), used, reading);
  }
  free(values);
  free(own->map);
}
#endif
