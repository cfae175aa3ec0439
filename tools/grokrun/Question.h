// What is asked of a model and how it is to answer: the options that generate
// and request share.
#pragma once

#include <cstdint>
#include <string>

#include "CLI/CLI.hpp"

namespace grok::grokrun {

struct Question {
  std::string prompt, ids;
  const CLI::Option *promptOption = nullptr, *idsOption = nullptr;
  uint32_t count = 64; // ids to generate at most
  float temperature = 0;
  uint64_t seed = 0;
  bool ignoreEos = false, stream = false;

  bool promptGiven() const { return promptOption->count() > 0; }
  bool idsGiven() const { return idsOption->count() > 0; }
};

/// --prompt and --ids.
void addPrompt(CLI::App &command, Question &question);
/// --temperature, --seed, --ignore-eos and --stream.
void addSampling(CLI::App &command, Question &question);

} // namespace grok::grokrun
