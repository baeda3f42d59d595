/* Imports, meshes and partitions in one process: every call, and every refused argument. */
#include "check.h"

enum { NX = 3, NY = 2, NODES = NX * NY, EDGES = 7, FACES = 2 };

static const char *raw_path, *netcdf_path, *vector_path;

/* Two adjacent squares, in raw bytes: 4 unrelated bytes, edges from node 1 as big-endian i4, then x
   and y of each node as little-endian f4. */
static const int32_t ENDS[2][EDGES] = {{1, 2, 4, 5, 1, 2, 3}, {2, 3, 5, 6, 4, 5, 6}};

static void make_files(void) {
  FILE *file = fopen(raw_path, "wb");
  fs_container *container;
  const int64_t faces[FACES][4] = {{0, 1, 4, 3}, {1, 2, 5, 4}};
  const double t[NODES] = {0, 1, 2, 3, 4, 5};
  const uint64_t zero[2] = {0, 0}, all[2] = {FACES, 4}, six[1] = {NODES};
  int side, e, n;
  CHECK(file && fwrite("head", 1, 4, file) == 4);
  for (side = 0; side < 2; side++)
    for (e = 0; e < EDGES; e++)
      for (n = 24; n >= 0; n -= 8) fputc(ENDS[side][e] >> n & 0xff, file);
  for (n = 0; n < NODES; n++) {
    const float xy[2] = {(float)(n % NX), (float)(n / NX)};
    CHECK(fwrite(xy, sizeof(float), 2, file) == 2);
  }
  CHECK(fclose(file) == 0);
  CHECK((file = fopen(vector_path, "w")) != NULL);
  for (n = 0; n < NODES; n++) fputs("0\n", file);
  CHECK(fclose(file) == 0);
  OK(fs_container_create(netcdf_path, "cdf5", NULL, &container));
  OK(fs_container_def_dim(container, "node", NODES));
  OK(fs_container_def_dim(container, "face", FACES));
  OK(fs_container_def_dim(container, "four", 4));
  {
    const char *const of_t[1] = {"node"}, *const of_faces[2] = {"face", "four"};
    OK(fs_container_def_var(container, "t", "f8", 1, of_t, NULL));
    OK(fs_container_def_var(container, "faces", "i8", 2, of_faces, NULL));
  }
  OK(fs_container_enddef(container));
  OK(fs_container_put(container, "t", "f8", 1, zero, six, NULL, t, 0));
  OK(fs_container_put(container, "faces", "i8", 2, zero, all, NULL, faces, 0));
  OK(fs_container_close(container));
}

static void open_raw(fs_arrays *job, const char *order, fs_import **import) {
  const uint64_t edges[1] = {EDGES}, xy[2] = {NODES, 2}, yx[2] = {2, NODES};
  const fs_raw_variable variables[3] = {{"a", ">i4", 4, 1, edges},
                                        {"b", ">i4", 4 + 4 * EDGES, 1, edges},
                                        {"xy", "<f4", 4 + 8 * EDGES, 2, order && *order == 'F' ? yx : xy}};
  const fs_import_options options = {.checksum = 1, .order = order};
  OK(fs_arrays_import_raw(job, raw_path, 3, variables, &options, import));
}

