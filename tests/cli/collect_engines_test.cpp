// Lines of calibrate/collect_engines.py are measurements like those of `calibrate measure`. Without PyTorch and an
// engine its measuring itself cannot run here: what is checked is the format, the grid and the refusal.

#include <string>

#include <doctest/doctest.h>

#include "tests/base/temporary_folder.h"
#include "tests/cli/run_program.h"

using roofcast::TemporaryFolder;
using roofcast::testing::run_roofcast;
using roofcast::testing::run_shell;
using roofcast::testing::Stream;

TEST_CASE("collect_engines: its lines set the constants of the engine whose kernels they time") {
  if (run_shell("command -v python3").status != 0) return;
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/v.jsonl";
  // Every point of its grid at 5 us and the larger of 600 TFLOP/s and 2.5 TB/s.
  const auto written = run_shell(
      "PYTHONPATH=calibrate PYTHONDONTWRITEBYTECODE=1 python3 -c \"\n"
      "import collect_engines as c\n"
      "s = {'sm_clock_mhz': 1980, 'memory_clock_mhz': 0, 'temperature_c': 40, 'power_w': 300, 'throttled': False}\n"
      "d = {'name': 'NVIDIA H100 80GB HBM3', 'driver': '', 'cuda': '13.0', 'compute_capability': '9.0',\n"
      "     'sm_count': 132, 'devices': 1, 'memory_bytes': 85e9, 'l2_bytes': 52428800}\n"
      "for p in c.points():\n"
      "    us = 5 + 1e6 * max(p['flops'] / 6e14, p['bytes'] / 2.5e12)\n"
      "    print(c.line_of(p, 'vllm-0.24.0', 'a', d, [us, us, us], 1, 'samples', '', (s, s, s)))\n"
      "print(c.line_of(c.points()[0], 'vllm-0.24.0', 'a', d, [], 1, 'failed', 'RuntimeError: x', (s, s, s)))\n"
      "\" > '" +
          path + "'",
      Stream::kErr);
  INFO(written.out);
  REQUIRE(written.status == 0);
  const auto fitted = run_roofcast("calibrate fit '" + path + "' --starts 1 --folds 0");
  REQUIRE(fitted.status == 0);
  for (const char* block : {"cutlass_fp8.fp8", "flash_attention_3_decode.bf16", "flash_attention_3_prefill.bf16"})
    CHECK(fitted.out.find(block) != std::string::npos);
  CHECK(fitted.out.find("trtllm") == std::string::npos);
  CHECK(fitted.out.find("this machine gives") == std::string::npos);  // an engine's kernels tell nothing of the machine
}

TEST_CASE("collect_engines: a missing engine is a one-line error") {
  if (run_shell("command -v python3 && ! python3 -c 'import vllm'").status != 0) return;
  const auto refused =
      run_shell("PYTHONDONTWRITEBYTECODE=1 python3 calibrate/collect_engines.py --out unused.jsonl", Stream::kErr);
  CHECK(refused.status == 3);
  CHECK(refused.out.find("collect_engines: No module named") == 0);
}
