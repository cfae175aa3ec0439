#include "tools/report/PlanChart.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/bundle/PlanCheck.h"
#include "tools/report/Svg.h"

namespace grok::report {
namespace {

using Anchor = Svg::Anchor;
constexpr double kWidth = 860, kLeft = 44, kTop = 40;

/// Matrices of one kind stand together.
struct Kind {
  MatrixKind kind;
  const char *name;
  std::vector<const PlanMatrix *> matrices;
};

std::vector<Kind> kindsOf(const PlanTables &plan) {
  std::vector<Kind> kinds = {{MatrixKind::kQkv, "qkv", {}},
                             {MatrixKind::kAttnOut, "attn_out", {}},
                             {MatrixKind::kGateUp, "gate_up", {}},
                             {MatrixKind::kDenseGateUp, "dense gate_up", {}},
                             {MatrixKind::kDown, "down", {}},
                             {MatrixKind::kDenseDown, "dense down", {}},
                             {MatrixKind::kHead, "head", {}}};
  for (const PlanMatrix &matrix : plan.matrices)
    for (Kind &kind : kinds)
      if (kind.kind == matrix.kind)
        kind.matrices.push_back(&matrix);
  std::erase_if(kinds, [](const Kind &kind) { return kind.matrices.empty(); });
  return kinds;
}

/// One matrix: neighbouring slots with as many tiles are one rectangle.
void drawColumn(Svg &svg, const Kind &kind, const PlanMatrix &matrix, double x,
                double width, double rowHeight) {
  const std::vector<SlotExtent> &slots = matrix.slots;
  uint32_t most = 1;
  for (const SlotExtent &slot : slots)
    most = std::max(most, slot.tileCount);
  for (size_t first = 0, end; first != slots.size(); first = end) {
    const uint32_t tiles = slots[first].tileCount;
    end = first + 1;
    while (end != slots.size() && slots[end].tileCount == tiles)
      ++end;
    std::string hover = absl::StrFormat(
        "%s%s, slots %d to %d: %d tiles each", kind.name,
        isOfExpert(kind.kind) ? absl::StrCat(" of expert ", matrix.expert) : "",
        first, end - 1, tiles);
    const double share = double(tiles) / most;
    // Even one tile of two is told apart from none and from all.
    svg.rect({x, kTop + double(first) * rowHeight}, width,
             double(end - first) * rowHeight, tiles ? "c0" : "empty", hover,
             tiles ? 0.25 + 0.75 * share * share : 1);
  }
}

} // namespace

std::string planChart(const PlanTables &plan) {
  // Between kinds, and of a column: one that stands alone has room for its
  // name.
  constexpr double kGap = 14, kAlone = 52, kNumber = 15;
  const std::vector<Kind> kinds = kindsOf(plan);
  const double alone = double(std::count_if(
                   kinds.begin(), kinds.end(),
                   [](const Kind &k) { return k.matrices.size() == 1; })),
               shared = double(plan.matrices.size()) - alone,
               room = kWidth - kLeft - kGap * double(kinds.size()) -
                      kAlone * alone,
               narrow = shared > 0 ? room / shared : 0;
  const double rowHeight = std::clamp(520.0 / plan.slots, 2.0, 18.0),
               height = kTop + rowHeight * plan.slots + 10;
  Svg svg(kWidth, height, "Slots by phases: who reads how many tiles");
  const uint32_t labelled = std::max(1u, plan.slots / 8);
  for (uint32_t slot = 0; slot < plan.slots; slot += labelled)
    svg.text({kLeft - 6, kTop + (slot + 0.5) * rowHeight + 4},
             absl::StrCat(slot), Anchor::kEnd);
  const size_t numbered = size_t(std::ceil(kNumber / std::max(narrow, 1.0)));
  double x = kLeft;
  for (const Kind &kind : kinds) {
    const double width = kind.matrices.size() == 1 ? kAlone : narrow,
                 all = width * double(kind.matrices.size());
    svg.text({x + all / 2, 12}, kind.name, Anchor::kMiddle);
    for (size_t i = 0; i != kind.matrices.size(); ++i, x += width) {
      const PlanMatrix &matrix = *kind.matrices[i];
      if (isOfExpert(kind.kind) && i % numbered == 0)
        svg.text({x + width / 2, kTop - 5}, absl::StrCat(matrix.expert),
                 Anchor::kMiddle, "small");
      drawColumn(svg, kind, matrix, x, std::max(width - 1, 0.5), rowHeight);
    }
    x += kGap;
  }
  return svg.str();
}

} // namespace grok::report
