#include "tools/grokrun/ChromeTrace.h"

#include <map>

#include "absl/strings/str_format.h"
#include "runtime/bundle/DecodeMemory.h"

namespace grok::grokrun {
namespace {

const char *nameOf(uint32_t phase) {
  return phase < kNumPhases ? kPhaseNames[phase] : "choice";
}

/// Names and orders the track of a slot.
void addTrack(std::string &out, uint32_t slot) {
  absl::StrAppendFormat(
      &out,
      "{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":0,\"tid\":%d,"
      "\"args\":{\"name\":\"slot %d\"}},\n"
      "{\"ph\":\"M\",\"name\":\"thread_sort_index\",\"pid\":0,\"tid\":%d,"
      "\"args\":{\"sort_index\":%d}},\n",
      slot, slot, slot, slot);
}

void addSpan(std::string &out, const TraceSpan &span, uint32_t step) {
  auto complete = [&](const char *name, double end) {
    absl::StrAppendFormat(
        &out,
        "{\"ph\":\"X\",\"name\":\"%s\",\"pid\":0,\"tid\":%d,\"ts\":%.3f,"
        "\"dur\":%.3f,\"args\":{\"step\":%d,\"layer\":%d}},\n",
        name, span.slot, span.begin * 1e6, (end - span.begin) * 1e6, step,
        span.layer);
  };
  complete(nameOf(span.phase), span.end);
  if (span.ready > span.begin)
    complete("wait", span.ready);
}

} // namespace

std::string chromeTrace(std::span<const TraceSpan> spans) {
  std::string out = "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n"
                    "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":0,"
                    "\"args\":{\"name\":\"grok_decode\"}},\n";
  std::map<uint32_t, uint32_t> steps; // of each slot: how many have ended
  for (const TraceSpan &span : spans) {
    auto [step, first] = steps.try_emplace(span.slot, 0);
    if (first)
      addTrack(out, span.slot);
    addSpan(out, span, step->second);
    step->second += span.phase == kNumPhases;
  }
  out.resize(out.size() - 2); // the last comma
  return out + "\n]}\n";
}

} // namespace grok::grokrun
