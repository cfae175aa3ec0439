#include "runtime/cuda/SlotTable.h"

#include "gtest/gtest.h"

namespace grok::cuda {
namespace {

TEST(SlotTable, FollowsTheNumbersOfTheSms) {
  absl::StatusOr<std::vector<uint32_t>> table = slotTable({1, 2, 5, 8}, 3);
  ASSERT_TRUE(table.ok());
  EXPECT_EQ(*table,
            (std::vector<uint32_t>{~0u, 0, 1, ~0u, ~0u, 2, ~0u, ~0u, ~0u}));
}

TEST(SlotTable, ShiftsTheSlotsOverTheSms) {
  absl::StatusOr<std::vector<uint32_t>> table = slotTable({0, 1, 2, 3}, 3, 2);
  ASSERT_TRUE(table.ok());
  EXPECT_EQ(*table, (std::vector<uint32_t>{2, ~0u, 0, 1}));
}

TEST(SlotTable, NeedsAnSmASlot) {
  absl::StatusOr<std::vector<uint32_t>> table = slotTable({0, 1}, 3);
  EXPECT_EQ(table.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(table.status().message().find("compiled for 3 SMs, the GPU has 2"),
            absl::string_view::npos);
}

} // namespace
} // namespace grok::cuda
