// Known failures of Triton candidates: what Triton 3's compiler and launcher, CUDA and Torch say, and what to do about it.
#include "diagnosis/repair_patterns.hpp"

namespace pragma::diagnosis_detail {

const std::vector<pattern>& triton_patterns() {
  static const std::vector<pattern> table = {
      // -- the module -------------------------------------------------------------------------------------------------
      {"", {"SyntaxError", "IndentationError", "unterminated string", "was never closed"}, "", "", "The source is not valid Python: the answer may have been cut off.", "Give the whole module again, with consistent indentation and closed brackets."},
      {"", {"ModuleNotFoundError", "ImportError", "No module named", "cannot import name"}, "", "",
       "The module imports something that is not there or not allowed.",
       "Import torch, torch.nn, triton and triton.language, and nothing else (math and typing are harmless); libdevice comes from triton.language.extra."},
      {"", {"ModelNew"}, "no class", "", "The module defines no class ModelNew.", "Define class ModelNew(nn.Module) with the constructor and forward() of the task's Model."},
      {"", {"name 'ModelNew' is not defined", "has no attribute 'ModelNew'", "does not define ModelNew", "defines no ModelNew"}, "", "", "The module defines no class ModelNew.", "Define class ModelNew(nn.Module) with the constructor and forward() of the task's Model."},
      {"", {"__init__() takes", "__init__() missing", "__init__() got an unexpected"}, "", "", "ModelNew's constructor takes other arguments than the task's Model.", "Give ModelNew.__init__ the signature of Model.__init__ (get_init_inputs() says what it is called with)."},
      {"", {"forward() takes", "forward() missing", "forward() got an unexpected"}, "", "", "forward() takes other arguments than the task's Model.", "Give ModelNew.forward the signature of Model.forward."},

      // -- the compiler: the more specific first ------------------------------------------------------------------------
      {"", {"out of resource: shared memory", "out of resource: shared"}, "", "",
       "The kernel needs more shared memory than a block may have (227 KiB on an H100 or H200): num_stages x (BLOCK_M + BLOCK_N) x BLOCK_K x bytes.",
       "Lower num_stages or BLOCK_K first, then BLOCK_M and BLOCK_N; \"tf32x3\" needs more than \"tf32\"."},
      {"", {"out of resource: threads", "out of resource: registers", "too many resources requested"}, "", "", "A block needs more threads or registers than a multiprocessor has.", "Lower num_warps (32 x num_warps threads, 1024 at most), or the tile."},
      {"", {"No valid autotuner configs", "no valid autotuner"}, "", "", "None of the autotuner's configurations can be built or started.", "Add a small one (BLOCK 64, num_warps 4, num_stages 2), and remove those that need more shared memory than there is."},
      {"", {"must be a power of 2", "must be power of 2", "power of two"}, "", "",
       "A block's shape (tl.arange, tl.zeros, tl.full, tl.reshape) is not a power of two.",
       "Use triton.next_power_of_2(n) for the block, and mask what lies beyond n: mask=offsets < n with other= the neutral element (0, -inf)."},
      {"", {"arguments must be of type tl.constexpr", "must be a constexpr", "must be constexpr", "arange's arguments must be"}, "", "", "A shape must be known when the kernel is compiled.", "Declare the argument as NAME: tl.constexpr and pass it by name."},
      {"", {"exceeds triton maximum tensor numel"}, "", "", "A block has more than 1048576 elements.", "Use a smaller BLOCK and a loop over the rest."},
      {"", {"Input shapes should have M >=", "should have M >= 16", "minimum dot size", "min_dot_size", ">= 16 and K"}, "", "", "tl.dot needs tiles of at least 16 in each dimension.", "Pad with masked loads to 16, or use tl.sum(a * b, axis) for thin products."},
      {"", {"incompatible for matmul", "First input shape"}, "", "", "The inner dimensions of tl.dot's operands differ.", "tl.dot takes (M, K) and (K, N): load the second operand with K as its first dimension, or use tl.trans."},
      {"", {"incompatible dimensions", "make_shape_compatible", "Cannot broadcast", "Cannot make_shape"}, "", "", "Blocks of shapes that do not broadcast are combined.", "Add axes with [:, None] and [None, :], and make the block sizes equal."},
      {"", {"oop-carried variable", "re-assigned to"}, "", "", "A variable changes its type or shape in a loop.", "Start it with its final type and shape: tl.zeros((BLOCK,), tl.float32), and convert with .to(tl.float32) in the loop."},
      {"", {"Mismatched type for"}, "", "", "A variable has different types after an if.", "Give it the same type and shape in both branches, or use tl.where."},
      {"", {"Cannot access global variable"}, "", "", "The kernel uses a Python variable of the module.", "Pass it as a tl.constexpr argument, or write NAME = tl.constexpr(value) in the module."},
      {"", {"has no attribute", "no attribute '"}, "triton", "",
       "A function of triton.language does not exist in this version (Triton 3).",
       "Use tl.exp, tl.log, tl.sqrt, tl.abs, tl.maximum, tl.where, tl.sigmoid; tanh, erf, log1p, expm1 and pow come from triton.language.extra.libdevice."},
      {"", {"`_builtin` argument", "`_semantic` argument", "outside of JIT functions", "outside of the scope of a kernel"}, "", "", "A function of triton.language, or a kernel, is called from ordinary Python.", "Decorate kernels and their helpers with @triton.jit, and start kernels as kernel[grid](...)."},
      {"", {"unsupported AST node", "UnsupportedLanguageConstruct", "not supported in Triton", "unsupported tensor index", "unsupported expression"}, "", "",
       "The kernel uses Python that Triton does not compile (lists, slices, try, break, indexing of blocks by numbers).",
       "Write plain assignments, for and while loops and if; select with tl.where, take parts by pointers and masks."},
      {"", {"Unsupported ptr type", "must be a pointer", "Expected ptr"}, "", "", "tl.load or tl.store gets a value where it needs pointers.", "Pass tensors as arguments and compute pointer + offsets."},
      {"", {"mask argument cannot be block type", "Mask argument cannot be", "other argument cannot be"}, "", "", "Pointer, mask and other have different shapes.", "Build the mask from the same offsets as the pointers."},
      {"", {"was specified but unrecognised", "missing a required argument", "dynamic_func() missing", "got multiple values for argument", "missing 1 required positional"}, "", "", "The kernel is started with other arguments than it declares.", "Pass all arguments in order, tl.constexpr ones by name; do not pass what the autotuner's configurations set."},
      {"", {"PassManager::run failed", "failed to translate module", "ptxas", "LLVM ERROR"}, "", "", "Triton's back end failed on this kernel: a layout or shape that it cannot handle, or too large a block.", "Simplify: smaller tiles, fewer reshapes and transposes of large blocks, another num_warps, no num_stages on loops with irregular loads."},
      {"", {"CompilationError", "error: 'tt."}, "", "", "Triton does not compile the kernel; the line under \"at\" shows where.", "Correct that line: types, shapes (powers of two), and that only triton.language is used in the kernel."},

      // -- the launch and the run ----------------------------------------------------------------------------------------
      {"", {"cannot be accessed from Triton", "cpu tensor?"}, "", "",
       "A tensor in the host's memory is passed to a kernel.",
       "Allocate with torch.empty(..., device=x.device) or torch.empty_like(x), and register constant tensors as buffers or create them on the device."},
      {"", {"illegal memory access", "CUDA_ERROR_ILLEGAL_ADDRESS", "Memory access fault by GPU", "invalid device pointer"}, "", "",
       "A kernel read or wrote outside of its tensors: a missing or wrong mask, a stride in the wrong unit, or an offset beyond 2^31 in 32-bit arithmetic.",
       "Mask each tl.load and tl.store with the true sizes, use strides in elements, and compute large offsets in 64 bits (tl.program_id(0).to(tl.int64))."},
      {"", {"misaligned address"}, "", "", "An address is not aligned as it was promised (tl.multiple_of) or as the type needs.", "Remove the hint, or use offsets that are multiples of it."},
      {"", {"device-side assert", "unspecified launch failure", "CUDA_ERROR_LAUNCH_FAILED"}, "", "", "The kernel failed on the device: an assertion, or a broken access.", "Check indices and masks; remove tl.device_assert."},
      {"", {"CUDA out of memory", "OutOfMemoryError", "HIP out of memory", "cudaErrorMemoryAllocation"}, "", "",
       "Too much device memory is allocated: large intermediate tensors, or one for each program.",
       "Fuse operations so that no intermediate tensor is needed, and allocate outputs and small partial results only."},
      {"", {"Triton Error [CUDA]: invalid argument", "CUDA error: invalid argument", "invalid configuration argument", "CUDA_ERROR_INVALID_VALUE"}, "", "",
       "The grid is not possible: a dimension of 0, or more than 65535 in its second or third.", "Use a one-dimensional grid and compute the other indices in the kernel; each size at least 1."},
      {"", {"not allowed while capturing", "operation not permitted when stream is capturing", "cudaErrorStreamCapture"}, "", "", "forward() does what cannot be captured as a graph: it waits for the device, copies from the host, or allocates outside of Torch.", "Only allocate with torch.empty and launch kernels in forward(); no .item(), .cpu(), synchronize() or prints."},
      {"load run audit measure", {"did not come back", "timed out", "time limit", "took longer", "SIGXCPU"}, "", "",
       "The call did not end in time: a loop in a kernel that never ends (a step of 0, waiting for another program), a grid far too large, or very many configurations to tune.",
       "Check loop bounds and steps, never wait for other programs, and keep the autotuner's list short (at most 8)."},
      {"load run audit measure", {"forbidden system call", "SIGSYS", "Operation not permitted", "Permission denied"}, "", "", "The module did what a kernel has no need for: files, processes, sockets.", "Only compute: no files, no subprocesses, no network, no environment."},
      {"load run audit measure", {"SIGSEGV", "SIGBUS", "SIGABRT", "SIGKILL", "memory ran out"}, "", "", "The process ended by a signal: a crash in the compiler or the driver, or too much memory of the host.", "Simplify the kernel (smaller tiles, fewer stages), and touch no pointers outside of Triton."},
      {"load run audit measure", {"ended its process by itself"}, "", "", "The module called exit().", "Return from forward(); never exit."},

      // -- comparing and audits -------------------------------------------------------------------------------------------
      {"compare", {"caches by address"}, "", "", "The answer belongs to the inputs that lay at the same address before: results are kept by pointer.", "Compute from the contents on each call; keep no state between calls."},
      {"compare audit", {"gave different outputs", "keeps state between calls", "its first run on the same inputs was right"}, "", "",
       "Two runs on the same inputs differ: memory is read before it is written (torch.empty is not cleared), programs race for the same output, or state is kept between calls. "
       "On Hopper also the assembler (ptxas 12.8): in tl.where(mask, acc, 0) that is stored as a half type it reads the sums of tl.dot before they are there.",
       "Let each program write its own part, clear what tl.atomic_add adds to in every call, and keep no tensors between calls. A masked product of half types: tl.store(..., acc, mask=mask) and a second store for the rest."},
      {"audit load run", {"aten::", "aten.", "Torch operator", "torch operator"}, "", "", "forward() lets Torch compute instead of a Triton kernel.", "Do all arithmetic in Triton kernels; of Torch use only torch.empty, empty_like, view and shapes. Do not catch exceptions to fall back to Torch."},
      {"audit", {"caches answers by content", "skips work that it finds done"}, "", "", "The candidate recognises inputs or outputs that it has seen, and does not compute again.", "Do all the work on every call."},
      {"audit", {"changed its inputs", "changed the parameters"}, "", "", "Inputs and parameters must stay as they are.", "Write to tensors of torch.empty only; no in-place operations on inputs."},
      {"audit", {"another stream", "side stream", "works in the background", "outside the measured time"}, "", "", "Work goes on after the call, or on a stream that is not timed.", "Launch all kernels on the current stream; no torch.cuda.Stream, no threads."},
      {"audit", {"does not do the work on every call", "does not compute on every call", "exchanged"}, "", "", "Not every call does its work.", "Compute from the inputs' contents on every call, with no state between calls."},
      {"audit", {"TF32", "tf32"}, "", "", "The products were computed with less precision than the task asks for.", "Use tl.dot(a, b, acc, input_precision=\"ieee\") or \"tf32x3\", and do not convert operands to float16."},
      {"audit", {"is not believed", "allows: this measurement"}, "", "", "The time is shorter than the hardware allows: part of the work is not done, or the measurement was disturbed.", "Read every input element and write every output element on each call."},
      {"audit", {"cannot be verified"}, "", "", "The task's output hardly depends on its input, so that a wrong kernel would pass.", "Nothing in the candidate can help: choose another task, or inputs that vary."},
      {"measure", {"no measurement", "too few", "contended", "busy", "accepted"}, "", "", "Other work on the machine disturbed the timing.", "Try again when the machine is idle; the candidate itself is not at fault."},
  };
  return table;
}

} // namespace pragma::diagnosis_detail
