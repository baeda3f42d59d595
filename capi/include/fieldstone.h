/*
 * Fieldstone for C: archive fields by key, flush, get them back.
 *
 * Generated from capi/src by `UPDATE_HEADER=1 cargo test -p fieldstone-capi --test header`; not edited by hand.
 * The guide is docs/guide/c-fortran.md.
 *
 * Rules of every call:
 *  - A call that can fail returns FS_OK or the kind of error; fs_error_message(), fs_error_hint() and
 *    fs_error_code() then tell what happened in this thread's last failed call.
 *  - Texts are UTF-8 and end in a zero byte. A key is text such as "run=a,variable=t,step=6"; values that
 *    hold one of , / * = " and the like are quoted: fs_key_text() does it.
 *  - Arrays are in C order (row-major): the last dimension varies fastest. A box is `start` and `count` per
 *    dimension, counted from 0. An element type is numpy's: "f8", "<i4", "c16", "datetime64[ns]"; without a
 *    sign it has this machine's byte order.
 *  - A handle may be used by several threads at once. A null, closed or mistaken handle is FS_INVALID.
 *  - Other pointers must be null or point to as much memory as the call's other arguments say.
 *  - Nothing that was archived is seen by anyone before fs_flush or fs_close.
 */

#ifndef FIELDSTONE_H
#define FIELDSTONE_H

#include <stddef.h>
#include <stdint.h>

/* What fs_error_code() gives; docs/guide/error-codes.md says what each means. */
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
 Bytes of the text of an element type, with the zero byte at its end.
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
 As the first extent of a set's shape: another one at each step, the sum of what the ranks hold.
 */
#define FS_VARYING UINT64_MAX

/*
 Bytes of the name of a variable of a file, with the zero byte at its end.
 */
#define FS_NAME_SIZE 257

/*
 How a call ended: the numbers of the program's exit codes.
 */
