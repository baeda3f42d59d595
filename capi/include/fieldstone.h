/*
 * Fieldstone for C: archive fields by key, flush, get them back.
 *
 * Generated from capi/src by `UPDATE_HEADER=1 cargo test -p fieldstone-capi --test header`; not edited by hand.
 * The guide is docs/guide/c-fortran.md.
 *
 * Rules of every call:
 *  - A call that can fail returns FS_OK or the kind of error; fs_error_message(), fs_error_hint() and
 *    fs_error_code() then describe this thread's last failed call.
 *  - Texts are UTF-8 and end in a zero byte. A key is text such as "run=a,variable=t,step=6". Values with
 *    one of , / * = " and the like need quotes: fs_key_text() adds them.
 *  - Arrays are in C order (row-major): the last dimension varies fastest. A box is `start` and `count` for
 *    each dimension, counted from 0. An element type is numpy's: "f8", "<i4", "c16", "datetime64[ns]";
 *    without a sign it has this machine's byte order.
 *  - Several threads may use a handle at once. A null, closed or mistaken handle is FS_INVALID.
 *  - Other pointers must be null or point to as much memory as the call's other arguments say.
 *  - No reader sees an archived field before fs_flush or fs_close.
 */

#ifndef FIELDSTONE_H
#define FIELDSTONE_H

#include <stddef.h>
#include <stdint.h>

/* The codes that fs_error_code() returns; docs/guide/error-codes.md explains each. */
#define FS_CODE_INTERNAL "internal"
#define FS_CODE_INVALID "invalid"
#define FS_CODE_KEYWORD_UNKNOWN "keyword-unknown"
#define FS_CODE_KEYWORD_MISSING "keyword-missing"
#define FS_CODE_KEYWORD_VALUE "keyword-value"
#define FS_CODE_KEY_CONTRADICTION "key-contradiction"
#define FS_CODE_REQUEST_SYNTAX "request-syntax"
#define FS_CODE_REQUEST_TOO_BROAD "request-too-broad"
#define FS_CODE_SCHEMA_SYNTAX "schema-syntax"
#define FS_CODE_SCHEMA_ROLE "schema-role"
#define FS_CODE_RULE_TAKEN "rule-taken"
#define FS_CODE_QUERY_SYNTAX "query-syntax"
#define FS_CODE_SQL "sql"
#define FS_CODE_URL "url"
#define FS_CODE_OPTION "option"
#define FS_CODE_ARGUMENT "argument"
#define FS_CODE_CLOSED "closed"
#define FS_CODE_DTYPE "dtype"
#define FS_CODE_DTYPE_MISMATCH "dtype-mismatch"
#define FS_CODE_SHAPE "shape"
#define FS_CODE_SHAPE_MISMATCH "shape-mismatch"
#define FS_CODE_BUFFER_SIZE "buffer-size"
#define FS_CODE_BOX "box"
#define FS_CODE_NOT_AN_ARRAY "not-an-array"
#define FS_CODE_VALUE "value"
#define FS_CODE_VALUE_TYPE "value-type"
#define FS_CODE_NAME "name"
#define FS_CODE_FILE_KIND "file-kind"
#define FS_CODE_FILE_FORMAT "file-format"
#define FS_CODE_NOTHING_TAKEN "nothing-taken"
#define FS_CODE_TOO_LARGE "too-large"
#define FS_CODE_CONTAINER_MODE "container-mode"
#define FS_CODE_CONTAINER_LIMIT "container-limit"
#define FS_CODE_CONTAINER_FORMAT "container-format"
#define FS_CODE_WRONG_STORE "wrong-store"
#define FS_CODE_COMMAND_LINE "command-line"
#define FS_CODE_NOT_FOUND "not-found"
#define FS_CODE_STORE_NOT_FOUND "store-not-found"
#define FS_CODE_FIELD_NOT_FOUND "field-not-found"
#define FS_CODE_FIELD_INCOMPLETE "field-incomplete"
#define FS_CODE_RUN_NOT_FOUND "run-not-found"
#define FS_CODE_VARIABLE_NOT_FOUND "variable-not-found"
#define FS_CODE_VERSION_NOT_FOUND "version-not-found"
#define FS_CODE_VERSION_PURGED "version-purged"
#define FS_CODE_VERTEX_NOT_FOUND "vertex-not-found"
#define FS_CODE_VERSION_ARCHIVED "version-archived"
#define FS_CODE_RELATION_NOT_FOUND "relation-not-found"
#define FS_CODE_FILE_NOT_FOUND "file-not-found"
#define FS_CODE_CONFLICT "conflict"
#define FS_CODE_STORE_EXISTS "store-exists"
#define FS_CODE_STORE_REPLACED "store-replaced"
#define FS_CODE_SCHEMA_DIFFERS "schema-differs"
#define FS_CODE_SCHEMA_RACED "schema-raced"
#define FS_CODE_RUN_EXISTS "run-exists"
#define FS_CODE_RUN_DIFFERS "run-differs"
#define FS_CODE_VARIABLE_DIFFERS "variable-differs"
#define FS_CODE_TYPE_DIFFERS "type-differs"
#define FS_CODE_STEP_DIFFERS "step-differs"
#define FS_CODE_FIELD_EXISTS "field-exists"
#define FS_CODE_PIECES_DIFFER "pieces-differ"
#define FS_CODE_TRANSACTION_DECIDED "transaction-decided"
#define FS_CODE_TRANSACTION_RACED "transaction-raced"
#define FS_CODE_ATTEMPT_ENDED "attempt-ended"
#define FS_CODE_TARGET_EXISTS "target-exists"
#define FS_CODE_TARGET_DIFFERS "target-differs"
#define FS_CODE_FILE_CHANGED "file-changed"
#define FS_CODE_FILE_REPLACED "file-replaced"
#define FS_CODE_DEFINITION_EXISTS "definition-exists"
#define FS_CODE_DEFINITION_DIFFERS "definition-differs"
#define FS_CODE_COLLECTIVE_MISMATCH "collective-mismatch"
#define FS_CODE_LATER_TABLES "later-tables"
#define FS_CODE_CORRUPT "corrupt"
#define FS_CODE_CHECKSUM "checksum"
#define FS_CODE_TRUNCATED "truncated"
#define FS_CODE_LOG_SHORTENED "log-shortened"
#define FS_CODE_DATA_GONE "data-gone"
#define FS_CODE_LOGS_GONE "logs-gone"
#define FS_CODE_FORMAT_VERSION "format-version"
#define FS_CODE_OUTSIDE_CHANGED "outside-changed"
#define FS_CODE_ENGINE_DAMAGED "engine-damaged"
#define FS_CODE_CONTAINER_UNFINISHED "container-unfinished"
#define FS_CODE_COPY_DIFFERS "copy-differs"
#define FS_CODE_DENIED "denied"
#define FS_CODE_PERMISSION_DENIED "permission-denied"
#define FS_CODE_READ_ONLY "read-only"
#define FS_CODE_DATASET_OWNED "dataset-owned"
#define FS_CODE_DATASET_LOCKED "dataset-locked"
#define FS_CODE_STORE_OWNED "store-owned"
#define FS_CODE_RUN_OWNED "run-owned"
#define FS_CODE_RELATION_OWNED "relation-owned"
#define FS_CODE_ATTRIBUTE_OWNED "attribute-owned"
#define FS_CODE_TRANSACTION_OWNED "transaction-owned"
#define FS_CODE_OUTSIDE_FILTER "outside-filter"
#define FS_CODE_LATER_STORE "later-store"
#define FS_CODE_FORMAT_PINNED "format-pinned"
#define FS_CODE_ENGINE_DENIED "engine-denied"
#define FS_CODE_UNAVAILABLE "unavailable"
#define FS_CODE_DISK_FULL "disk-full"
#define FS_CODE_INODES_FULL "inodes-full"
#define FS_CODE_IO_FAILED "io-failed"
#define FS_CODE_OUT_OF_MEMORY "out-of-memory"
#define FS_CODE_PROCESS_LIMIT "process-limit"
#define FS_CODE_LOG_GONE "log-gone"
#define FS_CODE_LOG_ENDED "log-ended"
#define FS_CODE_STORE_GONE "store-gone"
#define FS_CODE_ENGINE_BUSY "engine-busy"
#define FS_CODE_ENGINE_LOST "engine-lost"
#define FS_CODE_ENGINE_UNREACHABLE "engine-unreachable"
#define FS_CODE_FORKED "forked"
#define FS_CODE_CANCELLED "cancelled"
#define FS_CODE_DEADLINE_PASSED "deadline-passed"
#define FS_CODE_RANK_FAILED "rank-failed"
#define FS_CODE_HELPER_FAILED "helper-failed"
#define FS_CODE_LIBRARY_MISSING "library-missing"