static void imports(fs_arrays *job) {
  const int64_t map[2] = {5, 0};
  const uint64_t start[2] = {1, 0}, count[2] = {3, 1}, turned[2] = {0, 1}, three[2] = {1, 3};
  const char *const both[2] = {"t", "faces"};
  const int64_t backwards[1] = {-(int64_t)sizeof(int32_t)};
  fs_import *import;
  fs_view *nodes, *column, *row;
  fs_variable_info info;
  int32_t a[EDGES];
  float xy[NODES][2], some[2][2];
  double t[NODES];
  uint64_t shape[FS_MAX_RANK];
  int n, ndim;
  open_raw(job, NULL, &import);
  OK(fs_import_count(import, &n));
  OK(fs_import_variable(import, 2, &info));
  CHECK(n == 3 && info.ndim == 2 && info.shape[0] == NODES && info.shape[1] == 2 && info.shape[2] == 0);
  CHECK(strcmp(info.name, "xy") == 0 && strcmp(info.dtype, "<f4") == 0);
  OK(fs_import_read(import, "a", NULL, NULL, 0, NULL, NULL, a));
  CHECK(memcmp(a, ENDS[0], sizeof a) == 0);
  OK(fs_import_read(import, "b", NULL, "i4", 1, (const uint64_t[]){EDGES}, backwards, a + EDGES - 1));
  for (n = 0; n < EDGES; n++) CHECK(a[n] == ENDS[1][EDGES - 1 - n]);
  OK(fs_view_irregular(2, map, -1, 0, &nodes));
  OK(fs_import_local_shape(import, "xy", nodes, &ndim, shape));
  CHECK(ndim == 2 && shape[0] == 2 && shape[1] == 2);
  OK(fs_import_read(import, "xy", nodes, "f4", 0, NULL, NULL, some));
  CHECK(some[0][0] == 2 && some[0][1] == 1 && some[1][0] == 0 && some[1][1] == 0);
  OK(fs_view_block(2, start, count, NULL, NULL, &column));
  OK(fs_import_read(import, "xy", column, "f4", 0, NULL, NULL, some));
  CHECK(some[0][0] == 1 && some[0][1] == 2 && some[1][0] == 0);

  /* A run's description of an outside file does not change. */
  OK(fs_import_close(import));
  FAILS(fs_arrays_import_raw(job, raw_path, 1, &(const fs_raw_variable){"b", ">i4", 4, 1, shape}, NULL, &import),
        FS_CONFLICT, "or other variables");
  open_raw(job, "C", &import);

  /* In order "F" dimensions are reversed: the bytes are the same. */
  OK(fs_import_close(import));
  open_raw(job, "F", &import);
  OK(fs_import_variable(import, 2, &info));
  CHECK(info.shape[0] == 2 && info.shape[1] == NODES);
  OK(fs_import_local_shape(import, "xy", NULL, &ndim, shape));
  CHECK(ndim == 2 && shape[0] == 2 && shape[1] == NODES);
  OK(fs_import_read(import, "xy", NULL, "f4", 0, NULL, NULL, xy));
  for (n = 0; n < NODES; n++) CHECK(xy[n][0] == n % NX && xy[n][1] == n / NX);
  OK(fs_view_block(2, turned, three, NULL, NULL, &row));
  OK(fs_import_read(import, "xy", row, "f4", 0, NULL, NULL, some));
  CHECK(some[0][0] == 1 && some[0][1] == 2 && some[1][0] == 0);
  OK(fs_import_close(import));

  OK(fs_arrays_import_netcdf(job, netcdf_path, 0, NULL, NULL, &import)); /* all variables */
  OK(fs_import_count(import, &n));
  CHECK(n == 2);
  OK(fs_import_read(import, "t", nodes, "f8", 0, NULL, NULL, t));
  CHECK(t[0] == 5 && t[1] == 0);
  OK(fs_import_close(import));
  OK(fs_arrays_import_netcdf(job, netcdf_path, 2, both, NULL, &import)); /* left open: it ends with the job */
  OK(fs_import_variable(import, 1, &info));
  CHECK(strcmp(info.name, "faces") == 0 && strcmp(info.dtype, ">i8") == 0);
  OK(fs_import_read(import, "t", NULL, "f8", 0, NULL, NULL, t));
  CHECK(t[5] == 5);
  OK(fs_view_free(nodes));
  OK(fs_view_free(column));
  OK(fs_view_free(row));
  OK(fs_view_free(NULL));
  FAILS(fs_view_free(row), FS_INVALID, "not an open fs_view handle");
}

