// The check of what a manifest says was predicted.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "runtime/bundle/Json.h"

namespace grok {

/// The object at a pointer of a manifest: every key is there and none unknown,
/// each case's terms add up to its time, and best <= expected <= worst.
absl::Status checkPredictions(const json::Document &document,
                              const std::string &pointer);

} // namespace grok
