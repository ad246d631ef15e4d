// The C ABI from C: what it refuses, in words, and one peer that trains by itself, checkpoints and goes on; its weights
// in memory, or on a device, which here is that of fake_gpu.cc.
//
// usage: test_c_abi FAKE-GPU
#define _DEFAULT_SOURCE  // mkdtemp
#include <stdio.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runtime/bridge/rumor.h"

static int failures = 0;

static void expect(int holds, const char* what, int line) {
  if (holds) return;
  fprintf(stderr, "line %d: not so: %s (last error: %s)\n", line, what, rumor_error());
  ++failures;
}
#define EXPECT(condition) expect((condition), #condition, __LINE__)

static int says(const char* words) { return strstr(rumor_error(), words) != NULL; }

// A bare one, before its start.
static rumor_swarm* made(const char* run) {
  rumor_swarm* swarm = NULL;
  EXPECT(rumor_create(run, &swarm) == RUMOR_OK);
  EXPECT(rumor_option(swarm, "quiet", "1") == RUMOR_OK);
  return swarm;
}

static void refuses_wrong_arguments(void) {
  rumor_swarm* none = NULL;
  EXPECT(rumor_create(NULL, &none) == RUMOR_USAGE);
  EXPECT(rumor_create("a", NULL) == RUMOR_USAGE);
  EXPECT(rumor_create("", &none) == RUMOR_USAGE);
  EXPECT(rumor_create("/no/such.toml", &none) == RUMOR_NOT_FOUND && says("/no/such.toml"));
  EXPECT(none == NULL);
  EXPECT(rumor_step(NULL, 1, 0) == RUMOR_USAGE);
  EXPECT(rumor_take_back(NULL) == RUMOR_USAGE && rumor_show_shared(NULL, 1) == RUMOR_USAGE);
  EXPECT(rumor_interrupt(NULL) == RUMOR_USAGE);
  EXPECT(rumor_warning(NULL) == NULL);
  rumor_free(NULL);

  rumor_swarm* swarm = made("wrong");
  const uint32_t shape[2] = {2, 3}, empty[1] = {0};
  float values[6] = {0};
  EXPECT(rumor_option(swarm, "sed", "127.0.0.1:1") == RUMOR_USAGE && says("did you mean seed"));
  EXPECT(rumor_option(swarm, "compress.densty", "1") == RUMOR_USAGE && says("compress.density"));
  EXPECT(rumor_option(swarm, "threads", "many") == RUMOR_USAGE && says("threads"));
  EXPECT(rumor_parameter(swarm, "w", 7, 2, shape, values) == RUMOR_USAGE && says("RUMOR_BF16"));
  EXPECT(rumor_parameter(swarm, "w", RUMOR_F32, 2, shape, NULL) == RUMOR_USAGE);
  EXPECT(rumor_parameter(swarm, "w", RUMOR_F32, 9, (const uint32_t[9]){1}, values) == RUMOR_LIMIT);
  EXPECT(rumor_step(swarm, 1, 0) == RUMOR_USAGE && says("rumor_start"));
  EXPECT(rumor_leave(swarm, 0) == RUMOR_USAGE);
  EXPECT(rumor_start(swarm, 0) == RUMOR_LIMIT && says("at least one tensor"));
  EXPECT(rumor_start(swarm, 0) == RUMOR_USAGE);
  rumor_free(swarm);

  swarm = made("wrong");
  EXPECT(rumor_parameter(swarm, "w", RUMOR_F32, 1, empty, values) == RUMOR_OK);
  EXPECT(rumor_start(swarm, 0) == RUMOR_LIMIT && says("w is empty"));
  rumor_free(swarm);

  swarm = made("wrong");
  values[4] = 1e9f;
  EXPECT(rumor_parameter(swarm, "w", RUMOR_F32, 2, shape, values) == RUMOR_OK);
  EXPECT(rumor_start(swarm, 0) == RUMOR_LIMIT && says("grid"));
  rumor_free(swarm);

  swarm = made("wrong");
  values[4] = 0;
  EXPECT(rumor_parameter(swarm, "w", RUMOR_F32, 2, shape, values) == RUMOR_OK);
  EXPECT(rumor_option(swarm, "listen", "not an address") == RUMOR_OK);
  EXPECT(rumor_start(swarm, 0) == RUMOR_USAGE && says("not an address"));
  rumor_free(swarm);

  // Keys that are of the daemon's own loop.
  swarm = made("synthetic");
  EXPECT(rumor_option(swarm, "data.resolution", "[[0, 4], [0.5, 8]]") == RUMOR_OK);
  EXPECT(rumor_parameter(swarm, "w", RUMOR_F32, 2, shape, values) == RUMOR_OK);
  EXPECT(rumor_start(swarm, 0) == RUMOR_USAGE && says("data.resolution is for `rumor peer`"));
  rumor_free(swarm);

  // The model of a run file is wanted, tensor by tensor.
  swarm = made("synthetic");
  EXPECT(rumor_parameter(swarm, "w", RUMOR_F32, 2, shape, values) == RUMOR_OK);
  EXPECT(rumor_start(swarm, 0) == RUMOR_MISMATCH && says("tensor 1") && says("2 x 3"));
  rumor_free(swarm);
}

