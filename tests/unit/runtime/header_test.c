/* The C header in a C compiler, and the whole API in a job of size 1. */
#include "drun/drun.h"
#include "drun/gpu.h"

#include <stdio.h>
#include <string.h>

#define EXPECT(condition)                                                             \
  do {                                                                                \
    if (!(condition)) {                                                               \
      fprintf(stderr, "line %d: %s (%s)\n", __LINE__, #condition, drun_last_error()); \
      return 1;                                                                       \
    }                                                                                 \
  } while (0)

int main(void) {
  void* memory = NULL;
  drun_init_options options = DRUN_INIT_OPTIONS;
  drun_call_options call = DRUN_CALL_OPTIONS;
  float data[3] = {1, 2, 3}, result[3] = {0, 0, 0};
  char value[4];
  size_t n_bytes = sizeof value;
  int existed = -1;
  const size_t three = 3;

  EXPECT(!drun_is_initialized() && drun_rank() == -1);
  EXPECT(drun_is_homogeneous() == -1);
  EXPECT(drun_barrier(DRUN_COMM_WORLD, NULL) == DRUN_ERROR_STATE);
  EXPECT(strstr(drun_last_error(), "drun_barrier") != NULL && strstr(drun_last_error(), " [state]") != NULL);
  EXPECT(drun_last_error_rank() == -1);
  EXPECT(drun_finalize() == DRUN_OK);
  options.op_timeout_ms = -1;
  EXPECT(drun_init(&options) == DRUN_ERROR_ARGUMENT);
  options.op_timeout_ms = 1000;
  EXPECT(drun_init(&options) == DRUN_OK);
  EXPECT(drun_init(NULL) == DRUN_ERROR_STATE);
  EXPECT(drun_is_initialized() && drun_rank() == 0 && drun_size() == 1);
  EXPECT(drun_local_rank() == 0 && drun_local_size() == 1 && drun_cross_rank() == 0 && drun_cross_size() == 1);
  EXPECT(drun_is_homogeneous() == 1);
  EXPECT(drun_allreduce(data, result, 3, DRUN_FLOAT32, DRUN_AVG, DRUN_COMM_WORLD, NULL) == DRUN_OK && result[2] == 3);
  EXPECT(drun_allreduce(data, result, 6, DRUN_FLOAT16, DRUN_SUM, DRUN_COMM_WORLD, NULL) == DRUN_OK && result[2] == 3);
  EXPECT(drun_broadcast(data, 3, DRUN_FLOAT32, 0, DRUN_COMM_WORLD, NULL) == DRUN_OK);
  EXPECT(drun_broadcast(data, 3, DRUN_FLOAT32, 1, DRUN_COMM_WORLD, NULL) == DRUN_ERROR_ARGUMENT);
  EXPECT(drun_allgather(data, result, 3, DRUN_FLOAT32, DRUN_COMM_WORLD, NULL) == DRUN_OK && result[0] == 1);
  EXPECT(drun_allgatherv(data, 3, result, &three, NULL, DRUN_FLOAT32, DRUN_COMM_WORLD, NULL) == DRUN_OK);
  EXPECT(drun_allgatherv(data, 2, result, &three, NULL, DRUN_FLOAT32, DRUN_COMM_WORLD, NULL) == DRUN_ERROR_ARGUMENT);
  EXPECT(drun_gather(data, result, 3, DRUN_FLOAT32, 0, DRUN_COMM_WORLD, NULL) == DRUN_OK);
  EXPECT(drun_scatter(data, result, 3, DRUN_FLOAT32, 0, DRUN_COMM_WORLD, NULL) == DRUN_OK);
  EXPECT(drun_alltoall(data, result, 3, DRUN_FLOAT32, DRUN_COMM_WORLD, NULL) == DRUN_OK && result[2] == 3);
  EXPECT(drun_alltoallv(data, &three, NULL, result, &three, NULL, DRUN_FLOAT32, DRUN_COMM_WORLD, NULL) == DRUN_OK);
  EXPECT(drun_send(data, 3, DRUN_FLOAT32, 0, DRUN_COMM_WORLD, NULL) == DRUN_ERROR_ARGUMENT);
  EXPECT(drun_recv(data, 3, DRUN_FLOAT32, 0, DRUN_COMM_WORLD, NULL) == DRUN_ERROR_ARGUMENT);
  EXPECT(drun_reduce(data, result, 3, DRUN_FLOAT32, DRUN_MAX, 0, DRUN_COMM_WORLD, NULL) == DRUN_OK && result[1] == 2);
  EXPECT(drun_reduce_scatter(data, result, 3, DRUN_FLOAT32, DRUN_MIN, DRUN_COMM_WORLD, NULL) == DRUN_OK);
  EXPECT(drun_barrier(DRUN_COMM_WORLD, NULL) == DRUN_OK);
  EXPECT(drun_barrier((drun_comm)data, NULL) == DRUN_ERROR_ARGUMENT);
  call.prescale = 2;
  call.name = "grad.17";
  EXPECT(drun_allreduce(data, result, 3, DRUN_FLOAT32, DRUN_SUM, DRUN_COMM_WORLD, &call) == DRUN_OK && result[2] == 6);
  EXPECT(drun_barrier(DRUN_COMM_WORLD, &call) == DRUN_ERROR_ARGUMENT);
  call.struct_size = 0;
  EXPECT(drun_allreduce(data, result, 3, DRUN_FLOAT32, DRUN_SUM, DRUN_COMM_WORLD, &call) == DRUN_ERROR_ARGUMENT);
  EXPECT(drun_kv_set("k", "12345", 5) == DRUN_OK);
  EXPECT(drun_kv_set("k", "other", 5) == DRUN_ERROR_ARGUMENT);
  EXPECT(drun_kv_get("k", value, &n_bytes, 100) == DRUN_ERROR_TRUNCATED && n_bytes == 5);
  EXPECT(drun_kv_delete("k", NULL) == DRUN_OK);
  EXPECT(drun_kv_delete("k", &existed) == DRUN_OK && existed == 0);
  EXPECT(drun_kv_set("k", "other", 5) == DRUN_OK);
  EXPECT(drun_kv_delete("k", &existed) == DRUN_OK && existed == 1);
  EXPECT(drun_kv_delete("", &existed) == DRUN_ERROR_ARGUMENT && drun_kv_delete(NULL, NULL) == DRUN_ERROR_ARGUMENT);
  n_bytes = 3;
  EXPECT(drun_kv_get("absent", value, &n_bytes, 100) == DRUN_ERROR_TIMEOUT);
  EXPECT(drun_finalize() == DRUN_OK && !drun_is_initialized());
  EXPECT(drun_init(NULL) == DRUN_OK); /* again */
  EXPECT(drun_version()[0] != '\0');
  EXPECT(drun_memory_kind(data) == DRUN_MEMORY_HOST);
  EXPECT(drun_gpu_scale(data, 3, DRUN_FLOAT32, 2, NULL) == DRUN_ERROR_ARGUMENT);
  EXPECT(drun_alloc(&memory, 100, DRUN_MEMORY_DEVICE) == DRUN_ERROR_UNSUPPORTED && memory == NULL);
  EXPECT(drun_alloc(&memory, 100, DRUN_MEMORY_HOST) == DRUN_OK && memory != NULL);
  EXPECT(drun_free(memory) == DRUN_OK);
  return 0; /* without drun_finalize */
}
