// Figures: the numbers and texts that a part of a peer shows, each described in one row.
//
// A part has a struct of values and, in the same file, a table with a row for each figure:
//
//   struct Disk { std::uint64_t writes = 0; };
//   inline constexpr FigureGroup disk_group{.object = "disk", .title = "disk"};
//   inline constexpr FigureRow<Disk> disk_rows[] = {
//       figure<&Disk::writes>("writes").shown("writes", Form::count)
//           .counter("rumor_disk_writes_total", "Files written.")};
//
// The owner of the status adds the table to its sheet: sheet.add(disk_group, disk_rows, disk). All that shows figures
// works from the sheet and knows none of them by name: the JSON of /status, /metrics, /figures (from which the page
// makes its tables), `rumor status`, `rumor top`, the reference of metrics, /history and the scalars for TensorBoard.
//
// Thread: plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

namespace rumor {

// The first: not measured yet. JSON then has no member, metrics have no sample, and people see nothing.
using FigureValue = std::variant<std::monostate, bool, std::uint64_t, double, std::string>;

// How people read a value.
enum class Form {
  hidden,    // by programs only
  text,      // a few words
  line,      // a sentence or a list of reasons: on a line of its own, left out when empty
  id,        // its first eight digits
  equal,     // yes, or under way: replicas become equal when all updates have arrived
  count,     // 1,234
  decimal,   // 0.123
  small,     // 1.2e-04: weights and changes of weights
  share,     // of one, in percent
  bytes,     // 1.2 MB
  flow,      // bytes since the start, which also have a speed
  seconds,   // 12 min
  ms,        // 1.2 ms
  fault,     // a count that is shown only above zero
};

enum class FigureMetric {
  none,
  gauge,    // a text counts as 1, an empty one as 0
  counter,  // only grows
  info,     // `name` is a label of rumor_info
  one_of,   // a gauge for each text in `kinds`, 1 for the present one
};

struct Figure {
  std::string_view member = {};  // of the JSON, in the object of its group
  Form form = Form::hidden;
  std::string_view label = {};  // before the value, or above its column
  int width = 0;                // of its column in tables on a terminal; 0: it has none there
  FigureMetric metric = FigureMetric::none;
  std::string_view name = {}, help = {};  // of the metric; the page shows the help as well
  double scale = 1;                       // from the unit of the JSON to that of the metric
  std::string_view kinds = {};            // of one_of, separated by blanks
  std::string_view column = {};           // of /history
  // The tag in TensorBoard. test/...: written after each evaluation; others: every two seconds.
  std::string_view scalar = {};
};

struct FigureGroup {
  std::string_view object = {};  // path of the JSON object or list, with dots; empty: the status itself
  std::string_view title = {};   // heading for people
  std::string_view key = {};     // of a list: the metric label that holds the first figure of each row
  std::string_view note = {};    // of a list: a sentence below its table
};

template <class T>
FigureValue figure_value(const T& value) {
  if constexpr (std::is_same_v<T, bool> || std::is_same_v<T, FigureValue>) {
    return value;
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<std::uint64_t>(value);
  } else if constexpr (std::is_floating_point_v<T>) {
    return static_cast<double>(value);
  } else if constexpr (requires { value.has_value(); }) {
    return value ? figure_value(*value) : FigureValue();
  } else if constexpr (requires { value.hex(); }) {
    return value.hex();
  } else {
    return std::string(value);
  }
}

template <class Part>
struct FigureRow {
  Figure figure;
  FigureValue (*value)(const Part&);

  constexpr FigureRow shown(std::string_view label, Form form, int width = 0) const {
    return with([&](Figure& f) { f.label = label, f.form = form, f.width = width; });
  }
  constexpr FigureRow gauge(std::string_view name, std::string_view help, double scale = 1) const {
    return measured(FigureMetric::gauge, name, help, scale);
  }
  constexpr FigureRow counter(std::string_view name, std::string_view help) const {
    return measured(FigureMetric::counter, name, help, 1);
  }
  constexpr FigureRow info(std::string_view label) const { return measured(FigureMetric::info, label, "", 1); }
  constexpr FigureRow one_of(std::string_view kinds, std::string_view name, std::string_view help) const {
    return measured(FigureMetric::one_of, name, help, 1).with([&](Figure& f) { f.kinds = kinds; });
  }
  // For a figure without a metric.
  constexpr FigureRow explained(std::string_view help) const {
    return with([&](Figure& f) { f.help = help; });
  }
  constexpr FigureRow curve(std::string_view column, std::string_view scalar = "") const {
    return with([&](Figure& f) { f.column = column, f.scalar = scalar; });
  }