/*
 Most dimensions of an array.
 */
#define FS_MAX_RANK 32

/*
 Size of the text of an element type, including its zero byte.
 */
#define FS_DTYPE_SIZE 32

/*
 As a dimension's length: the record dimension, which grows.
 */
#define FS_RECORD UINT64_MAX

/*
 As the variable of an attribute: the container itself.
 */
#define FS_GLOBAL UINT32_MAX

/*
 As the first extent of a set's shape: the extent differs from step to step and is the sum over all ranks.
 */
#define FS_VARYING UINT64_MAX

/*
 Size of the name of a file's variable, including its zero byte.
 */
#define FS_NAME_SIZE 257

/*
 The result of a call; the numbers are those of the program's exit codes.
 */
typedef enum fs_status {
  /*
   Success.
   */
  FS_OK = 0,
  /*
   A defect of Fieldstone: report it.
   */
  FS_INTERNAL = 1,
  /*
   The call itself is wrong: correct it.
   */
  FS_INVALID = 2,
  /*
   The requested object does not exist.
   */
  FS_NOT_FOUND = 3,
  /*
   Two statements contradict each other.
   */
  FS_CONFLICT = 4,
  /*
   Stored bytes are damaged; the message names the file.
   */
  FS_CORRUPT = 5,
  /*
   The caller lacks permission.
   */
  FS_DENIED = 6,
  /*
   The medium failed or is full: repair it and try again.
   */
  FS_UNAVAILABLE = 7,
} fs_status;

/*
 A job: the ranks that write and read groups of arrays together.
 */
typedef struct fs_arrays fs_arrays;

/*
 An open container.
 */
typedef struct fs_container fs_container;

/*
 A group of a job.
 */
typedef struct fs_group fs_group;

/*
 An outside file that all ranks of a job have open.
 */
typedef struct fs_import fs_import;

/*
 A key under construction.
 */
typedef struct fs_key fs_key;

/*
 A list that a caller reads.
 */
typedef struct fs_list fs_list;

/*
 An unstructured mesh that all ranks of a job have open.
 */
typedef struct fs_mesh fs_mesh;

/*
 A rank's part of an unstructured mesh.
 */
typedef struct fs_partition fs_partition;

/*
 An open store.
 */
typedef struct fs_store fs_store;

/*
 The part of an array that a rank holds.
 */
typedef struct fs_view fs_view;

/*
 Description of a field.
 */
typedef struct fs_field_info {
  /*
   Raw bytes of the field.
   */
  uint64_t nbytes;
  /*
   Dimensions of an array; -1 for opaque bytes.
   */
  int32_t ndim;
  /*
   1 if every element was written, else 0.
   */
  int32_t complete;
  /*
   Element type with its byte order, such as "<f8"; "" for opaque bytes.
   */
  char dtype[FS_DTYPE_SIZE];
  /*
   Extents of the array; 0 from `ndim` on.
   */
  uint64_t shape[FS_MAX_RANK];
} fs_field_info;

/*
 The ranks of a job, as include/fieldstone_mpi.h makes them from an MPI communicator. Lists of bytes are
 concatenated in the order of ranks. Every function returns 0 or a number of errno.h.
 */
