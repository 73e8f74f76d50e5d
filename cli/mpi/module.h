#pragma once
// What the program asks of the MPI module that it loads where mpirun started it. C, for it is found by dlsym.

extern "C" {

struct RoofcastMpi {
  int rank, size;
  int (*send)(int to, const char* text, long bytes);  ///< 0: sent
  long (*poll)(int* from);                            ///< bytes of the next message and its sender; -1: none
  int (*receive)(int from, char* text, long bytes);   ///< that message; 0: received
  void (*leave)(int clean);
};

/// Joins the job, once. Null when MPI cannot be started.
const RoofcastMpi* roofcast_mpi_join();
}
