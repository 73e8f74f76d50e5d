// Engines as they are shipped, release by release.
#include <doctest/doctest.h>

#include <algorithm>

#include "base/config_library.h"
#include "base/config_release.h"
#include "sim/step/engine_spec.h"
#include "tests/base/messages.h"

using namespace roofcast;

namespace {

const SourceLocation kOrigin{"s.yaml", 2, 9};

EngineSpec engine(const std::string& name) {
  return parse_engine_spec(ConfigReader(load_named("engines", name, kOrigin), "an engine"));
}
EngineSpec engine_of(const std::string& yaml) {
  return parse_engine_spec(ConfigReader(resolve_named("engines", parse_config_text(yaml, "s.yaml")), "an engine"));
}

/// The versions that a document lists, in its order.
std::vector<std::string> versions(const std::string& name) {
  std::vector<std::string> found;
  const ConfigTree document = load_document("engines", name, kOrigin);
  if (!has_releases(document)) return found;
  for (const ConfigTree& release : (*document->find("releases"))->items)
    found.push_back((*release->find("version"))->scalar);
  return found;
}

}  // namespace

TEST_CASE("engines: every release of every one can be read") {
  std::size_t releases = 0;
  for (const std::string& name : names_of("engines")) {
    INFO(name);
    CHECK_NOTHROW(engine(name));
    std::string day;
    for (const std::string& version : versions(name)) {
      INFO(version);
      const EngineSpec e = engine(name + "@" + version);
      CHECK(e.name == name);
      CHECK(e.version == version);
      CHECK_FALSE(e.beyond_known);
      CHECK(is_date(e.released));
      CHECK(day <= e.released);  // a later version is not published before an earlier one
      day = e.released;
      ++releases;
    }
  }
  CHECK(releases > 50);
}

TEST_CASE("engines: a day finds the release of that day, and every setting has a source") {
  for (const char* name : {"vllm", "sglang", "trtllm"}) {
    const ConfigTree document = load_document("engines", name, kOrigin);
    for (const std::string& version : versions(name)) {
      INFO(name << " " << version);
      const EngineSpec e = engine(std::string(name) + "@" + version);
      CHECK(engine(std::string(name) + "@" + e.released).version == version);
      for (const SourcedSetting& setting : sourced_settings(document, find_release(document, version, kOrigin))) {
        INFO(setting.key);
        CHECK_FALSE(setting.source.empty());
      }
    }
  }
}

TEST_CASE("engines: former names stand for releases") {
  const auto is = [](const char* former, const char* name, const char* version) {
    const EngineSpec e = engine(former);
    CHECK(e.name == name);
    CHECK(e.version == version);
  };
  is("vllm-2023", "vllm", "0.2.0");
  is("vllm-0", "vllm", "0.6.0");
  is("vllm-0.10", "vllm", "0.10.2");
  is("sglang-0.5.8", "sglang", "0.5.8");
  is("sglang-0.5.9", "sglang", "0.5.9");
  is("trtllm-0", "trtllm", "0.18.0");
  is("trtllm-1.0", "trtllm", "1.0.0");
  is("trtllm-1.3", "trtllm", "1.3.0");
  const std::vector<std::string> listed = names_of("engines");
  CHECK(std::find(listed.begin(), listed.end(), "vllm-0") == listed.end());
}

TEST_CASE("engines: defaults that changed with a release") {
  // vLLM 0.21 took 0.92 of the memory in place of 0.9.
  CHECK(engine("vllm@0.20.0").gpu_memory_utilization == 0.9);
  CHECK(engine("vllm@0.21.0").gpu_memory_utilization == 0.92);
  CHECK_FALSE(engine("vllm@0.13.0").async_scheduling);
  CHECK(engine("vllm@0.14.0").async_scheduling);
  CHECK(engine("vllm@0.7.3").scheduler == "prefill_first");
  CHECK(engine("vllm@0.8.0").scheduler == "decode_first");
  CHECK_FALSE(engine("vllm@0.2.0").graphs.enabled);
  CHECK(engine("vllm@0.3.0").graphs.enabled);
  CHECK_FALSE(engine("vllm@0.18.0").prompt_must_fit);
  CHECK(engine("vllm@0.19.1").prompt_must_fit);  // of 0.19 as of its patches
  // TensorRT-LLM 1.0 captures graphs up to 128 sequences unless told.
  CHECK(engine("trtllm@1.0.0").graphs.max_batch == 128);
  CHECK(engine("trtllm@0.21.0").graphs.max_batch == 2048);
  CHECK(engine("trtllm@0.18.0").compiled);
  CHECK_FALSE(engine("trtllm@0.19.0").compiled);
  CHECK(engine("trtllm@0.6.1").shared_query_heads == 1);
  CHECK(engine("trtllm@0.10.0").shared_query_heads == 8);
  CHECK(engine("trtllm@0.11.0").shared_query_heads == 0);
  CHECK_FALSE(engine("trtllm@0.11.0").own_all_reduce);
  CHECK(engine("trtllm@0.12.0").own_all_reduce);
  CHECK_FALSE(engine("trtllm@1.1.0").graphs.dependent_launch);
  CHECK(engine("trtllm@1.2.0rc6.post2").graphs.dependent_launch);
  CHECK(engine("trtllm@1.1.0").expanded_experts);
  CHECK_FALSE(engine("trtllm@1.3.0rc5").expanded_experts);
  CHECK_FALSE(engine("sglang@0.5.5").fp8_latent_prompts);
  CHECK(engine("sglang@0.5.6.post2").fp8_latent_prompts);
  CHECK(engine("sglang@0.5.9").graphs.prefill_tokens == 0);
  CHECK(engine("sglang@0.5.10").graphs.prefill_tokens == 16384);
}

