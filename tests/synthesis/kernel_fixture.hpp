// Small graphs as a tracer would write them, and emitted kernels loaded into this process (they are our own code).
#pragma once

#include "base/files.hpp"
#include "base/subprocess.hpp"
#include "execution/runner/pragma_kernel.h"
#include "synthesis/search/builtin.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <dlfcn.h>
#include <random>

namespace pragma::test {

/// Builds the JSON of docs/graph.md.
class graph_text {
public:
  std::string input(std::vector<int64_t> shape, const std::string& type = "float32") {
    const std::string id = "x" + std::to_string(inputs_.size());
    inputs_.push_back({{"id", id}, {"input", inputs_.size()}, {"shape", shape}, {"dtype", type}, {"used", true}});
    return id;
  }
  std::string node(const std::string& op, json args, std::vector<int64_t> shape, const std::string& type = "float32") {
    const std::string id = "n" + std::to_string(nodes_.size());
    nodes_.push_back({{"id", id}, {"op", op}, {"args", args}, {"shape", shape}, {"dtype", type}});
    return id;
  }
  /// A node with several results; the one numbered `index` is returned.
  std::string part(const std::string& op, json args, const std::vector<std::vector<int64_t>>& shapes,
                   const std::vector<std::string>& types, size_t index) {
    const std::string id = "n" + std::to_string(nodes_.size());
    nodes_.push_back({{"id", id}, {"op", op}, {"args", args}, {"shapes", shapes}, {"dtypes", types}});
    return node("getitem", {{"self", ref(id)}, {"index", index}}, shapes[index], types[index]);
  }
  static json ref(const std::string& id) { return {{"ref", id}}; }
  task finish(std::vector<std::string> outputs, const std::string& name = "test") const {
    task t;
    t.name = name;
    t.graph = json{{"version", 1},   {"inputs", inputs_}, {"params", json::array()}, {"constants", json::array()}, {"nodes", nodes_},
                   {"outputs", outputs}, {"random", false},   {"mutated", json::array()}}
                  .dump();
    return t;
  }

private:
  json inputs_ = json::array(), nodes_ = json::array();
};

inline builtin_options test_machine() {
  builtin_options o;
  o.machine.cpu = "test";
  o.machine.simd_bits = 256;
  o.machine.cache_bytes = {32 << 10, 512 << 10, 8 << 20};
  return o;
}

inline builtin_coder coder_for(const task& t, const builtin_options& options = test_machine()) {
  auto c = builtin_coder::create(t, options);
  if (!c) FAIL(render(c.error()));
  return std::move(*c);
}

/// A shared object from source; `optimise` replaces -O3 to keep the tests fast.
class loaded {
public:
  loaded(const std::string& source, std::vector<std::string> flags, const std::string& optimise = "-O1") : folder_(*temp_dir::create("pragma-synthesis-test")) {
    const auto file = folder_.path() / "kernel.cpp", object = folder_.path() / "kernel.so";
    REQUIRE(write_file_atomic(file, source));
    process_spec spec;
    spec.argv = {"g++"};
    for (const auto& f : flags) spec.argv.push_back(f == "-O3" ? optimise : f);
    for (const char* f : {"-Wall", "-Wextra", "-Werror", "-Wno-psabi", "-Wno-unused-function", "-Wno-ignored-attributes", "-shared", "-fPIC"}) spec.argv.push_back(f);
    spec.argv.insert(spec.argv.end(), {"-I" PRAGMA_SOURCE_TREE "/execution/runner", "-o", object.string(), file.string()});
    const auto result = run_process(spec);
    REQUIRE(result);
    INFO(source);
    INFO(result->err);
    REQUIRE(result->ok());
    handle_ = dlopen(object.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE); // OpenMP's threads outlive it
    REQUIRE(handle_ != nullptr);
  }
  loaded(const loaded&) = delete;
  loaded& operator=(const loaded&) = delete;
  ~loaded() {
    if (handle_) dlclose(handle_);
  }
  template <class F> F* function(const char* name) const { return reinterpret_cast<F*>(dlsym(handle_, name)); }

private:
  temp_dir folder_;
  void* handle_ = nullptr;
};

/// Memory as the ABI promises it: 64-byte aligned.
template <class T> class tensor {
public:
  explicit tensor(size_t n) : size_(n), data_(static_cast<T*>(std::aligned_alloc(64, (n * sizeof(T) + 127) / 64 * 64))) {}
  tensor(tensor&& o) noexcept : size_(o.size_), data_(std::exchange(o.data_, nullptr)) {}
  tensor(const tensor&) = delete;
  tensor& operator=(const tensor&) = delete;
  ~tensor() { std::free(data_); }
  T& operator[](size_t i) { return data_[i]; }
  const T& operator[](size_t i) const { return data_[i]; }
  T* data() { return data_; }
  size_t size() const { return size_; }

private:
  size_t size_;
  T* data_;
};

inline tensor<float> random_floats(size_t n, unsigned seed, float low = -3, float high = 3) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<float> uniform(low, high);
  tensor<float> t(n);
  for (size_t i = 0; i < n; ++i) t[i] = uniform(generator);
  return t;
}

/// Calls the kernel on raw pointers; outputs hold garbage before.
inline void call(const loaded& kernel, const std::vector<void*>& inputs, const std::vector<void*>& outputs, int threads = 1) {
  std::vector<pragma_tensor> in(inputs.size()), out(outputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) in[i].data = inputs[i];
  for (size_t i = 0; i < outputs.size(); ++i) out[i].data = outputs[i];
  pragma_args args{in.data(), nullptr, out.data(), static_cast<int32_t>(in.size()), 0, static_cast<int32_t>(out.size()), threads};
  auto* entry = kernel.function<void(const pragma_args*)>("pragma_kernel");
  REQUIRE(entry != nullptr);
  entry(&args);
}

} // namespace pragma::test
