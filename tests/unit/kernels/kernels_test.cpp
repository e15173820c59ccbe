#include "kernels/cpu/kernels.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace troika::kernels {
namespace {

std::vector<float> random_floats(std::size_t n, unsigned seed, float reach = 1) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform(-reach, reach);
  std::vector<float> out(n);
  for (auto& value : out)
    value = uniform(random);
  return out;
}

std::vector<Bf16> random_bf16(std::size_t n, unsigned seed) {
  std::vector<Bf16> out(n);
  const auto values = random_floats(n, seed);
  for (std::size_t i = 0; i < n; ++i)
    out[i] = to_bf16(values[i]);
  return out;
}

std::vector<Variant> variants() {
  std::vector<Variant> out{Variant::Portable};
  if (runs_here(Variant::Avx2)) out.push_back(Variant::Avx2);
  return out;
}

TEST(Bf16, RoundsToNearestEvenAndKeepsSpecialValues) {
  EXPECT_EQ(to_bf16(1.0F), 0x3f80);
  EXPECT_EQ(to_bf16(std::bit_cast<float>(0x3f808000U)), 0x3f80);  // half way, even below
  EXPECT_EQ(to_bf16(std::bit_cast<float>(0x3f818000U)), 0x3f82);  // half way, even above
  EXPECT_EQ(to_bf16(std::bit_cast<float>(0x3f808001U)), 0x3f81);
  EXPECT_EQ(to_bf16(std::numeric_limits<float>::infinity()), 0x7f80);
  EXPECT_TRUE(std::isnan(to_float(to_bf16(std::numeric_limits<float>::quiet_NaN()))));
  EXPECT_EQ(to_float(0xc020), -2.5F);
}

class Sizes : public testing::TestWithParam<std::size_t> {};

TEST_P(Sizes, MatmulAgreesWithDoubleAndDoesNotDependOnRowsOrVariant) {
  const std::size_t inputs = GetParam();
  constexpr std::size_t kRows = 7;
  constexpr std::size_t kOutputs = 5;
  const auto x = random_floats(kRows * inputs, 1);
  const auto w = random_bf16(kOutputs * inputs, 2);
  std::vector<float> first;
  for (const auto variant : variants()) {
    const auto& kernels = table(variant);
    std::vector<float> out(kRows * kOutputs);
    kernels.matmul(out.data(), kOutputs, x.data(), w.data(), kRows, kOutputs, inputs);
    for (std::size_t r = 0; r < kRows; ++r) {
      std::vector<float> alone(kOutputs);
      kernels.matmul(alone.data(), kOutputs, x.data() + r * inputs, w.data(), 1, kOutputs, inputs);
      for (std::size_t m = 0; m < kOutputs; ++m) {
        double exact = 0;
        double size = 0;
        for (std::size_t k = 0; k < inputs; ++k) {
          const double product = static_cast<double>(x[r * inputs + k]) * to_float(w[m * inputs + k]);
          exact += product;
          size += std::abs(product);
        }
        EXPECT_NEAR(out[r * kOutputs + m], exact, 1e-6 * (size + 1e-3));
        EXPECT_EQ(std::bit_cast<std::uint32_t>(alone[m]),
                  std::bit_cast<std::uint32_t>(out[r * kOutputs + m]));
      }
    }
    if (first.empty()) first = out;
    EXPECT_EQ(first, out) << "the variants differ";
  }
}

TEST_P(Sizes, CombineRowsAgreesWithDouble) {
  const std::size_t columns = GetParam();
  constexpr std::size_t kRows = 6;
  const auto a = random_floats(kRows, 3);
  const auto w = random_bf16(kRows * columns, 4);
  std::vector<float> first;
  for (const auto variant : variants()) {
    std::vector<float> out(columns);
    table(variant).combine_rows(out.data(), a.data(), w.data(), kRows, columns);
    for (std::size_t c = 0; c < columns; ++c) {
      double exact = 0;
      for (std::size_t i = 0; i < kRows; ++i)
        exact += static_cast<double>(a[i]) * to_float(w[i * columns + c]);
      EXPECT_NEAR(out[c], exact, 1e-5);
    }
    if (first.empty()) first = out;
    EXPECT_EQ(first, out);
  }
}

