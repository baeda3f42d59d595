/*
 * If one rank passes a wrong argument to a collective call on imports, meshes and partitions, all
 * ranks get an error of that rank's kind, and the job goes on. The history of a partition is found
 * again, and ghosts get their owners' values.
 */
#include "check.h"

#include "fieldstone_mpi.h"

enum { NODES = 12 };

static fs_arrays *job;
static int rank, size, bad;
static char path[1024];

/* All ranks get an error that names the rank at fault. */
static void failed(int status, int expected) {
  char named[32];
  snprintf(named, sizeof named, "rank %d", bad);
  CHECK(status == expected && fs_error_kind() == expected);
  CHECK(strstr(fs_error_message(), named));
}

static int is_bad(void) { return rank == bad; }

/* A ring of nodes: edge n joins n and n + 1. First ends, second ends, then a number of each node. */
static void make_file(void) {
  int32_t ends[2][NODES];
  double values[NODES];
  FILE *file;
  int n;
  for (n = 0; n < NODES; n++) ends[0][n] = n, ends[1][n] = (n + 1) % NODES, values[n] = n * 1.5;
  CHECK((file = fopen(path, "wb")) != NULL);
  CHECK(fwrite(ends, sizeof ends, 1, file) == 1 && fwrite(values, sizeof values, 1, file) == 1);
  CHECK(fclose(file) == 0);
}

static void open_file(fs_import **import) {
  const uint64_t ring = NODES;
  const fs_raw_variable right[3] = {
      {"a", "i4", 0, 1, &ring}, {"b", "i4", 4 * NODES, 1, &ring}, {"v", "f8", 8 * NODES, 1, &ring}};
  fs_raw_variable wrong[3];
  memcpy(wrong, right, sizeof right);
  wrong[1].dtype = "q9";
  failed(fs_arrays_import_raw(job, is_bad() ? NULL : path, 3, right, NULL, import), FS_INVALID);
  failed(fs_arrays_import_raw(job, path, 3, is_bad() ? wrong : right, NULL, import), FS_INVALID);
  failed(fs_arrays_import_netcdf(job, is_bad() ? NULL : path, 0, NULL, NULL, import), FS_INVALID);
  wrong[1] = right[1], wrong[2].offset = 0;
  CHECK(fs_arrays_import_raw(job, path, 3, is_bad() ? wrong : right, NULL, import) == FS_CONFLICT);
  OK(fs_arrays_import_raw(job, path, 3, right, NULL, import));
}

static void read_file(fs_import *import) {
  const int64_t map[2] = {rank, NODES - 1}, outside[2] = {rank, NODES};
  uint64_t shape[FS_MAX_RANK];
  fs_view *right, *wrong;
  double v[2];
  int ndim;
  OK(fs_view_irregular(2, map, -1, 0, &right));
  OK(fs_view_irregular(2, outside, -1, 0, &wrong));
  failed(fs_import_read(import, is_bad() ? NULL : "v", right, "f8", 0, NULL, NULL, v), FS_INVALID);
  failed(fs_import_read(import, "v", is_bad() ? wrong : right, "f8", 0, NULL, NULL, v), FS_INVALID);
  failed(fs_import_read(import, "v", is_bad() ? (fs_view *)import : right, "f8", 0, NULL, NULL, v), FS_INVALID);
  failed(fs_import_read(import, "v", right, is_bad() ? "i4" : "f8", 0, NULL, NULL, v), FS_INVALID);
  failed(fs_import_read(import, "v", right, "f8", 0, NULL, NULL, is_bad() ? NULL : v), FS_INVALID);
  failed(fs_import_local_shape(import, "v", right, &ndim, is_bad() ? NULL : shape), FS_INVALID);
  failed(fs_import_read(import, is_bad() ? "absent" : "v", right, "f8", 0, NULL, NULL, v), FS_NOT_FOUND);
  OK(fs_import_read(import, "v", right, "f8", 0, NULL, NULL, v));
  CHECK(v[0] == rank * 1.5 && v[1] == (NODES - 1) * 1.5);
  OK(fs_view_free(right));
  OK(fs_view_free(wrong));
}

