// The JSON text in a safetensors file's header.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/checkpoint/SafetensorsHeader.h"

namespace grok {

/// Fills in the entries in the order of the text, offsets relative to the
/// buffer. Returns what is wrong and where in the header; empty if nothing is.
/// `text` is UTF-8 without NUL.
std::string readHeaderJson(std::span<const uint8_t> text,
                           std::vector<TensorEntry> &entries);

} // namespace grok
