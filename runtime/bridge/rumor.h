/* librumor: a peer of a Rumor run inside another program, behind a C ABI. For training loops that are not Rumor's own:
 * PyTorch (python/rumor is written on this), JAX, C.
 *
 * The program trains its own weights, in its own memory, with its own optimizer. After each step of the optimizer it
 * calls rumor_step(). This call hands over the program's changes, and adds the changes of other peers to the same
 * memory. Threads of the library do everything else: connections, updates, checkpoints.
 *
 *   rumor_swarm* swarm;
 *   rumor_create("my-run", &swarm);
 *   rumor_option(swarm, "seed", "192.0.2.7:7711");
 *   const uint32_t shape[] = {10, 784};
 *   rumor_parameter(swarm, "weight", RUMOR_F32, 2, shape, weight);
 *   if (rumor_start(swarm, 30) != RUMOR_OK) fprintf(stderr, "%s\n", rumor_error());
 *   while (...) { ...one step of the optimizer on `weight`...; if (rumor_step(swarm, batch, loss) != RUMOR_OK) break; }
 *   rumor_leave(swarm, 10);
 *   rumor_free(swarm);
 *
 * Exchange. Each peer's weights are the run's shared weights plus its drift: the changes that it has learned and not
 * yet sent. A peer sends the largest entries of its drift (compress.density of all parameters for each step), each
 * divided by the number of live peers. So the learning rate of the loop stays right for any number of peers, as with
 * averaged gradients, and a peer without others trains as it would alone. Shared weights are equal bit for bit on all
 * peers that have the same updates. After rumor_leave() the program's memory holds the shared weights.
 *
 * Start of a run. All peers begin with the same weights, which are part of the run's identity, with its name and the
 * names and shapes of the tensors. So make the model from the same seed, or load the same file, everywhere. A peer that
 * begins with other weights is refused with RUMOR_MISMATCH, unless it takes the run's (option weights). In a run with
 * a built-in model (fashion-mlp) the weights come from the run's seed, and rumor_start() writes them into the program's
 * memory.
 *
 * Threads. One thread at a time may use a swarm. Any thread may call rumor_status() and rumor_event() between
 * rumor_create() and rumor_free(). rumor_step(), rumor_start() and rumor_leave() write into the program's memory before
 * they return; at no other time does the library touch it. No function calls back. The library installs no signal
 * handler, and its threads take no signals. It does not write to stdout; messages go to stderr, or to the program
 * (option messages).
 *
 * Processes. A swarm belongs to the process that started it. After fork() the child gets RUMOR_FORKED for all calls but
 * rumor_free(), which then frees nothing. The child lets go of the address on which the peer listens.
 *
 * Errors. Functions return RUMOR_OK or one of the codes below; rumor_error() gives the reason and the fix. Bad input
 * causes neither an exception nor an abort. Codes and functions are only added, and rumor_abi() then grows.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RUMOR_ABI 5

#define RUMOR_OK 0
#define RUMOR_USAGE 1      /* a wrong argument, option or run file; or called in the wrong order */
#define RUMOR_NOT_FOUND 2  /* a file that does not exist */
#define RUMOR_IO 3         /* the system refused: a port in use, a directory that cannot be written */
#define RUMOR_CORRUPT 4    /* a damaged file */
#define RUMOR_MISMATCH 5   /* other peers or the state directory are of another run, or do not admit this peer */
#define RUMOR_LIMIT 6      /* beyond a bound; a weight that is not finite or beyond the grid */
#define RUMOR_DIVERGED 7   /* replicas with the same updates differ: one of the machines computes wrongly */
#define RUMOR_NOT_FINITE 8 /* training has diverged: a change that is not a finite number */
#define RUMOR_ENDED 20     /* the peer has ended: by rumor_leave(), or since the run's samples are reached */
#define RUMOR_ALONE 21     /* no peer could be reached in time; the peer keeps trying, training may begin */
#define RUMOR_FORKED 22    /* started in another process */
#define RUMOR_INTERNAL 23  /* out of memory, or a fault of the library */

#define RUMOR_F32 0
#define RUMOR_BF16 1

#if defined(__GNUC__)
#define RUMOR_API __attribute__((visibility("default")))
#else
#define RUMOR_API
#endif

typedef struct rumor_swarm rumor_swarm;