typedef struct fs_comm {
  /*
   The first argument of each function; it must live until every container and job that uses it is
   closed.
   */
  void *context;
  /*
   This rank's number.
   */
  int rank;
  /*
   Number of ranks.
   */
  int size;
  /*
   Returns after all ranks have called it.
   */
  int (*barrier)(void *context);
  /*
   Sends the bytes of `root` to every rank.
   */
  int (*broadcast)(void *context, int root, void *data, int length);
  /*
   Collects the bytes of each rank on every rank, or, if `root` is at least 0, on that rank alone.
   */
  int (*gather)(void *context,
                int root,
                const void *send,
                int length,
                void *receive,
                const int *lengths,
                const int *places);
  /*
   Sends each rank its own bytes.
   */
  int (*alltoall)(void *context,
                  const void *send,
                  const int *send_lengths,
                  const int *send_places,
                  void *receive,
                  const int *lengths,
                  const int *places);
  /*
   Replaces each value by its sum over the lower ranks; the result on rank 0 is undefined.
   */
  int (*exscan)(void *context, uint64_t *values, int count);
  /*
   Replaces each value by its sum (`max` 0) or maximum over all ranks.
   */
  int (*allreduce)(void *context, int max, uint64_t *values, int count);
  /*
   Opens a file on all ranks: `mode` 0 creates it and fails if it exists, 1 reads, 2 reads and writes.
   */
  int (*file_open)(void *context, const char *path, int mode, void **file);
  /*
   Writes at an offset. Not collective.
   */
  int (*file_write_at)(void *file, const void *data, int length, uint64_t offset);
  /*
   Reads at an offset, and sets the number of bytes read. Not collective.
   */
  int (*file_read_at)(void *file, void *data, int length, uint64_t offset, int *done);
  /*
   Collective: writes `count` parts, concatenated in `data`, at ascending offsets. `several` is the same
   on all ranks: whether any of them has more than one part.
   */
  int (*file_write_all)(void *file,
                        int several,
                        int count,
                        const uint64_t *offsets,
                        const int *lengths,
                        const void *data);
  /*
   Collective: as `file_write_all`, but reads.
   */
  int (*file_read_all)(void *file,
                       int several,
                       int count,
                       const uint64_t *offsets,
                       const int *lengths,
                       void *data);
  /*
   Sets `length` to the length of the file. Not collective.
   */
  int (*file_length)(void *file, uint64_t *length);
  /*
   Collective: shortens the file, or extends it with a hole.
   */
  int (*file_set_length)(void *file, uint64_t length);
  /*
   Collective: makes all ranks' writes durable.
   */
  int (*file_sync)(void *file);
  /*
   Collective: closes the file. No later call uses it.
   */
  int (*file_close)(void *file);
  /*
   As `file_open`, with `count` hints by key and value, the same on all ranks. May be null; hints are
   then ignored.
   */
  int (*file_open_with)(void *context,
                        const char *path,
                        int mode,
                        int count,
                        const char *const *keys,
                        const char *const *values,
                        void **file);
  /*
   Writes the hints in force into the `room` bytes of `text`: keys and values in turn, each followed by a
   zero byte. Sets `length` to the bytes that all of them take; if that exceeds `room`, some are left
   out. May be null.
   */
  int (*file_hints)(void *file, int room, char *text, int *length);
  /*
   Writes the name of this rank's host and a zero byte into the `room` bytes of `name`. May be null, on
   all ranks or none.
   */
  int (*host)(void *context, int room, char *name);
} fs_comm;

/*
 A hint: a key and a value of MPI_Info, such as "cb_nodes" and "4".
 */
typedef struct fs_hint {
  /*
   Its key.
   */
  const char *key;
  /*
   Its value.
   */
  const char *value;
} fs_hint;

/*
 How to open a job; equal on all ranks. A null pointer means the same as all zeros and nulls.
 */
typedef struct fs_arrays_options {
  /*
   The project in which the run's name is unique; null for none.
   */
  const char *project;
  /*
   Number of ranks that write in an exchange; 0: all.
   */
  size_t writers;
  /*
   Number of ranks that read in an exchange; 0: all.
   */
  size_t readers;
  /*
   Bytes that a rank may use to move elements; 0: 64 MiB.
   */
  size_t buffer;
  /*
   Storage of arrays: "files" (or null) for netCDF files that belong to the store, "fields" for the
   store's own logs.
   */
  const char *layout;
  /*
   Number of hints.
   */
  int nhints;
  /*
   Hints for opening all files of the job, in addition to those of the communicator.
   */
  const struct fs_hint *hints;
} fs_arrays_options;

/*
 Work that this rank of a job has done since the job began.
 */
typedef struct fs_arrays_counts {
  /*
   Bytes of elements and indices sent to other ranks.
   */
  uint64_t exchanged;
  /*
   Bytes written to files.
   */
  uint64_t written;
  /*
   Bytes read from files.
   */
  uint64_t read;
  /*
   Files created or opened.
   */
  uint64_t opened;
  /*
   Exchanges planned.
   */
  uint64_t plans;
  /*
   Connections opened to the catalog's engine.
   */
  uint64_t connections;
  /*
   Seconds spent on declaring groups, choosing files and looking up places.
   */
  double plan_seconds;
  /*
   Seconds spent on exchanging and writing elements.
   */
  double write_seconds;
  /*
   Seconds spent on making elements durable.
   */
  double sync_seconds;
  /*
   Seconds spent on the store's commits.
   */
  double commit_seconds;
  /*
   Seconds spent on reading elements.
   */
  double read_seconds;
} fs_arrays_counts;

/*
 An attribute: `count` values of a type, or with type "S1" a text of `count` bytes.
 */
typedef struct fs_attr {
  /*
   Its name.
   */
  const char *name;
  /*
   Type of its values.
   */
  const char *dtype;
  /*
   Number of values.
   */
  size_t count;
  /*
   The values.
   */
  const void *values;
} fs_attr;

/*
 A set of a group: its properties that are equal at all steps.
 */
typedef struct fs_set {
  /*
   Its name: the variable of the run.
   */
  const char *name;
  /*
   Type of its elements.
   */
  const char *dtype;
  /*
   Number of dimensions.
   */
  int ndim;
  /*
   Global extents; the first may be FS_VARYING.
   */
  const uint64_t *shape;
  /*
   Names of its dimensions; null if none has a name. Each entry may be null, too.
   */
  const char *const *dims;
  /*
   One element: the value of unwritten elements; null for none.
   */
  const void *fill;
  /*
   Number of attributes.
   */
  int nattrs;
  /*
   Its attributes.
   */
  const struct fs_attr *attrs;
} fs_set;

/*
 Options of a group. A null pointer means the same as all zeros and nulls.
 */
typedef struct fs_group_options {
  /*
   1: a file for each set and step; 2: for each set; 3: for each group; 0: chosen by the measured cost of
   opening a file.
   */
  int level;
  /*
   How elements get to files: "direct", "exchange", "view"; "auto" (or null) chooses by the views.
   */
  const char *method;
  /*
   "C" (or null): the last dimension varies fastest, in files and in memory without strides. "F": the
   first one does; C and Python programs see the dimensions of the field in reverse.
   */
  const char *order;
  /*
   Number of attributes.
   */
  int nattrs;
  /*
   Attributes of all its sets and of its files; an attribute of a set overrides one of the same name
   here.
   */
  const struct fs_attr *attrs;
  /*
   Number of extents in `chunks`: the dimensions of its sets; 0: chosen by size.
   */
  int nchunks;
  /*
   Extents of chunks, for arrays in the store's logs.
   */
  const uint64_t *chunks;
  /*
   Compression of chunks: "none", "zstd" or "zstd:LEVEL"; null: the store's default.
   */
  const char *compression;
  /*
   The mesh of the store to which its sets belong; null for none. The mesh gives the first extent of
   their shape and its dimension; with `ndim` 0 that is the whole shape.
   */
  const char *mesh;
  /*
   Location on the mesh: "node", "edge", "face" or "volume".
   */
  const char *location;
  /*
   Number of hints.
   */
  int nhints;
  /*
   Hints for opening its files, in addition to those of the job; fs_group_why names the hints that had no
   effect.
   */
  const struct fs_hint *hints;
} fs_group_options;

