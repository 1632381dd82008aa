/* What execution/runner_process.cpp (trusted) and execution/runner/runner.cpp (inside the candidate's process) say to each
 * other over two pipes. Plain structs of fixed size; nothing that comes back is believed beyond "the calls are over". */
#ifndef PRAGMA_RUNNER_PROTOCOL_H
#define PRAGMA_RUNNER_PROTOCOL_H

#include <stdint.h>

enum pragma_runner_fd {
  PRAGMA_FD_COMMANDS = 3,
  PRAGMA_FD_REPLIES = 4,
  PRAGMA_FD_PARAMS = 5,
  PRAGMA_FD_INPUTS = 6,
  PRAGMA_FD_OUTPUTS = 7
};

struct pragma_command {
  uint64_t nonce;       /* comes back in the reply: an answer prepared in advance does not fit */
  int32_t first_slot;
  int32_t slot_count;
  int64_t calls;
  uint32_t operation;   /* enum pragma_operation; a C++ candidate knows PRAGMA_CALL only */
  uint32_t flags;       /* enum pragma_command_flag */
};

/* What a candidate on a device is asked for. Its inputs and results stay on the device between these. */
enum pragma_operation {
  PRAGMA_CALL = 0,      /* inputs from shared memory, the calls, results to shared memory */
  PRAGMA_UPLOAD = 1,    /* inputs of the slots to the device, where they keep their addresses */
  PRAGMA_RUN = 2,       /* calls back to back, then wait: for our clock */
  PRAGMA_TIME = 3,      /* calls, each after a flush of the last-level cache and between two events of the device */
  PRAGMA_CAPTURE = 4,   /* a graph of one call for each slot */
  PRAGMA_DOWNLOAD = 5,  /* results of the slots to shared memory */
  PRAGMA_PROFILE = 6,   /* calls in a range that a profiler records */
  PRAGMA_TUNE = 7,      /* autotuners choose, and remember it for later processes of this build */
  PRAGMA_LOAD = 8       /* the candidate's module is there: the answer is PRAGMA_READY */
};

enum pragma_command_flag {
  PRAGMA_WITH_GRAPH = 1, /* PRAGMA_RUN and PRAGMA_TIME replay the graphs */
  PRAGMA_UNSEEN = 2,     /* PRAGMA_TIME takes the inputs over itself, directly before its only call */
  PRAGMA_NO_FLUSH = 4,   /* PRAGMA_TIME without flushes */
  PRAGMA_ELSEWHERE = 8   /* PRAGMA_TIME copies the inputs to other memory directly before its calls: the device is then as after PRAGMA_UNSEEN */
};

struct pragma_reply {
  uint64_t nonce;
  uint64_t flags;       /* enum pragma_reply_flag */
  double seconds;       /* PRAGMA_TIME: of all calls together, by the device's clock */
};

enum pragma_reply_flag {
  PRAGMA_CHANGED_ROUNDING = 1,  /* the rounding mode was another after the call than before it */
  PRAGMA_CHANGED_DENORMALS = 2, /* flush-to-zero or denormals-are-zero was */
  PRAGMA_CHANGED_TRAPS = 4,     /* floating-point exceptions were unmasked, x87 precision was changed or its registers left full */
  PRAGMA_CHANGED_INPUTS = 8,    /* of a candidate on a device: its inputs there differ after the call */
  PRAGMA_CALLS_TORCH = 16,      /* operators of aten that compute ran in the call; PRAGMA_HINT_TORCH names them */
  PRAGMA_NO_GRAPH = 32,         /* the call could not be captured */
  PRAGMA_CHANGED_PROCESSOR = 64 /* the direction flag or the check of alignment was left set */
};

/* The replies to starting up. One in Python says first that Torch, the device and the tensors are there, and nothing of the candidate yet. */
#define PRAGMA_READY 0x7072616764793031ull
#define PRAGMA_STARTED 0x7072616773743031ull

/* Set in the environment when the candidate runs inside a profiler: the filter of its own would hit the profiler. */
#define PRAGMA_WRAPPED "PRAGMA_WRAPPED"

/* First word of a line on stderr that explains an end; a hint for people, since the candidate could write it too. */
#define PRAGMA_HINT_FORBIDDEN "pragma-forbidden"  /* system call number, then a path, PRAGMA_THREAD of a clone, or '-' */
#define PRAGMA_THREAD "thread"
#define PRAGMA_HINT_RAISED "pragma-raised"        /* what a Python candidate raised, as one line */
#define PRAGMA_HINT_NO_MEMORY "pragma-no-memory"  /* the same, where it was that memory was refused */
#define PRAGMA_HINT_TORCH "pragma-torch"          /* operator:count,... of aten in one call */
#define PRAGMA_HINT_FAULT "pragma-fault"          /* r|w|?, group 0..2 (params, inputs, outputs) or -, slot, tensor, byte offset */

#endif