static void refused(fs_arrays *job) {
  const uint64_t edges[1] = {EDGES}, many[1] = {1000};
  const fs_raw_variable long_one = {"a", "<i4", 0, 1, many}, typeless = {"a", "q9", 0, 1, edges};
  const fs_raw_variable flat = {"a", "<i4", 0, -1, edges};
  const fs_raw_variable a = {"a", ">i4", 4, 1, edges}, twice[2] = {{"a", ">i4", 4, 1, edges}, {"a", ">i4", 4, 1, edges}};
  const fs_import_options wrong = {.order = "X"};
  const char *const absent[1] = {"absent"};
  const uint64_t far[1] = {99}, one[1] = {1};
  fs_import *import, *none;
  fs_view *view;
  fs_variable_info info;
  int32_t ends[EDGES];
  uint64_t shape[FS_MAX_RANK];
  int ndim;
  FAILS(fs_arrays_import_raw(job, "/no/such/file", 1, &a, NULL, &none), FS_NOT_FOUND, "/no/such/file");
  CHECK(none == NULL);
  FAILS(fs_arrays_import_raw(job, NULL, 1, &a, NULL, &none), FS_INVALID, "path is null");
  FAILS(fs_arrays_import_raw(job, raw_path, 1, NULL, NULL, &none), FS_INVALID, "list of variables is null");
  FAILS(fs_arrays_import_raw(job, raw_path, 1, &long_one, NULL, &none), FS_CORRUPT, "needs the bytes");
  FAILS(fs_arrays_import_raw(job, raw_path, 1, &typeless, NULL, &none), FS_INVALID, "q9");
  FAILS(fs_arrays_import_raw(job, raw_path, 1, &flat, NULL, &none), FS_INVALID, "-1 dimensions");
  FAILS(fs_arrays_import_raw(job, raw_path, 2, twice, NULL, &none), FS_INVALID, "two variables");
  FAILS(fs_arrays_import_raw(job, raw_path, 1, &a, &wrong, &none), FS_INVALID, "not an order");
  FAILS(fs_arrays_import_raw(job, raw_path, 1, &a, NULL, NULL), FS_INVALID, "place for the import");
  FAILS(fs_arrays_import_netcdf(job, netcdf_path, 1, absent, NULL, &none), FS_NOT_FOUND, "absent");
  FAILS(fs_arrays_import_netcdf(job, netcdf_path, 1, NULL, NULL, &none), FS_INVALID, "list of names is null");
  FAILS(fs_arrays_import_netcdf(job, raw_path, 0, NULL, NULL, &none), FS_CORRUPT, "netCDF");
  open_raw(job, NULL, &import);
  FAILS(fs_import_read(import, "absent", NULL, "i4", 0, NULL, NULL, ends), FS_NOT_FOUND, "absent");
  FAILS(fs_import_read(import, NULL, NULL, "i4", 0, NULL, NULL, ends), FS_INVALID, "is null");
  FAILS(fs_import_read(import, "a", NULL, "f8", 0, NULL, NULL, ends), FS_INVALID, "not float64");
  FAILS(fs_import_read(import, "a", NULL, "i4", 0, NULL, NULL, NULL), FS_INVALID, "data is null");
  FAILS(fs_import_read(import, "a", NULL, "i4", 1, one, NULL, ends), FS_INVALID, "shape");
  FAILS(fs_import_read(import, "a", (fs_view *)job, "i4", 0, NULL, NULL, ends), FS_INVALID, "not an open fs_view");
  FAILS(fs_import_variable(import, 3, &info), FS_NOT_FOUND, "variable 3");
  FAILS(fs_import_variable(import, -1, &info), FS_NOT_FOUND, "variable -1");
  FAILS(fs_import_variable(import, 0, NULL), FS_INVALID, "place for the variable");
  FAILS(fs_import_local_shape(import, "a", NULL, &ndim, NULL), FS_INVALID, "place for the shape");
  OK(fs_view_block(1, far, one, NULL, NULL, &view));
  FAILS(fs_import_local_shape(import, "a", view, &ndim, shape), FS_INVALID, "variable `a`");
  FAILS(fs_view_block(1, far, one, NULL, NULL, NULL), FS_INVALID, "place for the view");
  FAILS(fs_view_grid(-1, far, NULL, &view), FS_INVALID, "-1 dimensions");
  CHECK(view == NULL);
  OK(fs_import_close(import));
  FAILS(fs_import_close(import), FS_INVALID, "not an open fs_import handle");
  OK(fs_import_close(NULL));
}