/* Node n belongs to rank n mod size. */
static void partition(fs_import *import, const char *expected) {
  const fs_edges right = {.import = import, .first_name = "a", .second_name = "b"};
  const fs_edges wrong = {.import = import, .first_name = "a"};
  const fs_partition_options options = {.base = 0}, ring = {.method = "ring"}, unknown = {.method = "best"};
  int64_t all[NODES], nodes[NODES], beyond[NODES];
  const fs_vector vector = {.kind = "replicated", .count = NODES, .ranks = all};
  const fs_vector far = {.kind = "replicated", .count = NODES, .ranks = beyond}, kindless = {0};
  fs_partition_counts counts;
  fs_partition *part;
  double v[NODES];
  char source[16];
  size_t i;
  int n;
  for (n = 0; n < NODES; n++) all[n] = n % size, beyond[n] = n == 3 ? size : n % size;
  failed(fs_arrays_partition(job, is_bad() ? NULL : &right, &vector, NULL, &part), FS_INVALID);
  failed(fs_arrays_partition(job, is_bad() ? &wrong : &right, &vector, NULL, &part), FS_INVALID);
  failed(fs_arrays_partition(job, &right, is_bad() ? &kindless : &vector, NULL, &part), FS_INVALID);
  failed(fs_arrays_partition(job, &right, &vector, is_bad() ? &unknown : &options, &part), FS_INVALID);
  CHECK(fs_arrays_partition(job, &right, is_bad() ? &far : &vector, NULL, &part) != FS_OK);
  CHECK(fs_arrays_partition(job, &right, &vector, is_bad() ? &ring : &options, &part) == FS_CONFLICT);
  OK(fs_arrays_partition(job, &right, &vector, NULL, &part));
  OK(fs_partition_source(part, source, sizeof source));
  CHECK(strcmp(source, expected) == 0);
  OK(fs_partition_info(part, &counts));
  OK(fs_partition_nodes(part, nodes, NODES));
  CHECK(counts.owned == (size_t)(NODES / size) && counts.nodes <= NODES && nodes[0] == rank);
  for (i = 0; i < counts.nodes; i++) v[i] = i < counts.owned ? nodes[i] * 2.0 : -1;
  failed(fs_partition_update(part, is_bad() ? NULL : "f8", 0, NULL, NULL, v), FS_INVALID);
  failed(fs_partition_update(part, "f8", 0, NULL, NULL, is_bad() ? NULL : v), FS_INVALID);
  CHECK(counts.nodes == counts.owned || v[counts.nodes - 1] == -1);
  OK(fs_partition_update(part, "f8", 0, NULL, NULL, v));
  for (i = 0; i < counts.nodes; i++) CHECK(v[i] == nodes[i] * 2.0);
  OK(fs_partition_free(part));
}

/* Each rank has its nodes, one after another, and an edge to the next for each. */
static void mesh(void) {
  const double x[1] = {rank}, y[1] = {0};
  const int64_t edge[2] = {rank, (rank + 1) % size}, outside[2] = {rank, size};
  const fs_mesh_content right = {.nodes = 1, .x = x, .y = y, .edges = {1, 2, edge}};
  const fs_mesh_content wrong = {.nodes = 1, .x = x, .y = y, .edges = {1, 2, outside}}, half = {.nodes = 1, .x = x};
  fs_mesh_counts counts;
  fs_mesh *mesh;
  double back[1];
  failed(fs_arrays_create_mesh(job, is_bad() ? NULL : "ring", &right, NULL, &mesh), FS_INVALID);
  failed(fs_arrays_create_mesh(job, "ring", is_bad() ? &half : &right, NULL, &mesh), FS_INVALID);
  failed(fs_arrays_create_mesh(job, "ring", is_bad() ? &wrong : &right, NULL, &mesh), FS_INVALID);
  failed(fs_arrays_mesh(job, is_bad() ? NULL : "ring", NULL, &mesh), FS_INVALID);
  OK(fs_arrays_create_mesh(job, "ring", &right, NULL, &mesh));
  OK(fs_mesh_info(mesh, &counts));
  CHECK(counts.nodes == (uint64_t)size && counts.edges == (uint64_t)size);
  failed(fs_mesh_read(mesh, is_bad() ? "w" : "x", NULL, "f8", 0, NULL, NULL, back), FS_NOT_FOUND);
  OK(fs_mesh_read(mesh, "x", NULL, "f8", 0, NULL, NULL, back));
  CHECK(back[0] == rank);
  OK(fs_mesh_close(mesh));
}

int main(int argc, char **argv) {
  struct fs_comm comm;
  fs_import *import;
  fs_store *store;
  MPI_Init(&argc, &argv);
  CHECK(argc == 2 && fs_mpi_comm(MPI_COMM_WORLD, &comm) == FS_OK);
  rank = comm.rank, size = comm.size;
  snprintf(path, sizeof path, "%s.ring", argv[1]);
  if (rank == 0) make_file();
  MPI_Barrier(MPI_COMM_WORLD);
  OK(fs_open(argv[1], "a", NULL, &store));
  OK(fs_arrays_open(store, "r", &comm, NULL, &job));
  for (bad = 0; bad < size; bad++) {
    open_file(&import);
    read_file(import);
    partition(import, bad == 0 ? "computed" : "parts");
    OK(fs_import_close(import));
    mesh();
    OK(fs_arrays_flush(job));
  }
  bad = 0;
  open_file(&import);
  OK(fs_arrays_close(job)); /* closes the import, too */
  OK(fs_close(store));
  fs_mpi_comm_free(&comm);
  MPI_Finalize();
  return 0;
}