 private:
  template <class Change>
  constexpr FigureRow with(Change change) const {
    FigureRow row = *this;
    change(row.figure);
    return row;
  }
  constexpr FigureRow measured(FigureMetric metric, std::string_view name, std::string_view help, double scale) const {
    return with([&](Figure& f) { f.metric = metric, f.name = name, f.help = help, f.scale = scale; });
  }
};

template <auto Member, class Part>
FigureValue figure_member(const Part& part) {
  if constexpr (std::is_member_function_pointer_v<decltype(Member)>) {
    return figure_value((part.*Member)());
  } else {
    return figure_value(part.*Member);
  }
}

template <class Part, class Value>
Part figure_part(Value Part::*);

// A row for a member of a part, or for a function of it without arguments.
template <auto Member, class Part = decltype(figure_part(Member))>
constexpr FigureRow<Part> figure(std::string_view member) {
  return {{.member = member}, &figure_member<Member, Part>};
}

// A row for what a lambda without captures makes of a part.
template <class Part, class Read>
constexpr FigureRow<Part> figure(std::string_view member, Read) {
  return {{.member = member}, [](const Part& part) { return figure_value(Read{}(part)); }};
}

// The figures of one moment: groups in the order in which they were added.
class FigureSheet {
 public:
  struct Block {
    FigureGroup group;
    bool list = false;
    std::vector<Figure> figures;
    std::vector<std::vector<FigureValue>> rows;  // each as long as `figures`; no list: exactly one
  };

  template <class Part, std::size_t count>
  void add(const FigureGroup& group, const FigureRow<Part> (&rows)[count], const Part& part) {
    fill(blocks_.emplace_back(Block{group, false, {}, {}}), rows, &part, 1);
  }
  // A row of the table for each item.
  template <class Part, std::size_t count>
  void add_list(const FigureGroup& group, const FigureRow<Part> (&rows)[count], const std::vector<Part>& items) {
    fill(blocks_.emplace_back(Block{group, true, {}, {}}), rows, items.data(), items.size());
  }

  const std::vector<Block>& blocks() const { return blocks_; }

 private:
  template <class Part, std::size_t count>
  static void fill(Block& block, const FigureRow<Part> (&rows)[count], const Part* items, std::size_t size) {
    for (const FigureRow<Part>& row : rows) block.figures.push_back(row.figure);
    for (std::size_t i = 0; i < size; ++i) {
      std::vector<FigureValue>& values = block.rows.emplace_back();
      for (const FigureRow<Part>& row : rows) values.push_back(row.value(items[i]));
    }
  }

  std::vector<Block> blocks_;
};

// A figure that is followed over time.
struct FigureCurve {
  std::string_view name;
  bool whole = false;           // a count: without a fraction
  std::optional<double> value;  // nothing: not measured yet
};

// The figures of `sheet` whose `tag`, &Figure::column or &Figure::scalar, is set, always in the same order.
inline std::vector<FigureCurve> curves_of(const FigureSheet& sheet, std::string_view Figure::*tag) {
  std::vector<FigureCurve> curves;
  for (const FigureSheet::Block& block : sheet.blocks())
    for (std::size_t i = 0; !block.list && i < block.figures.size(); ++i) {
      if ((block.figures[i].*tag).empty()) continue;
      FigureCurve& curve = curves.emplace_back(FigureCurve{block.figures[i].*tag, false, {}});
      const FigureValue& value = block.rows[0][i];
      curve.whole = std::holds_alternative<std::uint64_t>(value);
      if (curve.whole) curve.value = static_cast<double>(std::get<std::uint64_t>(value));
      if (const double* number = std::get_if<double>(&value)) curve.value = *number;
    }
  return curves;
}

}  // namespace rumor