static void meshes(fs_arrays *job, fs_mesh **plate) {
  const double x[NODES] = {0, 1, 2, 0, 1, 2}, y[NODES] = {0, 0, 0, 1, 1, 1};
  const int64_t nodes[FACES][5] = {{1, 2, 5, 4, -1}, {2, 3, 6, 5, -1}}, outside[3] = {1, 2, 7};
  const fs_attr attrs[1] = {{"long_name", "S1", 5, "plate"}};
  const fs_attr of_x[1] = {{"units", "S1", 12, "degrees_east"}}, nameless[1] = {{NULL, "S1", 0, NULL}};
  const fs_mesh_content content = {.nodes = NODES,
                                   .x = x,
                                   .y = y,
                                   .faces = {FACES, 5, &nodes[0][0]},
                                   .base = 1,
                                   .ncoordinate_attrs = {1, 0, 0},
                                   .coordinate_attrs = {of_x, NULL, NULL},
                                   .nattrs = 1,
                                   .attrs = attrs};
  const fs_mesh_content wrong_attrs = {
      .nodes = NODES, .x = x, .y = y, .ncoordinate_attrs = {0, 1, 0}, .coordinate_attrs = {NULL, nameless, NULL}};
  const fs_mesh_content wrong = {.nodes = NODES, .x = x, .y = y, .faces = {1, 3, outside}, .base = 1};
  const fs_mesh_content space = {.nodes = NODES, .dimensions = 3, .x = x, .y = y};
  const fs_mesh_content flat = {.nodes = NODES, .dimensions = 9, .x = x, .y = y};
  const fs_mesh_content no_nodes = {.nodes = NODES, .x = x, .y = y, .edges = {1, 0, outside}};
  fs_mesh_counts counts;
  fs_mesh *mesh;
  char sum[40], again[40];
  double back[NODES];
  int32_t rows[FACES][4];
  uint64_t shape[FS_MAX_RANK];
  int ndim;
  OK(fs_arrays_create_mesh(job, "plate", &content, NULL, plate));
  OK(fs_mesh_info(*plate, &counts));
  CHECK(counts.nodes == NODES && counts.edges == 0 && counts.faces == FACES && counts.volumes == 0);
  OK(fs_mesh_read(*plate, "x", NULL, "f8", 0, NULL, NULL, back));
  CHECK(memcmp(back, x, sizeof x) == 0);
  OK(fs_mesh_local_shape(*plate, "faces", NULL, &ndim, shape));
  CHECK(ndim == 2 && shape[0] == FACES && shape[1] == 4);
  OK(fs_mesh_read(*plate, "faces", NULL, "i4", 0, NULL, NULL, rows)); /* from 0 on */
  CHECK(rows[0][0] == 0 && rows[0][2] == 4 && rows[1][3] == 4);
  OK(fs_mesh_checksum(*plate, sum, sizeof sum));
  CHECK(strlen(sum) == 32);
  OK(fs_arrays_mesh(job, "plate", "F", &mesh));
  OK(fs_mesh_checksum(mesh, again, sizeof again));
  CHECK(strcmp(sum, again) == 0);
  OK(fs_mesh_local_shape(mesh, "faces", NULL, &ndim, shape));
  CHECK(ndim == 2 && shape[0] == 4 && shape[1] == FACES);
  OK(fs_mesh_close(mesh));
  OK(fs_mesh_close(NULL));
  FAILS(fs_mesh_info(mesh, &counts), FS_INVALID, "not an open fs_mesh handle");
  FAILS(fs_arrays_mesh(job, "absent", NULL, &mesh), FS_NOT_FOUND, "absent");
  FAILS(fs_arrays_mesh(job, NULL, NULL, &mesh), FS_INVALID, "name of a mesh is null");
  FAILS(fs_arrays_mesh(job, "plate", "X", &mesh), FS_INVALID, "not an order");
  FAILS(fs_arrays_create_mesh(job, "b", &wrong, NULL, &mesh), FS_INVALID, "faces[0, 2] is 7");
  FAILS(fs_arrays_create_mesh(job, "b", &space, NULL, &mesh), FS_INVALID, "list of z is null");
  FAILS(fs_arrays_create_mesh(job, "b", &flat, NULL, &mesh), FS_INVALID, "9 dimensions");
  FAILS(fs_arrays_create_mesh(job, "b", &no_nodes, NULL, &mesh), FS_INVALID, "edges of no nodes");
  FAILS(fs_arrays_create_mesh(job, "b", &wrong_attrs, NULL, &mesh), FS_INVALID, "name of an attribute is null");
  FAILS(fs_arrays_create_mesh(job, "b", NULL, NULL, &mesh), FS_INVALID, "content");
  FAILS(fs_mesh_read(*plate, "w", NULL, "f8", 0, NULL, NULL, back), FS_NOT_FOUND, "no w");
  FAILS(fs_mesh_read(*plate, "z", NULL, "f8", 0, NULL, NULL, back), FS_NOT_FOUND, "z");
}

