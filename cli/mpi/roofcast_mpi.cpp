// The MPI module: built where Open MPI is, loaded only under mpirun, so that the program itself starts without it.
#include <mpi.h>

#include "cli/mpi/module.h"

namespace {

constexpr int kTag = 1;

int send(int to, const char* text, long bytes) {
  return MPI_Send(text, static_cast<int>(bytes), MPI_CHAR, to, kTag, MPI_COMM_WORLD) == MPI_SUCCESS ? 0 : 1;
}

long poll(int* from) {
  int there = 0, bytes = 0;
  MPI_Status status;
  if (MPI_Iprobe(MPI_ANY_SOURCE, kTag, MPI_COMM_WORLD, &there, &status) != MPI_SUCCESS || there == 0) return -1;
  MPI_Get_count(&status, MPI_CHAR, &bytes);
  *from = status.MPI_SOURCE;
  return bytes;
}

int receive(int from, char* text, long bytes) {
  const int status = MPI_Recv(text, static_cast<int>(bytes), MPI_CHAR, from, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  return status == MPI_SUCCESS ? 0 : 1;
}

void leave(int clean) {
  if (clean != 0) {
    MPI_Finalize();
  } else {
    MPI_Abort(MPI_COMM_WORLD, 0);
  }
}

}  // namespace

const RoofcastMpi* roofcast_mpi_join() {
  static RoofcastMpi mpi{0, 1, send, poll, receive, leave};
  int level = 0;
  if (MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &level) != MPI_SUCCESS) return nullptr;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_rank(MPI_COMM_WORLD, &mpi.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &mpi.size);
  return &mpi;
}
