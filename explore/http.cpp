#include "explore/http.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "base/text.h"

namespace roofcast::explore {
namespace {

using State = HttpProgress::State;

constexpr std::size_t kMostTarget = 8192;

HttpProgress refused(int status, const char* reason) { return {State::kRefused, status, reason}; }

bool is_token(std::string_view text) {
  constexpr std::string_view kMarks = "!#$%&'*+-.^_`|~";
  return !text.empty() && std::all_of(text.begin(), text.end(), [&](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           kMarks.find(c) != std::string_view::npos;
  });
}

bool is_visible(std::string_view text) {
  return std::none_of(text.begin(), text.end(),
                      [](char c) { return static_cast<unsigned char>(c) < 0x20 ? c != '\t' : c == 0x7f; });
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

/// "/path?key=value&key=value"
bool read_target(std::string_view target, HttpRequest& out) {
  if (target.empty() || target.front() != '/' || !is_visible(target)) return false;
  const std::size_t question = target.find('?');
  if (!decode_percent(target.substr(0, question), false, out.path)) return false;
  if (question == std::string_view::npos) return true;
  for (const std::string& part : split(target.substr(question + 1), '&')) {
    if (part.empty()) continue;
    const std::size_t equals = part.find('=');
    std::string key, value;
    if (!decode_percent(std::string_view(part).substr(0, equals), true, key)) return false;
    if (equals != std::string::npos && !decode_percent(std::string_view(part).substr(equals + 1), true, value))
      return false;
    out.parameters.emplace_back(std::move(key), std::move(value));
  }
  return true;
}

std::optional<HttpProgress> read_request_line(std::string_view line, HttpRequest& out) {
  const std::size_t first = line.find(' '), last = line.rfind(' ');
  if (first == std::string_view::npos || first == last) return refused(400, "this is not a request that can be read");
  const std::string_view version = line.substr(last + 1);
  out.method = line.substr(0, first);
  if (!is_token(out.method) || !version.starts_with("HTTP/"))
    return refused(400, "this is not a request that can be read");
  if (version != "HTTP/1.1" && version != "HTTP/1.0") return refused(400, "use HTTP/1.1");
  const std::string_view target = line.substr(first + 1, last - first - 1);
  if (target.size() > kMostTarget) return refused(414, "the address is too long");
  if (!read_target(target, out)) return refused(400, "the address cannot be read");
  return std::nullopt;
}

std::optional<HttpProgress> read_headers(std::string_view text, HttpRequest& out) {
  while (!text.empty()) {
    const std::size_t end = text.find("\r\n");
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(text.size(), end == std::string_view::npos ? text.size() : end + 2));
    const std::size_t colon = line.find(':');
    const std::string_view name = line.substr(0, colon);
    if (colon == std::string_view::npos || !is_token(name) || !is_visible(line))
      return refused(400, "a header cannot be read");
    out.headers.emplace_back(lower(name), std::string(trim(line.substr(colon + 1))));
  }
  return std::nullopt;
}

/// Length of the body; empty if invalid.
std::optional<std::size_t> body_length(const HttpRequest& request) {
  if (request.count("content-length") == 0) return 0;
  const std::string text = request.header("content-length");
  std::size_t length = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), length);
  if (request.count("content-length") > 1 || text.empty() || end != text.data() + text.size()) return std::nullopt;
  return error == std::errc::result_out_of_range ? static_cast<std::size_t>(-1)
         : error == std::errc()                  ? std::optional(length)
                                                 : std::nullopt;
}

}  // namespace

std::size_t HttpRequest::count(std::string_view name) const {
  return static_cast<std::size_t>(
      std::count_if(headers.begin(), headers.end(), [&](const auto& header) { return header.first == name; }));
}

std::string HttpRequest::header(std::string_view name) const {
  const auto found =
      std::find_if(headers.begin(), headers.end(), [&](const auto& header) { return header.first == name; });
  return found == headers.end() ? std::string() : found->second;
}

bool decode_percent(std::string_view text, bool plus_is_space, std::string& out) {
  out.clear();
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += plus_is_space && text[i] == '+' ? ' ' : text[i];
      continue;
    }
    const int high = i + 2 < text.size() ? hex_digit(text[i + 1]) : -1;
    const int low = i + 2 < text.size() ? hex_digit(text[i + 2]) : -1;
    if (high < 0 || low < 0 || high + low == 0) return false;
    out += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return true;
}

HttpProgress read_http(std::string_view bytes, std::size_t most_body, HttpRequest& out) {
  out = {};
  const std::size_t end = bytes.substr(0, kMostHead + 4).find("\r\n\r\n");
  if (end == std::string_view::npos)
    return bytes.size() > kMostHead ? refused(431, "the headers are too long") : HttpProgress{};
  const std::string_view head = bytes.substr(0, end);
  const std::size_t line = std::min(head.find("\r\n"), head.size());
  if (const auto wrong = read_request_line(head.substr(0, line), out)) return *wrong;
  if (const auto wrong = read_headers(head.substr(std::min(head.size(), line + 2)), out)) return *wrong;
  if (out.count("transfer-encoding") + out.count("content-encoding") > 0)
    return refused(415, "a body comes whole and as it is, with its Content-Length");
  const std::optional<std::size_t> length = body_length(out);
  if (!length) return refused(400, "the length of the body cannot be read");
  if (*length > most_body) return refused(413, "the body is too long");
  if (bytes.size() - end - 4 < *length) return {State::kHead, 0, ""};
  out.body = bytes.substr(end + 4, *length);
  return {State::kDone, 0, ""};
}

std::string_view reason_phrase(int status) {
  constexpr std::array<std::pair<int, std::string_view>, 13> kPhrases{{{200, "OK"},
                                                                       {400, "Bad Request"},
                                                                       {403, "Forbidden"},
                                                                       {404, "Not Found"},
                                                                       {405, "Method Not Allowed"},
                                                                       {408, "Request Timeout"},
                                                                       {413, "Payload Too Large"},
                                                                       {414, "URI Too Long"},
                                                                       {415, "Unsupported Media Type"},
                                                                       {429, "Too Many Requests"},
                                                                       {431, "Request Header Fields Too Large"},
                                                                       {500, "Internal Server Error"},
                                                                       {503, "Service Unavailable"}}};
  for (const auto& [code, phrase] : kPhrases) {
    if (code == status) return phrase;
  }
  return "Unknown";
}

}  // namespace roofcast::explore
