#include "compiler/Config/Reader.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "runtime/bundle/JsonReader.h"

namespace grok {
namespace {

std::string escapePointer(const std::string &key) {
  std::string out;
  for (char c : key)
    out += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
  return out;
}

/// Edits (insert, delete, replace) that turn one word into the other.
size_t distance(const std::string &a, const std::string &b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j)
    row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      size_t replace = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({replace, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

} // namespace

ConfigReader::ConfigReader(const json::Document &document, std::string pointer)
    : document_(document), pointer_(std::move(pointer)) {
  const nlohmann::json &value =
      document.root[nlohmann::json::json_pointer(pointer_)];
  if (value.is_object()) {
    object_ = &value;
    return;
  }
  std::string key =
      pointer_.empty() ? "" : absl::StrCat("key '", pointer_.substr(1), "': ");
  status_ = absl::InvalidArgumentError(
      absl::StrCat(document.place(pointer_), ": ", key, "found ",
                   json::describe(value), ", expected an object"));
}

std::string ConfigReader::pointerTo(const std::string &name) const {
  return absl::StrCat(pointer_, "/", escapePointer(name));
}

std::string ConfigReader::place(const std::string &name) const {
  // A key that is missing is missing from its object.
  bool there = object_ && object_->contains(name);
  return document_.place(there ? pointerTo(name) : pointer_);
}

std::string ConfigReader::path(const std::string &name) const {
  return pointer_.empty() ? name : absl::StrCat(pointer_.substr(1), ".", name);
}

bool ConfigReader::has(const char *name) const {
  return ok() && object_->contains(name) && !object_->at(name).is_null();
}

void ConfigReader::fail(const std::string &name, const std::string &found,
                        const std::string &expected) {
  if (ok())
    status_ = absl::InvalidArgumentError(
        absl::StrCat(place(name), ": key '", json::printable(path(name)),
                     "': found ", found, ", expected ", expected));
}

void ConfigReader::fail(absl::Status status) { status_.Update(status); }

void ConfigReader::ignore(Names names) {
  known_.insert(names.begin(), names.end());
}

const nlohmann::json *ConfigReader::find(Names names) {
  ignore(names);
  key_ = *names.begin();
  const nlohmann::json *value = nullptr;
  for (const char *name : names) {
    if (!has(name))
      continue;
    const nlohmann::json &here = object_->at(name);
    if (!value) {
      value = &here;
      key_ = name;
    } else if (here != *value) {
      fail(name, json::describe(here),
           absl::StrCat(json::describe(*value), ", as its other spelling '",
                        key_, "' has it; remove one of them"));
      return nullptr;
    }
  }
  return value;
}

void ConfigReader::wrongType(const nlohmann::json &value,
                             const std::string &expected) {
  if (value.is_array() && value.size() == 1)
    return fail(key_, absl::StrCat("a list of one value, ", json::shown(value)),
                absl::StrCat(expected, "; remove the brackets"));
  fail(key_, json::describe(value), expected);
}

std::optional<int64_t> ConfigReader::integer(Names names, int64_t low,
                                             int64_t high) {
  const nlohmann::json *value = find(names);
  if (!value)
    return std::nullopt;
  std::string expected = absl::StrCat("an integer, ", low, " .. ", high);
  bool tooLarge =
      value->is_number_unsigned() &&
      value->get<uint64_t>() > uint64_t(std::numeric_limits<int64_t>::max());
  if (!value->is_number_integer() || tooLarge) {
    wrongType(*value, expected);
    return std::nullopt;
  }
  int64_t v = value->get<int64_t>();
  if (v < low || v > high) {
    fail(key_, absl::StrCat(v), expected);
    return std::nullopt;
  }
  return v;
}

std::optional<double> ConfigReader::number(Names names) {
  const nlohmann::json *value = find(names);
  if (!value)
    return std::nullopt;
  if (value->is_number())
    return value->get<double>();
  wrongType(*value, "a number");
  return std::nullopt;
}

std::optional<bool> ConfigReader::boolean(Names names) {
  const nlohmann::json *value = find(names);
  if (!value)
    return std::nullopt;
  if (value->is_boolean())
    return value->get<bool>();
  wrongType(*value, "true or false");
  return std::nullopt;
}

std::optional<std::string> ConfigReader::string(Names names) {
  const nlohmann::json *value = find(names);
  if (!value)
    return std::nullopt;
  if (value->is_string())
    return value->get<std::string>();
  wrongType(*value, "a string");
  return std::nullopt;
}

void ConfigReader::missing(Names names, const std::string &meaning) {
  if (!ok())
    return;
  std::string key = *names.begin();
  const char *found = object_->contains(key) ? "null" : "no such key";
  fail(key, found, absl::StrCat(meaning, "; add it"));
}

uint32_t ConfigReader::requireInteger(Names names, int64_t low, int64_t high,
                                      const std::string &meaning) {
  std::optional<int64_t> value = integer(names, low, high);
  if (!value)
    missing(names, meaning);
  return uint32_t(value.value_or(0));
}

double ConfigReader::requireNumber(Names names, const std::string &meaning) {
  std::optional<double> value = number(names);
  if (!value)
    missing(names, meaning);
  return value.value_or(0);
}

std::string ConfigReader::nearest(const std::string &name) const {
  std::string best;
  size_t least = 3; // more edits than two make another word
  for (const std::string &known : known_)
    if (size_t d = distance(name, known); d < least) {
      least = d;
      best = known;
    }
  return best;
}

absl::Status ConfigReader::finish() {
  if (!ok())
    return status_;
  // The first in the file, whatever its name.
  std::optional<std::string> unknown;
  auto lineOf = [&](const std::string &key) {
    auto it = document_.lines.find(pointerTo(key));
    return it == document_.lines.end() ? 0u : it->second;
  };
  for (const auto &[key, value] : object_->items())
    if (!known_.count(key) && (!unknown || lineOf(key) < lineOf(*unknown)))
      unknown = key;
  if (!unknown)
    return absl::OkStatus();
  std::string near = nearest(*unknown);
  fail(*unknown,
       absl::StrCat("unknown key with value ",
                    json::describe(object_->at(*unknown))),
       near.empty()
           ? "a known one; remove it if inference does not depend on it"
           : absl::StrCat("a known one, perhaps '", near,
                          "'; correct or remove it"));
  return status_;
}

} // namespace grok