/*
 A variable of a raw file; the file itself does not describe it.
 */
typedef struct fs_raw_variable {
  /*
   Its name in the import.
   */
  const char *name;
  /*
   Type of its elements, in the file's byte order: "<i4", ">f8".
   */
  const char *dtype;
  /*
   Position of its first element in the file, in bytes.
   */
  uint64_t offset;
  /*
   Number of dimensions.
   */
  int ndim;
  /*
   Its extents.
   */
  const uint64_t *shape;
} fs_raw_variable;

/*
 How to import a file. A null pointer means the same as all zeros and nulls.
 */
typedef struct fs_import_options {
  /*
   Not 0: the import reads the variables once and records their checksum in the catalog.
   */
  int checksum;
  /*
   Order of the dimensions in shapes and views of its variables, and of memory without strides: "C" (or
   null), or "F", with the dimensions of the file in reverse.
   */
  const char *order;
} fs_import_options;

/*
 A variable of an imported file.
 */
typedef struct fs_variable_info {
  /*
   Its name, cut if it is longer.
   */
  char name[FS_NAME_SIZE];
  /*
   Type of its elements, in the file's byte order.
   */
  char dtype[FS_DTYPE_SIZE];
  /*
   Number of dimensions.
   */
  int ndim;
  /*
   Its extents; 0 from `ndim` on.
   */
  uint64_t shape[FS_MAX_RANK];
} fs_variable_info;

/*
 Edges, faces or volumes, each a row of nodes; the rows are concatenated. A row has two nodes for an edge.
 For a face or volume it has as many entries as the largest one has nodes; -1 fills the rest.
 */
typedef struct fs_mesh_rows {
  /*
   Number of rows on this rank.
   */
  size_t count;
  /*
   Entries in a row; 0: the mesh has no such rows.
   */
  size_t width;
  /*
   The entries.
   */
  const int64_t *nodes;
} fs_mesh_rows;

/*
 This rank's part of a mesh: its contiguous share of each list, in the order of ranks. Zeros and nulls mean
 that a list is absent.
 */
typedef struct fs_mesh_content {
  /*
   Number of nodes on this rank.
   */
  size_t nodes;
  /*
   Coordinates of a node, equal on all ranks: 2 or 3; 0: 3 if `z` is not null, else 2.
   */
  int dimensions;
  /*
   The first coordinate of each node.
   */
  const double *x;
  /*
   The second coordinate.
   */
  const double *y;
  /*
   The third one.
   */
  const double *z;
  /*
   Edges.
   */
  struct fs_mesh_rows edges;
  /*
   Faces, their nodes in turn.
   */
  struct fs_mesh_rows faces;
  /*
   Volumes, their nodes in UGRID's order.
   */
  struct fs_mesh_rows volumes;
  /*
   The number of the first node: 0 or 1.
   */
  int64_t base;
  /*
   Number of attributes of `x`, `y` and `z`, such as "standard_name" and "units"; equal on all ranks.
   */
  int ncoordinate_attrs[3];
  /*
   Attributes of each.
   */
  const struct fs_attr *coordinate_attrs[3];
  /*
   Number of attributes of the mesh; equal on all ranks.
   */
  int nattrs;
  /*
   Its attributes.
   */
  const struct fs_attr *attrs;
} fs_mesh_content;

/*
 The size of a mesh.
 */
typedef struct fs_mesh_counts {
  /*
   Nodes.
   */
  uint64_t nodes;
  /*
   Edges.
   */
  uint64_t edges;
  /*
   Faces.
   */
  uint64_t faces;
  /*
   Volumes.
   */
  uint64_t volumes;
} fs_mesh_counts;

/*
 The source of edges: a mesh; or an import, whose variables `first_name` and `second_name` hold the ends;
 or else the arrays `first` and `second`, of which each rank passes its contiguous share, in the order of
 ranks.
 */
typedef struct fs_edges {
  /*
   Number of edges that this rank passes.
   */
  size_t count;
  /*
   The node at the first end of each edge.
   */
  const int64_t *first;
  /*
   The node at the second end of each edge.
   */
  const int64_t *second;
  /*
   A file with the edges; null for none.
   */
  struct fs_import *import;
  /*
   The variable with the first ends: whole numbers of 4 or 8 bytes.
   */
  const char *first_name;
  /*
   The variable with the second ends.
   */
  const char *second_name;
  /*
   A mesh, for its edges, or else for those of its faces or volumes; null for none.
   */
  struct fs_mesh *mesh;
} fs_edges;

/*
 The rank of each node.
 */
typedef struct fs_vector {
  /*
   "replicated": `ranks` has the ranks of all nodes, equal on all ranks. "shares": `ranks` covers this
   rank's contiguous share of the nodes. "block": contiguous ranges of nodes. "hilbert": equal shares
   along a Hilbert curve through the nodes of a mesh. "file": a METIS file with a line for each node.
   */
  const char *kind;
  /*
   Number of entries in `ranks`.
   */
  size_t count;
  /*
   The rank of each node.
   */
  const int64_t *ranks;
  /*
   Path of the file.
   */
  const char *path;
} fs_vector;

/*
 How to make a partition; equal on all ranks. A null pointer means the same as all zeros and nulls.
 */
typedef struct fs_partition_options {
  /*
   Number of nodes; 0: the size of the vector or of the mesh.
   */
  uint64_t nodes;
  /*
   The number of the first node in the edges: 0 or 1. Nodes of a mesh are numbered from 0.
   */
  uint64_t base;
  /*
   Not 0: neither use a history of earlier runs nor keep this partition.
   */
  int no_history;
  /*
   How edges get to the ranks of their ends: "direct" (or null) sends each edge to these ranks alone;
   "ring" passes all edges through all ranks.
   */
  const char *method;
} fs_partition_options;

/*
 Size of a rank's part of a mesh.
 */
typedef struct fs_partition_counts {
  /*
   Nodes: own nodes, then ghosts.
   */
  size_t nodes;
  /*
   Own nodes.
   */
  size_t owned;
  /*
   Edges with an own end.
   */
  size_t edges;
  /*
   Edges whose first end is own; they come first.
   */
  size_t owned_edges;
} fs_partition_counts;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/*
 The kind of this thread's last error; FS_OK if none of its calls has failed.
 */
