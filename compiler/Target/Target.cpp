#include "compiler/Target/Target.h"

#include <algorithm>
#include <cctype>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/Target/Shipped.h"
#include "runtime/bundle/InputFile.h"
#include "runtime/bundle/JsonReader.h"

namespace grok {
namespace {

/// The families that code is generated for.
struct Family {
  uint32_t sm;
  const char *arch;
  uint32_t minPtx; // 70 is PTX 7.0
};
constexpr Family kFamilies[] = {
    {0, "", 0}, {80, "sm_80", 70}, {90, "sm_90a", 80}};

/// "8.0" -> 80; 0 if it is not MAJOR.MINOR of one digit each.
uint32_t parsePtx(const std::string &text) {
  if (text.size() != 3 || !std::isdigit(text[0]) || text[1] != '.' ||
      !std::isdigit(text[2]))
    return 0;
  return uint32_t(text[0] - '0') * 10 + uint32_t(text[2] - '0');
}

/// The least of every time, rate and share, whatever its unit. Parts are far
/// above it, and times computed from such numbers are far from overflow.
constexpr double kLeastReal = 0.001;

/// Reads the members of a target description, each with its range.
class Reader {
public:
  explicit Reader(const json::Document &document)
      : document_(document), in_(document, "") {}

  absl::StatusOr<Target> read() {
    in_.string("name", t_.name);
    in_.string("source", t_.source);
    readCode();
    readSizes();
    readTimes();
    readCurve();
    if (absl::Status status = in_.finish(); !status.ok())
      return status;
    return t_;
  }

private:
  void integer(const char *key, uint32_t &out, uint32_t low, uint32_t high) {
    in_.u32(key, out);
    if (in_.ok() && (out < low || out > high))
      in_.fail(key, absl::StrCat(out), absl::StrCat(low, " .. ", high));
  }
  void bytes(const char *key, uint64_t &out) {
    in_.u64(key, out);
    if (in_.ok() && (out < 1 || out > uint64_t(1) << 48))
      in_.fail(key, absl::StrCat(out), "1 .. 2^48 bytes");
  }
  void real(const char *key, double &out, double high) {
    in_.number(key, out);
    if (in_.ok() && !(out >= kLeastReal && out <= high))
      in_.fail(key, absl::StrCat(out), absl::StrCat(kLeastReal, " .. ", high));
  }

  void readCode() {
    in_.u32("sm", t_.sm);
    in_.string("arch", t_.arch);
    in_.string("ptx_version", t_.ptxVersion);
    in_.u32("min_driver", t_.minDriver);
    if (!in_.ok())
      return;
    if (t_.name.empty())
      return in_.fail("name", "\"\"", "a name");
    const Family *family =
        std::find_if(std::begin(kFamilies), std::end(kFamilies),
                     [&](const Family &f) { return f.sm == t_.sm; });
    if (family == std::end(kFamilies))
      return in_.fail("sm", absl::StrCat(t_.sm),
                      "80 (A100), 90 (H100, H200) or 0 (cpu)");
    if (t_.arch != family->arch)
      return in_.fail("arch", json::shown(t_.arch),
                      absl::StrCat("\"", family->arch, "\" for sm ", t_.sm));
    if (t_.sm == 0) {
      if (!t_.ptxVersion.empty())
        in_.fail("ptx_version", json::shown(t_.ptxVersion), "\"\" for sm 0");
      if (t_.minDriver != 0)
        in_.fail("min_driver", absl::StrCat(t_.minDriver), "0 for sm 0");
      return;
    }
    if (parsePtx(t_.ptxVersion) < family->minPtx)
      return in_.fail("ptx_version", json::shown(t_.ptxVersion),
                      absl::StrCat("\"", family->minPtx / 10, ".",
                                   family->minPtx % 10, "\" or later for ",
                                   family->arch));
    if (t_.minDriver < 11000 || t_.minDriver > 99990)
      in_.fail("min_driver", absl::StrCat(t_.minDriver),
               "a CUDA driver API version such as 12000");
  }

  void readSizes() {
    integer("sm_count", t_.smCount, 1, 1024);
    integer("shared_bytes_per_block", t_.sharedBytesPerBlock, 48 << 10,
            1 << 20);
    bytes("memory_bytes", t_.memoryBytes);
    bytes("l2_bytes", t_.l2Bytes);
    integer("bank_count", t_.bankCount, 1, 256);
    bytes("bank_align", t_.bankAlign);
    if (in_.ok() && (t_.bankAlign & (t_.bankAlign - 1) || t_.bankAlign < 512 ||
                     t_.bankAlign > uint64_t(1) << 30))
      in_.fail("bank_align", absl::StrCat(t_.bankAlign),
               "a power of two, 512 .. 2^30");
  }

  void readTimes() {
    real("bandwidth_gb_s", t_.bandwidthGbS, 1e6);
    real("clock_mhz", t_.clockMhz, 1e5);
    real("hand_over_us", t_.handOverUs, 1e6);
    real("hand_over_stream_us", t_.handOverStreamUs, 1e6);
    real("launch_us", t_.launchUs, 1e6);
    real("launch_max_us", t_.launchMaxUs, 1e6);
    real("stream_efficiency", t_.streamEfficiency, 1);
    real("shared_bytes_per_cycle", t_.sharedBytesPerCycle, 1e6);
    if (!in_.ok())
      return;
    if (t_.handOverStreamUs < t_.handOverUs)
      in_.fail("hand_over_stream_us", absl::StrCat(t_.handOverStreamUs),
               absl::StrCat("at least hand_over_us (", t_.handOverUs, ")"));
    if (t_.launchMaxUs < t_.launchUs)
      in_.fail("launch_max_us", absl::StrCat(t_.launchMaxUs),
               absl::StrCat("at least launch_us (", t_.launchUs, ")"));
  }