// Where fake_gpu.cc has this memory.
static void* on_gpu(void* address) { return (void*)((uintptr_t)address ^ (uintptr_t)1 << 62); }

// 100 steps towards 1; returns the digest in `digest`.
static void train(const char* state, int gpu, float* values, uint8_t* count, const char* wanted, char* digest) {
  const uint32_t shape[2] = {10, 10};
  rumor_swarm* swarm = made("alone");
  EXPECT(rumor_option(swarm, "state", state) == RUMOR_OK);
  EXPECT(rumor_option(swarm, "compress.density", "0.2") == RUMOR_OK);
  if (gpu) {
    EXPECT(rumor_cuda_parameter(swarm, "w", RUMOR_F32, 2, shape, on_gpu(values), 0) == RUMOR_OK);
    EXPECT(rumor_cuda_local(swarm, "steps", 1, on_gpu(count), 0) == RUMOR_OK);
  } else {
    EXPECT(rumor_parameter(swarm, "w", RUMOR_F32, 2, shape, values) == RUMOR_OK);
    EXPECT(rumor_local(swarm, "steps", 1, count) == RUMOR_OK);
  }
  EXPECT(rumor_start(swarm, 10) == RUMOR_OK);
  EXPECT(rumor_option(swarm, "quiet", "1") == RUMOR_USAGE);
  size_t size = 0;
  char status[65536];
  EXPECT(rumor_status(swarm, status, 10, &size) == RUMOR_LIMIT && size > 10);
  EXPECT(rumor_status(swarm, status, sizeof status, &size) == RUMOR_OK);
  if (wanted != NULL) EXPECT(strstr(status, wanted) != NULL);
  const struct timespec millisecond = {0, 1000000};
  for (int step = 0; step < 100; ++step) {
    nanosleep(&millisecond, NULL);  // a loop that takes no time would hand over once or twice
    for (int i = 0; i < 100; ++i) values[i] += 0.1f * (1 - values[i]);
    ++*count;
    EXPECT(rumor_step(swarm, 1, 0.5) == RUMOR_OK);
  }
  EXPECT(rumor_checkpoint(swarm) == RUMOR_OK);
  EXPECT(rumor_leave(swarm, 0) == RUMOR_OK);
  EXPECT(rumor_leave(swarm, 0) == RUMOR_ENDED);
  EXPECT(rumor_step(swarm, 1, 0.5) == RUMOR_ENDED);
  EXPECT(rumor_status(swarm, status, sizeof status, &size) == RUMOR_OK);
  const char* at = strstr(status, "\"digest\":");
  EXPECT(at != NULL);
  if (at != NULL) sprintf(digest, "%.44s", at);
  rumor_free(swarm);
}

static void goes_on_from_its_checkpoint(int gpu) {
  char state[] = "/tmp/rumor-c-abi-XXXXXX", digest[64] = "", later[64] = "";
  EXPECT(mkdtemp(state) != NULL);
  float values[100] = {0}, again[100] = {0};
  uint8_t count = 0, count_again = 0;
  train(state, gpu, values, &count, NULL, digest);
  float least = 2, most = 0;
  for (int i = 0; i < 100; ++i) {
    least = values[i] < least ? values[i] : least;
    most = values[i] > most ? values[i] : most;
  }
  EXPECT(least > 0.5f && most < 1.001f);
  // Other weights are another run: the state directory is not taken over.
  rumor_swarm* other = made("alone");
  const uint32_t shape[2] = {10, 10};
  EXPECT(rumor_option(other, "state", state) == RUMOR_OK);
  EXPECT(rumor_parameter(other, "w", RUMOR_F32, 2, shape, values) == RUMOR_OK);
  EXPECT(rumor_start(other, 10) == RUMOR_MISMATCH);
  rumor_free(other);
  // The same script begins with the same weights, and goes on where it was.
  train(state, gpu, again, &count_again, digest, later);
  EXPECT(strcmp(digest, later) != 0);
  EXPECT(count_again == 200);
  least = 2;
  for (int i = 0; i < 100; ++i) least = again[i] < least ? again[i] : least;
  EXPECT(least > 0.9f);
  char command[128];
  sprintf(command, "rm -r %s", state);
  EXPECT(system(command) == 0);
}