TEST_CASE("engines: newer than what is known is the newest, marked so") {
  const EngineSpec newest = engine("vllm"), newer = engine("vllm@2099-01-01");
  CHECK_FALSE(newest.beyond_known);
  CHECK(newer.beyond_known);
  CHECK(newer.version == newest.version);
  CHECK(message_of([] { engine("vllm@7.0"); }).starts_with("s.yaml:2:9: vllm has no release '7.0'"));
}

TEST_CASE("engines: a front end's costs take the place of the engine's own") {
  const auto costs = [](const EngineSpec& e) {
    return std::vector{e.host.request_time, e.host.request_latency, e.host.token_time, e.host.prompt_token_time};
  };
  const EngineSpec own = engine_of("vllm"), none = engine_of("{name: vllm, front_end: none}"),
                   dynamo = engine_of("{name: vllm, front_end: dynamo}"),
                   dynamo_trtllm = engine_of("{name: trtllm, front_end: dynamo}");
  CHECK(own.front_end == "");
  CHECK(none.front_end == "none");
  CHECK(costs(none) == std::vector<Seconds>(4, Seconds(0)));
  CHECK(dynamo.front_end == "dynamo");
  CHECK(costs(dynamo) == costs(dynamo_trtllm));  // one front end, whatever is behind it
  CHECK(costs(dynamo) != costs(own));
  // The engine's own part stays.
  CHECK(dynamo.host.step_time == own.host.step_time);
  CHECK(dynamo.host.launch_time == own.host.launch_time);
  CHECK(dynamo.host.rank_skew == own.host.rank_skew);
  // A map lays changes over one, or stands for itself.
  const EngineSpec mine = engine_of("{name: vllm, front_end: {name: none, token_time: 7 us}}");
  CHECK(mine.front_end == "own");
  CHECK(costs(mine) == std::vector<Seconds>{Seconds(0), Seconds(0), 7 * kMicrosecond, Seconds(0)});
  CHECK(message_of([] {
          engine_of("{name: vllm, front_end: dynmo}");
        }).starts_with("s.yaml:1:25: unknown front end 'dynmo'; nearest is 'dynamo'"));
  CHECK(message_of([] {
          engine_of("{name: vllm, front_end: {name: none, token: 7 us}}");
        }).find("unknown key 'token' of a front end") != std::string::npos);
}

TEST_CASE("engines: every front end can be read") {
  CHECK(names_of("front-ends").size() >= 2);
  for (const std::string& name : names_of("front-ends")) {
    INFO(name);
    CHECK(engine_of("{name: vllm, front_end: " + name + "}").front_end == name);
    CHECK((*load_named("front-ends", name, kOrigin)->find("name"))->scalar == name);
    CHECK(load_named("front-ends", name, kOrigin)->find("source") != nullptr);
  }
}

TEST_CASE("engines: a host cost that takes longer than any is refused") {
  for (const char* cost : {"scheduler_time", "scheduler_sequence_time", "step_time"}) {
    CHECK(engine_of(std::string("{name: vllm, host: {") + cost + ": 1 ms}}").host.launch_time ==
          engine("vllm").host.launch_time);
    CHECK(message_of([&] { engine_of(std::string("{name: vllm, host: {") + cost + ": 1 year}}"); }) != "");
  }
  CHECK(engine_of("{name: vllm, host: {scheduler_time: 1 ms}}").host.scheduler_time == kMillisecond);
  CHECK(engine_of("{name: vllm, host: {scheduler_sequence_time: 3 us}}").host.scheduler_sequence_time ==
        3 * kMicrosecond);
}
