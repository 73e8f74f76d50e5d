#include "reports/kernel_report.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "hw/efficiency.h"
#include "reports/catalog_report.h"
#include "reports/table.h"

namespace roofcast::reports {
namespace {

using Json = nlohmann::ordered_json;

std::string lenders_of(const Kernel& kernel) {
  std::vector<std::string> names;
  for (const Kernel* lender : kernel.facts().lenders) {
    if (lender != nullptr) names.emplace_back(lender->name());
  }
  return join(names, ", ");
}

Json values_of(const Kernel& kernel, const ConstantsBlock& block) {
  Json out{{"standing", name_of(block.record->provenance)},
           {"source", block.record->source},
           {"rows", block.record->rows},
           {"mape", block.record->mape},
           {"discrepancy", block.record->discrepancy}};
  const std::vector<FieldFacts> fields = kernel.fields();
  const std::vector<double> values = kernel.numbers(block);
  for (std::size_t i = 0; i < fields.size(); ++i) out["values"][std::string(fields[i].name)] = values[i];
  return out;
}

Json json_of(const Kernel& kernel, const CalibratedGpu* gpu) {
  const KernelFacts& facts = kernel.facts();
  Json out{{"name", facts.name},
           {"computes", name_of(kernel.kind())},
           {"help", facts.help},
           {"form", "docs/" + std::string(facts.form)},
           {"borrows_from", lenders_of(kernel)}};
  for (const FieldFacts& field : kernel.fields()) {
    out["constants"].push_back({{"name", field.name},
                                {"low", field.low},
                                {"high", field.high},
                                {"carried_over_by", name_of(field.transfer)},
                                {"fitted", !field.fixed},
                                {"meaning", field.meaning}});
  }
  for (std::size_t i = 0; gpu != nullptr && i < kDtypeCount; ++i) {
    const auto dtype = static_cast<Dtype>(i);
    const ConstantsBlock& block = gpu->efficiency.block(kernel, dtype);
    if (block) out["on"][std::string(name_of(dtype))] = values_of(kernel, block);
  }
  return out;
}

}  // namespace

std::string kernels_report(const std::string& format) {
  if (format == "json") {
    Json all = Json::array();
    for (const Kernel* kernel : kernels()) all.push_back(json_of(*kernel, nullptr));
    return catalog_text("kernels", all);
  }
  Table table({"kernel", "computes", "description", "borrows from"});
  table.words(3);
  for (const Kernel* kernel : kernels()) {
    table.row({std::string(kernel->name()), std::string(name_of(kernel->kind())), std::string(kernel->facts().help),
               lenders_of(*kernel)});
  }
  return format == "csv" ? table.csv() : table.text();
}

std::string kernel_report(const Kernel& kernel, const CalibratedGpu* gpu, const std::string& format) {
  const Json json = json_of(kernel, gpu);
  if (format == "json") return entry_text("kernels", json);
  std::vector<std::string> head{"constant"};
  std::vector<Dtype> formats;
  for (std::size_t i = 0; gpu != nullptr && i < kDtypeCount; ++i) {
    const auto dtype = static_cast<Dtype>(i);
    if (!gpu->efficiency.block(kernel, dtype)) continue;
    formats.push_back(dtype);
    head.emplace_back(name_of(dtype));
  }
  head.insert(head.end(), {"least", "most", "carried over by", "meaning"});
  Table table(head);
  table.words(2);
  const std::vector<FieldFacts> fields = kernel.fields();
  for (std::size_t i = 0; i < fields.size(); ++i) {
    std::vector<std::string> row{std::string(fields[i].name)};
    for (const Dtype dtype : formats)
      row.push_back(fmt::format("{:.4g}", kernel.numbers(gpu->efficiency.block(kernel, dtype))[i]));
    row.insert(row.end(),
               {fmt::format("{:g}", fields[i].low), fmt::format("{:g}", fields[i].high),
                fields[i].fixed ? "fixed" : std::string(name_of(fields[i].transfer)), std::string(fields[i].meaning)});
    table.row(row);
  }
  if (format == "csv") return table.csv();
  std::string text = fmt::format("{}: {}. Computes {}; form in docs/{}.\n", kernel.name(), kernel.facts().help,
                                 name_of(kernel.kind()), kernel.facts().form);
  if (const std::string lenders = lenders_of(kernel); !lenders.empty())
    text += fmt::format("Where it was not measured it takes the constants of {}.\n", lenders);
  for (const Dtype dtype : formats) {
    const FitRecord& record = *gpu->efficiency.block(kernel, dtype).record;
    text += fmt::format("{} on {}: {}, {} rows, {:.1f} % off, {:.1f} % residual on other shapes. {}\n", name_of(dtype),
                        gpu->spec.name, name_of(record.provenance), record.rows, record.mape * 100,
                        record.discrepancy * 100, record.source);
  }
  if (gpu != nullptr && formats.empty())
    text += fmt::format("Not measured for {}: its priors are used.\n", gpu->spec.name);
  return text + "\n" + table.text();
}

}  // namespace roofcast::reports
