/* Distributed arrays in one process: every call, and every refused argument. */
#include "check.h"

enum { NX = 4, NY = 3 };

static void declare(fs_arrays *job, fs_group **flow, fs_group **particles) {
  const uint64_t shape[2] = {NY, NX}, varying[2] = {FS_VARYING, 3};
  const char *const dims[2] = {"y", NULL};
  const double fill = -1;
  const double range[2] = {0, 50};
  const fs_attr attrs[2] = {{"units", "S1", 1, "K"}, {"valid", "f8", 2, range}};
  const fs_set sets[2] = {{"t", "f8", 2, shape, dims, &fill, 2, attrs}, {"n", "i4", 2, shape, NULL, NULL, 0, NULL}};
  const fs_set set = {"x", "f4", 2, varying, NULL, NULL, 0, NULL};
  const fs_group_options options = {.level = 2, .method = "direct", .order = "C", .nattrs = 1, .attrs = attrs};
  OK(fs_arrays_group(job, "flow", 2, sets, &options, flow));
  OK(fs_arrays_group(job, "particles", 1, &set, NULL, particles));
}

static void regular(fs_arrays *job, fs_group *flow) {
  const char *const only_t[1] = {"t"};
  const uint64_t start[2] = {0, 1}, count[2] = {NY, 2}, stride[2] = {2, 1}, rows[2] = {2, 2};
  const uint64_t halo[4] = {0, 0, 1, 1}, one[2] = {1, 1};
  /* Rows from the last to the first, every second column of a wider array. */
  double wide[NY][4], back[NY][2], around[NY][4];
  const int64_t turned[2] = {-(int64_t)sizeof wide[0], 2 * (int64_t)sizeof(double)};
  const double *sent = &wide[NY - 1][0];
  int32_t n[NY][NX] = {{0}};
  uint64_t shape[FS_MAX_RANK];
  int ndim, y, x;
  for (y = 0; y < NY; y++)
    for (x = 0; x < 4; x++) wide[y][x] = 10 * (NY - 1 - y) + x / 2.0;
  OK(fs_group_view_block(flow, 1, only_t, 2, start, count, NULL, NULL));
  OK(fs_group_local_shape(flow, "t", &ndim, shape));
  CHECK(ndim == 2 && shape[0] == NY && shape[1] == 2);
  OK(fs_group_write(flow, "t", 6, "f8", 2, count, turned, sent, 1));
  memset(back, 0, sizeof back);
  OK(fs_group_read(flow, "t", 6, NULL, 0, NULL, NULL, back)); /* before the flush */
  for (y = 0; y < NY; y++)
    for (x = 0; x < 2; x++) CHECK(back[y][x] == 10 * y + x);

  /* With a halo memory is larger; unwritten elements have the fill value. */
  OK(fs_group_view_block(flow, 1, only_t, 2, start, count, halo, NULL));
  OK(fs_group_read(flow, "t", 6, "f8", 0, NULL, NULL, around));
  for (y = 0; y < NY; y++) CHECK(around[y][0] == -1 && around[y][2] == 10 * y + 1 && around[y][3] == -1);
  OK(fs_group_view_block(flow, 1, only_t, 2, start, rows, NULL, stride));
  OK(fs_group_read(flow, "t", 6, "f8", 2, rows, NULL, back));
  CHECK(back[0][1] == 1 && back[1][0] == 20 && back[1][1] == 21);

  /* Without a view one process has the whole array; the data are in the other byte order. */
  n[2][1] = 1 << 24;
  OK(fs_group_write(flow, "n", 6, ">i4", 0, NULL, NULL, n, 0));
  OK(fs_group_view_grid(flow, 0, NULL, 2, one, NULL));
  OK(fs_group_read(flow, "n", 6, "i4", 0, NULL, NULL, n));
  CHECK(n[2][1] == 1);
  OK(fs_arrays_flush(job));
  OK(fs_group_write(flow, "n", 12, "i4", 0, NULL, NULL, n, 1));
  OK(fs_arrays_discard(job));
}

