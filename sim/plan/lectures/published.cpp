#include "sim/plan/lectures/published.h"

#include "base/config_library.h"
#include "base/config_reader.h"

namespace roofcast {

std::vector<Published> published(const std::string& name) {
  std::vector<Published> rows;
  ConfigReader in(load_named("published", name, SourceLocation{"published", 0, 0}), "published figures");
  in.ignore("name");
  for (const ConfigTree& item : in.list("rows")) {
    ConfigReader row(item, "a row of published figures");
    rows.push_back({.of = row.text("of"),
                    .format = row.text("format"),
                    .model = row.text("model"),
                    .measure = row.text("measure"),
                    .source = row.text("source"),
                    .plain = row.number("plain"),
                    .changed = row.number("changed")});
    row.finish();
  }
  in.finish();
  return rows;
}

}  // namespace roofcast
