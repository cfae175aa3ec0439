#include "runtime/bundle/JsonReader.h"

#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace grok::json {

std::string shown(const nlohmann::json &value) {
  constexpr size_t kLimit = 60;
  std::string text = value.dump(-1, ' ', /*ensure_ascii=*/true,
                                nlohmann::json::error_handler_t::replace);
  return printable(text, kLimit);
}

std::string describe(const nlohmann::json &value) {
  if (value.is_object())
    return value.empty() ? "an empty object" : "an object";
  if (value.is_array())
    return absl::StrCat("an array of ", value.size());
  return shown(value);
}

ObjectReader::ObjectReader(const Document &document, std::string pointer)
    : document_(document), pointer_(std::move(pointer)) {
  nlohmann::json::json_pointer at(pointer_);
  if (!document.root.contains(at)) {
    status_ = absl::InvalidArgumentError(absl::StrCat(
        document.file, ": found no key '", pointer_, "', expected an object"));
    return;
  }
  const nlohmann::json &value = document.root[at];
  if (value.is_object()) {
    object_ = &value;
    return;
  }
  status_ = absl::InvalidArgumentError(absl::StrCat(
      document.place(pointer_), ": ",
      pointer_.empty() ? "" : absl::StrCat("key '", pointer_, "': "), "found ",
      describe(value), ", expected an object"));
}

std::string ObjectReader::pointerTo(std::string_view key) const {
  return absl::StrCat(pointer_, "/", std::string(key));
}

std::string ObjectReader::place(std::string_view key) const {
  return document_.place(pointerTo(key));
}

void ObjectReader::fail(absl::Status status) {
  if (status_.ok())
    status_ = std::move(status);
}

void ObjectReader::fail(std::string_view key, std::string_view found,
                        std::string_view expected) {
  fail(absl::InvalidArgumentError(
      absl::StrCat(place(key), ": key '", std::string(key), "': found ",
                   std::string(found), ", expected ", std::string(expected))));
}

const nlohmann::json *ObjectReader::optional(const std::string &key) {
  if (!ok())
    return nullptr;
  asked_.insert(key);
  auto it = object_->find(key);
  return it == object_->end() || it->is_null() ? nullptr : &*it;
}

const nlohmann::json *ObjectReader::member(const std::string &key) {
  if (!ok())
    return nullptr;
  asked_.insert(key);
  auto it = object_->find(key);
  if (it != object_->end())
    return &*it;
  fail(absl::InvalidArgumentError(absl::StrCat(
      document_.place(pointer_), ": found no key '", key, "', expected it in ",
      pointer_.empty() ? "the file" : "'" + pointer_ + "'")));
  return nullptr;
}

void ObjectReader::u64(const std::string &key, uint64_t &out) {
  const nlohmann::json *value = member(key);
  if (!value)
    return;
  if (value->is_number_unsigned())
    out = value->get<uint64_t>();
  else
    fail(key, describe(*value), "an integer, 0 or more");
}

void ObjectReader::u32(const std::string &key, uint32_t &out) {
  uint64_t wide = 0;
  u64(key, wide);
  if (!ok())
    return;
  if (wide > std::numeric_limits<uint32_t>::max())
    fail(key, absl::StrCat(wide), "an integer below 2^32");
  else
    out = uint32_t(wide);
}

void ObjectReader::i64(const std::string &key, int64_t &out) {
  const nlohmann::json *value = member(key);
  if (!value)
    return;
  bool fits =
      value->is_number_integer() &&
      !(value->is_number_unsigned() &&
        value->get<uint64_t>() > uint64_t(std::numeric_limits<int64_t>::max()));
  if (fits)
    out = value->get<int64_t>();
  else
    fail(key, describe(*value), "an integer");
}

void ObjectReader::number(const std::string &key, double &out) {
  const nlohmann::json *value = member(key);
  if (!value)
    return;
  if (value->is_number())
    out = value->get<double>();
  else
    fail(key, describe(*value), "a number");
}

void ObjectReader::boolean(const std::string &key, bool &out) {
  const nlohmann::json *value = member(key);
  if (!value)
    return;
  if (value->is_boolean())
    out = value->get<bool>();
  else
    fail(key, describe(*value), "true or false");
}

void ObjectReader::string(const std::string &key, std::string &out) {
  const nlohmann::json *value = member(key);
  if (!value)
    return;
  if (value->is_string())
    out = value->get<std::string>();
  else
    fail(key, describe(*value), "a string");
}

int ObjectReader::choiceIndex(const std::string &key,
                              const std::vector<std::string_view> &names) {
  const nlohmann::json *value = member(key);
  if (!value)
    return -1;
  if (value->is_string())
    for (size_t i = 0; i < names.size(); ++i)
      if (value->get_ref<const std::string &>() == names[i])
        return int(i);
  std::vector<std::string> quoted;
  for (std::string_view name : names)
    quoted.push_back(absl::StrCat("\"", std::string(name), "\""));
  fail(key, describe(*value), absl::StrJoin(quoted, " or "));
  return -1;
}

absl::Status ObjectReader::finish() {
  if (!ok())
    return status_;
  for (const auto &[key, value] : object_->items())
    if (!asked_.count(key))
      return absl::InvalidArgumentError(
          absl::StrCat(place(key), ": found unknown key '", printable(key),
                       "', expected none but the documented ones"));
  return absl::OkStatus();
}

} // namespace grok::json