/* A group on a mesh has its extents, and takes views of a partition. */
static void on_mesh(fs_arrays *job, fs_mesh *plate) {
  const fs_set sets[2] = {{.name = "p", .dtype = "f8"}, {.name = "q", .dtype = "f4"}};
  const fs_group_options nodes = {.mesh = "plate", .location = "node"}, nowhere = {.mesh = "plate", .location = "corner"};
  const fs_group_options half = {.mesh = "plate"}, absent = {.mesh = "absent", .location = "node"};
  const fs_edges edges = {.mesh = plate};
  const fs_vector hilbert = {.kind = "hilbert"};
  fs_partition_counts counts;
  fs_partition *part;
  fs_group *group;
  fs_view *view;
  double p[NODES], back[NODES];
  int64_t numbers[NODES], ends[2 * EDGES];
  uint64_t shape[FS_MAX_RANK];
  int n, ndim;
  char text[64];
  FAILS(fs_arrays_group(job, "state", 2, sets, &nowhere, &group), FS_INVALID, "not a location");
  FAILS(fs_arrays_group(job, "state", 2, sets, &half, &group), FS_INVALID, "location");
  FAILS(fs_arrays_group(job, "state", 2, sets, &absent, &group), FS_NOT_FOUND, "absent");
  OK(fs_arrays_group(job, "state", 2, sets, &nodes, &group));
  OK(fs_arrays_partition(job, &edges, &hilbert, NULL, &part));
  OK(fs_partition_info(part, &counts));
  CHECK(counts.nodes == NODES && counts.owned == NODES && counts.edges == EDGES && counts.owned_edges == EDGES);
  OK(fs_partition_nodes(part, numbers, NODES));
  for (n = 0; n < NODES; n++) CHECK(numbers[n] == n);
  OK(fs_partition_ends(part, ends, 2 * EDGES));
  for (n = 0; n < 2 * EDGES; n++) CHECK(ends[n] >= 0 && ends[n] < NODES);
  OK(fs_partition_source(part, text, sizeof text));
  CHECK(strcmp(text, "computed") == 0);
  OK(fs_partition_ignored(part, text, sizeof text));
  CHECK(text[0] == 0);
  OK(fs_partition_node_view(part, 0, &view));
  OK(fs_group_view(group, 0, NULL, view));
  OK(fs_view_free(view));
  OK(fs_group_local_shape(group, "p", &ndim, shape));
  CHECK(ndim == 1 && shape[0] == NODES);
  for (n = 0; n < NODES; n++) p[n] = n / 2.0;
  OK(fs_partition_update(part, "f8", 0, NULL, NULL, p)); /* no ghosts: as it was */
  OK(fs_group_write(group, "p", 3, "f8", 0, NULL, NULL, p, 1));
  OK(fs_group_read(group, "p", 3, "f8", 0, NULL, NULL, back));
  CHECK(memcmp(p, back, sizeof p) == 0);
  OK(fs_partition_free(part));
  OK(fs_arrays_flush(job)); /* keeps the partition, too */
}

