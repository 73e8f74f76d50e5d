// Results that cannot be written.

#include <set>
#include <string>

#include <doctest/doctest.h>

#include "base/text.h"
#include "tests/cli/run_program.h"

using roofcast::testing::run_roofcast;
using roofcast::testing::run_shell;
using roofcast::testing::Stream;

TEST_CASE("a result that cannot be written is an error, not an empty success") {
  for (const std::string command :
       {"models", "gpus --format json", "estimate --model llama-3.1-8b --gpu h100-sxm", "--help", "simulate --help",
        "simulate configs/scenarios/chat-70b-4xh100.yaml --set workload.requests=20"}) {
    CAPTURE(command);
    const auto full = run_shell("'" ROOFCAST_PROGRAM "' " + command + " 2>&1 >/dev/full");
    CHECK(full.status == 2);
    CHECK(full.out.find("stdout: cannot be written\n") != std::string::npos);
    const auto closed = run_shell("'" ROOFCAST_PROGRAM "' " + command + " 2>&1 >&-");
    CHECK(closed.status == 2);
    CHECK(closed.out.find("stdout: cannot be written\n") != std::string::npos);
  }
}

TEST_CASE("a missing folder is reported before the work, not after it") {
  for (const std::string flag : {"--out", "--perfetto", "--openmetrics"}) {
    CAPTURE(flag);
    // The scenario does not exist either: the folder is told first.
    const auto result = run_roofcast("simulate no-such-scenario.yaml " + flag + " no-such-folder/x", Stream::kErr);
    CHECK(result.status == 2);
    CHECK(result.out == flag + ": cannot write 'no-such-folder/x': no such folder\n");
  }
}

TEST_CASE("a result replaces neither another result nor its input") {
  const auto says = [](const std::string& before, const std::string& command) {
    const auto result = run_shell("d=$(mktemp -d) && cd $d && cp '" ROOFCAST_SOURCE_DIR
                                  "/configs/scenarios/chat-70b-4xh100.yaml' s.yaml && ln -s s.yaml link && " +
                                  before + "'" ROOFCAST_PROGRAM "' " + command +
                                  " 2>&1; cmp s.yaml '" ROOFCAST_SOURCE_DIR
                                  "/configs/scenarios/chat-70b-4xh100.yaml' 2>&1; cd / && rm -r $d");
    return result.out;
  };
  const std::string lost = "--out: 's.yaml' is read too, and would be lost; name another file\n";
  CHECK(says("", "simulate s.yaml --out s.yaml") == lost);
  CHECK(says("", "simulate s.yaml --out ./link") == lost);
  const std::string one = "printf 'scenario: {model: llama-2-7b, gpu: h100-sxm}\\ngrid: {batch: [1]}\\n' > w.yaml; ",
                    traced = "printf 'arrival_s,prompt_tokens,output_tokens\\n0,50,5\\n' > t; ";
  const auto is_lost = [&](const std::string& before, const std::string& command, const std::string& file) {
    INFO(command);
    CHECK(says(before, command) == "--out: '" + file + "' is read too, and would be lost; name another file\n");
  };
  is_lost(one, "sweep w.yaml --store a.sqlite --out a.sqlite", "a.sqlite");
  is_lost(one, "sweep w.yaml --out w.sqlite", "w.sqlite");  // the store by default
  is_lost(one + "touch m; ", "sweep w.yaml --merge n m --out m", "m");
  is_lost(traced, "simulate s.yaml --set workload.arrivals.process=trace --set workload.arrivals.file=t --out t", "t");
  is_lost(traced, "simulate s.yaml --trace t --out t", "t");
  is_lost("touch c; ", "simulate s.yaml --set routing.counts=c --out ./c", "c");
  is_lost("touch b; ", "compare s.yaml --bench b --out b", "b");
  is_lost("touch b; ", "compare s.yaml --prometheus b --out b", "b");
  is_lost("touch b; ", "validate serving --data b --out b", "b");
  is_lost("cp s.yaml g.yaml; ", "simulate s.yaml --gpu ./g.yaml --out g.yaml", "./g.yaml");
  // A shipped name is no file here.
  CHECK(
      says(
          "",
          "simulate chat-70b-4xh100 --out chat-70b-4xh100 2>&1 | grep lost; test -s chat-70b-4xh100 && echo written") ==
      "written\n");
  CHECK(says("", "simulate s.yaml --out a.csv --requests-out ./a.csv") ==
        "--requests-out: './a.csv' is written by --out too; name another file\n");
}

