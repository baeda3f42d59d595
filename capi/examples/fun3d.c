/*
 * An unstructured mesh, after SDM's FUN3D: edges and data come from a file of another program, a
 * METIS partitioning vector gives each node its rank, and each rank gets its nodes, ghosts and
 * edges. The program computes values at the nodes from their edges, step by step, and writes them
 * by global node number. The store keeps the partition: a later start finds it, even with another
 * number of ranks, and continues from the last step.
 *
 *   mpicc fun3d.c -o fun3d -lfieldstone && mpiexec -n 4 ./fun3d fun3d.store uns3d.msh
 */
#include <stdio.h>
#include <stdlib.h>

#include "fieldstone_mpi.h"

enum { NX = 6, NY = 5, NZ = 4, NODES = NX * NY * NZ, STEPS = 2 };

static fs_comm comm;

static void check(int status) {
  if (status == FS_OK) return;
  fprintf(stderr, "%s (%s)\n", fs_error_message(), fs_error_hint());
  MPI_Finalize();
  exit(status);
}

static void *room(size_t count, size_t size) {
  void *memory = calloc(count + 1, size);
  if (memory == NULL) MPI_Abort(MPI_COMM_WORLD, 98);
  return memory;
}

/* ---- files of other programs: the mesh, in big-endian bytes as older solvers write them, and
   METIS's vector */

static void put(FILE *file, uint64_t bits, int bytes) {
  while (bytes-- > 0) fputc((int)(bits >> (8 * bytes) & 0xff), file);
}

static void put_double(FILE *file, double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  put(file, bits, 8);
}

/* Each node is joined to its neighbours along x, y and z, and across the faces of constant z. */
static size_t edges_of(int32_t (*ends)[2]) {
  static const int to[4][3] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}, {1, 1, 0}};
  size_t count = 0;
  int x, y, z, k;
  for (z = 0; z < NZ; z++)
    for (y = 0; y < NY; y++)
      for (x = 0; x < NX; x++)
        for (k = 0; k < 4; k++) {
          const int u = x + to[k][0], v = y + to[k][1], w = z + to[k][2];
          if (u == NX || v == NY || w == NZ) continue;
          ends[count][0] = (z * NY + y) * NX + x;
          ends[count++][1] = (w * NY + v) * NX + u;
        }
  return count;
}

/* edge1, edge2: node numbers from 0; area: of each edge; volume: of each node; xyz: three coordinates of each node. */
static void write_mesh(FILE *file, size_t edges, int32_t (*ends)[2]) {
  size_t e;
  int side, n;
  for (side = 0; side < 2; side++)
    for (e = 0; e < edges; e++) put(file, (uint64_t)ends[e][side], 4);
  for (e = 0; e < edges; e++) put_double(file, (double)(1 + e % 3) / 64);
  for (n = 0; n < NODES; n++) put_double(file, n % 2 ? 1 : 0.5);
  for (n = 0; n < NODES; n++) {
    put_double(file, n % NX);
    put_double(file, n / NX % NY);
    put_double(file, n / NX / NY);
  }
}

/* METIS writes a line for each node: the part that it is in. */
static void write_vector(FILE *file) {
  int n;
  for (n = 0; n < NODES; n++) fprintf(file, "%d\n", n % NX * comm.size / NX);
}

static FILE *make(const char *path) {
  FILE *file = fopen(path, "wb");
  if (file == NULL) MPI_Abort(MPI_COMM_WORLD, 97);
  return file;
}

/* Makes both files unless they exist. A rewritten file counts as another file, for which no history
   is kept. */