static void by_map(fs_group *flow, fs_group *particles) {
  const int64_t map[3] = {3, -1, 0};
  const uint64_t grid[2] = {1, 1}, blocks[2] = {2, 2};
  double t[NY][3], some[3] = {7, 7, 7};
  float x[2][3] = {{1, 2, 3}, {4, 5, 6}}, back[2][3];
  OK(fs_group_view_irregular(flow, 0, NULL, 3, map, -1, 1));
  OK(fs_group_read(flow, "t", 6, NULL, 0, NULL, NULL, t));
  CHECK(t[1][0] == -1 && t[2][0] == -1);
  OK(fs_group_view_irregular(flow, 0, NULL, 3, map, 1, -1)); /* elements by their number */
  OK(fs_group_read(flow, "t", 6, NULL, 0, NULL, NULL, some));
  CHECK(some[0] == -1 && some[1] == 7 && some[2] == -1);
  OK(fs_group_view_cyclic(flow, 0, NULL, 2, grid, blocks));
  OK(fs_group_view_joined(particles, 0, NULL, 2));
  OK(fs_group_write(particles, "x", 6, "f4", 0, NULL, NULL, x, 1));
  OK(fs_group_read(particles, "x", 6, "f4", 0, NULL, NULL, back));
  CHECK(memcmp(x, back, sizeof x) == 0);
}

static void asked(fs_arrays *job, fs_group *flow, fs_group *particles) {
  int64_t steps[2] = {-1, -1}, step = -1;
  size_t count = 9;
  int found = -1, level = 0;
  char text[200], shorter[8];
  fs_arrays_counts counts;
  OK(fs_group_steps(flow, "t", steps, 2, &count));
  CHECK(count == 1 && steps[0] == 6 && steps[1] == -1);
  OK(fs_group_steps(flow, "t", NULL, 0, &count));
  CHECK(count == 1);
  OK(fs_group_last_step(flow, &step, &found));
  CHECK(found == 1 && step == 6);
  OK(fs_group_last_step(particles, &step, &found)); /* not flushed yet */
  CHECK(found == 0);
  OK(fs_group_level(flow, &level));
  CHECK(level == 2);
  OK(fs_group_why(flow, text, sizeof text));
  CHECK(strstr(text, "level 2"));
  OK(fs_group_why(flow, shorter, sizeof shorter));
  CHECK(strncmp(text, shorter, 7) == 0 && shorter[7] == 0);
  OK(fs_arrays_run(job, text, sizeof text));
  CHECK(strcmp(text, "all") == 0);
  OK(fs_arrays_report(job, &counts));
  CHECK(counts.written > 0 && counts.read > 0 && counts.opened > 0 && counts.write_seconds > 0);
}

/* A set that an open group lacks is added. */
static void further(fs_arrays *job, fs_group *flow) {
  const uint64_t shape[2] = {NY, NX};
  const fs_set set = {"w", "i4", 2, shape, NULL, NULL, 0, NULL};
  int32_t w[NY][NX] = {{5}}, back[NY][NX];
  fs_group *group;
  OK(fs_arrays_group(job, "flow", 1, &set, NULL, &group));
  OK(fs_group_write(group, "w", 18, "i4", 0, NULL, NULL, w, 1));
  OK(fs_group_read(flow, "w", 18, "i4", 0, NULL, NULL, back));
  CHECK(memcmp(w, back, sizeof w) == 0);
}

