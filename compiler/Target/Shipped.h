// The files of targets/, embedded at build time so that grokc works from
// anywhere.
#pragma once

#include <span>
#include <string_view>

namespace grok {

struct ShippedTarget {
  std::string_view name, json;
};
std::span<const ShippedTarget> shippedTargetFiles();

} // namespace grok