/* The ABI of the loaded library. It must be at least the RUMOR_ABI of the header that the program was compiled with. */
RUMOR_API int rumor_abi(void);
/* The version of the project, such as "0.1.0". */
RUMOR_API const char* rumor_version(void);
/* One line with the reason of this thread's last failure. Valid until its next call of a function that fails. */
RUMOR_API const char* rumor_error(void);

/* `run`: a run file (with a '/' or ending in .toml), a built-in run (fashion-mlp, ...), or the name of a run whose
 * model only the programs know. *swarm is set only with RUMOR_OK, and ends with rumor_free(). */
RUMOR_API int rumor_create(const char* run, rumor_swarm** swarm);

/* Before rumor_start(). `name` is a key of run files, "compress.density" or "network.up_mbit", or one of
 *   seed               host:port of a peer to join through, or several with commas; may be given again
 *   listen             host:port to be reached at; 127.0.0.1:0 if not given
 *   status             host:port of the status page; none if not given
 *   state              directory for identity, checkpoints and the update log; nothing is kept if not given
 *   allow, token       files that say who may join (rumor key)
 *   until_samples      end when the run has seen this many samples, all peers together
 *   steps              of all peers together until the run ends, about: a run without a run file then sends each
 *                      parameter some 25 times, 10 % of them a step at most and 0.1 % at least. compress.density goes
 *                      before (ABI 5)
 *   checkpoint_seconds between two checkpoints, 10 if not given
 *   threads            for passes over all weights; by their number if not given
 *   overhead           the share of time that rumor_step() may take, if not given 0.04, and 0.02 for a model of 64
 *                      million parameters or more. If a pass over all weights takes more, one update contains several
 *                      steps and as many entries as they would have had
 *   frozen             any text that names what the model has beside the parameters, such as a hash of weights that
 *                      nobody trains: part of the run's identity, so peers with another text are refused (ABI 3)
 *   buffers            a JSON list that describes the memory of rumor_local(), call by call: {"name": "norm.mean",
 *                      "dtype": "F32", "shape": [64], "shared": true}, with the types of safetensors files. `rumor
 *                      export` then writes it beside the weights (ABI 4). Shared: after rumor_leave(), and while
 *                      rumor_show_shared() shows the shared weights, the memory holds the mean over the peers, of
 *                      integers the greatest; types F32, F64, BF16, F16, I32, I64, about a megabyte in all (ABI 5)
 *   weights            "own" (if not given): the run begins with the program's weights. "swarm": the program takes the
 *                      run's weights, from the checkpoint in `state` or from the seeds, whatever its own are. Without
 *                      both it is the first peer, and its own count (ABI 4)
 *   messages           "stderr" (if not given) or "events": nothing on stderr, see rumor_event() (ABI 4)
 *   quiet              1: no lines of progress on stderr */
RUMOR_API int rumor_option(rumor_swarm* swarm, const char* name, const char* value);

/* Call before rumor_start(), in the same order on all peers. `data`: the product of `shape` values, contiguous,
 * row-major, at the same address until rumor_leave() returns. RUMOR_F32, or RUMOR_BF16 (the upper halves of floats).
 * Name and shape are copied. rank 0 is a single value. A run with a built-in model requires its shapes in its order;
 * names may differ. */
RUMOR_API int rumor_parameter(rumor_swarm* swarm, const char* name, int type, size_t rank, const uint32_t* shape,
                              void* data);
/* The same for memory of this peer that is not trained by gradients, such as running means of BatchNorm: kept in
 * checkpoints and restored from them. It is sent only where the option `buffers` says that it is shared. */
RUMOR_API int rumor_local(rumor_swarm* swarm, const char* name, size_t bytes, void* data);

/* Both for memory of the CUDA device with this number, in the numbering of this process. (ABI 2) They need the plugin
 * librumor_cuda.so from the same build: RUMOR_NOT_FOUND without it. rumor_start(), rumor_step() and rumor_leave() copy
 * from the device and back when needed. Work that the program has queued on these tensors must be finished before these
 * calls (cudaStreamSynchronize); work queued afterwards sees their writes. */
RUMOR_API int rumor_cuda_parameter(rumor_swarm* swarm, const char* name, int type, size_t rank, const uint32_t* shape,
                                   void* data, int device);
RUMOR_API int rumor_cuda_local(rumor_swarm* swarm, const char* name, size_t bytes, void* data, int device);