static void says_what_is_wrong_with_a_device(const char* fake_gpu) {
  const uint32_t shape[1] = {4};
  float values[4] = {0};
  rumor_swarm* swarm = made("device");
  EXPECT(setenv("RUMOR_CUDA", "/no/such.so", 1) == 0);
  EXPECT(rumor_cuda_parameter(swarm, "w", RUMOR_F32, 1, shape, values, 0) == RUMOR_NOT_FOUND && says("/no/such.so"));
  EXPECT(setenv("RUMOR_CUDA", fake_gpu, 1) == 0);
  EXPECT(rumor_cuda_parameter(swarm, "w", RUMOR_F32, 1, shape, values, 1) == RUMOR_IO && says("no GPU 1"));
  EXPECT(rumor_cuda_parameter(swarm, "w", RUMOR_F32, 2, (const uint32_t[2]){65536, 65536}, values, 0) == RUMOR_LIMIT);
  EXPECT(rumor_cuda_parameter(swarm, "w", RUMOR_F32, 1, shape, on_gpu(values), 0) == RUMOR_OK);
  EXPECT(rumor_option(swarm, "overhead", "1") == RUMOR_OK);
  EXPECT(rumor_start(swarm, 10) == RUMOR_OK);
  values[0] = -1;  // and the device fails
  int code = RUMOR_OK;
  for (int step = 0; step < 10000 && code == RUMOR_OK; ++step) {
    const struct timespec millisecond = {0, 1000000};
    nanosleep(&millisecond, NULL);
    code = rumor_step(swarm, 1, 0);
  }
  EXPECT(code == RUMOR_IO && says("as it was told to"));
  EXPECT(rumor_leave(swarm, 0) == RUMOR_IO && says("as it was told to"));
  rumor_free(swarm);
}

// A weight that nears the end of the grid; and a change that the run shall not have.
static void warns_and_takes_back(void) {
  const uint32_t shape[1] = {4};
  float values[4] = {0, 1, 2, 3};
  rumor_swarm* swarm = made("warns");
  EXPECT(rumor_option(swarm, "overhead", "1") == RUMOR_OK && rumor_option(swarm, "compress.density", "0.2") == RUMOR_OK);
  EXPECT(rumor_option(swarm, "frozen", "the same base") == RUMOR_OK);
  EXPECT(rumor_parameter(swarm, "w", RUMOR_F32, 1, shape, values) == RUMOR_OK);
  EXPECT(rumor_warning(swarm) == NULL);
  EXPECT(rumor_start(swarm, 10) == RUMOR_OK);
  const char* warning = NULL;
  for (int step = 0; step < 10000 && warning == NULL; ++step) {
    const struct timespec millisecond = {0, 1000000};
    nanosleep(&millisecond, NULL);
    if (values[2] < 120) values[2] += 1;
    EXPECT(rumor_step(swarm, 1, 0) == RUMOR_OK);
    warning = rumor_warning(swarm);
  }
  EXPECT(warning != NULL && strstr(warning, "weight 2 of tensor w") != NULL);
  EXPECT(rumor_warning(swarm) == NULL);
  EXPECT(rumor_show_shared(swarm, 1) == RUMOR_OK && values[2] > 90 && values[2] <= 96);
  EXPECT(rumor_step(swarm, 1, 0) == RUMOR_USAGE && says("shared weights"));
  EXPECT(rumor_show_shared(swarm, 0) == RUMOR_OK && values[2] > 96);
  values[0] = 50;
  EXPECT(rumor_take_back(swarm) == RUMOR_OK);
  EXPECT(rumor_leave(swarm, 1) == RUMOR_OK);
  EXPECT(values[0] == 0 && values[2] > 90 && values[2] <= 96);
  rumor_free(swarm);
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  EXPECT(rumor_abi() >= RUMOR_ABI);
  EXPECT(strlen(rumor_version()) > 0);
  refuses_wrong_arguments();
  warns_and_takes_back();
  goes_on_from_its_checkpoint(0);
  says_what_is_wrong_with_a_device(argv[1]);
  goes_on_from_its_checkpoint(1);
  printf("%s\n", failures == 0 ? "the C ABI holds" : "the C ABI does not hold");
  return failures == 0 ? 0 : 1;
}
