#include "runtime/bridge/buffers_option.h"

#include <nlohmann/json.hpp>

#include "runtime/base/text.h"

namespace rumor::bridge {

namespace {

Error unlike(std::size_t number, std::string_view why) {
  return {Errc::usage, str("option buffers: object ", number + 1, " does not describe the memory of that call of ",
                           "rumor_local(): ", why)};
}

std::string text_of(const nlohmann::json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

}  // namespace

Result<std::vector<SharedBuffer>> shared_buffers(const std::string& description,
                                                 std::span<const std::span<std::uint8_t>> local) {
  std::vector<SharedBuffer> shared;
  if (description.empty()) return shared;
  const auto list = nlohmann::json::parse(description, nullptr, false);
  if (!list.is_array()) return Error{Errc::usage, "option buffers is not a JSON list"};
  if (list.size() != local.size())
    return Error{Errc::usage, str("option buffers has ", list.size(), " objects for ", local.size(),
                                  " calls of rumor_local()")};
  std::size_t at = 0;
  for (std::size_t i = 0; i < local.size(); at += local[i].size(), ++i) {
    const auto& one = list[i];
    if (!one.is_object() || one.value("shared", nlohmann::json(false)) != true) continue;
    SharedBuffer buffer;
    const auto type = SharedBuffer::type_of(text_of(one, "dtype"));
    if (!type) return unlike(i, type.error().text);
    buffer.name = text_of(one, "name");
    buffer.type = *type;
    buffer.at = at;
    buffer.count = 1;
    const std::size_t each = buffer.bytes();
    buffer.count = local[i].size() / each;
    if (buffer.count == 0 || buffer.bytes() != local[i].size()) return unlike(i, "it is of another size");
    shared.push_back(std::move(buffer));
  }
  return shared;
}

}  // namespace rumor::bridge
