#include "base/config_library.h"

#include <doctest/doctest.h>
#include <stdlib.h>

#include <thread>

#include "base/checkpoint_name.h"
#include "tests/base/messages.h"
#include "tests/base/temporary_folder.h"

using namespace roofcast;

namespace {

/// A folder of specs that stands in for the shipped one.
class Library {
 public:
  Library() {
    folder.write("hardware/h100-sxm.yaml", "name: H100\nmemory: 80 GB\nlink: {kind: nvlink, lanes: 18}\n");
    folder.write("hardware/a100-sxm.yaml", "name: A100\n");
    folder.write("hardware/notes.txt", "");
    folder.write("models/broken.yaml", "a: [\n");
    setenv("ROOFCAST_CONFIGS", folder.path().c_str(), 1);
  }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  ~Library() { unsetenv("ROOFCAST_CONFIGS"); }
  TemporaryFolder folder;
};

const SourceLocation kOrigin{"s.yaml", 2, 6};

}  // namespace

TEST_CASE("library: the root is ROOFCAST_CONFIGS, else the source tree's") {
  {
    const Library library;
    CHECK(config_root() == library.folder.path());
  }
  CHECK(config_root() == std::string(ROOFCAST_SOURCE_DIR) + "/configs");
}

TEST_CASE("library: names are looked up, paths are read as they are") {
  const Library library;
  const std::string file = library.folder.path() + "/hardware/h100-sxm.yaml";
  CHECK(names_of("hardware") == std::vector<std::string>{"a100-sxm", "h100-sxm"});
  CHECK(names_of("sweeps").empty());
  CHECK(path_of_named("hardware", "h100-sxm", kOrigin) == file);
  CHECK(path_of_named("hardware", file, kOrigin) == file);
  const ConfigTree tree = load_named("hardware", "h100-sxm", kOrigin);
  CHECK(tree->entries.size() == 3);
  CHECK(tree->location.path == file);
  CHECK(load_named("hardware", file, kOrigin) == tree);  // remembered
}

TEST_CASE("library: what is not there") {
  const Library library;
  const auto refused = [](const char* kind, const std::string& name) {
    return message_of([&] { load_named(kind, name, kOrigin); });
  };
  CHECK(refused("hardware", "h10") ==
        "s.yaml:2:6: unknown gpu 'h10'; nearest is 'h100-sxm' (valid: a100-sxm, h100-sxm)");
  CHECK(refused("hardware", "") == "s.yaml:2:6: unknown gpu '' (valid: a100-sxm, h100-sxm)");
  CHECK(refused("engines", "vllm").starts_with("s.yaml:2:6: unknown engine 'vllm': no engines in '"));
  CHECK(refused("models", "no/such.json") == "s.yaml:2:6: no such model file 'no/such.json'");
  CHECK(refused("models", library.folder.path() + "/") ==
        "s.yaml:2:6: '" + library.folder.path() + "/' is a directory without a config.json, not a model file");
  CHECK(refused("workloads", "x.yml") == "s.yaml:2:6: no such workload file 'x.yml'");
  CHECK(refused("scenarios", "x").starts_with("s.yaml:2:6: unknown scenario 'x': no scenarios in '"));
  CHECK(refused("sweeps", "x").starts_with("s.yaml:2:6: unknown sweep 'x': no sweeps in '"));
  for (int i = 0; i < 2; ++i)
    CHECK(refused("models", "broken").find("broken.yaml:2:1: malformed YAML") != std::string::npos);
}

TEST_CASE("library: other names of what ships, and a model's folder") {
  const Library library;
  library.folder.write("models/qwen3-32b.yaml",
                       "name: qwen3-32b\nsource: https://huggingface.co/Qwen/Qwen3-32B as is\n");
  library.folder.write("models/qwen3-3b.yaml", "name: qwen3-3b\nhelp: not huggingface.co/Qwen/Qwen3-32B\n");
  const auto found = [](const char* kind, const char* name) { return shipped_name(kind, name); };
  CHECK(found("hardware", "H100") == "h100-sxm");
  CHECK(found("hardware", "A100-SXM") == "a100-sxm");
  CHECK(found("hardware", "H200").empty());
  library.folder.write("models/llama.yaml",
                       "name: llama\nsource: https://huggingface.co/meta-llama/Llama\n"
                       "hugging_face: [meta-llama/Llama-Instruct]\n");
  for (const char* name : {"meta-llama/Llama-Instruct", "Llama-Instruct", "meta-llama/Llama"})
    CHECK(shipped_name("models", name) == "llama");
  CHECK(shipped_name("models", "meta-llama/Llama-Instruct-FP8").empty());  // another format: another answer
  for (const char* name : {"Qwen3-32B", "qwen/qwen3-32b", "Qwen/Qwen3-32B"})
    CHECK(found("models", name) == "qwen3-32b");
  CHECK(found("models", "Other/Qwen3-32B").empty());
  CHECK(load_named("models", "Qwen/Qwen3-32B", kOrigin) == load_named("models", "qwen3-32b", kOrigin));
  const std::string config = library.folder.write("mine/config.json", "{}");
  CHECK(path_of_named("models", library.folder.path() + "/mine", kOrigin) == config);
}