TEST_P(Sizes, NormAgreesWithDoubleInPlaceToo) {
  const std::size_t n = GetParam();
  auto x = random_floats(n, 5, 3);
  const auto gain = random_floats(n, 6);
  double square = 0;
  for (const float value : x)
    square += static_cast<double>(value) * value;
  const double factor = 1 / std::sqrt(square / static_cast<double>(n) + 1e-6);
  for (const auto variant : variants()) {
    std::vector<float> out(n);
    table(variant).rms_norm(out.data(), x.data(), gain.data(), n, 1e-6F);
    for (std::size_t i = 0; i < n; ++i)
      EXPECT_NEAR(out[i], x[i] * factor * gain[i], 1e-5);
    auto same = x;
    table(variant).rms_norm(same.data(), same.data(), gain.data(), n, 1e-6F);
    EXPECT_EQ(same, out);
  }
}

TEST_P(Sizes, ExponentialSigmoidAndSiluAgreeWithDouble) {
  const std::size_t n = GetParam();
  const auto x = random_floats(n, 7, 80);
  const auto up = random_floats(n, 8);
  std::vector<std::vector<float>> first;
  for (const auto variant : variants()) {
    auto exponential = x;
    auto sigmoid = x;
    auto silu = x;
    table(variant).exponential(exponential.data(), n);
    table(variant).sigmoid(sigmoid.data(), n);
    table(variant).silu_multiply(silu.data(), up.data(), n);
    for (std::size_t i = 0; i < n; ++i) {
      const double exact = std::exp(static_cast<double>(x[i]));
      EXPECT_NEAR(exponential[i] / exact, 1.0, 1e-6);
      EXPECT_NEAR(sigmoid[i], exact / (1 + exact), 1e-6);
      EXPECT_NEAR(silu[i], x[i] * exact / (1 + exact) * up[i], 1e-5);
    }
    const std::vector<std::vector<float>> all{exponential, sigmoid, silu};
    if (first.empty()) first = all;
    EXPECT_EQ(first, all);
  }
}

INSTANTIATE_TEST_SUITE_P(Lengths, Sizes, testing::Values(1, 3, 7, 8, 9, 15, 16, 17, 24, 31, 32, 100, 257));

TEST(Exponential, HoldsExtremesInsteadOfLeavingTheRange) {
  for (const auto variant : variants()) {
    std::vector<float> x{0, -1000, 1000, -87, 88, -0.0F, 1e-30F, 1};
    table(variant).exponential(x.data(), x.size());
    EXPECT_EQ(x[0], 1.0F);
    EXPECT_GT(x[1], 0.0F);
    EXPECT_LT(x[1], 1e-37F);
    EXPECT_TRUE(std::isfinite(x[2]));
    EXPECT_EQ(x[5], 1.0F);
    EXPECT_NEAR(x[7], 2.718281828, 1e-6);
  }
}

TEST(AttendLatent, AgreesWithDoubleAcrossPages) {
  constexpr std::size_t kLatent = 20;
  constexpr std::size_t kRope = 6;
  constexpr std::size_t kEntry = kLatent + kRope;
  constexpr std::size_t kPage = 4;
  constexpr std::size_t kCount = 11;
  std::vector<std::vector<float>> pages;
  std::vector<const float*> places;
  for (unsigned i = 0; i < 3; ++i)
    pages.push_back(random_floats(kPage * kEntry, 20 + i, 2));
  for (const auto& page : pages)
    places.push_back(page.data());
  const auto query = random_floats(kEntry, 30, 2);
  const auto cached = [&](std::size_t t, std::size_t i) {
    return static_cast<double>(pages[t / kPage][t % kPage * kEntry + i]);
  };
  std::vector<double> weights(kCount);
  double sum = 0;
  for (std::size_t t = 0; t < kCount; ++t) {
    double score = 0;
    for (std::size_t i = 0; i < kEntry; ++i)
      score += query[i] * cached(t, i);
    weights[t] = std::exp(0.3 * score);
    sum += weights[t];
  }
  std::vector<float> first;
  for (const auto variant : variants()) {
    std::vector<float> out(kLatent);
    std::vector<float> scores(kCount);
    table(variant).attend_latent(out.data(), query.data(), places.data(), kPage, kCount, kLatent, kRope, 0.3F,
                                 scores.data());
    for (std::size_t i = 0; i < kLatent; ++i) {
      double exact = 0;
      for (std::size_t t = 0; t < kCount; ++t)
        exact += weights[t] / sum * cached(t, i);
      EXPECT_NEAR(out[i], exact, 2e-6);
    }
    if (first.empty()) first = out;
    EXPECT_EQ(first, out);
  }
}

}  // namespace
}  // namespace troika::kernels
