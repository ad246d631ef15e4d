// The kernels of networks of convolutions: against models/, bit for bit where gpu/device/picture_table.h promises that.
#include <boost/test/unit_test.hpp>

#include "models/kernels/kernels.h"
#include "models/layers/group_norm.h"
#include "models/layers/pool.h"
#include "tests/gpu/kernels/numbers.h"
#include "tests/gpu/target.h"

using namespace rumor;
using namespace rumor::gpu;

BOOST_AUTO_TEST_SUITE(gpu_picture_kernels)

namespace {

// Pictures of all kinds: none, one pixel, odd sizes, more pixels than a chunk, more channels than a warp.
constexpr Pictures picture_sizes[] = {{0, 4, 4, 3},   {2, 1, 1, 1},   {1, 3, 5, 4},  {3, 2, 2, 2},  {2, 7, 6, 3},
                                      {1, 9, 15, 40}, {5, 16, 16, 6}, {2, 13, 4, 8}, {1, 28, 28, 1}, {4, 5, 5, 64}};

std::size_t values_in(Pictures size) { return size.count * size.size(); }

models::PictureShape shape_of(Pictures size) { return {size.height, size.width, size.channels}; }

// work(target, size, prng, skip) for each size, each with another order and alignment.
template <class Work>
void each_picture_size(std::uint64_t seed, const Work& work) {
  Prng prng(seed);
  std::uint64_t order = 0;
  for (const Pictures& size : picture_sizes) {
    const Target target(order++ % 5);
    BOOST_TEST_CONTEXT(size.count << " pictures, " << size.height << " x " << size.width << " x " << size.channels)
    work(target, size, prng, prng.below(4));
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(matrices_are_turned) {
  each_picture_size(61, [](const Target& target, Pictures size, Prng& prng, std::size_t skip) {
    const auto rows = static_cast<std::uint32_t>(size.pixels());
    const Floats x = drawn_wild(prng, values_in(size));
    Floats expected(x.size());
    for (std::uint32_t k = 0; k < size.count; ++k)
      for (std::uint32_t r = 0; r < rows; ++r)
        for (std::uint32_t c = 0; c < size.channels; ++c)
          expected[k * size.size() + c * rows + r] = x[k * size.size() + r * size.channels + c];
    const Guarded<float> on_x(target, x, skip), y(target, x.size(), skip);
    target.table().pictures.turn(target.device(), size.count, {rows, size.channels}, on_x.data(), y.data());
    BOOST_TEST(same_bits(y.read(), expected));
  });
}

BOOST_AUTO_TEST_CASE(what_is_negative_is_cut) {
  each_picture_size(62, [](const Target& target, Pictures size, Prng& prng, std::size_t skip) {
    Floats x = drawn_wild(prng, values_in(size));
    const Guarded<float> on_x(target, x, skip);
    target.table().pictures.relu(target.device(), x.size(), on_x.data());
    models::kernels().relu(static_cast<long>(x.size()), x.data());
    BOOST_TEST(same_bits(on_x.read(), x));
  });
}

BOOST_AUTO_TEST_CASE(windows_and_back) {
  each_picture_size(63, [](const Target& target, Pictures size, Prng& prng, std::size_t skip) {
    const auto h = static_cast<int>(size.height), w = static_cast<int>(size.width);
    const std::size_t channels = size.channels, seen_size = values_in(size) * window_places;
    const Floats x = drawn_wild(prng, values_in(size)), seen_change = drawn(prng, seen_size);
    Floats seen(seen_size, 0.0f), x_change = drawn(prng, x.size()), added = x_change;
    std::fill(x_change.begin(), x_change.end(), 0.0f);
    // Place by place, so that each value's sum is in their order.
    for (int place = 0; place < 9; ++place)
      for (std::size_t k = 0; k < size.count; ++k)
        for (int row = 0; row < h; ++row)
          for (int column = 0; column < w; ++column) {
            const int from_row = row + place / 3 - 1, from_column = column + place % 3 - 1;
            if (from_row < 0 || from_row >= h || from_column < 0 || from_column >= w) continue;
            for (std::size_t c = 0; c < channels; ++c) {
              const std::size_t picture = k * size.pixels();
              const std::size_t to = ((picture + row * w + column) * channels + c) * 9 + place;
              const std::size_t from = (picture + from_row * w + from_column) * channels + c;
              seen[to] = x[from];
              x_change[from] += seen_change[to];
              added[from] += seen_change[to];
            }
          }
    const Guarded<float> on_x(target, x, skip), on_seen(target, seen_size, skip), on_change(target, seen_change),
        on_x_change(target, x.size(), skip);
    const PictureTable& table = target.table().pictures;
    table.windows(target.device(), size, on_x.data(), on_seen.data());
    BOOST_TEST(same_bits(on_seen.read(), seen));
    table.windows_backward(target.device(), size, on_change.data(), false, on_x_change.data());
    BOOST_TEST(same_bits(on_x_change.read(), x_change));
    if (x.empty()) return;
    const Floats before = on_x_change.read();
    table.windows_backward(target.device(), size, on_change.data(), true, on_x_change.data());
    Floats twice = before;
    for (std::size_t i = 0; i < twice.size(); ++i) twice[i] *= 2;
    BOOST_TEST(distance(on_x_change.read(), twice) < 1e-5);
  });
}

BOOST_AUTO_TEST_CASE(pooling_and_back) {
  each_picture_size(64, [](const Target& target, Pictures size, Prng& prng, std::size_t skip) {
    if (size.height < 2 || size.width < 2) return;
    const models::PictureShape shape = shape_of(size), half = models::max_pooled(shape);
    Floats x = drawn_wild(prng, values_in(size)), y(size.count * half.size());
    for (float& value : x)  // equal ones in a window
      if (prng.chance(1, 4)) value = 1;
    const Floats y_change = drawn(prng, y.size());
    Floats x_change(x.size());
    for (std::size_t k = 0; k < size.count; ++k) {
      models::max_pool(shape, x.data() + k * size.size(), y.data() + k * half.size());
      models::max_pool_backward(shape, x.data() + k * size.size(), y_change.data() + k * half.size(),
                                x_change.data() + k * size.size());
    }
    const Guarded<float> on_x(target, x, skip), on_y(target, y.size(), skip), on_y_change(target, y_change, skip),
        on_x_change(target, x.size(), skip);
    const PictureTable& table = target.table().pictures;
    table.max_pool(target.device(), size, on_x.data(), on_y.data());
    table.max_pool_backward(target.device(), size, on_x.data(), on_y_change.data(), on_x_change.data());
    BOOST_TEST(same_bits(on_y.read(), y));
    BOOST_TEST(same_bits(on_x_change.read(), x_change));
  });
}

BOOST_AUTO_TEST_CASE(means_over_pixels_and_back) {
  each_picture_size(65, [](const Target& target, Pictures size, Prng& prng, std::size_t skip) {
    const models::PictureShape shape = shape_of(size);
    const std::size_t outputs = std::size_t{size.count} * size.channels;
    const Floats x = drawn(prng, values_in(size)), y_change = drawn(prng, outputs);
    Floats y(outputs), x_change(x.size());
    for (std::size_t k = 0; k < size.count; ++k) {
      models::average_pool(shape, x.data() + k * size.size(), y.data() + k * size.channels);
      models::average_pool_backward(shape, y_change.data() + k * size.channels, x_change.data() + k * size.size());
    }
    const Guarded<float> on_x(target, x, skip), on_y(target, outputs, skip), on_y_change(target, y_change, skip),
        on_x_change(target, x.size(), skip);
    const PictureTable& table = target.table().pictures;
    table.average_pool(target.device(), size, on_x.data(), on_y.data());
    table.average_pool_backward(target.device(), size, on_y_change.data(), on_x_change.data());
    BOOST_TEST(distance(on_y.read(), y) < 1e-6);
    BOOST_TEST(same_bits(on_x_change.read(), x_change));
  });
}

BOOST_AUTO_TEST_CASE(channels_are_added_and_back) {
  each_picture_size(66, [](const Target& target, Pictures size, Prng& prng, std::size_t skip) {
    const std::size_t pixels = size.count * size.pixels();
    for (const std::uint32_t more : {0u, 3u}) {
      const std::uint32_t to_channels = size.channels + more;
      const Floats from = drawn(prng, values_in(size)), before = drawn(prng, pixels * to_channels);
      Floats to = before, set(from.size()), added = from;
      for (std::size_t p = 0; p < pixels; ++p)
        for (std::uint32_t c = 0; c < size.channels; ++c) {
          to[p * to_channels + c] += from[p * size.channels + c];
          set[p * size.channels + c] = before[p * to_channels + c];
          added[p * size.channels + c] += before[p * to_channels + c];
        }
      const Guarded<float> on_from(target, from, skip), on_to(target, before, skip), on_change(target, before),
          fresh(target, from.size(), skip), given(target, from, skip);
      const PictureTable& table = target.table().pictures;
      table.add_channels(target.device(), pixels, size.channels, to_channels, on_from.data(), on_to.data());
      BOOST_TEST(same_bits(on_to.read(), to));
      for (const bool add : {false, true})
        table.add_channels_backward(target.device(), pixels, size.channels, to_channels, on_change.data(), add,
                                    (add ? given : fresh).data());
      BOOST_TEST(same_bits(fresh.read(), set));
      BOOST_TEST(same_bits(given.read(), added));
    }
  });
}

BOOST_AUTO_TEST_CASE(group_norm_and_back) {
  each_picture_size(67, [](const Target& target, Pictures size, Prng& prng, std::size_t skip) {
    for (const std::uint32_t groups : {1u, 2u, size.channels}) {
      if (size.channels % groups != 0) continue;
      const models::GroupNorm norm(shape_of(size), groups);
      const Floats x = drawn(prng, values_in(size), 3), gain = drawn(prng, size.channels),
                   bias = drawn(prng, size.channels);
      Floats y(x.size()), saved(norm.saved()), change = drawn(prng, x.size()), gain_change(size.channels, 0.0f),
          bias_change(size.channels, 0.0f);
      const Guarded<float> on_change(target, change, skip);
      for (std::size_t k = 0; k < size.count; ++k) {
        const std::size_t at = k * size.size();
        norm.forward(gain.data(), bias.data(), x.data() + at, y.data() + at, saved.data());
        norm.backward(gain.data(), x.data() + at, saved.data(), change.data() + at, gain_change.data(),
                      bias_change.data());
      }
      const std::size_t each = std::size_t{size.count} * groups;
      const Guarded<float> on_x(target, x, skip), on_gain(target, gain), on_bias(target, bias), on_y(target, x.size()),
          mean(target, each), scale(target, each), scratch(target, group_norm_scratch(size), skip),
          on_x_change(target, x.size(), skip), on_gain_change(target, size.channels),
          on_bias_change(target, size.channels);
      const GroupNormArgs args{size,        groups,      on_x.data(),  on_gain.data(), on_bias.data(),
                               on_y.data(), mean.data(), scale.data(), scratch.data()};
      target.table().pictures.group_norm(target.device(), &args);
      const GroupNormChange back{size,
                                 groups,
                                 on_x.data(),
                                 on_gain.data(),
                                 mean.data(),
                                 scale.data(),
                                 on_change.data(),
                                 on_x_change.data(),
                                 on_gain_change.data(),
                                 on_bias_change.data(),
                                 scratch.data()};
      target.table().pictures.group_norm_backward(target.device(), &back);
      BOOST_TEST(distance(on_y.read(), y) < 2e-5);
      BOOST_TEST(distance(on_gain_change.read(), gain_change) < 2e-5);
      BOOST_TEST(distance(on_bias_change.read(), bias_change) < 2e-5);
      // A value that is a group of its own changes nothing: what is left is rounding.
      const bool alone = size.pixels() * (size.channels / groups) == 1;
      const Floats found = on_x_change.read();
      const auto is_rounding = [](float value) { return std::abs(value) < 1e-2f; };
      BOOST_TEST((alone ? std::all_of(found.begin(), found.end(), is_rounding) : distance(found, change) < 2e-5));
      scratch.read();
      mean.read();
    }
  });
}

BOOST_AUTO_TEST_SUITE_END()