int fs_error_kind(void);

/*
 The code of this thread's last error, one of the FS_CODE_ texts, for a program that reacts to particular
 errors; "" if no call has failed. Valid as long as the message.
 */
const char *fs_error_code(void);

/*
 1 if the failed call may succeed later without any change, for example because another process holds a
 lock; else 0.
 */
int fs_error_is_retryable(void);

/*
 The message of this thread's last failed call; "" if none failed. Valid until this thread's next failing
 call.
 */
const char *fs_error_message(void);

/*
 A remedy for this thread's last error; "" if none is known. Valid as long as the message.
 */
const char *fs_error_hint(void);

/*
 The name of a status: "NotFound" for FS_NOT_FOUND, "Ok" for FS_OK, "" for a number that is not a status.
 */
const char *fs_status_name(int status);

/*
 For bindings to other languages: makes an error of the binding this thread's last error, and returns
 `status`.
 */
int fs_fail(int status, const char *message, const char *hint);

/*
 The version of this library, such as "0.1.0".
 */
const char *fs_version(void);

/*
 Begins a key. Never null; free it with fs_key_free.
 */
struct fs_key *fs_key_new(void);

/*
 Sets a keyword's value, replacing an earlier one. The value is taken literally: "a/b" is one value.
 */
int fs_key_set(struct fs_key *key, const char *keyword, const char *value);

/*
 Sets a keyword's value to a whole number.
 */
int fs_key_set_int(struct fs_key *key, const char *keyword, int64_t value);

/*
 The key as text, for all calls that take a key. Valid until the key is set again or freed. Null if the
 handle is not valid; a call that takes that null returns FS_INVALID.
 */
const char *fs_key_text(const struct fs_key *key);

/*
 Frees a key. Does nothing with null.
 */
int fs_key_free(struct fs_key *key);

/*
 Opens a store. `url` is the path of a folder, or "memory:" for a new store in memory. `mode` is "a" (or
 null) to read and archive, creating the store if needed; "r" to read; "r+" to read and archive in an
 existing store; "x" to create a new store. With FIELDSTONE_CREATE=0 in the environment "a" means "r+".
 `schema` is "simulation", "mars", the path of a schema file or the text of a schema; null means the
 store's own schema, and "simulation" for a new store.
 */
int fs_open(const char *url, const char *mode, const char *schema, struct fs_store **store);

/*
 Makes all fields archived through this handle durable and visible, all or nothing.
 */
int fs_flush(struct fs_store *store);

/*
 Discards all fields archived through this handle and not flushed.
 */
int fs_discard(struct fs_store *store);

/*
 Flushes and closes the store. The handle is closed even if this fails. Does nothing with null.
 */
int fs_close(struct fs_store *store);

/*
 Archives opaque bytes. The store has its own copy when this returns.
 */
int fs_archive_bytes(struct fs_store *store, const char *key, const void *data, size_t length);

/*
 Archives a whole array of `shape`; `data` holds all its elements.
 */
int fs_archive_array(struct fs_store *store,
                     const char *key,
                     const char *dtype,
                     int ndim,
                     const uint64_t *shape,
                     const void *data);

/*
 Archives a piece of an array of `shape`: the box of `start` and `count`; `data` holds the box's elements.
 The other pieces may come from other calls, flushes and processes.
 */
int fs_archive_piece(struct fs_store *store,
                     const char *key,
                     const char *dtype,
                     int ndim,
                     const uint64_t *shape,
                     const uint64_t *start,
                     const uint64_t *count,
                     const void *data);

/*
 Starts an array field from scratch: the next flush hides all pieces archived before. `fill` is one
 element, the value of unwritten elements (null: the type's missing value). `chunks` are the extents of the
 chunks into which pieces are cut (null: chosen by size).
 */
int fs_create_field(struct fs_store *store,
                    const char *key,
                    const char *dtype,
                    int ndim,
                    const uint64_t *shape,
                    const void *fill,
                    const uint64_t *chunks);

/*
 Describes the field of a key.
 */
int fs_info(struct fs_store *store, const char *key, struct fs_field_info *info);

/*
 Gets the number of raw bytes of a key's field.
 */
int fs_size(struct fs_store *store, const char *key, uint64_t *nbytes);

/*
 Reads a field of either kind into a buffer of `capacity` bytes. `nbytes` becomes the size of the field,
 even if it exceeds `capacity`, which is FS_INVALID.
 */
int fs_get(struct fs_store *store, const char *key, void *buffer, size_t capacity, uint64_t *nbytes);

/*
 Reads a box of an array into a buffer of `capacity` bytes. `nbytes` becomes the size of the box, even if
 it exceeds `capacity`, which is FS_INVALID.
 */
int fs_get_box(struct fs_store *store,
               const char *key,
               int ndim,
               const uint64_t *start,
               const uint64_t *count,
               void *buffer,
               size_t capacity,
               uint64_t *nbytes);

/*
 Reads a whole array of this element type and shape; FS_INVALID if the array has others.
 */
int fs_get_array(struct fs_store *store,
                 const char *key,
                 const char *dtype,
                 int ndim,
                 const uint64_t *shape,
                 void *buffer);

/*
 Reads a box of an array of this element type; FS_INVALID if the array has another.
 */
int fs_get_piece(struct fs_store *store,
                 const char *key,
                 const char *dtype,
                 int ndim,
                 const uint64_t *start,
                 const uint64_t *count,
                 void *buffer);

/*
 Opens a list of the fields that a request selects, such as "run=a,step=0/to/24/by/6"; null or "" selects
 all.
 */
int fs_list_open(struct fs_store *store, const char *request, struct fs_list **list);

/*
 Gets the next field: its key, which every call accepts, and its raw bytes. After the last field `key`
 becomes null, with FS_OK. The text is valid until the next call for this list.
 */
int fs_list_next(struct fs_list *list, const char **key, uint64_t *nbytes);

/*
 Closes a list. Does nothing with null.
 */
int fs_list_close(struct fs_list *list);

/*
 Checks every call of a communicator, with parts of about `length` bytes and a new file `path`, which stays
 behind empty. Collective. Sets `steps` (may be null) to the number of steps that the ranks agreed on. With
 a `failing_rank` of at least 0, step `failing_step` of that rank (from 1) fails on purpose.

 Fails on every rank if any rank finds a fault; the message names that rank.
 */
int fs_comm_check(const struct fs_comm *comm,
                  const char *path,
                  size_t length,
                  int failing_rank,
                  uint64_t failing_step,
                  uint64_t *steps);

