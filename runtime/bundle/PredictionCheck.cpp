#include "runtime/bundle/PredictionCheck.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "runtime/bundle/JsonReader.h"
#include "runtime/bundle/Prediction.h"

namespace grok {
namespace {

using Json = nlohmann::json;

/// The sum of a case's terms, or an error of the reader that has them.
double sumOfTerms(const Json &terms, json::ObjectReader &in) {
  double sum = 0;
  if (!terms.is_object())
    in.fail("terms", json::describe(terms), "an object");
  else
    for (const auto &[name, us] : terms.items())
      if (us.is_number() && us.get<double>() >= 0)
        sum += us.get<double>();
      else
        in.fail("terms", absl::StrCat(json::shown(name), ": ", json::shown(us)),
                "numbers of at least 0");
  return sum;
}

absl::StatusOr<double> checkCase(const json::Document &document,
                                 const std::string &pointer) {
  json::ObjectReader in(document, pointer);
  double us = 0, experts = 0;
  in.number("us", us);
  in.number("experts", experts);
  if (in.ok() && experts < 0)
    in.fail("experts", absl::StrCat(experts), "at least 0");
  if (const Json *terms = in.member("terms"))
    if (double sum = sumOfTerms(*terms, in);
        in.ok() && !(std::abs(sum - us) <= kTermsTolerance * us))
      in.fail("us", absl::StrCat(us),
              absl::StrCat("what the terms add up to, ", sum));
  if (absl::Status status = in.finish(); !status.ok())
    return status;
  return us;
}

absl::Status checkPrediction(const json::Document &document,
                             const std::string &pointer) {
  json::ObjectReader in(document, pointer);
  bool request = false, exhaustive = false;
  uint32_t batch = 0, context = 0, generated = 0;
  in.choice("scope", request, {{"step", false}, {"request", true}});
  in.u32("batch", batch);
  in.u32("context", context);
  in.u32("generated", generated);
  in.boolean("exhaustive", exhaustive);
  if (in.ok() && batch == 0)
    in.fail("batch", "0", "at least 1");
  if (in.ok() && context == 0)
    in.fail("context", "0", "at least 1");
  if (in.ok() && (generated != 0) != request)
    in.fail("generated", absl::StrCat(generated),
            request ? "at least 1 for a request" : "0 for a step");
  const char *const names[] = {"best", "expected", "worst"};
  for (const char *name : names)
    in.member(name);
  if (absl::Status status = in.finish(); !status.ok())
    return status;
  double least = 0;
  for (const char *name : names) {
    absl::StatusOr<double> us = checkCase(document, in.pointerTo(name));
    if (!us.ok())
      return us.status();
    if (*us < least)
      return absl::InvalidArgumentError(
          absl::StrCat(in.place(name), ": key '", name, "': found ", *us,
                       " us, expected at least ", least,
                       ": 0 <= best <= expected <= worst"));
    least = *us;
  }
  return absl::OkStatus();
}

} // namespace

absl::Status checkPredictions(const json::Document &document,
                              const std::string &pointer) {
  json::ObjectReader in(document, pointer);
  double clock = 0;
  in.number("clock_mhz", clock);
  const Json *list = in.member("predictions");
  if (list && !list->is_array())
    in.fail("predictions", json::describe(*list), "an array");
  if (absl::Status status = in.finish(); !status.ok())
    return status;
  for (size_t i = 0; i != list->size(); ++i)
    if (absl::Status status = checkPrediction(
            document, absl::StrCat(pointer, "/predictions/", i));
        !status.ok())
      return status;
  return absl::OkStatus();
}

} // namespace grok