static void partitions(fs_arrays *job, fs_mesh *plate) {
  static const int64_t first[EDGES] = {1, 2, 4, 5, 1, 2, 3}, second[EDGES] = {2, 3, 5, 6, 4, 5, 6};
  static const int64_t outside[1] = {9}, zeros[NODES] = {0};
  const fs_edges arrays = {.count = EDGES, .first = first, .second = second};
  const fs_edges both = {.import = (fs_import *)plate, .mesh = plate}, odd = {.import = (fs_import *)plate};
  const fs_edges nowhere = {.count = 1, .first = outside, .second = first}, null = {.count = 3};
  const fs_vector block = {.kind = "block"}, hilbert = {.kind = "hilbert"}, file = {.kind = "file", .path = vector_path};
  const fs_vector all = {.kind = "replicated", .count = NODES, .ranks = zeros};
  const fs_vector shares = {.kind = "shares", .count = NODES, .ranks = zeros}, unknown = {.kind = "best"};
  const fs_vector absent = {.kind = "file", .path = "/no/such/vector"}, pathless = {.kind = "file"};
  const fs_vector beyond = {.kind = "replicated", .count = NODES, .ranks = first};
  const fs_partition_options from_one = {.base = 1}, ring = {.base = 1, .method = "ring", .no_history = 1};
  const fs_partition_options counted = {.nodes = NODES, .base = 1}, other = {.method = "best"}, two = {.base = 2};
  const fs_vector *const vectors[3] = {&all, &shares, &file};
  const uint64_t pairs[2] = {NODES, 2}, few[2] = {NODES - 1, 2};
  const fs_edges mesh = {.mesh = plate};
  fs_edges imported = {.first_name = "a", .second_name = "b"};
  fs_import *import;
  fs_partition *part;
  fs_view *view;
  int64_t numbers[NODES];
  double xy[NODES][2] = {{0}};
  char text[64];
  int n;
  for (n = 0; n < 3; n++) {
    OK(fs_arrays_partition(job, &arrays, vectors[n], &from_one, &part));
    OK(fs_partition_source(part, text, sizeof text));
    CHECK(strcmp(text, "computed") == 0); /* only a flush declares the history */
    OK(fs_partition_free(part));
  }
  OK(fs_arrays_flush(job));
  OK(fs_arrays_partition(job, &arrays, &all, &from_one, &part));
  OK(fs_partition_source(part, text, sizeof text));
  CHECK(strcmp(text, "parts") == 0);
  OK(fs_arrays_partition(job, &arrays, &all, &ring, &part)); /* without history */
  OK(fs_partition_source(part, text, sizeof text));
  CHECK(strcmp(text, "computed") == 0);
  OK(fs_partition_edge_view(part, 1, &view));
  OK(fs_view_free(view));
  OK(fs_partition_update(part, "f8", 2, pairs, NULL, xy));
  FAILS(fs_partition_update(part, "f8", 2, few, NULL, xy), FS_INVALID, "does not fit 6 nodes");
  FAILS(fs_partition_update(part, "f8", 0, pairs, NULL, xy), FS_INVALID, "0 dimensions");
  FAILS(fs_partition_update(part, NULL, 2, pairs, NULL, xy), FS_INVALID, "dtype is null");
  FAILS(fs_partition_update(part, "f8", 2, pairs, NULL, NULL), FS_INVALID, "data is null");
  FAILS(fs_partition_nodes(part, numbers, 2), FS_INVALID, "room for 2");
  FAILS(fs_partition_nodes(part, NULL, NODES), FS_INVALID, "place for the numbers");
  FAILS(fs_partition_node_view(part, -1, &view), FS_INVALID, "-1 as a dimension");
  OK(fs_arrays_partition(job, &arrays, &block, &counted, &part));

  open_raw(job, NULL, &import);
  imported.import = import;
  OK(fs_arrays_partition(job, &imported, &all, &from_one, &part));
  OK(fs_partition_free(part));
  imported.second_name = "absent";
  FAILS(fs_arrays_partition(job, &imported, &all, &from_one, &part), FS_NOT_FOUND, "absent");
  imported.second_name = NULL;
  FAILS(fs_arrays_partition(job, &imported, &all, &from_one, &part), FS_INVALID, "second ends is null");

  FAILS(fs_arrays_partition(job, NULL, &all, NULL, &part), FS_INVALID, "edges is null");
  FAILS(fs_arrays_partition(job, &arrays, NULL, NULL, &part), FS_INVALID, "vector is null");
  FAILS(fs_arrays_partition(job, &both, &all, NULL, &part), FS_INVALID, "an import and of a mesh");
  FAILS(fs_arrays_partition(job, &odd, &all, NULL, &part), FS_INVALID, "not an open fs_import handle");
  FAILS(fs_arrays_partition(job, &null, &all, NULL, &part), FS_INVALID, "first ends is null");
  FAILS(fs_arrays_partition(job, &nowhere, &all, &from_one, &part), FS_INVALID, "9");
  FAILS(fs_arrays_partition(job, &arrays, &hilbert, &from_one, &part), FS_INVALID, "coordinates");
  FAILS(fs_arrays_partition(job, &arrays, &unknown, &from_one, &part), FS_INVALID, "'best' is not a kind");
  FAILS(fs_arrays_partition(job, &arrays, &absent, &from_one, &part), FS_NOT_FOUND, "/no/such/vector");
  FAILS(fs_arrays_partition(job, &arrays, &pathless, &from_one, &part), FS_INVALID, "path of a vector is null");
  FAILS(fs_arrays_partition(job, &arrays, &beyond, &from_one, &part), FS_INVALID, "rank");
  FAILS(fs_arrays_partition(job, &arrays, &all, &other, &part), FS_INVALID, "not a method");
  FAILS(fs_arrays_partition(job, &arrays, &all, &two, &part), FS_INVALID, "nodes are 2 to 7");
  FAILS(fs_arrays_partition(job, &arrays, &all, NULL, NULL), FS_INVALID, "place for the partition");
  CHECK(part == NULL);
  OK(fs_arrays_partition(job, &mesh, &hilbert, NULL, &part)); /* the job goes on, with the history */
  OK(fs_partition_source(part, text, sizeof text));
  CHECK(strcmp(text, "parts") == 0);
}

