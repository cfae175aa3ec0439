#include "runtime/checkpoint/RowReader.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "runtime/bundle/Half.h"

namespace grok {
namespace {

bool isVector(const StoredTensor &tensor) { return tensor.shape.size() == 1; }

uint64_t columnStride(const StoredTensor &tensor) {
  return tensor.strides.empty() ? 1 : tensor.strides.back();
}

/// Halves at any address.
void decodeHalves(DType type, const uint8_t *in, std::span<float> out) {
  std::array<uint16_t, 512> aligned;
  for (size_t done = 0; done < out.size();) {
    size_t step = std::min(aligned.size(), out.size() - done);
    std::memcpy(aligned.data(), in + done * 2, step * 2);
    halfToFloat(type, std::span(aligned.data(), step), out.data() + done);
    done += step;
  }
}

void decodePlain(ElementType type, const uint8_t *in, std::span<float> out) {
  if (type == ElementType::kF32)
    std::memcpy(out.data(), in, out.size_bytes());
  else
    decodeHalves(type == ElementType::kF16 ? DType::kF16 : DType::kBF16, in,
                 out);
}

uint16_t load16(const uint8_t *in) {
  uint16_t value;
  std::memcpy(&value, in, sizeof value);
  return value;
}

/// An int8 times a f16 or bf16 has at most 18 significant bits: exact, unless
/// it is beyond float32.
void scale(const uint8_t *in, float factor, std::span<float> out) {
  for (size_t i = 0; i < out.size(); ++i)
    out[i] = float(int8_t(in[i])) * factor;
}

/// Codes that begin at `column` and share a scale.
std::optional<BadScale> checkScale(std::span<const uint8_t> codes, float factor,
                                   size_t column) {
  constexpr float kMost = std::numeric_limits<float>::max();
  if (!std::isfinite(factor))
    return BadScale{column, false};
  if (std::fabs(factor) <= kMost / 128) // no code is larger
    return std::nullopt;
  for (size_t i = 0; i < codes.size(); ++i)
    if (std::fabs(double(int8_t(codes[i])) * factor) > kMost)
      return BadScale{column + i, true};
  return std::nullopt;
}

std::optional<BadScale> decodeBlocks(const uint8_t *in, std::span<float> out) {
  for (size_t i = 0; i < out.size(); i += kBlockElements, in += kBlockBytes) {
    float factor = f16ToFloat(load16(in));
    if (auto bad = checkScale({in + 2, kBlockElements}, factor, i))
      return bad;
    scale(in + 2, factor, out.subspan(i, kBlockElements));
  }
  return std::nullopt;
}

/// How rows lie that are not turned: equally many in a part, or each cut into
/// equal pieces, one in a part.
struct RowPlaces {
  explicit RowPlaces(const StoredTensor &tensor) {
    uint64_t parts = tensor.parts.size();
    pieces = tensor.splitDimension == 1 ? parts : 1;
    rows = isVector(tensor) ? 1 : tensor.shape[0] / (parts / pieces);
    bytes = storedBytes(tensor, tensor.shape.back()) / pieces;
    stride = isVector(tensor) || tensor.strides.empty()
                 ? bytes
                 : storedBytes(tensor, tensor.strides[0]);
  }
  uint64_t rows, pieces;
  uint64_t bytes, stride; // of a piece, and to the next row's
};

constexpr uint64_t kSquare = 64;
constexpr uint64_t kTurners = 4; // threads, which also read ahead side by side
constexpr uint64_t kStripeBytes = uint64_t(32) << 20; // of a file

template <typename T> struct Block {
  typedef T Row __attribute__((vector_size(16)));
  static constexpr size_t kSize = sizeof(Row) / sizeof(T);
  Row rows[kSize];
};

/// The halves of a and b that begin with element `kFirst`, in turns.
template <typename Row, size_t... I>
Row interleave(Row a, Row b, std::index_sequence<I...>, auto first) {
  return __builtin_shufflevector(a, b,
                                 int(first + I / 2 + I % 2 * sizeof...(I))...);
}

/// Each round moves a bit of the row's number to the column's.
template <typename T> void transposeBlock(Block<T> &block) {
  constexpr size_t kSize = Block<T>::kSize;
  constexpr auto kLanes = std::make_index_sequence<kSize>();
  Block<T> turned;
  for (size_t round = 1; round < kSize; round *= 2, block = turned)
    for (size_t i = 0; i < kSize / 2; ++i) {
      auto a = block.rows[i], b = block.rows[i + kSize / 2];
      turned.rows[2 * i] =
          interleave(a, b, kLanes, std::integral_constant<size_t, 0>());
      turned.rows[2 * i + 1] =
          interleave(a, b, kLanes, std::integral_constant<size_t, kSize / 2>());
    }
}

template <typename T> using Square = T[kSquare][kSquare];

template <typename T>
void transposeSquare(const Square<T> &from, Square<T> &to) {
  constexpr size_t kSize = Block<T>::kSize;
  Block<T> block;
  for (size_t r = 0; r < kSquare; r += kSize)
    for (size_t c = 0; c < kSquare; c += kSize) {
      for (size_t i = 0; i < kSize; ++i)
        std::memcpy(&block.rows[i], &from[r + i][c], sizeof block.rows[i]);
      transposeBlock(block);
      for (size_t i = 0; i < kSize; ++i)
        std::memcpy(&to[c + i][r], &block.rows[i], sizeof block.rows[i]);
    }
}

/// Copies `rows` runs of at most kWhole bytes. Whole ones are most, and the
/// compiler knows their size.
template <size_t kWhole>
void copyRuns(const uint8_t *from, uint64_t fromStride, uint8_t *to,
              uint64_t toStride, uint64_t rows, uint64_t bytes) {
  for (uint64_t r = 0; r < rows; ++r, from += fromStride, to += toStride)
    if (bytes == kWhole)
      std::memcpy(to, from, kWhole);
    else
      std::memcpy(to, from, bytes);
}

/// Of a matrix of the file, `count` columns of at most kSquare rows: they
/// become rows of `out`. In squares that are copied together first: rows that
/// are a power of two apart drive each other out of the cache.
template <typename T>
void transpose(const uint8_t *in, uint64_t inStride, uint64_t rows,
               uint64_t count, uint8_t *out, uint64_t outStride) {
  constexpr size_t kSide = kSquare * sizeof(T);
  Square<T> from = {}, to;
  auto *fromBytes = reinterpret_cast<uint8_t *>(from),
       *toBytes = reinterpret_cast<uint8_t *>(to);
  for (uint64_t begin = 0; begin < count; begin += kSquare) {
    uint64_t width = std::min(count - begin, kSquare);
    copyRuns<kSide>(in + begin * sizeof(T), inStride * sizeof(T), fromBytes,
                    kSide, rows, width * sizeof(T));
    transposeSquare<T>(from, to);
    copyRuns<kSide>(toBytes, kSide, out + begin * outStride * sizeof(T),
                    outStride * sizeof(T), width, rows * sizeof(T));
  }
}

} // namespace

const uint8_t *RowReader::touch(uint32_t file, uint64_t offset,
                                uint64_t bytes) {
  bool continues = file == lastFile_ && offset == lastEnd_;
  touched_ += bytes + (continues ? 0 : kFaultBytes);
  lastFile_ = file;
  lastEnd_ = offset + bytes;
  if (touched_ > kWindowBytes) {
    touched_ = 0;
    for (const MappedFile &mapped : files_)
      mapped.evict();
  }
  return files_[file].bytes().data() + offset;
}

const RowReader::Band &RowReader::bandOf(const StoredTensor &tensor,
                                         uint64_t row) {
  const StoredTensor::Part &part = tensor.parts[0];
  auto it = std::ranges::find_if(bands_, [&](const Band &band) {
    return band.part == part && band.type == tensor.type &&
           band.shape == tensor.shape && band.strides == tensor.strides &&
           row - band.first < band.count;
  });
  if (it != bands_.end()) {
    bands_.splice(bands_.begin(), bands_, it);
    return bands_.front();
  }
  uint64_t element = elementBits(tensor.type) / 8;
  bool vector = isVector(tensor);
  uint64_t rows = vector ? 1 : tensor.shape[0], columns = tensor.shape.back();
  uint64_t rowStride = vector ? 0 : tensor.strides[0];
  // Only where rows lie side by side do several at once help.
  uint64_t most = rowStride == 1
                      ? std::max<uint64_t>(1, kBandBytes / (columns * element))
                      : 1;
  Band band{part, tensor.type, tensor.shape, tensor.strides, row / most * most,
            0,    {}};
  band.count = std::min(most, rows - band.first);
  band.bytes = bandMemory(band.count * columns * element);
  auto turn = element == 1   ? transpose<uint8_t>
              : element == 2 ? transpose<uint16_t>
                             : transpose<uint32_t>;
  uint64_t stride = columnStride(tensor);
  // A stripe at a time, so that pages can be given back between two. The stride
  // is 0 where one column was expanded to many.
  uint64_t step =
      std::max(kTurners * kSquare, kStripeBytes / element /
                                       std::max<uint64_t>(1, stride) / kSquare *
                                       kSquare);
  for (uint64_t first = 0; first < columns; first += step) {
    uint64_t count = std::min(step, columns - first);
    const uint8_t *in =
        touch(part.file,
              part.offset + (band.first * rowStride + first * stride) * element,
              ((count - 1) * stride + band.count) * element);
    uint8_t *out = band.bytes.data() + first * element;
    turnBeside(count, [&](uint64_t begin, uint64_t end) {
      for (uint64_t c = begin; c < end; c += kSquare)
        turn(in + c * stride * element, stride, std::min(kSquare, end - c),
             band.count, out + c * element, columns);
    });
  }
  bands_.push_front(std::move(band));
  return bands_.front();
}

std::vector<uint8_t> RowReader::bandMemory(uint64_t bytes) {
  std::vector<uint8_t> memory;
  while (!bands_.empty() &&
         (bands_.size() >= kMostBands ||
          bandsBytes_ + std::max<uint64_t>(bytes, memory.capacity()) >
              kBandsBytes)) {
    memory = std::move(bands_.back().bytes);
    bandsBytes_ -= memory.capacity();
    bands_.pop_back();
  }
  // The system gives new memory page by page, which takes as long as turning.
  if (memory.capacity() < bytes)
    memory = std::vector<uint8_t>(bytes);
  memory.resize(bytes);
  bandsBytes_ += memory.capacity();
  return memory;
}

void RowReader::turnBeside(uint64_t columns,
                           absl::FunctionRef<void(uint64_t, uint64_t)> turn) {
  while (turners_.size() < kTurners)
    turners_.emplace_back(1);
  // Also if there is no memory for a job: those before it use `turn`.
  absl::Cleanup wait = [this] {
    for (Worker &turner : turners_)
      turner.drain().IgnoreError(); // nothing in it fails
  };
  uint64_t squares = (columns + kSquare - 1) / kSquare,
           each = (squares + kTurners - 1) / kTurners * kSquare;
  for (uint64_t i = 0, begin = 0; begin < columns; ++i, begin += each)
    turners_[i]
        .give([turn, begin, end = std::min(columns, begin + each)] {
          turn(begin, end);
          return absl::OkStatus();
        })
        .IgnoreError();
}

std::span<const uint8_t> RowReader::rowBytes(const StoredTensor &tensor,
                                             uint64_t row, uint64_t columns) {
  uint64_t bytes = storedBytes(tensor, columns);
  if (columnStride(tensor) != 1) {
    const Band &band = bandOf(tensor, row);
    return {band.bytes.data() + (row - band.first) * bytes, bytes};
  }
  RowPlaces places(tensor);
  auto piece = [&](uint64_t i) {
    const StoredTensor::Part &part = tensor.parts[row / places.rows + i];
    return touch(part.file, part.offset + row % places.rows * places.stride,
                 places.bytes);
  };
  if (places.pieces == 1)
    return {piece(0), bytes};
  row_.resize(bytes);
  for (uint64_t i = 0; i < places.pieces; ++i)
    std::memcpy(row_.data() + i * places.bytes, piece(i), places.bytes);
  return row_;
}

void RowReader::expect(const StoredTensor &tensor, uint64_t row,
                       uint64_t count) const {
  if (columnStride(tensor) != 1)
    return;
  RowPlaces places(tensor);
  for (uint64_t end = row + count, step; row < end; row += step) {
    step = std::min(end - row, places.rows - row % places.rows);
    for (uint64_t i = 0; i < places.pieces; ++i) {
      const StoredTensor::Part &part = tensor.parts[row / places.rows + i];
      files_[part.file].readAhead(part.offset +
                                      row % places.rows * places.stride,
                                  (step - 1) * places.stride + places.bytes);
    }
  }
}

std::optional<BadScale> RowReader::read(const StoredTensor &tensor,
                                        uint64_t row, std::span<float> out) {
  const uint8_t *in = rowBytes(tensor, row, out.size()).data();
  switch (tensor.coding) {
  case StoredTensor::Coding::kPlain:
    decodePlain(tensor.type, in, out);
    return std::nullopt;
  case StoredTensor::Coding::kBlocks:
    return decodeBlocks(in, out);
  case StoredTensor::Coding::kScaled: {
    uint64_t width = out.size() / tensor.scaleBlocks;
    for (uint64_t block = 0; block < tensor.scaleBlocks; ++block) {
      float factor = bf16ToFloat(blockScale(tensor, row, block));
      if (auto bad =
              checkScale({in + block * width, width}, factor, block * width))
        return bad;
      scale(in + block * width, factor, out.subspan(block * width, width));
    }
    return std::nullopt;
  }
  }
  return std::nullopt;
}

uint16_t RowReader::blockScale(const StoredTensor &tensor, uint64_t row,
                               uint64_t block) {
  const uint8_t *scales =
      files_[tensor.scales.file].bytes().data() + tensor.scales.offset;
  return load16(scales + (block * tensor.shape[0] + row) * 2);
}

bool RowReader::hasCodes(const StoredTensor &tensor) {
  const uint64_t blocks = tensor.scaleBlocks;
  return tensor.coding == StoredTensor::Coding::kScaled &&
         (blocks == 1 || (hasScaleBlocks(uint32_t(tensor.shape.back())) &&
                          kScaleBlocks % blocks == 0));
}

std::optional<BadScale> RowReader::readCodes(const StoredTensor &tensor,
                                             uint64_t row,
                                             std::span<uint8_t> codes,
                                             RowScales &scales) {
  std::memcpy(codes.data(), rowBytes(tensor, row, codes.size()).data(),
              codes.size());
  for (uint64_t i = 0; i < kScaleBlocks; ++i) {
    scales[i] = blockScale(tensor, row, i * tensor.scaleBlocks / kScaleBlocks);
    size_t begin = i * codes.size() / kScaleBlocks,
           end = (i + 1) * codes.size() / kScaleBlocks;
    if (auto bad = checkScale(codes.subspan(begin, end - begin),
                              bf16ToFloat(scales[i]), begin))
      return bad;
  }
  return std::nullopt;
}

void RowReader::readStored(const StoredTensor &tensor, uint64_t row,
                           std::span<uint16_t> out) {
  std::memcpy(out.data(), rowBytes(tensor, row, out.size()).data(),
              out.size_bytes());
}

} // namespace grok