/* Loads the checkpoint in `state`, listens, joins, and waits up to `wait_seconds` until this peer has the updates of
 * the others. The memory of the parameters then holds the weights from which to continue. RUMOR_ALONE is not a failure:
 * the peer is started. With the option weights = swarm it waits as long as the weights take to come, and returns
 * RUMOR_NOT_FOUND when nothing has come for `wait_seconds`. Any code but RUMOR_OK and RUMOR_ALONE leaves a swarm that
 * can only be freed. If the run is already over, the result is RUMOR_OK too: rumor_step() then returns RUMOR_ENDED, and
 * rumor_leave() gives the weights. */
RUMOR_API int rumor_start(rumor_swarm* swarm, double wait_seconds);

/* Call after each step of the optimizer, which saw `samples` rows with mean loss `loss` (0 or NaN: unknown). Never
 * waits for the network or another thread. RUMOR_ENDED: the run is over. rumor_leave() then sends what this peer has
 * learned and not sent yet. */
RUMOR_API int rumor_step(rumor_swarm* swarm, uint32_t samples, double loss);

/* One line that the program's user should read: an error that the peer goes on with, such as a weight that nears the
 * end of the grid, or an optimizer that undoes the changes of other peers. Null if there is nothing new; each is
 * returned once. Valid until the next call. (ABI 3) */
RUMOR_API const char* rumor_warning(rumor_swarm* swarm);

/* Writes the object that a status address serves as /status: JSON and a zero byte, at most a quarter of a second old.
 * *needed: its size in bytes. A buffer that is too small gets nothing, and the call returns RUMOR_LIMIT; null and 0 ask
 * for the size. */
RUMOR_API int rumor_status(rumor_swarm* swarm, char* buffer, size_t size, size_t* needed);

/* The next event since the start, an object of JSON: {"at": seconds since 1970, "kind", "level", "text"}. Kinds: log (a
 * line that would go to stderr), progress, phase, joined, left and lost (of a peer, with node_id; lost: without a
 * goodbye to this one), behind, evaluated. Levels: info, warning, error. Null if there is nothing new; each is returned
 * once, and the newest 1,000 wait. Any thread may call this, as rumor_status(). Valid until the thread's next call.
 * (ABI 4; lost and behind: ABI 5) */
RUMOR_API const char* rumor_event(rumor_swarm* swarm);

/* Writes a checkpoint with the next update, in addition to the periodic ones. Needs `state`. */
RUMOR_API int rumor_checkpoint(rumor_swarm* swarm);

/* 1: the memory of the parameters becomes the shared weights alone, for an evaluation or a file; 0: it becomes what the
 * program trains again, with the updates that arrived meanwhile. Changes in between are dropped, and rumor_step() is
 * RUMOR_USAGE. RUMOR_USAGE too where the peer trains no more: call rumor_leave() then. (ABI 3) */
RUMOR_API int rumor_show_shared(rumor_swarm* swarm, int shared);

/* Before rumor_leave(): the program has changed the parameters since the last rumor_step() and the run shall not have
 * it, as when the best weights of the past have been loaded. (ABI 3) */
RUMOR_API int rumor_take_back(rumor_swarm* swarm);

/* Makes a last update, sends what this peer has learned and not sent yet (exchange.flush_bits, 6 bits a parameter if
 * not given), waits up to `wait_seconds` until all neighbours have finished too and hold the same digest, writes the
 * last checkpoint, says goodbye, and writes the shared weights into the program's memory. The time that this peer
 * itself computes is not counted as waiting. The rest of the drift, mostly less than a hundredth of its squares, is
 * dropped, and the library does not touch the memory any more. Returns RUMOR_OK, or the reason why the peer had ended
 * before. Later calls return RUMOR_ENDED. */
RUMOR_API int rumor_leave(rumor_swarm* swarm, double wait_seconds);

/* rumor_start() or rumor_leave() under way on another thread waits for the others no longer: for Ctrl-C. rumor_start()
 * then ends the peer and returns RUMOR_IO, rumor_leave() does its work as without patience. (ABI 5) */
RUMOR_API int rumor_interrupt(rumor_swarm* swarm);

/* Ends the peer within a few seconds, without touching the program's memory, and frees it. Null does nothing. */
RUMOR_API void rumor_free(rumor_swarm* swarm);

#ifdef __cplusplus
}
#endif