static size_t prepare(const char *path, const char *vector) {
  static int32_t ends[4 * NODES][2];
  const size_t edges = edges_of(ends);
  FILE *file = NULL;
  if (comm.rank == 0 && (file = fopen(path, "rb")) == NULL) write_mesh(file = make(path), edges, ends);
  if (file != NULL) fclose(file);
  if (comm.rank == 0) {
    write_vector(file = make(vector));
    fclose(file);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  return edges;
}

/* ---- the solver */

/* The first values are the coordinates x of xyz. */
static void begin(fs_import *mesh, fs_view *at_nodes, double *q, size_t nodes) {
  double *xyz = room(nodes, 3 * sizeof(double));
  size_t i;
  check(fs_import_read(mesh, "xyz", at_nodes, "f8", 0, NULL, NULL, xyz));
  for (i = 0; i < nodes; i++) q[i] = 64 * xyz[3 * i];
  free(xyz);
}

/* Each edge carries the difference of its ends. Own nodes have all their edges here; ghosts get
   their owners' values. */
static void advance(fs_partition *part, const fs_partition_counts *have, const int64_t *ends, const double *area,
                    const double *volume, double *q) {
  double *flux = room(have->nodes, sizeof(double));
  size_t e, i;
  for (e = 0; e < have->edges; e++) {
    const int64_t a = ends[2 * e], b = ends[2 * e + 1];
    flux[a] += area[e] * (q[b] - q[a]);
    flux[b] += area[e] * (q[a] - q[b]);
  }
  for (i = 0; i < have->owned; i++) q[i] += volume[i] * flux[i];
  check(fs_partition_update(part, "f8", 0, NULL, NULL, q));
  free(flux);
}

static void solve(fs_arrays *job, const char *path, const char *metis, uint64_t edges) {
  const uint64_t nodes = NODES, xyz[2] = {NODES, 3};
  const fs_raw_variable variables[5] = {{"edge1", ">i4", 0, 1, &edges},
                                        {"edge2", ">i4", 4 * edges, 1, &edges},
                                        {"area", ">f8", 8 * edges, 1, &edges},
                                        {"volume", ">f8", 16 * edges, 1, &nodes},
                                        {"xyz", ">f8", 16 * edges + 8 * nodes, 2, xyz}};
  const fs_set sets[2] = {{"q", "f8", 1, &nodes, NULL, NULL, 0, NULL},
                          {"residual", "f8", 1, &nodes, NULL, NULL, 0, NULL}};
  const fs_vector vector = {"file", 0, NULL, metis};
  fs_edges between = {0};
  fs_partition_counts have;
  fs_import *mesh;
  fs_partition *part;
  fs_view *at_nodes, *at_edges;
  fs_group *results;
  int64_t *ends, last;
  double *area, *volume, *q, *residual;
  char source[16];
  int found, step;
  size_t i;

  /* Reads nothing yet: only a view says which part is this rank's. */
  check(fs_arrays_import_raw(job, path, 5, variables, NULL, &mesh));
  between.import = mesh, between.first_name = "edge1", between.second_name = "edge2";
  check(fs_arrays_partition(job, &between, &vector, NULL, &part));
  check(fs_partition_info(part, &have));
  check(fs_partition_source(part, source, sizeof source));
  ends = room(have.edges, 2 * sizeof(int64_t));
  check(fs_partition_ends(part, ends, 2 * have.edges));
  check(fs_partition_node_view(part, 0, &at_nodes));
  check(fs_partition_edge_view(part, 0, &at_edges));

  area = room(have.edges, sizeof(double)), volume = room(have.nodes, sizeof(double));
  q = room(have.nodes, sizeof(double)), residual = room(have.nodes, sizeof(double));
  check(fs_import_read(mesh, "area", at_edges, "f8", 0, NULL, NULL, area));
  check(fs_import_read(mesh, "volume", at_nodes, "f8", 0, NULL, NULL, volume));

  check(fs_arrays_group(job, "results", 2, sets, NULL, &results));
  check(fs_group_view(results, 0, NULL, at_nodes)); /* own nodes are written, ghosts are read */
  check(fs_group_last_step(results, &last, &found));
  if (found)
    check(fs_group_read(results, "q", last, "f8", 0, NULL, NULL, q));
  else
    begin(mesh, at_nodes, q, have.nodes);
  check(fs_import_close(mesh));

  for (step = found ? (int)last + 1 : 0, found = step + STEPS; step < found; step++) {
    memcpy(residual, q, have.nodes * sizeof(double));
    advance(part, &have, ends, area, volume, q);
    for (i = 0; i < have.nodes; i++) residual[i] = q[i] - residual[i];
    check(fs_group_write(results, "q", step, "f8", 0, NULL, NULL, q, 0));
    check(fs_group_write(results, "residual", step, "f8", 0, NULL, NULL, residual, 0)); /* reuses the plan */
    check(fs_arrays_flush(job));
  }
  if (comm.rank == 0) printf("partition: %s; %d nodes, up to step %d\n", source, NODES, step - 1);
  check(fs_view_free(at_nodes));
  check(fs_view_free(at_edges));
  check(fs_partition_free(part));
  free(ends), free(area), free(volume), free(q), free(residual);
}

int main(int argc, char **argv) {
  const char *path = argc > 2 ? argv[2] : "uns3d.msh";
  char vector[1024];
  fs_store *store;
  fs_arrays *job;
  size_t edges;
  MPI_Init(&argc, &argv);
  check(fs_mpi_comm(MPI_COMM_WORLD, &comm));
  snprintf(vector, sizeof vector, "%s.part.%d", path, comm.size);
  edges = prepare(path, vector);
  check(fs_open(argc > 1 ? argv[1] : "fun3d.store", "a", NULL, &store));
  check(fs_arrays_open(store, "fun3d", &comm, NULL, &job));
  solve(job, path, vector, edges);
  check(fs_arrays_close(job));
  check(fs_close(store));
  fs_mpi_comm_free(&comm);
  MPI_Finalize();
  return 0;
}
