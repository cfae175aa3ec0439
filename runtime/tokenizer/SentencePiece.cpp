// The tokenizer plugin that links SentencePiece.
#include <sentencepiece_processor.h>

#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "runtime/tokenizer/Plugin.h"
#include "runtime/tokenizer/SentencePieceCheck.h"

namespace {

using sentencepiece::SentencePieceProcessor;

struct Tokenizer {
  SentencePieceProcessor processor;
  /// A control piece, which has no text and ends a character's bytes, as ids
  /// without a piece do; -1: there is none.
  int silent = -1;
};

SentencePieceProcessor &processorOf(void *tokenizer) {
  return static_cast<Tokenizer *>(tokenizer)->processor;
}

int findControl(const SentencePieceProcessor &processor) {
  for (int id = 0; id < processor.GetPieceSize(); ++id)
    if (processor.IsControl(id))
      return id;
  return -1;
}

char *copyText(const std::string &text) {
  auto *copy = static_cast<char *>(std::malloc(text.size() + 1));
  if (copy)
    std::memcpy(copy, text.c_str(), text.size() + 1);
  return copy;
}

grok_tokenizer_result failure(const std::string &message) {
  return {copyText(message), nullptr, nullptr, 0};
}

grok_tokenizer_result copyIds(const std::vector<int> &ids) {
  auto *out =
      static_cast<int32_t *>(std::malloc((ids.size() + 1) * sizeof(int32_t)));
  if (!out)
    return failure("out of memory");
  for (size_t i = 0; i != ids.size(); ++i)
    out[i] = ids[i];
  return {nullptr, nullptr, out, ids.size()};
}

/// Runs `body`, which returns a result; exceptions become errors.
template <typename F> grok_tokenizer_result guarded(const F &body) {
  try {
    return body();
  } catch (const std::bad_alloc &) {
    return failure("out of memory");
  } catch (const std::exception &e) {
    return failure(e.what());
  }
}

void *openModel(const char *bytes, size_t size, grok_tokenizer_result *error) {
  void *opened = nullptr;
  *error = guarded([&]() -> grok_tokenizer_result {
    const grok::SentencePieceCheck check =
        grok::checkSentencePiece({bytes, size});
    if (check.fault)
      return failure(*check.fault);
    auto tokenizer = std::make_unique<Tokenizer>();
    if (auto status = tokenizer->processor.LoadFromSerializedProto(check.model);
        !status.ok())
      return failure(status.ToString());
    tokenizer->silent = findControl(tokenizer->processor);
    opened = tokenizer.release();
    return {};
  });
  return opened;
}

void closeModel(void *tokenizer) { delete static_cast<Tokenizer *>(tokenizer); }

uint32_t pieceCount(void *tokenizer) {
  return uint32_t(processorOf(tokenizer).GetPieceSize());
}

grok_tokenizer_result encode(void *tokenizer, const char *text, size_t length) {
  return guarded([&]() -> grok_tokenizer_result {
    std::vector<int> ids;
    auto status =
        processorOf(tokenizer).Encode(std::string(text, length), &ids);
    if (!status.ok())
      return failure(status.ToString());
    return copyIds(ids);
  });
}

grok_tokenizer_result stopIds(void *tokenizer) {
  return guarded([&]() -> grok_tokenizer_result {
    constexpr char kSeparator[] = "<|separator|>";
    const SentencePieceProcessor &processor = processorOf(tokenizer);
    std::vector<int> ids;
    if (int end = processor.eos_id(); end >= 0)
      ids.push_back(end);
    // What is no piece has the unknown piece's id.
    if (int id = processor.PieceToId(kSeparator);
        processor.IdToPiece(id) == kSeparator)
      ids.push_back(id);
    return copyIds(ids);
  });
}

grok_tokenizer_result decode(void *tokenizer, const int32_t *ids,
                             size_t count) {
  return guarded([&]() -> grok_tokenizer_result {
    const auto &[processor, silent] = *static_cast<Tokenizer *>(tokenizer);
    std::vector<int> pieces(ids, ids + count);
    for (int &id : pieces) {
      if (id >= processor.GetPieceSize())
        id = silent;
      if (id < 0)
        return failure("found an id without a piece, expected less than " +
                       std::to_string(processor.GetPieceSize()));
    }
    std::string text;
    if (auto status = processor.Decode(pieces, &text); !status.ok())
      return failure(status.ToString());
    char *copy = copyText(text);
    if (!copy)
      return failure("out of memory");
    return {nullptr, copy, nullptr, text.size()};
  });
}

void release(grok_tokenizer_result *result) {
  std::free(result->error);
  std::free(result->text);
  std::free(result->ids);
  *result = {};
}

} // namespace

extern "C" __attribute__((visibility("default"))) const grok_tokenizer_plugin *
grok_tokenizer_plugin_entry(void) {
  static constexpr grok_tokenizer_plugin kPlugin = {GROK_TOKENIZER_VERSION,
                                                    openModel,
                                                    closeModel,
                                                    pieceCount,
                                                    encode,
                                                    decode,
                                                    stopIds,
                                                    release};
  return &kPlugin;
}
