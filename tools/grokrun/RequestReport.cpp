#include "tools/grokrun/RequestReport.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "runtime/bundle/Json.h"

namespace grok::grokrun {
namespace {

using Json = nlohmann::ordered_json;

template <double RequestTime::*member>
std::vector<double> column(const std::vector<RequestTime> &requests) {
  std::vector<double> values;
  for (const RequestTime &request : requests)
    values.push_back(request.*member);
  return values;
}

/// Slow requests, the slowest first.
std::vector<size_t> slowOnes(const RequestReport &r) {
  double limit = RequestReport::kSlowShare * r.total.p50;
  if (r.deadline)
    limit = std::min(limit, *r.deadline);
  std::vector<size_t> slow;
  const std::vector<RequestTime> &all = r.run.requests;
  for (size_t i = 0; i != all.size(); ++i)
    if (all[i].seconds > limit)
      slow.push_back(i);
  std::sort(slow.begin(), slow.end(), [&](size_t a, size_t b) {
    return all[a].seconds != all[b].seconds ? all[a].seconds > all[b].seconds
                                            : a < b;
  });
  slow.resize(std::min(slow.size(), RequestReport::kMostSlow));
  return slow;
}

std::string timesText(const char *name, const Distribution &d) {
  return absl::StrFormat(
      "%-13sP50 %.1f us, P90 %.1f, P99 %.1f, P99.9 %.1f, P99.99 %.1f, max "
      "%.1f, mean %.1f, deviation %.1f\n",
      name, d.p50 * 1e6, d.p90 * 1e6, d.p99 * 1e6, d.p999 * 1e6, d.p9999 * 1e6,
      d.most * 1e6, d.mean * 1e6, d.deviation * 1e6);
}

Json timesJson(const Distribution &d) {
  return {{"p50", d.p50 * 1e6},     {"p90", d.p90 * 1e6},
          {"p99", d.p99 * 1e6},     {"p999", d.p999 * 1e6},
          {"p9999", d.p9999 * 1e6}, {"max", d.most * 1e6},
          {"mean", d.mean * 1e6},   {"deviation", d.deviation * 1e6}};
}

Json memoryJson(const MemoryUse &m) {
  return {{"before", m.before}, {"after", m.after}, {"most", m.most}};
}

std::string memoryText(const char *name, const MemoryUse &m) {
  return absl::StrFormat("%-13s%d bytes before, %d after, %d at most\n", name,
                         m.before, m.after, m.most);
}

std::string slowdownText(uint64_t slowdowns) {
  std::vector<std::string> names = nvml::slowdownNames(slowdowns);
  return names.empty() ? "nothing" : absl::StrJoin(names, " ");
}

std::string clocksText(const RequestReport &r) {
  const std::vector<TimedSample> &all = r.run.samples;
  if (all.empty())
    return absl::StrFormat("clocks       not read: %s\n", r.run.noSamples);
  auto range = [&](uint32_t nvml::Sample::*member) {
    auto [least, most] =
        std::minmax_element(all.begin(), all.end(),
                            [&](const TimedSample &a, const TimedSample &b) {
                              return a.sample.*member < b.sample.*member;
                            });
    return absl::StrFormat("%d to %d", least->sample.*member,
                           most->sample.*member);
  };
  uint64_t slowdowns = 0;
  for (const TimedSample &one : all)
    slowdowns |= one.sample.slowdowns;
  return absl::StrFormat(
      "clocks       SM %s MHz, memory %s MHz, %s C, slowed "
      "by %s; %d readings\n",
      range(&nvml::Sample::smMhz), range(&nvml::Sample::memoryMhz),
      range(&nvml::Sample::celsius), slowdownText(slowdowns), all.size());
}

Json sampleJson(const TimedSample &s) {
  return {{"at_s", s.at},
          {"sm_mhz", s.sample.smMhz},
          {"memory_mhz", s.sample.memoryMhz},
          {"celsius", s.sample.celsius},
          {"slowdowns", nvml::slowdownNames(s.sample.slowdowns)}};
}

Json slowJson(const RequestReport &r) {
  Json list = Json::array();
  for (size_t i : r.slow) {
    const RequestTime &time = r.run.requests[i];
    Json &one = list.emplace_back(
        Json{{"request", i}, {"at_s", time.at}, {"us", time.seconds * 1e6}});
    if (const TimedSample *sample = r.beside(i))
      one["reading"] = sampleJson(*sample);
  }
  return list;
}

/// Every request's time and when it began, and every reading.
void listTimes(const RequestReport &r, Json &out) {
  auto listed = [](std::vector<double> values, double unit) {
    for (double &value : values)
      value *= unit;
    return values;
  };
  const std::vector<RequestTime> &all = r.run.requests;
  out["request_times_us"] = listed(column<&RequestTime::seconds>(all), 1e6);
  out["first_id_times_us"] =
      listed(column<&RequestTime::firstSeconds>(all), 1e6);
  out["request_at_s"] = listed(column<&RequestTime::at>(all), 1);
  Json &readings = out["readings"] = Json::array();
  for (const TimedSample &sample : r.run.samples)
    readings.push_back(sampleJson(sample));
}

} // namespace

const TimedSample *RequestReport::beside(size_t request) const {
  if (run.samples.empty())
    return nullptr;
  const RequestTime &time = run.requests[request];
  return &closest(run.samples, time.at, time.at + time.seconds);
}

RequestReport requestReport(const Bundle &bundle, const Executor &executor,
                            const RequestBenchOptions &options,
                            std::optional<double> deadline,
                            RequestBenchResult run) {
  RequestReport r;
  r.device = executor.deviceName();
  r.target = bundle.manifest().target.name;
  r.options = options;
  r.deadline = deadline;
  if (uint32_t compiled = bundle.plan().prefill.tokens;
      compiled && !executor.onCpu())
    r.passTokens =
        options.passTokens ? std::min(options.passTokens, compiled) : compiled;
  r.run = std::move(run);
  r.total = distributionOf(column<&RequestTime::seconds>(r.run.requests));
  r.first = distributionOf(column<&RequestTime::firstSeconds>(r.run.requests));
  if (!r.run.idSeconds.empty())
    r.id = distributionOf(r.run.idSeconds);
  if (deadline)
    r.misses = size_t(std::count_if(
        r.run.requests.begin(), r.run.requests.end(),
        [&](const RequestTime &t) { return t.seconds > *deadline; }));
  r.slow = slowOnes(r);
  r.predicted = foretold(bundle, executor,
                         {.request = true,
                          .batch = options.rows,
                          .context = options.promptTokens,
                          .generated = options.newTokens});
  return r;
}

std::string requestText(const RequestReport &r) {
  const RequestBenchOptions &o = r.options;
  const size_t count = r.run.requests.size();
  std::string out = absl::StrFormat(
      "device       %s\n"
      "requests     %d of batch %d, %d + %d ids a row, after %d to warm up; "
      "prompts %s%s\n",
      r.device, count, o.rows, o.promptTokens, o.newTokens, r.run.warmUp,
      r.passTokens ? absl::StrFormat("in passes of %d", r.passTokens)
                   : "through the decode path",
      o.resident ? "; the kernel stays" : "");
  out += timesText("time", r.total);
  out += timesText("first id", r.first);
  if (r.id)
    out += timesText("each id", *r.id);
  if (r.deadline)
    absl::StrAppendFormat(&out, "deadline     %.3f ms, missed by %d of %d\n",
                          *r.deadline * 1e3, r.misses, count);
  if (o.lockMhz)
    absl::StrAppendFormat(&out, "locked       SM clock at %d MHz\n",
                          *o.lockMhz);
  out += clocksText(r);
  if (r.run.device)
    out += memoryText("memory", *r.run.device);
  out += memoryText("resident", r.run.resident);
  out += predictedText(r.predicted, r.target, r.total);
  for (size_t i : r.slow) {
    absl::StrAppendFormat(&out, "slow         request %d, %.1f us", i,
                          r.run.requests[i].seconds * 1e6);
    if (const TimedSample *s = r.beside(i))
      absl::StrAppendFormat(&out, ", SM %d MHz, %d C, slowed by %s",
                            s->sample.smMhz, s->sample.celsius,
                            slowdownText(s->sample.slowdowns));
    out += "\n";
  }
  return out;
}

std::string requestJson(const RequestReport &r) {
  const RequestBenchOptions &o = r.options;
  Json out = {{"device", r.device},
              {"target", r.target},
              {"mode", o.resident ? "resident" : "request"},
              {"batch", o.rows},
              {"prompt_tokens", o.promptTokens},
              {"new_tokens", o.newTokens},
              {"requests", r.run.requests.size()},
              {"warm_up_requests", r.run.warmUp},
              {"seed", o.seed},
              {"pass_tokens", r.passTokens},
              {"request_us", timesJson(r.total)},
              {"first_id_us", timesJson(r.first)}};
  if (r.id)
    out["id_us"] = timesJson(*r.id);
  if (r.deadline) {
    out["deadline_us"] = *r.deadline * 1e6;
    out["deadline_misses"] = r.misses;
  }
  if (o.lockMhz)
    out["locked_mhz"] = *o.lockMhz;
  if (r.run.device)
    out["device_bytes"] = memoryJson(*r.run.device);
  out["resident_bytes"] = memoryJson(r.run.resident);
  if (r.predicted.prediction)
    out["predicted"] = predictedJson(*r.predicted.prediction, r.total);
  out["slow"] = slowJson(r);
  if (r.run.samples.empty())
    out["no_readings"] = r.run.noSamples;
  listTimes(r, out);
  return out.dump(1) + "\n";
}

} // namespace grok::grokrun
