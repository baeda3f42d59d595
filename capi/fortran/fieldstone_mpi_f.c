/*
 * Communicators of Fortran: your mpicc compiles this file, to be linked with a Fortran program that
 * uses the module fieldstone_mpi. It turns Fortran's integer for a communicator into the struct
 * fs_comm of Fieldstone.
 *
 *     mpicc -I $FS/capi/include -c $FS/capi/fortran/fieldstone_mpi_f.c
 */
#include "fieldstone_mpi.h"

/* Makes a new struct fs_comm from a Fortran communicator. Collective. FS_OK or FS_UNAVAILABLE. */
int fs_mpi_comm_from_fortran(int from, struct fs_comm **comm) {
  fs_comm *made = (fs_comm *)calloc(1, sizeof(fs_comm));
  MPI_Comm known = MPI_Comm_f2c((MPI_Fint)from);
  int failed = fs_mpi_any(known, made == NULL ? ENOMEM : 0);
  int status = failed ? FS_UNAVAILABLE : fs_mpi_comm(known, made);
  *comm = NULL;
  if (status != FS_OK) {
    free(made);
    return fs_fail(status, "the communicator cannot be duplicated", NULL);
  }
  *comm = made;
  return FS_OK;
}

/* Frees it. Collective. Does nothing with null. */
void fs_mpi_comm_free_fortran(struct fs_comm *comm) {
  if (comm == NULL) return;
  fs_mpi_comm_free(comm);
  free(comm);
}
