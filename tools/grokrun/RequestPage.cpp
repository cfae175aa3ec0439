#include "tools/grokrun/RequestPage.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "tools/report/BundleSections.h"
#include "tools/report/Plot.h"

namespace grok::grokrun {
namespace {

using report::Axis;
using report::Page;
using report::Plot;
using report::Point;

std::vector<double> sortedMs(const RequestReport &r) {
  std::vector<double> ms;
  for (const RequestTime &t : r.run.requests)
    ms.push_back(t.seconds * 1e3);
  std::sort(ms.begin(), ms.end());
  return ms;
}

/// All times and the deadline, with a little room on both sides.
Axis timeAxis(const RequestReport &r, const std::vector<double> &ms) {
  double least = ms.front(), most = ms.back();
  if (r.deadline) {
    least = std::min(least, *r.deadline * 1e3);
    most = std::max(most, *r.deadline * 1e3);
  }
  double room = std::max((most - least) * 0.04, most * 1e-4);
  return {"time of a request, ms", std::max(least - room, 0.0), most + room};
}

void markTimes(Plot &plot, const RequestReport &r) {
  plot.mark(r.total.p50 * 1e3, "P50", "quantile");
  plot.mark(r.total.p99 * 1e3, "P99", "quantile");
  plot.mark(r.total.most * 1e3, "max", "quantile");
  if (r.deadline)
    plot.mark(*r.deadline * 1e3, "deadline", "deadline");
}

std::string histogram(const RequestReport &r, const std::vector<double> &ms) {
  constexpr size_t kBins = 80;
  const Axis x = timeAxis(r, ms);
  const double width = (x.most - x.least) / kBins;
  std::vector<size_t> counts(kBins);
  for (double time : ms)
    ++counts[std::min(size_t((time - x.least) / width), kBins - 1)];
  // A count of one must be seen beside thousands.
  const size_t most = *std::max_element(counts.begin(), counts.end());
  Plot plot("Histogram of the requests' times", x,
            {"requests (logarithmic)", 0.5, std::max(2.0 * double(most), 10.0),
             true});
  for (size_t bin = 0; bin != kBins; ++bin)
    if (counts[bin]) {
      double begin = x.least + double(bin) * width;
      plot.bar(begin, begin + width, double(counts[bin]), "c0",
               absl::StrFormat(
                   "%s to %s ms: %d requests", report::shortNumber(begin),
                   report::shortNumber(begin + width), counts[bin]));
    }
  markTimes(plot, r);
  return plot.str();
}

std::string cumulative(const RequestReport &r, const std::vector<double> &ms) {
  constexpr size_t kMostPoints = 1000;
  Plot plot("Share of the requests that took no longer", timeAxis(r, ms),
            {"share of the requests", 0, 1});
  std::vector<Point> points = {{ms.front(), 0}};
  const size_t stride = ms.size() / kMostPoints + 1;
  for (size_t i = 0; i < ms.size(); i += stride) {
    points.push_back({ms[i], points.back().y}); // stairs
    points.push_back({ms[i], double(i + 1) / double(ms.size())});
  }
  points.push_back({ms.back(), 1});
  plot.line(points, "line");
  markTimes(plot, r);
  return plot.str();
}

/// The bench's span in seconds.
Axis spanAxis(const RequestReport &r) {
  const RequestTime &last = r.run.requests.back();
  return {"seconds from the first request", 0, last.at + last.seconds};
}

/// Of many requests in a row the slowest and the median stand for all.
std::string overTime(const RequestReport &r, const std::vector<double> &ms) {
  constexpr size_t kMostPoints = 800;
  const std::vector<RequestTime> &all = r.run.requests;
  const size_t together = (all.size() + kMostPoints - 1) / kMostPoints;
  std::vector<Point> slowest, medians;
  for (size_t first = 0; first < all.size(); first += together) {
    size_t end = std::min(first + together, all.size());
    std::vector<double> some;
    for (size_t i = first; i != end; ++i)
      some.push_back(all[i].seconds * 1e3);
    std::sort(some.begin(), some.end());
    slowest.push_back({all[first].at, some.back()});
    medians.push_back({all[first].at, some[some.size() / 2]});
  }
  Axis y = timeAxis(r, ms);
  y.label = together > 1
                ? absl::StrFormat("ms: slowest and median of each %d", together)
                : "ms";
  Plot plot("Time of each request over the run", spanAxis(r), y);
  plot.line(slowest, together > 1 ? "line2" : "line");
  if (together > 1)
    plot.line(medians, "line");
  if (r.deadline)
    plot.level(*r.deadline * 1e3, "deadline", "deadline");
  return plot.str();
}

/// One of the readings over the run.
std::string readings(const RequestReport &r, const char *label,
                     const char *unit, uint32_t nvml::Sample::*member) {
  std::vector<Point> points;
  for (const TimedSample &s : r.run.samples)
    points.push_back({s.at, double(s.sample.*member)});
  auto [least, most] = std::minmax_element(
      points.begin(), points.end(), [](Point a, Point b) { return a.y < b.y; });
  double room = std::max((most->y - least->y) * 0.1, 1.0);
  Plot plot(label, spanAxis(r), {unit, least->y - room, most->y + room}, 170);
  plot.line(points, "line");
  return plot.str();
}

std::string predictedAndMeasured(const RequestReport &r) {
  std::vector<report::StackedBar> bars;
  auto predicted = [&](const char *name, const Prediction::Case &c) {
    report::StackedBar &bar = bars.emplace_back(report::StackedBar{name, {}});
    for (const auto &[term, seconds] : c.terms)
      if (seconds > 0)
        bar.parts.emplace_back(term, seconds * 1e3);
  };
  if (const auto &found = r.predicted.prediction) {
    predicted("predicted, best", found->best);
    if (found->expected)
      predicted("predicted, expected", *found->expected);
    predicted("predicted, worst", found->worst);
  }
  bars.push_back({"measured, P50", {{"measured", r.total.p50 * 1e3}}});
  bars.push_back({"measured, P99", {{"measured", r.total.p99 * 1e3}}});
  bars.push_back({"measured, max", {{"measured", r.total.most * 1e3}}});
  std::vector<std::pair<std::string, double>> marks;
  if (r.deadline)
    marks.emplace_back("deadline", *r.deadline * 1e3);
  return report::stackedBars("Predicted and measured time of a request", "ms",
                             bars, marks);
}

void addNumbers(Page &page, const RequestReport &r) {
  auto row = [](const char *name, const Distribution &d) {
    std::vector<std::string> cells = {name};
    for (double seconds :
         {d.p50, d.p90, d.p99, d.p999, d.p9999, d.most, d.mean, d.deviation})
      cells.push_back(absl::StrFormat("%.3f", seconds * 1e3));
    return cells;
  };
  std::vector<std::vector<std::string>> rows = {row("request", r.total),
                                                row("first id", r.first)};
  if (r.id)
    rows.push_back(row("each id after it", *r.id));
  page.table({"ms", "P50", "P90", "P99", "P99.9", "P99.99", "max", "mean",
              "deviation"},
             rows);
  if (r.deadline)
    page.paragraph(absl::StrFormat(
        "The deadline of %s ms was missed by %d of %d requests.",
        report::shortNumber(*r.deadline * 1e3), r.misses,
        r.run.requests.size()));
  auto memory = [](const char *name, const MemoryUse &m) {
    return std::vector<std::string>{name, absl::StrCat(m.before),
                                    absl::StrCat(m.after),
                                    absl::StrCat(m.most)};
  };
  std::vector<std::vector<std::string>> uses;
  if (r.run.device)
    uses.push_back(memory("device", *r.run.device));
  uses.push_back(memory("resident set", r.run.resident));
  page.table({"bytes", "before", "after", "at most"}, uses);
}

void addSlow(Page &page, const RequestReport &r) {
  page.heading("Slow requests");
  if (r.slow.empty()) {
    page.paragraph(absl::StrFormat(
        "No request missed the deadline or took %s times the median.",
        report::shortNumber(RequestReport::kSlowShare)));
    return;
  }
  std::vector<std::vector<std::string>> rows;
  for (size_t i : r.slow) {
    const RequestTime &t = r.run.requests[i];
    std::vector<std::string> &row = rows.emplace_back(
        std::vector<std::string>{absl::StrCat(i), absl::StrFormat("%.3f", t.at),
                                 absl::StrFormat("%.3f", t.seconds * 1e3)});
    if (const TimedSample *s = r.beside(i)) {
      row.push_back(absl::StrCat(s->sample.smMhz));
      row.push_back(absl::StrCat(s->sample.celsius));
      row.push_back(
          absl::StrJoin(nvml::slowdownNames(s->sample.slowdowns), " "));
    }
  }
  std::vector<std::string> header = {"request", "at, s", "ms"};
  if (!r.run.samples.empty())
    header.insert(header.end(), {"SM MHz", "C", "slowed by"});
  page.table(header, rows);
}

} // namespace

absl::StatusOr<std::string> requestPage(const RequestReport &r,
                                        const Bundle &bundle) {
  const std::vector<double> ms = sortedMs(r);
  Page page(absl::StrCat("Latency of ", bundle.path()));
  page.paragraph(absl::StrFormat(
      "%d requests of batch %d, %d + %d ids a row, on %s; compiled for %s.",
      ms.size(), r.options.rows, r.options.promptTokens, r.options.newTokens,
      r.device, r.target));
  addNumbers(page, r);
  page.heading("How long requests took");
  page.figure(histogram(r, ms), "How many requests took how long.");
  page.figure(cumulative(r, ms), "How many took no longer.");
  page.heading("Over the run");
  page.figure(overTime(r, ms), "In the order in which they ran.");
  if (r.run.samples.empty()) {
    page.paragraph(absl::StrCat(
        "Clocks and temperature were not read: ", r.run.noSamples, "."));
  } else {
    page.figure(readings(r, "SM clock over the run", "SM clock, MHz",
                         &nvml::Sample::smMhz),
                "The SM clock meanwhile.");
    page.figure(readings(r, "Temperature over the run", "temperature, C",
                         &nvml::Sample::celsius),
                "The temperature meanwhile.");
  }
  page.heading("Predicted and measured");
  page.figure(predictedAndMeasured(r),
              r.predicted.prediction
                  ? "The compiler's prediction by its terms: best and "
                    "worst over every routing outcome, and expected "
                    "of random ids."
                  : "The bundle has no prediction for such requests "
                    "on this device.");
  addSlow(page, r);
  if (absl::Status s = report::addBundle(page, bundle); !s.ok())
    return s;
  return page.html();
}

} // namespace grok::grokrun
