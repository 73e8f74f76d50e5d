// Fuzzing without libFuzzer: feeds the corpus, then, where it is asked to, mutations of it.
//   fuzz_corpus                           every target: seeds and tests/fuzz/corpus/TARGET
//   fuzz_corpus TARGET SECONDS [SEED]     mutations of these, without a look at what they reach
//   fuzz_corpus TARGET FILE...            these inputs
//   fuzz_corpus seeds TARGET              the folders of its corpus

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/random.h"
#include "tests/fuzz/targets.h"

namespace fs = std::filesystem;
using roofcast::Random;
using roofcast::fuzz::Target;

namespace {

constexpr std::size_t kLongest = 1 << 20;
constexpr unsigned kHang = 20;  // seconds that one input may take

std::string g_input;  // the one under way, for the handler of a crash
std::string g_crash;  // where it is written

extern "C" void keep_input(int signal) {
  if (std::FILE* file = std::fopen(g_crash.c_str(), "wb")) {
    std::fwrite(g_input.data(), 1, g_input.size(), file);
    std::fclose(file);
    std::fprintf(stderr, "signal %d: the input is in %s\n", signal, g_crash.c_str());
  }
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

std::string read(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::vector<fs::path> folders_of(const Target& target) {
  const fs::path root = ROOFCAST_SOURCE_DIR;
  std::vector<fs::path> folders{root / "tests/fuzz/corpus" / target.name};
  for (const std::string_view seeds : target.seeds) folders.push_back(root / seeds);
  std::erase_if(folders, [](const fs::path& folder) { return !fs::is_directory(folder); });
  return folders;
}

std::vector<std::string> corpus_of(const Target& target) {
  std::vector<fs::path> files;
  for (const fs::path& folder : folders_of(target)) {
    std::error_code none;
    for (const auto& entry : fs::directory_iterator(folder, none)) {
      if (entry.is_regular_file() && entry.file_size() <= kLongest) files.push_back(entry.path());
    }
  }
  std::sort(files.begin(), files.end());
  std::vector<std::string> out{""};
  for (const fs::path& file : files) out.push_back(read(file));
  return out;
}

void feed(const Target& target, const std::string& input) {
  g_input = input;
  alarm(kHang);
  roofcast::fuzz::feed(target, input);
  alarm(0);
}

/// Some bytes changed, moved, doubled, dropped, or taken from another input.
std::string mutated(std::string text, const std::vector<std::string>& corpus, Random& random) {
  static const std::vector<std::string> kWords{
      "0",         "-1",  "1e18",     "1e308", "nan", "inf",  "[",          "]",
      "{",         "}",   ": ",       ", ",    "\n",  "\"",   "null",       "true",
      "- ",        "&a",  "*a",       "<<",    "#",   "\xff", "4294967296", "9223372036854775808",
      "0.0000001", "../", "/dev/zero"};
  const auto place = [&](std::size_t size) {
    return static_cast<std::size_t>(random.uniform_integer(0, static_cast<std::int64_t>(size)));
  };
  for (std::int64_t n = random.uniform_integer(1, 6); n > 0; --n) {
    const std::size_t at = place(text.size()), length = std::min(place(40), text.size() - at);
    const std::string& other = corpus[place(corpus.size() - 1)];
    switch (random.uniform_integer(0, 6)) {
      case 0:
        if (at < text.size()) text[at] = static_cast<char>(random.uniform_integer(0, 255));
        break;
      case 1:
        text.erase(at, length);
        break;
      case 2:
        text.insert(at, text.substr(at, length));
        break;
      case 3:
        text.replace(at, length, kWords[place(kWords.size() - 1)]);
        break;
      case 4:
        if (const std::size_t from = place(other.size()); from < other.size())
          text.replace(at, length, other.substr(from, place(80)));
        break;
      case 5: {  // a line is moved
        const std::size_t begin = text.rfind('\n', at), end = text.find('\n', at);
        if (begin == std::string::npos || end == std::string::npos) break;
        const std::string line = text.substr(begin, end - begin);
        text.erase(begin, end - begin);
        text.insert(place(text.size()), line);
        break;
      }
      default:  // digits become others
        for (std::size_t i = at; i < std::min(text.size(), at + 40); ++i) {
          if (text[i] >= '0' && text[i] <= '9') text[i] = static_cast<char>('0' + random.uniform_integer(0, 9));
        }
    }
    if (text.size() > kLongest) text.resize(kLongest);
  }
  return text;
}

void fuzz(const Target& target, double seconds, std::uint64_t seed) {
  std::vector<std::string> corpus = corpus_of(target);
  for (const std::string& input : corpus) feed(target, input);
  Random random(seed);
  const auto start = std::chrono::steady_clock::now();
  const auto passed = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); };
  std::uint64_t runs = 0;
  for (; passed() < seconds; ++runs) {
    const auto of = static_cast<std::size_t>(random.uniform_integer(0, static_cast<std::int64_t>(corpus.size()) - 1));
    feed(target, mutated(corpus[of], corpus, random));
  }
  fmt::print("{}: {} inputs in {:.0f} s\n", target.name, corpus.size() + runs, passed());
}

}  // namespace

int main(int argc, char** argv) {
  for (const int signal : {SIGSEGV, SIGABRT, SIGFPE, SIGBUS, SIGILL, SIGALRM}) std::signal(signal, keep_input);
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (words.empty()) {
    for (const Target& target : roofcast::fuzz::targets()) {
      g_crash = fmt::format("crash-{}", target.name);
      fuzz(target, 0, 0);
    }
    return 0;
  }
  if (words.size() == 2 && words[0] == "seeds") {
    const Target* of = roofcast::fuzz::find_target(words[1]);
    for (const fs::path& folder : of != nullptr ? folders_of(*of) : std::vector<fs::path>{})
      fmt::print("{}\n", folder.string());
    return of != nullptr ? 0 : 2;
  }
  const Target* target = roofcast::fuzz::find_target(words[0]);
  if (target == nullptr || words.size() < 2) {
    fmt::print(stderr, "usage: fuzz_corpus [TARGET SECONDS [SEED] | TARGET FILE...]\n");
    for (const Target& each : roofcast::fuzz::targets()) fmt::print(stderr, "  {:<10} {}\n", each.name, each.help);
    return 2;
  }
  g_crash = fmt::format("crash-{}", target->name);
  if (fs::exists(words[1])) {
    for (std::size_t i = 1; i < words.size(); ++i) feed(*target, read(words[i]));
  } else {
    fuzz(*target, std::atof(words[1].c_str()), words.size() > 2 ? std::strtoull(words[2].c_str(), nullptr, 10) : 1);
  }
  return 0;
}