TEST_CASE("a flag and a --set that agree, however they are spelt, are both taken") {
  const std::string estimate = "estimate --model llama-3.1-8b --gpu H100 --tp 2 --weights fp8 --price on_demand";
  for (const char* set : {"precision=fp8", "precision.weights=fp8_e4m3", "gpu=h100-sxm", "gpu.name=h100-sxm",
                          "parallelism.tp=2", "parallelism={tp: 2}", "price={tier: on_demand, provider: aws}",
                          "gpu={name: H100-SXM, sm_count: 120}", "model=meta-llama/Llama-3.1-8B"}) {
    const auto result = run_roofcast(estimate + " --set '" + set + "'", Stream::kErr);
    CAPTURE(set);
    CAPTURE(result.out);
    CHECK(result.status == 0);
  }
  for (const char* set : {"precision=bf16", "precision={kv_cache: fp8}", "gpu=h200-sxm", "gpu.name=h200-sxm",
                          "parallelism={tp: 4}", "price={tier: spot}", "price=spot", "model=llama-2-7b"}) {
    const auto result = run_roofcast(estimate + " --set '" + set + "'", Stream::kErr);
    CAPTURE(set);
    CHECK(result.out.find("sets the same; give one of the two") != std::string::npos);
  }
}

TEST_CASE("a file that may not grow further is an error, not a death") {
  const auto result = run_shell(
      "f=$(mktemp) && ( ulimit -f 1; '" ROOFCAST_PROGRAM
      "' simulate configs/scenarios/chat-70b-4xh100.yaml --requests-out \"$f\"; status=$?; rm \"$f\"; exit $status )",
      Stream::kErr);
  CHECK(result.status == 2);
  CHECK(result.out.find("--requests-out: cannot write") != std::string::npos);
}

TEST_CASE("a result that cannot be written leaves the previous file unchanged, and no other files") {
  // 4 blocks of 1,024 bytes are less than a table of 99 points.
  const auto result = run_shell(
      "d=$(mktemp -d) && echo before > $d/keep && printf 'scenario: {model: llama-3.1-8b, gpu: h100-sxm}\n"
      "grid: {batch: {from: 1, to: 99, step: 1}}\n' > $d/s.yaml; ( ulimit -f 4; '" ROOFCAST_PROGRAM
      "' sweep $d/s.yaml --store :memory: --format csv --out $d/keep ); echo $?; cat $d/keep; ls $d; rm -r $d");
  CHECK(result.out == "2\nbefore\nkeep\ns.yaml\n");
}

TEST_CASE("Ctrl-C during a run leaves the previous file unchanged, and no other files") {
  const auto result = run_shell(
      "d=$(mktemp -d) && echo before > $d/keep; timeout -s INT 0.3 '" ROOFCAST_PROGRAM
      "' simulate configs/scenarios/chat-70b-4xh100.yaml --set workload.requests=20000000 --requests-out $d/keep; "
      "echo $?; cat $d/keep; ls $d; rm -r $d");
  CHECK(result.out == "124\nbefore\nkeep\n");
}