  void readCurve() {
    const nlohmann::json *curve = in_.member("stream_curve");
    if (!curve)
      return;
    constexpr const char *kExpected =
        "an ascending list of pairs [share of SMs, share of rate], both 0.001 "
        "or more, that ends with [1, 1]";
    auto bad = [&](std::string pointer, const nlohmann::json &found) {
      in_.fail(absl::InvalidArgumentError(
          absl::StrCat(document_.place(pointer), ": key 'stream_curve': found ",
                       json::shown(found), ", expected ", kExpected)));
    };
    if (!curve->is_array() || curve->empty())
      return bad("/stream_curve", *curve);
    StreamPoint last;
    for (size_t i = 0; i < curve->size(); ++i) {
      const nlohmann::json &pair = (*curve)[i];
      std::string pointer = absl::StrCat("/stream_curve/", i);
      if (!pair.is_array() || pair.size() != 2 || !pair[0].is_number() ||
          !pair[1].is_number())
        return bad(pointer, pair);
      StreamPoint point{pair[0].get<double>(), pair[1].get<double>()};
      if (!(point.sms >= kLeastReal && point.rate >= kLeastReal &&
            point.sms > last.sms && point.rate >= last.rate && point.sms <= 1 &&
            point.rate <= 1))
        return bad(pointer, pair);
      t_.streamCurve.push_back(last = point);
    }
    if (last != StreamPoint{1, 1})
      bad(absl::StrCat("/stream_curve/", curve->size() - 1), curve->back());
  }

  const json::Document &document_;
  json::ObjectReader in_;
  Target t_;
};

std::string shippedList() { return absl::StrJoin(shippedTargets(), ", "); }

bool looksLikeFile(const std::string &name) {
  return name.find('/') != name.npos ||
         (name.size() > 5 && name.compare(name.size() - 5, 5, ".json") == 0);
}

} // namespace

double Target::streamBytesPerSecond(uint32_t slots) const {
  double share = std::min(1.0, double(slots) / smCount), rate = 1;
  StreamPoint below;
  for (const StreamPoint &p : streamCurve) {
    if (share <= p.sms) {
      rate = below.rate +
             (p.rate - below.rate) * (share - below.sms) / (p.sms - below.sms);
      break;
    }
    below = p;
  }
  return rate * streamEfficiency * bandwidthGbS * 1e9;
}

uint32_t Target::ptxNumber() const { return parsePtx(ptxVersion); }

std::string Target::toJson() const {
  nlohmann::json curve = nlohmann::json::array();
  for (const StreamPoint &p : streamCurve)
    curve.push_back({p.sms, p.rate});
  nlohmann::json j = {
      {"arch", arch},
      {"bandwidth_gb_s", bandwidthGbS},
      {"bank_align", bankAlign},
      {"bank_count", bankCount},
      {"clock_mhz", clockMhz},
      {"hand_over_stream_us", handOverStreamUs},
      {"hand_over_us", handOverUs},
      {"l2_bytes", l2Bytes},
      {"launch_max_us", launchMaxUs},
      {"launch_us", launchUs},
      {"memory_bytes", memoryBytes},
      {"min_driver", minDriver},
      {"name", name},
      {"ptx_version", ptxVersion},
      {"shared_bytes_per_block", sharedBytesPerBlock},
      {"shared_bytes_per_cycle", sharedBytesPerCycle},
      {"sm", sm},
      {"sm_count", smCount},
      {"source", source},
      {"stream_curve", curve},
      {"stream_efficiency", streamEfficiency},
  };
  return j.dump(2) + "\n";
}

absl::StatusOr<Target> parseTarget(std::string_view text,
                                   std::string_view file) {
  absl::StatusOr<json::Document> document = json::parse(text, file);
  if (!document.ok())
    return document.status();
  document->lines.emplace("", 1); // where a field is missing from
  return Reader(*document).read();
}

std::vector<std::string> shippedTargets() {
  std::vector<std::string> names;
  for (const ShippedTarget &t : shippedTargetFiles())
    names.emplace_back(t.name);
  std::sort(names.begin(), names.end());
  return names;
}

absl::StatusOr<Target> findTarget(const std::string &nameOrFile) {
  if (nameOrFile.empty())
    return absl::InvalidArgumentError(
        absl::StrCat("no target given, expected one of ", shippedList(),
                     ", or a target description (FILE.json)"));
  for (const ShippedTarget &t : shippedTargetFiles())
    if (t.name == nameOrFile)
      return parseTarget(t.json, absl::StrCat("targets/", nameOrFile, ".json"));
  if (!looksLikeFile(nameOrFile))
    return absl::NotFoundError(
        absl::StrCat("found no target '", nameOrFile, "', expected one of ",
                     shippedList(), ", or a target description (FILE.json)"));
  absl::StatusOr<std::string> text = readInputFile(nameOrFile, kMaxTextBytes);
  if (!text.ok())
    return text.status();
  return parseTarget(*text, nameOrFile);
}

} // namespace grok