typedef enum fs_status {
  /*
   All went well.
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
   What was asked for does not exist.
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
   The caller may not do this.
   */
  FS_DENIED = 6,
  /*
   The medium failed or is full: mend it and try again.
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
 A file from outside that all ranks of a job have open.
 */
typedef struct fs_import fs_import;

/*
 A key that is being put together.
 */
typedef struct fs_key fs_key;

/*
 A list that is being read.
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
 What a rank holds of arrays.
 */
typedef struct fs_view fs_view;

/*
 What a field is.
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
 The ranks of a job: what include/fieldstone_mpi.h makes of an MPI communicator. Lists of bytes stand one
 after another, in the order of ranks. Every function returns 0 or a number of errno.h.
 */
typedef struct fs_comm {
  /*
   Given to each function; it must live until every container and job that uses it is closed.
   */
  void *context;
  /*
   This rank's number.
   */
  int rank;
  /*
   How many ranks there are.
   */
  int size;
  /*
   Returns when all ranks have called it.
   */
  int (*barrier)(void *context);
  /*
   Gives every rank the bytes of `root`.
   */
  int (*broadcast)(void *context, int root, void *data, int length);
  /*
   Gives every rank, or with a `root` of at least 0 only that one, the bytes of each rank.
   */
  int (*gather)(void *context,
                int root,
                const void *send,
                int length,
                void *receive,
                const int *lengths,
                const int *places);
  /*
   Sends each rank its bytes.
   */
  int (*alltoall)(void *context,
                  const void *send,
                  const int *send_lengths,
                  const int *send_places,
                  void *receive,
                  const int *lengths,
                  const int *places);
  /*
   Replaces each value by its sum over the lower ranks; on rank 0 the values are of no meaning then.
   */
  int (*exscan)(void *context, uint64_t *values, int count);
  /*
   Replaces each value by its sum (`max` 0) or maximum over all ranks.
   */
  int (*allreduce)(void *context, int max, uint64_t *values, int count);
  /*
   Opens a file on all ranks: `mode` 0 creates one that must not exist, 1 reads, 2 reads and writes.
   */
  int (*file_open)(void *context, const char *path, int mode, void **file);
  /*
   Writes at an offset, by this rank alone.
   */
  int (*file_write_at)(void *file, const void *data, int length, uint64_t offset);
  /*
   Reads at an offset, by this rank alone; sets how many bytes were read.
   */
  int (*file_read_at)(void *file, void *data, int length, uint64_t offset, int *done);
  /*
   Collective: writes `count` parts, which stand one after another in `data`, at ascending offsets.
   `several` is the same on all ranks: whether any of them has more than one part.
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
   Sets the length of the file, asked by this rank alone.
   */
  int (*file_length)(void *file, uint64_t *length);
  /*
   Collective: cuts the file or adds a hole.
   */
  int (*file_set_length)(void *file, uint64_t length);
  /*
   Collective: makes durable what any rank wrote.
   */
  int (*file_sync)(void *file);
  /*
   Collective: closes the file, which no call names after it.
   */
  int (*file_close)(void *file);
  /*
   As `file_open`, with `count` hints by key and value, the same on all ranks. May be null: hints are ignored then.
   */
  int (*file_open_with)(void *context,
                        const char *path,
                        int mode,
                        int count,
                        const char *const *keys,
                        const char *const *values,
                        void **file);
  /*
   Writes the hints in force into `text`, which has room for `room` bytes: keys and values in turn, each with a zero byte
   behind it. Sets how many bytes all take; where that is more than there is room for, some are left out. May be null.
   */
  int (*file_hints)(void *file, int room, char *text, int *length);
  /*
   Writes the name of this rank's host into `name`, which has room for `room` bytes, with a zero byte behind it. May be
   null; it is on all ranks or on none.
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
 How a job is opened; equal on all ranks. All zeros and nulls are what a null pointer is.
 */
typedef struct fs_arrays_options {
  /*
   The project within which the run's name is unique; null for none.
   */
  const char *project;
  /*
   How many ranks write in an exchange; 0: all.
   */
  size_t writers;
  /*
   How many ranks read in an exchange; 0: all.
   */
  size_t readers;
  /*
   Bytes that a rank may use for moving elements; 0: 64 MiB.
   */
  size_t buffer;
  /*
   Where arrays lie: "files" (also where null), netCDF files that belong to the store; "fields", the store's own logs.
   */
  const char *layout;
  /*
   How many hints it has.
   */
  int nhints;
  /*
   Hints that all its files are opened with, beside those of the communicator.
   */
  const struct fs_hint *hints;
} fs_arrays_options;

/*
 What this rank of a job has done since it began.
 */
typedef struct fs_arrays_counts {
  /*
   Bytes of elements and indices that it sent to others.
   */
  uint64_t exchanged;
  /*
   Bytes that it wrote to files.
   */
  uint64_t written;
  /*
   Bytes that it read from files.
   */
  uint64_t read;
  /*
   Files that were made or opened.
   */
  uint64_t opened;
  /*
   Exchanges that were planned.
   */
  uint64_t plans;
  /*
   Openings of the catalog's engine.
   */
  uint64_t connections;
  /*
   Seconds for declaring groups, choosing files and looking up places.
   */
  double plan_seconds;
  /*
   Seconds for exchanging and writing elements.
   */
  double write_seconds;
  /*
   Seconds for making them durable.
   */
  double sync_seconds;
  /*
   Seconds for the store's commits.
   */
  double commit_seconds;
  /*
   Seconds for reading elements.
   */
  double read_seconds;
} fs_arrays_counts;

/*
 An attribute: `count` values of a type, or of type "S1" a text of as many bytes.
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
   How many there are.
   */
  size_t count;
  /*
   The values.
   */
  const void *values;
} fs_attr;

/*
 A set of a group: what is equal at all its steps.
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
   How many dimensions it has.
   */
  int ndim;
  /*
   Global extents; the first may be FS_VARYING.
   */
  const uint64_t *shape;
  /*
   Names of its dimensions; null where none has one, and so may each be.
   */
  const char *const *dims;
  /*
   One element: what stands where nobody writes; null for none.
   */
  const void *fill;
  /*
   How many attributes it has.
   */
  int nattrs;
  /*
   Its attributes.
   */
  const struct fs_attr *attrs;
} fs_set;

/*
 What a group is declared with beside its sets. All zeros and nulls are what a null pointer is.
 */
typedef struct fs_group_options {
  /*
   1: a file per set and step; 2: per set; 3: per group; 0: by the measured cost of an open.
   */
  int level;
  /*
   How elements go to files: "direct", "exchange", "view"; "auto", or null, by the views.
   */
  const char *method;
  /*
   "C" (also where null): the last dimension varies fastest, in files and where no strides are given in memory;
   "F": the first one does, and programs in C and Python that get the field see its dimensions in reverse.
   */
  const char *order;
  /*
   How many attributes it has.
   */
  int nattrs;
  /*
   Attributes of all its sets and of its files; one that a set has itself is the set's.
   */
  const struct fs_attr *attrs;
  /*
   How many extents `chunks` has: the dimensions of its sets; 0: chosen by size.
   */
  int nchunks;
  /*
   Extents of chunks, where arrays lie in the store's logs.
   */
  const uint64_t *chunks;
  /*
   Compression of them: "none", "zstd" or "zstd:LEVEL"; null: as the store has it.
   */
  const char *compression;
  /*
   The mesh of the store that its sets stand on; null for none. They take the first extent of their shape and its
   dimension from it; `ndim` 0 is that extent alone.
   */
  const char *mesh;
  /*
   Where on the mesh: "node", "edge", "face" or "volume".
   */
  const char *location;
  /*
   How many hints it has.
   */
  int nhints;
  /*
   Hints that its files are opened with, beside those of the job; fs_group_why names what nobody took.
   */
  const struct fs_hint *hints;
} fs_group_options;