static void refused(fs_arrays *job, fs_group *flow) {
  const uint64_t shape[2] = {NY, NX}, other[2] = {NX, NY};
  const int64_t far[2] = {INT64_MAX, INT64_MAX};
  const fs_set sets[1] = {{"t", "q8", 2, shape, NULL, NULL, 0, NULL}};
  const fs_set endless[1] = {{"t", "f8", 99, shape, NULL, NULL, 0, NULL}};
  const fs_set differs[1] = {{"t", "f4", 2, shape, NULL, NULL, 0, NULL}};
  const fs_group_options level = {.level = 7}, order = {.order = "X"}, chunks = {.nchunks = 1};
  const uint64_t one[2] = {1, 1};
  const char *const absent[1] = {"absent"};
  double t[NY][NX];
  fs_group *group = flow;
  int64_t step;
  OK(fs_group_view_grid(flow, 0, NULL, 2, one, NULL));
  FAILS(fs_arrays_group(job, "a", 1, NULL, NULL, &group), FS_INVALID, "list of sets is null");
  CHECK(group == NULL);
  FAILS(fs_arrays_group(job, "a", -1, sets, NULL, &group), FS_INVALID, "-1 sets");
  FAILS(fs_arrays_group(job, "a", 0, sets, NULL, &group), FS_INVALID, "without sets");
  FAILS(fs_arrays_group(job, NULL, 1, sets, NULL, &group), FS_INVALID, "is null");
  FAILS(fs_arrays_group(job, "a", 1, sets, NULL, &group), FS_INVALID, "q8");
  FAILS(fs_arrays_group(job, "a", 1, endless, NULL, &group), FS_INVALID, "99 dimensions");
  FAILS(fs_arrays_group(job, "a", 1, differs, &level, &group), FS_INVALID, "7 is not a level");
  FAILS(fs_arrays_group(job, "a", 1, differs, &order, &group), FS_INVALID, "not an order");
  FAILS(fs_arrays_group(job, "a", 1, differs, &chunks, &group), FS_INVALID, "extents of chunks is null");
  FAILS(fs_arrays_group(job, "flow", 1, differs, NULL, &group), FS_CONFLICT, "another");
  FAILS(fs_arrays_group(job, "a", 1, differs, NULL, NULL), FS_INVALID, "place for the group");
  FAILS(fs_arrays_declared_group(job, "absent", &group), FS_NOT_FOUND, "absent");
  FAILS(fs_arrays_open(NULL, "b", NULL, NULL, &job), FS_INVALID, "fs_store handle is null");

  FAILS(fs_group_view_grid(flow, 1, absent, 2, one, NULL), FS_NOT_FOUND, "absent");
  FAILS(fs_group_view_grid(flow, 0, NULL, 2, NULL, NULL), FS_INVALID, "grid is null");
  FAILS(fs_group_view_irregular(flow, 0, NULL, 2, NULL, -1, 0), FS_INVALID, "map is null");
  FAILS(fs_group_view_irregular(flow, 0, NULL, 0, NULL, -2, 0), FS_INVALID, "-2 owned");
  FAILS(fs_group_write(flow, "absent", 0, "f8", 0, NULL, NULL, t, 1), FS_NOT_FOUND, "absent");
  FAILS(fs_group_write(flow, NULL, 0, "f8", 0, NULL, NULL, t, 1), FS_INVALID, "set is null");
  FAILS(fs_group_write(flow, "t", 0, "f4", 0, NULL, NULL, t, 1), FS_INVALID, "float32");
  FAILS(fs_group_write(flow, "t", 0, "f8", 2, other, NULL, t, 1), FS_INVALID, "[4, 3]");
  FAILS(fs_group_write(flow, "t", 0, "f8", 1, other, NULL, t, 1), FS_INVALID, "1 dimensions");
  FAILS(fs_group_write(flow, "t", 0, "f8", 2, NULL, far, t, 1), FS_INVALID, "do not fit memory");
  FAILS(fs_group_write(flow, "t", 0, "f8", 0, NULL, NULL, NULL, 1), FS_INVALID, "data is null");
  FAILS(fs_group_read(flow, "t", 99, "f8", 0, NULL, NULL, t), FS_NOT_FOUND, "99");
  FAILS(fs_group_read(flow, "t", 6, "f8", 0, NULL, NULL, NULL), FS_INVALID, "data is null");
  FAILS(fs_group_read(flow, NULL, 6, "f8", 0, NULL, NULL, t), FS_INVALID, "set is null");
  FAILS(fs_group_last_step(flow, &step, NULL), FS_INVALID, "place for found");
  FAILS(fs_group_level((fs_group *)job, NULL), FS_INVALID, "level is null");
  /* The job goes on. */
  OK(fs_group_read(flow, "t", 6, "f8", 0, NULL, NULL, t));
}

/* Hints of a job, a group and a call: hints without effect are named. */
static void hinted(fs_store *store) {
  const fs_hint of_job[1] = {{"direct_write", "true"}}, of_group[1] = {{"striping_unit", "1048576"}};
  const fs_hint of_call[2] = {{"cb_nodes", "1"}, {"romio_cb_write", "enable"}};
  const fs_hint wrong[1] = {{"cb_nodes", "many"}}, keyless[1] = {{NULL, "1"}};
  const fs_arrays_options options = {.nhints = 1, .hints = of_job}, bad_options = {.nhints = 1, .hints = wrong};
  const fs_group_options of = {.level = 1, .nhints = 1, .hints = of_group}, bad = {.nhints = 1, .hints = keyless};
  const uint64_t shape[1] = {NX}, start[1] = {1}, two[1] = {2};
  const fs_set set = {"a", "f4", 1, shape, NULL, NULL, 0, NULL};
  const float a[NX] = {1, 2, 3, 4};
  float back[2];
  fs_arrays *job;
  fs_group *group;
  fs_view *view;
  char why[400];
  FAILS(fs_arrays_open(store, "hinted", NULL, &bad_options, &job), FS_INVALID, "cb_nodes");
  OK(fs_arrays_open(store, "hinted", NULL, &options, &job));
  FAILS(fs_arrays_group(job, "g", 1, &set, &bad, &group), FS_INVALID, "key of a hint is null");
  OK(fs_arrays_group(job, "g", 1, &set, &of, &group));
  FAILS(fs_group_write_with(group, "a", 0, "f4", 0, NULL, NULL, a, 1, 1, wrong), FS_INVALID, "cb_nodes");
  FAILS(fs_group_write_with(group, "a", 0, "f4", 0, NULL, NULL, a, 1, -1, wrong), FS_INVALID, "-1 hints");
  OK(fs_group_write_with(group, "a", 0, "f4", 0, NULL, NULL, a, 1, 2, of_call));
  OK(fs_group_why(group, why, sizeof why));
  CHECK(strstr(why, "no library took the hints ") && strstr(why, "striping_unit=1048576"));
  CHECK(strstr(why, "romio_cb_write=enable") && !strstr(why, "cb_nodes=1"));
  OK(fs_view_block(1, start, two, NULL, NULL, &view));
  FAILS(fs_group_read_with(group, "a", 0, view, "f4", 0, NULL, NULL, back, 1, wrong), FS_INVALID, "cb_nodes");
  OK(fs_group_read_with(group, "a", 0, view, "f4", 0, NULL, NULL, back, 2, of_call));
  CHECK(back[0] == 2 && back[1] == 3);
  OK(fs_view_free(view));
  FAILS(fs_group_view(group, 0, NULL, view), FS_INVALID, "not an open fs_view handle");
  OK(fs_arrays_close(job));
}