TEST_CASE("library: a document whose file has changed is read anew") {
  const Library library;
  (void)forget_changed_documents();  // those of folders that are gone
  const ConfigTree before = load_named("hardware", "a100-sxm", kOrigin);
  CHECK_FALSE(forget_changed_documents());
  CHECK(load_named("hardware", "a100-sxm", kOrigin) == before);
  library.folder.write("hardware/a100-sxm.yaml", "name: another\n");
  CHECK(load_named("hardware", "a100-sxm", kOrigin) == before);  // remembered, until somebody looks
  CHECK(forget_changed_documents());
  CHECK(to_yaml(*load_named("hardware", "a100-sxm", kOrigin)) == "name: another\n");
}

TEST_CASE("library: a map overrides parts of what it names") {
  const Library library;
  const auto resolve = [](const char* text) {
    return to_yaml(*resolve_named("hardware", parse_config_text(text, "s.yaml")));
  };
  CHECK(resolve("a100-sxm") == "name: A100\n");
  CHECK(resolve("{name: h100-sxm, memory: 94 GB, link: {lanes: 12}}") ==
        "name: H100\nmemory: 94 GB\nlink:\n  kind: nvlink\n  lanes: 12\n");
  CHECK(resolve("{memory: 1 GB}") == "memory: 1 GB\nname: unnamed\n");  // stands for itself
  CHECK(message_of([&] { resolve("[a]"); }) ==
        "s.yaml:1:1: a gpu must be a name, or a map with a 'name' and what it changes");
  CHECK(message_of([&] { resolve("{name: [a]}"); }) == "s.yaml:1:8: 'name' must be the name of a gpu");
  CHECK(message_of([&] {
          resolve("{name: h100-smx}");
        }).starts_with("s.yaml:1:8: unknown gpu 'h100-smx'; nearest is 'h100-sxm'"));
  CHECK(message_of([] { resolve_named("hardware", nullptr); }) == "missing gpu");
  // A new name with what only a whole file says is a document of its own; without it the name is a mistake.
  CHECK(resolve("{name: new-one, architecture: generic, memory_capacity: 80 GB}") ==
        "name: new-one\narchitecture: generic\nmemory_capacity: 80 GB\n");
  CHECK(message_of([&] { (void)resolve("{name: new-one, memory_capacity: 80 GB}"); }).find("unknown gpu 'new-one'") !=
        std::string::npos);
  // Such a document may do without a name.
  CHECK(resolve("{like: h100-sxm, memory: 94 GB}") == "like: h100-sxm\nmemory: 94 GB\nname: like-h100-sxm\n");
  CHECK(resolve("{like: ./gpus/mine.yaml}") == "like: ./gpus/mine.yaml\nname: like-mine\n");
  CHECK(resolve("{architecture: generic}") == "architecture: generic\nname: unnamed\n");
}

TEST_CASE("library: threads share one document") {
  const Library library;
  std::vector<ConfigTree> trees(8);
  std::vector<std::thread> threads;
  for (ConfigTree& tree : trees) threads.emplace_back([&tree] { tree = load_named("hardware", "a100-sxm", kOrigin); });
  for (std::thread& thread : threads) thread.join();
  for (const ConfigTree& tree : trees) CHECK(tree == trees[0]);
}

TEST_CASE("library: what checkpoints' names say of their formats") {
  {
    const Library library;
    CHECK(!parse_checkpoint_name("acme/Rocket-FP8", kOrigin));  // a folder without such a table
    library.folder.write(
        "checkpoints/formats.yaml",
        "formats:\n"
        "  - {endings: [-fp8], owners: [acme], quantization: {quant_method: fp8}, weights: fp8_block}\n"
        "  - {endings: [-fp8], quantization: {quant_method: fp8}, weights: fp8}\n"
        "  - {endings: [-int3], word: int3}\n");
    const auto weights = [](const char* name) { return parse_checkpoint_name(name, kOrigin)->weights; };
    CHECK(weights("Acme/Rocket-FP8") == "fp8_block");
    CHECK(weights("acme-Rocket-FP8") == "fp8_block");  // no owner: its name begins like one
    CHECK(weights("other/Rocket-FP8") == "fp8");
    CHECK(!parse_checkpoint_name("-fp8", kOrigin));
    CHECK(message_of([] { parse_checkpoint_name("Rocket-int3", kOrigin); }).find("unknown key 'word'") !=
          std::string::npos);
  }
  // Every row of the shipped table can be read, and is reached by one of its own endings.
  const ConfigTree table = load_document("checkpoints", "formats", kOrigin);
  for (const ConfigTree& row : (*table->find("formats"))->items) {
    const ConfigTree* owners = row->find("owners");
    const std::string owner = owners != nullptr ? (*owners)->items.front()->scalar : "somebody";
    for (const ConfigTree& ending : (*row->find("endings"))->items) {
      const auto name = parse_checkpoint_name(owner + "/model" + ending->scalar, kOrigin);
      REQUIRE(name);
      CHECK(name->format == ending->scalar);
      CHECK((name->quantization != nullptr) != !name->advice.empty());
      const ConfigTree* weights = row->find("weights");
      CHECK(name->weights == (weights != nullptr ? (*weights)->scalar : ""));
    }
  }
}
