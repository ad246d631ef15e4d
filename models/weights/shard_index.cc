#include "models/weights/shard_index.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "runtime/base/text.h"

namespace rumor::models {
namespace {

// Whether a path within a folder stays there.
bool stays_inside(const std::string& path) {
  const std::filesystem::path parts(path);
  const bool is_plain = std::all_of(path.begin(), path.end(), [](unsigned char letter) { return letter >= 0x20; });
  return is_plain && !path.empty() && parts.is_relative() && parts.has_filename() &&
         std::none_of(parts.begin(), parts.end(), [](const auto& part) { return part == ".."; });
}

// Receives the index piece by piece and keeps the members of weight_map; what is in other members is skipped.
class IndexHandler : public nlohmann::json_sax<nlohmann::json> {
 public:
  ShardIndex index;
  bool found = false;  // weight_map
  std::string wrong;   // why the parser stopped

  bool start_object(std::size_t) override {
    const bool is_map = depth_ == 1 && member_ == "weight_map";
    if (depth_ == 2 && inside_) return stop("is an object, not a file name");
    ++depth_;
    if (!is_map) return true;
    if (found) return stop("stands twice");
    return inside_ = found = true;
  }
  bool end_object() override {
    if (--depth_ == 1) inside_ = false;
    return true;
  }
  bool start_array(std::size_t) override {
    if (depth_ == 0) return stop("is a list, not an object");
    if (!is_skipped()) return stop("is a list, not a file name");
    ++depth_;
    return true;
  }
  bool end_array() override {
    --depth_;
    return true;
  }
  bool key(string_t& text) override {
    if (depth_ == 1) member_ = text;
    if (inside_ && depth_ == 2) tensor_ = text;
    return true;
  }
  bool string(string_t& text) override {
    if (!inside_) return other("a text");
    if (!stays_inside(text))
      return stop(str("is said to be in '", text.substr(0, 200), "', which is no file in the folder of the index"));
    return index.emplace(tensor_, text).second || stop("stands twice");
  }
  bool null() override { return other("null"); }
  bool boolean(bool) override { return other("a truth value"); }
  bool number_integer(number_integer_t) override { return other("a number"); }
  bool number_unsigned(number_unsigned_t) override { return other("a number"); }
  bool number_float(number_float_t, const string_t&) override { return other("a number"); }
  bool binary(binary_t&) override { return other("binary data"); }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::json::exception&) override {
    wrong = str("it is not valid JSON at byte ", position);
    return false;
  }

 private:
  bool is_skipped() const { return !inside_ && (depth_ > 1 || member_ != "weight_map"); }
  // A value of another type than weight_map and its members have.
  bool other(const char* what) {
    if (depth_ > 0 && is_skipped()) return true;
    return stop(str("is ", what, depth_ == 2 ? ", not a file name" : ", not an object"));
  }
  bool stop(const std::string& why) {
    const std::string place = inside_ && depth_ == 2 ? str("tensor '", tensor_.substr(0, 200), "' ")
                              : depth_ == 0          ? std::string("it ")
                                                     : std::string("weight_map ");
    wrong = place + why;
    return false;
  }

  int depth_ = 0;
  bool inside_ = false;  // weight_map
  std::string member_, tensor_;
};

}  // namespace

Result<ShardIndex> parse_shard_index(std::string_view text, const std::string& source) {
  IndexHandler handler;
  if (!nlohmann::json::sax_parse(text.begin(), text.end(), &handler))
    return Error{Errc::corrupt, str(source, ": ", handler.wrong)};
  if (!handler.found) return Error{Errc::corrupt, str(source, ": there is no object weight_map of tensors and files")};
  if (handler.index.empty()) return Error{Errc::corrupt, str(source, ": weight_map names no tensors")};
  return std::move(handler.index);
}

std::string shard_index_text(const ShardIndex& index, std::uint64_t total_bytes) {
  const nlohmann::ordered_json json = {{"metadata", {{"total_size", total_bytes}}}, {"weight_map", index}};
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace rumor::models