/* Arrays in the store's logs, chunked and compressed. */
static void in_logs(fs_store *store) {
  const fs_arrays_options fields = {.layout = "fields"}, nowhere = {.layout = "hdf5"};
  const uint64_t shape[2] = {NY, NX}, chunks[2] = {2, 3};
  const fs_set sets[1] = {{"h", "f2", 2, shape, NULL, NULL, 0, NULL}};
  const fs_group_options options = {.nchunks = 2, .chunks = chunks, .compression = "zstd:3"};
  const fs_group_options wrong = {.compression = "lz4"};
  uint16_t h[NY * NX], back[NY * NX];
  fs_arrays *job;
  fs_group *group;
  int level = 9, i;
  for (i = 0; i < NY * NX; i++) h[i] = (uint16_t)(i * 77);
  FAILS(fs_arrays_open(store, "logs", NULL, &nowhere, &job), FS_INVALID, "not a layout");
  OK(fs_arrays_open(store, "logs", NULL, &fields, &job));
  FAILS(fs_arrays_group(job, "g", 1, sets, &wrong, &group), FS_INVALID, "not a compression");
  OK(fs_arrays_group(job, "g", 1, sets, &options, &group));
  OK(fs_group_level(group, &level));
  CHECK(level == 0);
  OK(fs_group_write(group, "h", 0, "f2", 0, NULL, NULL, h, 1));
  OK(fs_arrays_flush(job));
  OK(fs_group_read(group, "h", 0, "f2", 0, NULL, NULL, back));
  CHECK(memcmp(h, back, sizeof h) == 0);
  OK(fs_arrays_close(job));
}

int main(int argc, char **argv) {
  fs_store *store;
  fs_arrays *job;
  fs_group *flow, *particles, *again;
  const fs_arrays_options options = {.project = "C", .writers = 1, .readers = 1, .buffer = 1 << 20};
  char name[64];
  CHECK(argc == 2);
  OK(fs_open(argv[1], "a", NULL, &store));
  OK(fs_arrays_open(store, "all", NULL, &options, &job));
  declare(job, &flow, &particles);
  regular(job, flow);
  by_map(flow, particles);
  asked(job, flow, particles);
  further(job, flow);
  refused(job, flow);
  OK(fs_arrays_declared_group(job, "flow", &again));
  OK(fs_arrays_close(job));
  FAILS(fs_arrays_flush(job), FS_INVALID, "not an open fs_arrays handle");
  FAILS(fs_group_why(again, name, sizeof name), FS_INVALID, "not an open fs_group handle");
  OK(fs_arrays_close(NULL));

  /* The run goes on, and the same declarations are accepted again, even if an extent varies. */
  OK(fs_close(store));
  OK(fs_open(argv[1], "a", NULL, &store));
  OK(fs_arrays_open(store, "all", NULL, &options, &job));
  declare(job, &flow, &particles);
  by_map(flow, particles);
  OK(fs_arrays_close(job));

  in_logs(store);
  hinted(store);

  /* A run without a name gets one; an abandoned job leaves nothing. */
  OK(fs_arrays_open(store, NULL, NULL, NULL, &job));
  OK(fs_arrays_run(job, name, sizeof name));
  CHECK(strncmp(name, "run-", 4) == 0);
  OK(fs_arrays_abandon(job, "no more"));
  FAILS(fs_arrays_close(job), FS_INVALID, "not an open fs_arrays handle");
  OK(fs_close(store));
  return 0;
}