/*
 Creates a container, in define mode. `format` is "cdf1", "cdf2", "cdf5" (or null) or "partitioned".
 Collective over `comm` unless that is null. An existing file of that path is replaced only by
 fs_container_sync or fs_container_close.
 */
int fs_container_create(const char *path,
                        const char *format,
                        const struct fs_comm *comm,
                        struct fs_container **container);

/*
 Opens a container, in data mode: for reading with `mode` "r" (or null), for reading and writing with "a".
 Collective over `comm` unless that is null.
 */
int fs_container_open(const char *path,
                      const char *mode,
                      const struct fs_comm *comm,
                      struct fs_container **container);

/*
 Defines a dimension on this rank; the length FS_RECORD makes it the record dimension.
 */
int fs_container_def_dim(struct fs_container *container, const char *path, uint64_t length);

/*
 Defines a variable on this rank, of `ndim` dimensions. Each dimension is looked up in the variable's own
 path and then in each enclosing one. Sets `var` (may be null) to the variable's number, which
 fs_container_put_att takes.
 */
int fs_container_def_var(struct fs_container *container,
                         const char *path,
                         const char *dtype,
                         int ndim,
                         const char *const *dims,
                         uint32_t *var);

/*
 Writes an attribute of a variable, by its number, or with FS_GLOBAL of the container: `count` values of a
 type. Text has the type "S1".
 */
int fs_container_put_att(struct fs_container *container,
                         uint32_t var,
                         const char *name,
                         const char *dtype,
                         size_t count,
                         const void *values);

/*
 Collective: ends define mode. All ranks agree on the header and write it. FS_CONFLICT if definitions of
 one name differ: the message names the object, the difference and the ranks.
 */
int fs_container_enddef(struct fs_container *container);

/*
 Collective: returns to define mode.
 */
int fs_container_redef(struct fs_container *container);

/*
 Writes the box `start`, `count` of a variable; if `stride` is not null, only every `stride`-th element of
 each dimension. `data` holds elements of type `dtype`, which are converted by netCDF's rules. If
 `collective` is not 0, all ranks call it, each for its own box.
 */
int fs_container_put(struct fs_container *container,
                     const char *path,
                     const char *dtype,
                     int ndim,
                     const uint64_t *start,
                     const uint64_t *count,
                     const uint64_t *stride,
                     const void *data,
                     int collective);

/*
 Reads the box `start`, `count` of a variable into `data`; the arguments are those of fs_container_put.
 */
int fs_container_get(struct fs_container *container,
                     const char *path,
                     const char *dtype,
                     int ndim,
                     const uint64_t *start,
                     const uint64_t *count,
                     const uint64_t *stride,
                     void *data,
                     int collective);

/*
 Counts the dimensions, variables, global attributes and records of a container in data mode; the number of
 records is the one that this rank knows. Each place may be null.
 */
int fs_container_inq(struct fs_container *container,
                     uint64_t *dims,
                     uint64_t *vars,
                     uint64_t *attrs,
                     uint64_t *records);

/*
 Gets the number of dimensions of a variable, and their lengths in `shape`, which has room for FS_MAX_RANK.
 FS_NOT_FOUND if no variable has that path.
 */
int fs_container_inq_var(struct fs_container *container, const char *path, int *ndim, uint64_t *shape);

/*
 Collective: makes the writes of all ranks durable, and readable by every rank.
 */
int fs_container_sync(struct fs_container *container);

/*
 Collective: finishes and closes the container. The handle is closed even if this fails. Does nothing with
 null.
 */
int fs_container_close(struct fs_container *container);

/*
 Opens a job of a store, which each rank has opened before. The job creates or continues the run of this
 name; with a null name it creates a new run. Collective over `comm` unless that is null. `options` may be
 null.
 */
int fs_arrays_open(struct fs_store *store,
                   const char *name,
                   const struct fs_comm *comm,
                   const struct fs_arrays_options *options,
                   struct fs_arrays **job);

/*
 Copies the name of the run, cut to `capacity` bytes including its zero byte. Not collective.
 */
int fs_arrays_run(struct fs_arrays *job, char *name, size_t capacity);

/*
 Collective: makes all writes since the last flush durable and visible in one commit, or none of them.
 */
int fs_arrays_flush(struct fs_arrays *job);

/*
 Collective: discards all writes since the last flush.
 */
int fs_arrays_discard(struct fs_arrays *job);

/*
 Collective: flushes, and closes all files. Even if this fails, it closes the handles of the job and of its
 groups, imports, meshes and partitions. Does nothing with null. The store stays open.
 */
int fs_arrays_close(struct fs_arrays *job);

/*
 Ends the job on this rank because of an error of its own, whatever the others do: their current or next
 collective call fails with this message. All ranks lose unflushed writes, and the handles are closed.
 */
int fs_arrays_abandon(struct fs_arrays *job, const char *message);

/*
 Counts the work that this rank has done so far. Not collective.
 */
int fs_arrays_report(struct fs_arrays *job, struct fs_arrays_counts *counts);

/*
 Collective: declares a group of `nsets` sets, or opens a declared one. Sets that the group lacks are added
 to it, even if it is open. FS_CONFLICT if the ranks differ, or if an earlier declaration does. `options`
 may be null. The handle ends with its job.
 */
int fs_arrays_group(struct fs_arrays *job,
                    const char *name,
                    int nsets,
                    const struct fs_set *sets,
                    const struct fs_group_options *options,
                    struct fs_group **group);

/*
 Collective: opens a declared group; FS_NOT_FOUND if no group has the name.
 */
int fs_arrays_declared_group(struct fs_arrays *job, const char *name, struct fs_group **group);

/*
 This rank holds the box of `count` indices from `start`, in the `nsets` named sets, or in all if `nsets`
 is 0. `halo` (null: none) has two numbers for each dimension: the width by which memory is larger before
 and after the box. The halo is not written; a read fills the part of it that is inside the array. `stride`
 (null: 1) is for reading every `stride`-th index. A rank may hold nothing: a count of 0.
 */
int fs_group_view_block(struct fs_group *group,
                        int nsets,
                        const char *const *sets,
                        int ndim,
                        const uint64_t *start,
                        const uint64_t *count,
                        const uint64_t *halo,
                        const uint64_t *stride);

/*
 This rank holds its part of a balanced cut into `grid` parts in each dimension, cut like numpy's
 array_split; ranks are in C order over the grid. `halo` is as in fs_group_view_block.
 */
int fs_group_view_grid(struct fs_group *group,
                       int nsets,
                       const char *const *sets,
                       int ndim,
                       const uint64_t *grid,
                       const uint64_t *halo);