TEST_CASE("messages that cannot be written are no crash") {
  const std::string good = "simulate configs/scenarios/chat-70b-4xh100.yaml --set workload.requests=3";
  const auto status = [](const std::string& command, const std::string& streams) {
    return run_shell("'" ROOFCAST_PROGRAM "' " + command + " " + streams).status;
  };
  CHECK(status(good, ">/dev/null 2>&-") == 0);
  CHECK(status(good, ">/dev/null 2>/dev/full") == 2);
  for (const char* streams : {">&- 2>&-", "2>&-", "2>/dev/full"}) {
    CAPTURE(streams);
    CHECK(status("estimate --model nope", streams) == 2);
  }
  CHECK(status(good, ">&- 2>&-") == 2);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // which need terabytes of addresses
TEST_CASE("too little memory or too few threads are reported, whatever the limit") {
  for (const char* command : {"sweep $d/s.yaml --store :memory:", "explore --port 0"}) {
    const auto result = run_shell(
        "d=$(mktemp -d) && printf 'scenario: {model: llama-3.1-8b, gpu: h100-sxm}\ngrid: {batch: [1, 2, 3, 4]}\n' > "
        "$d/s.yaml; for v in 24000 28000 32000 40000 48000 60000; do ( ulimit -v $v; timeout 0.3 "
        "'" ROOFCAST_PROGRAM "' " +
        std::string(command) + " >$d/out 2>&1 ); echo $?; done; rm -r $d");
    CAPTURE(result.out);
    // Done, out of memory, no thread, ended by timeout, or a library that the loader had no place for.
    const std::set<std::string> allowed{"0", "2", "3", "124", "127", ""};
    for (const std::string& status : roofcast::split(result.out, '\n')) CHECK(allowed.contains(status));
  }
}
#endif

TEST_CASE("a closed stdout does not send the result into another file") {
  const auto result = run_shell("f=$(mktemp) && '" ROOFCAST_PROGRAM
                                "' simulate configs/scenarios/chat-70b-4xh100.yaml --set workload.requests=3 "
                                "--requests-out \"$f\" >&-; cat \"$f\"; rm \"$f\"");
  CHECK(result.out.starts_with("request_id,arrival_s,"));
  CHECK(result.out.find("throughput") == std::string::npos);
}

TEST_CASE("the TPOT of a single token is empty") {
  const auto result = run_shell("f=$(mktemp) && '" ROOFCAST_PROGRAM
                                "' simulate configs/scenarios/chat-70b-4xh100.yaml --set workload.requests=3 --set "
                                "workload.output_tokens=1 --requests-out \"$f\" >&2; cut -d, -f4,6 \"$f\"; rm \"$f\"");
  CHECK(result.out == "output_tokens,tpot_ms\n1,\n1,\n1,\n");
}

TEST_CASE("validate reads its own output, and replaces its predictions") {
  const auto result = run_shell(
      "a=$(mktemp) b=$(mktemp); echo 'model,gpu,engine,isl,osl,concurrency,tp\nqwen3-8b,h100-sxm,vllm,500,20,4,1' > "
      "\"$a\"; '" ROOFCAST_PROGRAM "' validate serving --data \"$a\" --out \"$b\" >&2; '" ROOFCAST_PROGRAM
      "' validate serving --data \"$b\" --out \"$a\" >&2; cmp \"$a\" \"$b\" && head -1 \"$a\"; rm \"$a\" \"$b\"");
  CHECK(result.out == "model,gpu,engine,isl,osl,concurrency,tp,predicted_ttft_ms,predicted_tpot_ms,note\n");
}

TEST_CASE("missing specs are reported with their folder") {
  const auto result =
      run_shell("ROOFCAST_CONFIGS=no-such-folder '" ROOFCAST_PROGRAM "' estimate --model llama-3.1-8b --gpu h100-sxm",
                Stream::kErr);
  CHECK(result.status == 2);
  const std::string tail = " in 'no-such-folder'; ROOFCAST_CONFIGS=DIR names the folder of specs\n";
  CHECK(result.out.ends_with(tail));
  const auto list = run_shell("ROOFCAST_CONFIGS=no-such-folder '" ROOFCAST_PROGRAM "' models", Stream::kErr);
  CHECK(list.status == 2);
  CHECK(list.out == "no models" + tail);
}

TEST_CASE("gpus new: a wrong unit is reported, and constants are those of the nearest GPU of the generation") {
  const auto made = [](const std::string& changes, Stream stream) {
    return run_roofcast(
               "gpus new mine --sms 256 --memory '288 GB' --l2 '256 MiB' --shared-memory '160 KiB' --pcie '64 GB/s' "
               "--nic '50 GB/s' " +
                   changes,
               stream)
        .out;
  };
  const std::string slip = made("--architecture hopper --bandwidth '3.9 GB/s' --bf16 '835 GFLOP/s'", Stream::kErr);
  CHECK(slip.find("warning: --bandwidth: ") != std::string::npos);
  CHECK(slip.find("warning: --bf16: 177 times below every known hopper part") != std::string::npos);
  CHECK(slip.find("warning: --memory") == std::string::npos);
  const std::string cdna = "--architecture cdna4 --bandwidth '8 TB/s' --bf16 '2400 TFLOP/s' --fp8 '4800 TFLOP/s'";
  CHECK(made(cdna, Stream::kErr).find("warning") == std::string::npos);
  const std::string file = made(cdna, Stream::kOut);
  CHECK(file.find("# As mi35") != std::string::npos);
  CHECK(file.find("matrix_limit: 0.") != std::string::npos);
}