/*
 A variable of a raw file, of which the file itself says nothing.
 */
typedef struct fs_raw_variable {
  /*
   The name that it is given.
   */
  const char *name;
  /*
   Type of its elements, in the file's byte order: "<i4", ">f8".
   */
  const char *dtype;
  /*
   Where its first element stands in the file, in bytes.
   */
  uint64_t offset;
  /*
   How many dimensions it has.
   */
  int ndim;
  /*
   Its extents.
   */
  const uint64_t *shape;
} fs_raw_variable;

/*
 How a file is imported. All zeros and nulls are what a null pointer is.
 */
typedef struct fs_import_options {
  /*
   Not 0: its variables are read once, for a checksum that the catalog keeps.
   */
  int checksum;
  /*
   In which order shapes and views of its variables are said, and how memory without strides stands: "C" (also where
   null), or "F", in which the dimensions are those of the file in reverse.
   */
  const char *order;
} fs_import_options;

/*
 A variable of a file that was imported.
 */
typedef struct fs_variable_info {
  /*
   Its name, cut where it is longer.
   */
  char name[FS_NAME_SIZE];
  /*
   Type of its elements, in the file's byte order.
   */
  char dtype[FS_DTYPE_SIZE];
  /*
   How many dimensions it has.
   */
  int ndim;
  /*
   Its extents; 0 from `ndim` on.
   */
  uint64_t shape[FS_MAX_RANK];
} fs_variable_info;

/*
 Edges, faces or volumes: a row of nodes for each, one row after another. Of edges a row has two nodes, of faces and
 volumes as many as one has at most, then -1.
 */
typedef struct fs_mesh_rows {
  /*
   How many rows this rank has.
   */
  size_t count;
  /*
   Entries of a row; 0: the mesh has no such rows.
   */
  size_t width;
  /*
   The entries.
   */
  const int64_t *nodes;
} fs_mesh_rows;

/*
 A mesh, as far as this rank holds it: its contiguous share of each list, in the order of ranks. All zeros and nulls
 are nothing.
 */
typedef struct fs_mesh_content {
  /*
   How many nodes this rank has.
   */
  size_t nodes;
  /*
   How many coordinates a node has, on all ranks alike: 2 or 3; 0: 3 where `z` is not null.
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
   How many attributes `x`, `y` and `z` have, such as "standard_name" and "units"; equal on all ranks.
   */
  int ncoordinate_attrs[3];
  /*
   Attributes of each.
   */
  const struct fs_attr *coordinate_attrs[3];
  /*
   How many attributes the mesh has; equal on all ranks.
   */
  int nattrs;
  /*
   Its attributes.
   */
  const struct fs_attr *attrs;
} fs_mesh_content;

/*
 What a mesh has.
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
 Where edges come from: a mesh; or an import, whose variables `first_name` and `second_name` are the ends; or else the
 arrays `first` and `second`, of which each rank gives its contiguous share, in the order of ranks.
 */
typedef struct fs_edges {
  /*
   How many edges this rank gives.
   */
  size_t count;
  /*
   The node at the first end of each.
   */
  const int64_t *first;
  /*
   The node at the second end.
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
   A mesh, by its edges, else by those of its faces or volumes; null for none.
   */
  struct fs_mesh *mesh;
} fs_edges;

/*
 Which rank a node belongs to.
 */
