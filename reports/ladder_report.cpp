#include "reports/ladder_report.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "reports/records_csv.h"
#include "reports/result_schema.h"
#include "reports/table.h"
#include "reports/verdict.h"

namespace roofcast::reports {
namespace {

Json rung_json(const Rung& r) {
  Json out = {{"name", r.name}, {"help", r.help}, {"fits", r.fits}, {"simulated", r.simulated}, {"gpus", r.gpus}};
  if (r.has_numbers) {
    out["mean_ttft_ms"] = r.ttft.in(kMillisecond);
    out["mean_tpot_ms"] = r.tpot.in(kMillisecond);
    out["mean_e2el_ms"] = r.latency.in(kMillisecond);
    out["output_tokens_per_s"] = r.output_tokens_per_s;
    out["usd_per_million_output_tokens"] = r.usd_per_million_output_tokens;
    out["usd_per_million_total_tokens"] = r.usd_per_million_total_tokens;
    out["bound"] = name_of(r.bound);
    out["throughput_gain"] = r.throughput_gain;
    out["latency_gain"] = r.latency_gain;
    out["cost_gain"] = r.cost_gain;
    out["total_gain"] = r.total_gain;
  }
  out["memory_bytes"] = r.memory.base();
  out["note"] = r.note;
  return out;
}

VerdictTable rung_table(const Ladder& l) {
  VerdictTable table{.columns = {"rung", "TTFT", "TPOT", "request", "tokens/s", "gain", "in all", "memory per GPU",
                                 "GPUs", "USD/M", "bound"},
                     .rows = {}};
  for (const Rung& r : l.rungs) {
    if (!r.has_numbers) {
      table.rows.push_back(
          {r.name, "", "", "", "", "", "", human_bytes(r.memory.base()), std::to_string(r.gpus), "", ""});
      continue;
    }
    table.rows.push_back({r.name + (r.fits ? "" : " *"), human_time(r.ttft.base()), human_time(r.tpot.base()),
                          human_time(r.latency.base()), significant(r.output_tokens_per_s),
                          fmt::format("{}x", significant(r.throughput_gain, 3)),
                          fmt::format("{}x", significant(r.total_gain, 3)), human_bytes(r.memory.base()),
                          std::to_string(r.gpus), significant(r.usd_per_million_total_tokens, 3),
                          std::string(name_of(r.bound))});
  }
  return table;
}

ResultVerdict verdict_of(const Ladder& l) {
  ResultVerdict verdict;
  verdict.add(
      "", fmt::format("{} on {}, requests of {} + {} tokens; one at a time up to speculation, then {} users\n", l.model,
                      l.gpu, plain_number(l.prompt_tokens), plain_number(l.output_tokens), l.options.concurrency));
  verdict.add("", rung_table(l));
  std::string notes;
  bool unfit = false;
  for (const Rung& r : l.rungs) {
    if (!r.note.empty()) notes += fmt::format("{}: {}\n", r.name, r.note);
    unfit |= !r.fits && r.has_numbers;
  }
  if (unfit) notes += "* does not fit: what it would do if it did\n";
  if (!notes.empty()) verdict.add("", notes);
  return verdict;
}

}  // namespace

Json ladder_json(const Ladder& l) {
  Json rungs = Json::array();
  for (const Rung& r : l.rungs) rungs.push_back(rung_json(r));
  Json out = result_head(ResultKind::kLadder);
  out.update({{"model", l.model},
              {"gpu", l.gpu},
              {"mean_prompt_tokens", l.prompt_tokens},
              {"mean_output_tokens", l.output_tokens},
              {"concurrency", l.options.concurrency},
              {"rungs", std::move(rungs)},
              {"verdict", verdict_json(verdict_of(l))}});
  return out;
}

std::string ladder_report(const Ladder& ladder, const std::string& format, const Json& question) {
  if (format == "json") return result_text(ladder_json(ladder), question);
  if (format == "csv") return records_csv(ladder_json(ladder)["rungs"]);
  return verdict_text(verdict_of(ladder));
}

}  // namespace roofcast::reports