/*
 This rank holds every `grid`-th block of `blocks` indices: the blocks are dealt out in turn in each
 dimension; ranks are in C order over the grid. In memory the blocks are side by side.
 */
int fs_group_view_cyclic(struct fs_group *group,
                         int nsets,
                         const char *const *sets,
                         int ndim,
                         const uint64_t *grid,
                         const uint64_t *blocks);

/*
 This rank holds the `length` global indices of `map` along dimension `dim`, and other dimensions whole;
 with `dim` -1 single elements, by their number in file order. An index of -1 means no element. The first
 `owned` entries are written (-1: all), all are read. The map is copied.
 */
int fs_group_view_irregular(struct fs_group *group,
                            int nsets,
                            const char *const *sets,
                            size_t length,
                            const int64_t *map,
                            int64_t owned,
                            int dim);

/*
 This rank holds `count` indices of the first dimension, which is FS_VARYING, after those of the lower
 ranks.
 */
int fs_group_view_joined(struct fs_group *group, int nsets, const char *const *sets, uint64_t count);

/*
 As fs_group_view_block, but makes a handle, which fs_view_free frees.
 */
int fs_view_block(int ndim,
                  const uint64_t *start,
                  const uint64_t *count,
                  const uint64_t *halo,
                  const uint64_t *stride,
                  struct fs_view **view);

/*
 As fs_group_view_grid, but makes a handle.
 */
int fs_view_grid(int ndim, const uint64_t *grid, const uint64_t *halo, struct fs_view **view);

/*
 As fs_group_view_cyclic, but makes a handle.
 */
int fs_view_cyclic(int ndim, const uint64_t *grid, const uint64_t *blocks, struct fs_view **view);

/*
 As fs_group_view_irregular, but makes a handle.
 */
int fs_view_irregular(size_t length, const int64_t *map, int64_t owned, int dim, struct fs_view **view);

/*
 As fs_group_view_joined, but makes a handle.
 */
int fs_view_joined(uint64_t count, struct fs_view **view);

/*
 Frees a view; groups and sets that use it keep it. Does nothing with null.
 */
int fs_view_free(struct fs_view *view);

/*
 This rank holds the part that the view says of the `nsets` named sets, or of all if `nsets` is 0.
 */
int fs_group_view(struct fs_group *group, int nsets, const char *const *sets, struct fs_view *view);

/*
 Gets the shape of this rank's part of a set, which its view determines and its memory must have: the
 number of dimensions, and extents in `shape`, which has room for FS_MAX_RANK. Not collective.
 */
int fs_group_local_shape(struct fs_group *group, const char *set, int *ndim, uint64_t *shape);

/*
 Collective: writes a set at a step, each rank its own part. `dtype` is the type of the data, in either
 byte order (null: the type of the set). `shape` is the shape of the data, which must be the view's (null:
 the view's). `strides` are the bytes from one element to the next in each dimension, starting at the first
 element in `data` (null: the elements are contiguous, in the group's order). Both lists have `ndim`
 numbers.

 FS_CONFLICT if ranks write different bytes to one element. With `wait` 0 the call returns after the
 exchange of elements: the caller may change the data, and a thread writes the elements to files; if that
 fails, a later call reports the error.
 */
int fs_group_write(struct fs_group *group,
                   const char *set,
                   int64_t step,
                   const char *dtype,
                   int ndim,
                   const uint64_t *shape,
                   const int64_t *strides,
                   const void *data,
                   int wait);

/*
 Collective: as fs_group_write, with hints for this call in addition to the group's: for its exchange
 ("cb_nodes"), and for a file that it creates.
 */
int fs_group_write_with(struct fs_group *group,
                        const char *set,
                        int64_t step,
                        const char *dtype,
                        int ndim,
                        const uint64_t *shape,
                        const int64_t *strides,
                        const void *data,
                        int wait,
                        int nhints,
                        const struct fs_hint *hints);

/*
 Collective: reads this rank's part of a set at a step into `data`; the arguments are those of
 fs_group_write. Unflushed writes are read, too. FS_NOT_FOUND if the set or step does not exist.
 */
int fs_group_read(struct fs_group *group,
                  const char *set,
                  int64_t step,
                  const char *dtype,
                  int ndim,
                  const uint64_t *shape,
                  const int64_t *strides,
                  void *data);

/*
 Collective: as fs_group_read, with a view for this call (null: the set's) and hints for this call.
 */
int fs_group_read_with(struct fs_group *group,
                       const char *set,
                       int64_t step,
                       struct fs_view *view,
                       const char *dtype,
                       int ndim,
                       const uint64_t *shape,
                       const int64_t *strides,
                       void *data,
                       int nhints,
                       const struct fs_hint *hints);

/*
 Collective: gets the steps at which a set is flushed and complete, ascending. `count` becomes their
 number, even if `steps` has room for fewer; then the first `capacity` steps are given.
 */
int fs_group_steps(struct fs_group *group, const char *set, int64_t *steps, size_t capacity, size_t *count);

/*
 Collective: gets the newest step at which all sets of the group are flushed and complete. `found` becomes
 1, or 0 if no such step exists.
 */
int fs_group_last_step(struct fs_group *group, int64_t *step, int *found);

/*
 Gets the organisation level of the group: 1, 2 or 3; 0 if its arrays are in the store's logs. Not
 collective.
 */
int fs_group_level(struct fs_group *group, int *level);

/*
 Explains the choice of level and method, as a text cut to `capacity` bytes including its zero byte. Not
 collective.
 */
int fs_group_why(struct fs_group *group, char *why, size_t capacity);

/*
 Collective: imports a raw file, with type, position and shape of `nvariables` variables. Reads none of
 them yet. The catalog records path, size, time and variables. FS_NOT_FOUND if the file does not exist;
 FS_CORRUPT if it ends before a variable does; FS_CONFLICT if the ranks differ, or if an earlier import of
 the file does. `options` may be null. The handle ends with its job.
 */
int fs_arrays_import_raw(struct fs_arrays *job,
                         const char *path,
                         int nvariables,
                         const struct fs_raw_variable *variables,
                         const struct fs_import_options *options,
                         struct fs_import **import);

/*
 Collective: imports `nnames` variables of a netCDF classic file, by name; with `nnames` 0 all variables.
 As fs_arrays_import_raw; FS_INVALID for a netCDF-4 file, which is HDF5.
 */
int fs_arrays_import_netcdf(struct fs_arrays *job,
                            const char *path,
                            int nnames,
                            const char *const *names,
                            const struct fs_import_options *options,
                            struct fs_import **import);

/*
 Counts the variables of an import. Not collective.
 */