typedef struct fs_vector {
  /*
   "replicated": `ranks` are those of all nodes, equal on all ranks; "shares": of this rank's contiguous share of the
   nodes; "block": contiguous ranges of nodes; "hilbert": equal shares along a Hilbert curve through the nodes of a
   mesh; "file": a file of METIS, with a line for each node.
   */
  const char *kind;
  /*
   How many numbers `ranks` has.
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
 How a partition is made; equal on all ranks. All zeros and nulls are what a null pointer is.
 */
typedef struct fs_partition_options {
  /*
   How many nodes there are; 0: as many as the vector has, or the mesh.
   */
  uint64_t nodes;
  /*
   The number of the first node in the edges: 0 or 1. Nodes of a mesh count from 0.
   */
  uint64_t base;
  /*
   Not 0: what earlier runs kept is not used, and this partition is not kept.
   */
  int no_history;
  /*
   How edges come to the ranks of their ends: "direct" (also where null), each to these ranks alone; "ring", all of
   them past all ranks.
   */
  const char *method;
} fs_partition_options;

/*
 How much a rank has of a mesh.
 */
typedef struct fs_partition_counts {
  /*
   Nodes: own ones, then ghosts.
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
   Edges whose first end is own: the first ones.
   */
  size_t owned_edges;
} fs_partition_counts;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/*
 The kind of this thread's last error; FS_OK if no call of it has failed.
 */
int fs_error_kind(void);

/*
 The code of this thread's last error, one of the FS_CODE_ texts: what exactly went wrong, for a program that
 acts on it; "" if no call has failed. Valid as long as the message.
 */
const char *fs_error_code(void);

/*
 1 where the call that made this thread's last error may succeed later without anybody changing anything, as
 where others hold a lock; else 0.
 */
int fs_error_is_retryable(void);

/*
 What this thread's last failed call complained of; "" if none failed. Valid until this thread's next
 failing call.
 */
const char *fs_error_message(void);

/*
 What may be done about this thread's last error; "" where nothing is known. Valid as long as the message.
 */
const char *fs_error_hint(void);

/*
 The name of a status: "NotFound" for FS_NOT_FOUND; "Ok" for FS_OK, "" for a number that is no status.
 */
const char *fs_status_name(int status);

/*
 For bindings to other languages: makes an error of the binding this thread's last, and returns `status`.
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
 Gives a keyword a value, in place of the one it had. The value is taken as it is: "a/b" is one value.
 */
int fs_key_set(struct fs_key *key, const char *keyword, const char *value);

/*
 Gives a keyword a whole number.
 */
int fs_key_set_int(struct fs_key *key, const char *keyword, int64_t value);

/*
 The key as text, for all calls that take one. Valid until the key is set again or freed; null for what
 is no key, so that the call that takes it is FS_INVALID.
 */
const char *fs_key_text(const struct fs_key *key);

/*
 Frees a key. Null is nothing to free.
 */
int fs_key_free(struct fs_key *key);

/*
 Opens a store. `url` is a folder's path, or "memory:" for a new store in memory. `mode` is "a" to read and
 archive (also where null), "r" to read, "r+" to read and archive where a store is, or "x" for a new store;
 with FIELDSTONE_CREATE=0 in the environment "a" is "r+". `schema` is "simulation", "mars", a
 schema file's path or a schema's text; where null the store's own, "simulation" for a new one.
 */
int fs_open(const char *url, const char *mode, const char *schema, struct fs_store **store);

/*
 Makes all that was archived through this handle durable and visible, all or nothing.
 */
int fs_flush(struct fs_store *store);

/*
 Forgets what was archived through this handle and not flushed.
 */
int fs_discard(struct fs_store *store);

/*
 Flushes and closes. The handle is gone also where this fails. Null is nothing to close.
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
 Starts an array field afresh: pieces archived before are hidden once this is flushed. `fill` is one element
 for what nobody writes (null: the type's missing value), `chunks` the extents of the chunks that pieces
 are cut by (null: chosen by size).
 */
int fs_create_field(struct fs_store *store,
                    const char *key,
                    const char *dtype,
                    int ndim,
                    const uint64_t *shape,
                    const void *fill,
                    const uint64_t *chunks);

/*
 Tells what the field of a key is.
 */
int fs_info(struct fs_store *store, const char *key, struct fs_field_info *info);

/*
 The raw bytes of the field of a key.
 */
int fs_size(struct fs_store *store, const char *key, uint64_t *nbytes);

/*
 Reads a field, whatever it is, into a buffer of `capacity` bytes. `nbytes` becomes the bytes that it has,
 also where they do not fit, which is FS_INVALID.
 */
int fs_get(struct fs_store *store, const char *key, void *buffer, size_t capacity, uint64_t *nbytes);

/*
 Reads a box of an array into a buffer of `capacity` bytes. `nbytes` becomes the bytes that the box has,
 also where they do not fit, which is FS_INVALID.
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
 Reads a whole array that has this element type and shape; another one is FS_INVALID.
 */
int fs_get_array(struct fs_store *store,
                 const char *key,
                 const char *dtype,
                 int ndim,
                 const uint64_t *shape,
                 void *buffer);

/*
 Reads a box of an array that has this element type; another one is FS_INVALID.
 */
int fs_get_piece(struct fs_store *store,
                 const char *key,
                 const char *dtype,
                 int ndim,
                 const uint64_t *start,
                 const uint64_t *count,
                 void *buffer);

/*
 Begins a list of the fields that a request selects, such as "run=a,step=0/to/24/by/6"; all for null or "".
 */
int fs_list_open(struct fs_store *store, const char *request, struct fs_list **list);

/*
 The next field: its key, which all calls take as it is, and its raw bytes. After the last one `key` becomes
 null, with FS_OK. The text is valid until the next call for this list.
 */
int fs_list_next(struct fs_list *list, const char **key, uint64_t *nbytes);

/*
 Ends a list. Null is nothing to end.
 */
int fs_list_close(struct fs_list *list);

/*
 Checks every call of a communicator, with parts of about `length` bytes and a new file `path`, which stays,
 empty. Collective. `steps` (may be null) is set to how many steps the ranks agreed upon. With a
 `failing_rank` of at least 0, step `failing_step` of that rank (from 1) fails on purpose.

 Fails on every rank where any rank finds anything wrong; the message names that rank.
 */
int fs_comm_check(const struct fs_comm *comm,
                  const char *path,
                  size_t length,
                  int failing_rank,
                  uint64_t failing_step,
                  uint64_t *steps);

/*
 Creates a container, in define mode. `format` is "cdf1", "cdf2", "cdf5" (also where null) or "partitioned".
 Collective over `comm` where that is not null. A file of that path stays until fs_container_sync or
 fs_container_close.
 */
int fs_container_create(const char *path,
                        const char *format,
                        const struct fs_comm *comm,
                        struct fs_container **container);

/*
 Opens a container, in data mode: for reading with `mode` "r" (also where null), for writing too with "a".
 Collective over `comm` where that is not null.
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
 Defines a variable on this rank, of `ndim` dimensions, each looked up in the variable's own path and then
 in each enclosing one. `var` (may be null) is set to its number, which attributes are given by.
 */
int fs_container_def_var(struct fs_container *container,
                         const char *path,
                         const char *dtype,
                         int ndim,
                         const char *const *dims,
                         uint32_t *var);

/*
 Gives a variable, by its number, or with FS_GLOBAL the container, an attribute of `count` values of a type;
 text is of type "S1".
 */
int fs_container_put_att(struct fs_container *container,
                         uint32_t var,
                         const char *name,
                         const char *dtype,
                         size_t count,
                         const void *values);

/*
 Collective: ends define mode; all ranks agree on the header and write it. FS_CONFLICT where definitions of
 one name differ: the message names the object, the difference and the ranks.
 */
int fs_container_enddef(struct fs_container *container);

/*
 Collective: back to define mode.
 */
int fs_container_redef(struct fs_container *container);

/*
 Writes the box `start`, `count` of a variable, every `stride`-th element of each dimension where that is not
 null. `data` are elements of type `dtype`, which are converted as netCDF does. With `collective` not 0 all
 ranks call it, each for its own box.
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
 Reads the box `start`, `count` of a variable into `data`; as fs_container_put.
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
 How many dimensions, variables and global attributes a container in data mode has, and how many records as
 far as this rank knows. Each place may be null.
 */
int fs_container_inq(struct fs_container *container,
                     uint64_t *dims,
                     uint64_t *vars,
                     uint64_t *attrs,
                     uint64_t *records);

/*
 The number of dimensions of a variable, and their lengths in `shape`, which has room for FS_MAX_RANK.
 FS_NOT_FOUND where there is none of that path.
 */
int fs_container_inq_var(struct fs_container *container, const char *path, int *ndim, uint64_t *shape);

/*
 Collective: what all ranks have written is durable, and every rank reads it.
 */
int fs_container_sync(struct fs_container *container);

/*
 Collective: finishes and closes. The handle is gone also where this fails. Null is nothing to close.
 */
int fs_container_close(struct fs_container *container);

/*
 Opens a job of a store, which each rank has opened: the run of this name, made or continued; where the name is null
 a new one. Collective over `comm` where that is not null. `options` may be null.
 */
int fs_arrays_open(struct fs_store *store,
                   const char *name,
                   const struct fs_comm *comm,
                   const struct fs_arrays_options *options,
                   struct fs_arrays **job);

/*
 The name of the run, as a text cut to `capacity` bytes with its zero byte; of this rank alone.
 */
int fs_arrays_run(struct fs_arrays *job, char *name, size_t capacity);

/*
 Collective: makes all writes since the last flush durable and visible, or none of them: one commit.
 */
int fs_arrays_flush(struct fs_arrays *job);

/*
 Collective: forgets all writes since the last flush.
 */
int fs_arrays_discard(struct fs_arrays *job);

/*
 Collective: flushes, and closes all files. The handles of the job and of its groups, imports, meshes and partitions are
 gone also where this fails. Null is nothing to close. The store stays open.
 */
int fs_arrays_close(struct fs_arrays *job);

/*
 Ends the job on this rank for an error of its own, whatever the others do: in the call that they are in, or come to,
 they fail with this message. What was not flushed is gone on all ranks; the handles are gone.
 */
int fs_arrays_abandon(struct fs_arrays *job,
                      const char *message);

/*
 What this rank has done so far.
 */
int fs_arrays_report(struct fs_arrays *job, struct fs_arrays_counts *counts);

/*
 Collective: declares a group of `nsets` sets, or takes it where it is there; sets that it has not are added, also to one
 that is open. FS_CONFLICT where ranks, or an earlier declaration, say otherwise. `options` may be null. The group ends with its job.
 */
int fs_arrays_group(struct fs_arrays *job,
                    const char *name,
                    int nsets,
                    const struct fs_set *sets,
                    const struct fs_group_options *options,
                    struct fs_group **group);

/*
 Collective: a group as it was declared; FS_NOT_FOUND where there is none of the name.
 */
int fs_arrays_declared_group(struct fs_arrays *job, const char *name, struct fs_group **group);

/*
 This rank holds the box of `count` indices from `start` on, of the `nsets` sets named, or of all where `nsets` is 0.
 `halo` (null: none) has two numbers a dimension: how much wider memory is before and behind; it is not written, and a
 read fills what of it lies within the array. `stride` (null: 1) is for reading: every so many indices. A rank may
 hold nothing: a count of 0.
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
 This rank holds its part of a balanced cut in `grid` parts a dimension, as numpy's array_split cuts; ranks in C order
 over the grid. `halo` as in fs_group_view_block.
 */
int fs_group_view_grid(struct fs_group *group,
                       int nsets,
                       const char *const *sets,
                       int ndim,
                       const uint64_t *grid,
                       const uint64_t *halo);

/*
 This rank holds every so many of blocks of `blocks` indices, which are dealt out in turn in every dimension; ranks in
 C order over the grid. In memory its blocks stand side by side.
 */
int fs_group_view_cyclic(struct fs_group *group,
                         int nsets,
                         const char *const *sets,
                         int ndim,
                         const uint64_t *grid,
                         const uint64_t *blocks);

/*
 This rank holds the `length` global indices of `map` along dimension `dim`, other dimensions whole; with `dim` -1
 single elements, by their number in the order in which files have them. An index of -1 stands for no element. The
 first `owned` entries are written (-1: all), all are read. The map is copied.
 */
int fs_group_view_irregular(struct fs_group *group,
                            int nsets,
                            const char *const *sets,
                            size_t length,
                            const int64_t *map,
                            int64_t owned,
                            int dim);

/*
 This rank holds `count` indices of the first dimension, which is FS_VARYING, behind those of the lower ranks.
 */
int fs_group_view_joined(struct fs_group *group, int nsets, const char *const *sets, uint64_t count);

/*
 As fs_group_view_block, as a handle, which fs_view_free gives back.
 */
int fs_view_block(int ndim,
                  const uint64_t *start,
                  const uint64_t *count,
                  const uint64_t *halo,
                  const uint64_t *stride,
                  struct fs_view **view);

/*
 As fs_group_view_grid, as a handle.
 */
int fs_view_grid(int ndim, const uint64_t *grid, const uint64_t *halo, struct fs_view **view);

/*
 As fs_group_view_cyclic, as a handle.
 */
int fs_view_cyclic(int ndim, const uint64_t *grid, const uint64_t *blocks, struct fs_view **view);

/*
 As fs_group_view_irregular, as a handle.
 */
int fs_view_irregular(size_t length, const int64_t *map, int64_t owned, int dim, struct fs_view **view);

/*
 As fs_group_view_joined, as a handle.
 */
int fs_view_joined(uint64_t count, struct fs_view **view);

/*
 Gives a view back; what it was given to keeps it. Null is nothing to give back.
 */
int fs_view_free(struct fs_view *view);

/*
 This rank holds, of the `nsets` sets named, or of all where `nsets` is 0, what the view says.
 */
int fs_group_view(struct fs_group *group, int nsets, const char *const *sets, struct fs_view *view);

/*
 The shape of this rank's part of a set by its view, which memory has: the number of dimensions, and extents in
 `shape`, which has room for FS_MAX_RANK. Of this rank alone.
 */
int fs_group_local_shape(struct fs_group *group,
                         const char *set,
                         int *ndim,
                         uint64_t *shape);

/*
 Collective: writes a set at a step, each rank what it holds. `dtype` is the type of the data, in either byte order;
 where null, the set's. `shape` is that of the data, to be compared with the view's; null: it is the view's.
 `strides` are the bytes from one element to the next in each dimension, from `data`, the first one, on; null: the
 elements stand close, in the group's order. `ndim` numbers each.

 FS_CONFLICT where ranks write one element with different bytes. With `wait` 0 the call returns when the elements were
 exchanged: the data may be changed, and a thread writes them; what fails then is an error of a later call.
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
 Collective: as fs_group_write, with hints of this call, beside the group's: for its exchange ("cb_nodes"), and for a
 file that is made for it.
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
 Collective: reads what this rank holds of a set at a step into `data`; the arguments are those of fs_group_write.
 What was written and not flushed is read, too. FS_NOT_FOUND for a set or step that is not there.
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
 Collective: as fs_group_read, by a view of this call (null: that of the set), and with hints of this call.
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
 Collective: steps at which a set was flushed and is whole, ascending. `count` becomes how many there are, also where
 `steps` has room for fewer: of `capacity` numbers, the first ones are given.
 */
int fs_group_steps(struct fs_group *group,
                   const char *set,
                   int64_t *steps,
                   size_t capacity,
                   size_t *count);

/*
 Collective: the newest step at which all sets of the group were flushed and are whole. `found` becomes 0 where there
 is none, else 1.
 */
int fs_group_last_step(struct fs_group *group,
                       int64_t *step,
                       int *found);

/*
 The level of the group: 1, 2 or 3; 0 where its arrays lie in the store's logs. Of this rank alone.
 */
int fs_group_level(struct fs_group *group, int *level);

/*
 Why level and method are what they are, as a text cut to `capacity` bytes with its zero byte. Of this rank alone.
 */
int fs_group_why(struct fs_group *group,
                 char *why,
                 size_t capacity);

/*
 Collective: a raw file, of which `nvariables` are named with type, place and shape. Nothing of them is read yet. The
 catalog records path, size, time and variables. FS_NOT_FOUND where there is no such file; FS_CORRUPT where it ends
 before a variable does; FS_CONFLICT where ranks, or an earlier import of the file, say otherwise. `options` may be
 null. The import ends with its job.
 */
int fs_arrays_import_raw(struct fs_arrays *job,
                         const char *path,
                         int nvariables,
                         const struct fs_raw_variable *variables,
                         const struct fs_import_options *options,
                         struct fs_import **import);

/*
 Collective: `nnames` variables of a netCDF classic file, by name; all where `nnames` is 0. As fs_arrays_import_raw;
 FS_INVALID for a netCDF-4 file, which is HDF5.
 */
int fs_arrays_import_netcdf(struct fs_arrays *job,
                            const char *path,
                            int nnames,
                            const char *const *names,
                            const struct fs_import_options *options,
                            struct fs_import **import);

/*
 How many variables an import has. Of this rank alone.
 */
int fs_import_count(struct fs_import *import, int *count);

/*
 What a variable of an import is, by its number from 0 on: the order is that in which they were named. Of this rank
 alone.
 */
int fs_import_variable(struct fs_import *import,
                       int number,
                       struct fs_variable_info *info);

/*
 Collective: the shape of this rank's part of a variable by a view (null: its share of a balanced cut of the file's
 first dimension): the number of dimensions, and extents in `shape`, which has room for FS_MAX_RANK.
 */
int fs_import_local_shape(struct fs_import *import,
                          const char *name,
                          struct fs_view *view,
                          int *ndim,
                          uint64_t *shape);

/*
 Collective: reads what this rank holds of a variable by a view (null: its share of a balanced cut of the file's first
 dimension) into `data`. `dtype` is the type of the data, in either byte order; where null, the variable's in this
 machine's. `shape`, `strides` and `ndim` are those of fs_group_read.
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
 Collective: closes the file. Null is nothing to close.
 */
int fs_import_close(struct fs_import *import);

/*
 Collective: makes a mesh of what the ranks hold, and declares it under a name, which stands for one content. The same
 content is kept once, as a file with UGRID's conventions. `order` says how dimensions are said where arrays of the mesh
 are read, as for imports: "C" (also where null) or "F". FS_INVALID for an entry that names no node, with rank,
 position and value; FS_CONFLICT where the name is of another mesh. The mesh ends with its job.
 */
int fs_arrays_create_mesh(struct fs_arrays *job,
                          const char *name,
                          const struct fs_mesh_content *content,
                          const char *order,
                          struct fs_mesh **mesh);

/*
 Collective: a mesh that the store keeps, by name. FS_NOT_FOUND where there is none; FS_CORRUPT where its file is not the
 one that was declared. `order` as for fs_arrays_create_mesh. The mesh ends with its job.
 */
int fs_arrays_mesh(struct fs_arrays *job,
                   const char *name,
                   const char *order,
                   struct fs_mesh **mesh);

/*
 How many nodes, edges, faces and volumes a mesh has. Of this rank alone.
 */
int fs_mesh_info(struct fs_mesh *mesh, struct fs_mesh_counts *counts);

/*
 The checksum of a mesh's content as a text of 32 hexadecimal digits, cut to `capacity` bytes with its zero byte: meshes
 of equal content have the same. Of this rank alone.
 */
int fs_mesh_checksum(struct fs_mesh *mesh,
                     char *checksum,
                     size_t capacity);

/*
 Collective: the shape of this rank's part of an array of a mesh by a view; see fs_import_local_shape.
 */
int fs_mesh_local_shape(struct fs_mesh *mesh,
                        const char *array,
                        struct fs_view *view,
                        int *ndim,
                        uint64_t *shape);

/*
 Collective: reads an array of a mesh: "x", "y", "z", "edges", "faces" or "volumes", by a view (null: this rank's share
 of a balanced cut). Nodes count from 0. The arguments are those of fs_import_read.
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
 Collective: closes the mesh, which the store keeps. Null is nothing to close.
 */
int fs_mesh_close(struct fs_mesh *mesh);

/*
 Collective: this rank's part of a mesh: the nodes that the vector gives it, as ghosts the nodes at the other ends of its
 edges, and all edges with an own end. With history a partition that an earlier run kept is used, before edges are read,
 and one that is computed is kept: written by a thread, and declared by the next flush. FS_INVALID, with rank, position
 and value, for a vector or an edge that names what is not there. `options` may be null. It ends with its job.
 */
int fs_arrays_partition(struct fs_arrays *job,
                        const struct fs_edges *edges,
                        const struct fs_vector *vector,
                        const struct fs_partition_options *options,
                        struct fs_partition **partition);

/*
 How much this rank has. Of this rank alone, as are the next five calls.
 */
int fs_partition_info(struct fs_partition *partition, struct fs_partition_counts *counts);

/*
 Global numbers of nodes from 0 on: own ones ascending, then ghosts ascending. `nodes` has room for `capacity`; fewer than
 there are is FS_INVALID.
 */
int fs_partition_nodes(struct fs_partition *partition,
                       int64_t *nodes,
                       size_t capacity);

/*
 Global numbers of edges from 0 on: those whose first end is own, ascending, then the others, ascending.
 */
int fs_partition_edges(struct fs_partition *partition, int64_t *edges, size_t capacity);

/*
 Both ends of each edge, as places in the list of nodes, from 0 on: two numbers an edge.
 */
int fs_partition_ends(struct fs_partition *partition, int64_t *ends, size_t capacity);

/*
 How it came about, as a text cut to `capacity` bytes with its zero byte: "computed"; "edges", from edges that an earlier
 run kept; "parts", as an earlier run finished it.
 */
int fs_partition_source(struct fs_partition *partition,
                        char *source,
                        size_t capacity);

/*
 What was kept and could not be used, a line for each file with the reason, as a text cut to `capacity` bytes with its
 zero byte; "" where there is none.
 */
int fs_partition_ignored(struct fs_partition *partition,
                         char *ignored,
                         size_t capacity);

/*
 What this rank holds of an array at the nodes, which are along dimension `dim`: own ones are written, all are read. A
 view for groups and imports, which fs_view_free gives back.
 */
int fs_partition_node_view(struct fs_partition *partition,
                           int dim,
                           struct fs_view **view);

/*
 What this rank holds of an array at the edges, which are along dimension `dim`: edges whose first end is own are
 written, all are read.
 */
int fs_partition_edge_view(struct fs_partition *partition,
                           int dim,
                           struct fs_view **view);

/*
 Collective: gives ghosts their owners' values, in place, in an array at the nodes: of the shape (nodes, ...), of which
 `shape` has `ndim` extents; where null, the array has one dimension. `strides` as for fs_group_write.
 */
int fs_partition_update(struct fs_partition *partition,
                        const char *dtype,
                        int ndim,
                        const uint64_t *shape,
                        const int64_t *strides,
                        void *data);

/*
 Forgets a partition; views and kept files stay. Of this rank alone. Null is nothing to forget.
 */
int fs_partition_free(struct fs_partition *partition);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* FIELDSTONE_H */