int main(int argc, char **argv) {
  static char paths[3][1024];
  fs_store *store;
  fs_arrays *job;
  fs_mesh *plate;
  fs_view *view;
  int64_t map[1] = {0};
  CHECK(argc == 2);
  snprintf(paths[0], sizeof paths[0], "%s.raw", argv[1]), raw_path = paths[0];
  snprintf(paths[1], sizeof paths[1], "%s.nc", argv[1]), netcdf_path = paths[1];
  snprintf(paths[2], sizeof paths[2], "%s.vector", argv[1]), vector_path = paths[2];
  make_files();
  OK(fs_open(argv[1], "a", NULL, &store));
  OK(fs_arrays_open(store, "plate", NULL, NULL, &job));
  imports(job);
  refused(job);
  meshes(job, &plate);
  on_mesh(job, plate);
  partitions(job, plate);
  OK(fs_arrays_close(job)); /* with an open import, mesh and partitions */
  FAILS(fs_mesh_close(plate), FS_INVALID, "not an open fs_mesh handle");
  FAILS(fs_arrays_mesh(job, "plate", NULL, &plate), FS_INVALID, "not an open fs_arrays handle");

  OK(fs_arrays_open(store, "plate", NULL, NULL, &job));
  OK(fs_arrays_mesh(job, "plate", NULL, &plate));
  OK(fs_arrays_abandon(job, "no more"));
  FAILS(fs_mesh_close(plate), FS_INVALID, "not an open fs_mesh handle");
  OK(fs_view_irregular(1, map, -1, -1, &view)); /* a view belongs to no job */
  OK(fs_view_free(view));
  OK(fs_close(store));
  return 0;
}