int fs_import_count(struct fs_import *import, int *count);

/*
 Describes a variable of an import, by its number from 0, in the order of the import's list. Not
 collective.
 */
int fs_import_variable(struct fs_import *import, int number, struct fs_variable_info *info);

/*
 Collective: gets the shape of this rank's part of a variable by a view (null: its share of a balanced cut
 of the file's first dimension): the number of dimensions, and extents in `shape`, which has room for
 FS_MAX_RANK.
 */
int fs_import_local_shape(struct fs_import *import,
                          const char *name,
                          struct fs_view *view,
                          int *ndim,
                          uint64_t *shape);

/*
 Collective: reads this rank's part of a variable by a view (null: its share of a balanced cut of the
 file's first dimension) into `data`. `dtype` is the type of the data, in either byte order (null: the
 variable's type, in this machine's byte order). `shape`, `strides` and `ndim` are those of fs_group_read.
 */
int fs_import_read(struct fs_import *import,
                   const char *name,
                   struct fs_view *view,
                   const char *dtype,
                   int ndim,
                   const uint64_t *shape,
                   const int64_t *strides,
                   void *data);

/*
 Collective: closes the file. Does nothing with null.
 */
int fs_import_close(struct fs_import *import);

/*
 Collective: creates a mesh from the ranks' parts, and declares it under a name, which names one content
 only. The store keeps equal content once, as a file with UGRID's conventions. `order` is the order of
 dimensions in reads of the mesh's arrays, as for imports: "C" (or null) or "F". FS_INVALID if an entry
 does not name a node, with rank, position and value; FS_CONFLICT if the name belongs to another mesh. The
 handle ends with its job.
 */
int fs_arrays_create_mesh(struct fs_arrays *job,
                          const char *name,
                          const struct fs_mesh_content *content,
                          const char *order,
                          struct fs_mesh **mesh);

/*
 Collective: opens a mesh of the store by name. FS_NOT_FOUND if no mesh has the name; FS_CORRUPT if its
 file is not the declared one. `order` is as for fs_arrays_create_mesh. The handle ends with its job.
 */
int fs_arrays_mesh(struct fs_arrays *job, const char *name, const char *order, struct fs_mesh **mesh);

/*
 Counts the nodes, edges, faces and volumes of a mesh. Not collective.
 */
int fs_mesh_info(struct fs_mesh *mesh, struct fs_mesh_counts *counts);

/*
 Gets the checksum of a mesh's content as a text of 32 hexadecimal digits, cut to `capacity` bytes
 including its zero byte. Meshes with equal content have equal checksums. Not collective.
 */
int fs_mesh_checksum(struct fs_mesh *mesh, char *checksum, size_t capacity);

/*
 Collective: gets the shape of this rank's part of a mesh's array by a view; see fs_import_local_shape.
 */
int fs_mesh_local_shape(struct fs_mesh *mesh,
                        const char *array,
                        struct fs_view *view,
                        int *ndim,
                        uint64_t *shape);

/*
 Collective: reads an array of a mesh: "x", "y", "z", "edges", "faces" or "volumes", by a view (null: this
 rank's share of a balanced cut). Nodes are numbered from 0. The arguments are those of fs_import_read.
 */
int fs_mesh_read(struct fs_mesh *mesh,
                 const char *array,
                 struct fs_view *view,
                 const char *dtype,
                 int ndim,
                 const uint64_t *shape,
                 const int64_t *strides,
                 void *data);

/*
 Collective: closes the mesh; the store keeps it. Does nothing with null.
 */
int fs_mesh_close(struct fs_mesh *mesh);

/*
 Collective: makes this rank's part of a mesh: the nodes that the vector assigns to it, all edges with an
 own end, and as ghosts the nodes at the other ends of those edges. If an earlier run kept a history of the
 partition, it is used, before any edge is read. A computed partition is kept: a thread writes it, and the
 next flush declares it. FS_INVALID if a vector names a missing rank or an edge a missing node, with rank,
 position and value. `options` may be null. The handle ends with its job.
 */
int fs_arrays_partition(struct fs_arrays *job,
                        const struct fs_edges *edges,
                        const struct fs_vector *vector,
                        const struct fs_partition_options *options,
                        struct fs_partition **partition);

/*
 Counts this rank's nodes and edges. Neither this call nor the next five are collective.
 */
int fs_partition_info(struct fs_partition *partition, struct fs_partition_counts *counts);

/*
 Gets the global numbers of nodes, from 0: own nodes ascending, then ghosts ascending. `nodes` has room for
 `capacity` numbers; FS_INVALID if they do not all fit.
 */
int fs_partition_nodes(struct fs_partition *partition, int64_t *nodes, size_t capacity);

/*
 Gets the global numbers of edges, from 0: those whose first end is own, ascending, then the others,
 ascending.
 */
int fs_partition_edges(struct fs_partition *partition, int64_t *edges, size_t capacity);

/*
 Gets both ends of each edge as positions in the list of nodes, from 0: two numbers for each edge.
 */
int fs_partition_ends(struct fs_partition *partition, int64_t *ends, size_t capacity);

/*
 Gets the source of the partition, as a text cut to `capacity` bytes including its zero byte: "computed";
 "edges", computed from edges that an earlier run kept; "parts", as an earlier run finished it.
 */
int fs_partition_source(struct fs_partition *partition, char *source, size_t capacity);

/*
 Lists the history files that could not be used, one on each line with the reason, as a text cut to
 `capacity` bytes including its zero byte; "" if there are none.
 */
int fs_partition_ignored(struct fs_partition *partition, char *ignored, size_t capacity);

/*
 Makes a view of an array at the nodes, which are along dimension `dim`: own nodes are written, all are
 read. Groups and imports take it; fs_view_free frees it.
 */
int fs_partition_node_view(struct fs_partition *partition, int dim, struct fs_view **view);

/*
 Makes a view of an array at the edges, which are along dimension `dim`: edges whose first end is own are
 written, all are read.
 */
int fs_partition_edge_view(struct fs_partition *partition, int dim, struct fs_view **view);

/*
 Collective: updates the ghosts in an array at the nodes with their owners' values, in place. The array has
 the shape (nodes, ...), whose `ndim` extents are in `shape` (null: one dimension). `strides` is as for
 fs_group_write.
 */
int fs_partition_update(struct fs_partition *partition,
                        const char *dtype,
                        int ndim,
                        const uint64_t *shape,
                        const int64_t *strides,
                        void *data);

/*
 Frees a partition; its views and history files stay. Not collective. Does nothing with null.
 */
int fs_partition_free(struct fs_partition *partition);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* FIELDSTONE_H */
