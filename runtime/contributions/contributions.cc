#include "runtime/contributions/contributions.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "gossip/trust/signing.h"
#include "runtime/base/bytes.h"
#include "runtime/base/sha256.h"
#include "runtime/base/text.h"

namespace rumor {

namespace {

constexpr std::uint8_t table_magic[8] = {'R', 'U', 'M', 'O', 'R', 'C', 'T', 1};
constexpr std::size_t streams_shown_max = 256;

void widen(Contribution& all, const Contribution& one) {
  all.streams += one.streams;
  all.updates += one.updates;
  all.updates_unknown += one.updates_unknown;
  all.samples += one.samples;
  all.taken_back += one.taken_back;
  if (all.first_seen == 0 || (one.first_seen != 0 && one.first_seen < all.first_seen)) all.first_seen = one.first_seen;
  all.last_seen = std::max(all.last_seen, one.last_seen);
}

std::uint64_t count_of(const gossip::HaveSet& set, const StreamId& stream) {
  const auto at = set.streams().find(stream);
  return at == set.streams().end() ? 0 : gossip::ranges_count(at->second);
}

}  // namespace

std::optional<double> Contribution::share() const {
  if (updates_unknown > 0 || samples_of_run == 0) return std::nullopt;
  return static_cast<double>(samples) / static_cast<double>(samples_of_run);
}

std::optional<std::uint64_t> Contribution::seconds_since(std::uint64_t seen) const {
  if (now == 0 || seen == 0) return std::nullopt;
  return now - std::min(now, seen);
}

// ---- counting ----

void Contributions::see(Row& row) const {
  if (row.first_seen == 0) row.first_seen = now_;
  row.last_seen = std::max(row.last_seen, now_);
}

void Contributions::applied(const gossip::UpdateHeader& header) {
  if (!counted_.insert(header.key)) return;
  Row& row = rows_[header.key.stream];
  row.node = header.origin;
  row.samples += header.samples;
  see(row);
}

void Contributions::removed(const gossip::UpdateHeader& header, bool revoked) {
  Row& row = rows_[header.key.stream];
  row.node = header.origin;
  if (counted_.contains(header.key)) {
    counted_.erase(header.key.stream, {header.key.seq, header.key.seq});
    row.samples -= std::min<std::uint64_t>(row.samples, header.samples);
  }
  if (revoked) ++row.taken_back;
}

void Contributions::forget(const StreamId& stream, const gossip::SeqRanges& lost, bool revoked) {
  Row& row = rows_[stream];
  const std::uint64_t count = gossip::ranges_count(lost);
  if (revoked) row.taken_back += count;
  row.samples = 0;  // whole, or no longer known
  counted_.erase(stream, {1, gossip::seq_max});
}

void Contributions::reconcile(const gossip::HaveSet& have, const std::function<bool(const UpdateKey&)>& revoked) {
  const gossip::HaveSet lost = have.missing_from(counted_);
  for (const auto& [stream, ranges] : lost.streams()) forget(stream, ranges, revoked({stream, ranges.back().last}));
  const gossip::HaveSet unknown = counted_.missing_from(have);
  for (const auto& [stream, ranges] : unknown.streams()) see(rows_[stream]);
  tried_.clear();
}

// ---- showing ----

void Contributions::find_nodes(std::span<const NodeId> nodes) const {
  std::set<NodeId> known(nodes.begin(), nodes.end());
  std::vector<std::pair<const StreamId, Row>*> nameless;
  for (auto& entry : rows_) {
    if (entry.second.node.is_zero()) nameless.push_back(&entry);
    else known.insert(entry.second.node);
  }
  if (nameless.empty()) return;
  for (const NodeId& node : known) {
    if (!tried_.insert(node).second) continue;
    for (auto* entry : nameless)
      if (gossip::stream_belongs_to(entry->first, node)) entry->second.node = node;
  }
}

ContributionTable Contributions::table(const gossip::HaveSet& have, std::uint64_t samples,
                                       std::span<const NodeId> nodes) const {
  find_nodes(nodes);
  ContributionTable table;
  std::map<NodeId, Contribution> of_node;
  std::uint64_t known = 0;
  for (const auto& [stream, row] : rows_) {
    Contribution one{.node = row.node, .stream = stream, .streams = 1};
    one.updates = count_of(have, stream);
    one.updates_unknown = one.updates - std::min(one.updates, count_of(counted_, stream));
    if (one.updates == 0 && row.taken_back == 0) continue;
    one.samples = row.samples;
    one.samples_of_run = samples;
    one.taken_back = row.taken_back;
    one.first_seen = row.first_seen;
    one.last_seen = row.last_seen;
    one.now = now_;
    known += one.samples;
    Contribution& whole = of_node.try_emplace(row.node, Contribution{.node = row.node, .stream = {}}).first->second;
    whole.samples_of_run = samples;
    whole.now = now_;
    widen(whole, one);
    table.streams.push_back(one);
  }
  for (const auto& [node, one] : of_node) table.nodes.push_back(one);
  std::stable_sort(table.nodes.begin(), table.nodes.end(), [](const Contribution& a, const Contribution& b) {
    return std::pair(a.samples, a.updates) > std::pair(b.samples, b.updates);
  });
  std::stable_sort(table.streams.begin(), table.streams.end(),
                   [](const Contribution& a, const Contribution& b) { return a.last_seen > b.last_seen; });
  if (table.streams.size() > streams_shown_max) table.streams.resize(streams_shown_max);
  table.samples_unknown = samples - std::min(samples, known);
  return table;
}

namespace {

using C = Contribution;

constexpr FigureRow<C> node_rows[] = {
    figure<&C::name>("node_id").shown("peer", Form::id, 8),
    figure<&C::streams>("streams").shown("starts", Form::count)
        .explained("Streams: a process of a peer has one, so this counts its starts."),
    figure<&C::updates>("updates").shown("updates", Form::count, 9)
        .gauge("rumor_contribution_updates", "Updates of each peer in this replica."),
    figure<&C::samples>("samples").shown("samples", Form::count, 12)
        .gauge("rumor_contribution_samples", "Training samples behind these updates, as far as they are known."),
    figure<&C::share>("share").shown("share", Form::share, 8)
        .explained("Part of all samples of the run; a dash where some of its samples are not known here."),
    figure<&C::updates_unknown>("updates_unknown").shown("unknown", Form::fault, 7)
        .gauge("rumor_contribution_unknown_updates",
               "Updates of each peer that came within a snapshot, so their samples are not known."),
    figure<&C::taken_back>("taken_back").shown("back", Form::fault, 6)
        .gauge("rumor_contribution_taken_back_updates",
               "Updates of each peer that this peer held until they were taken back."),
    figure<&C::audited>("segments_audited").shown("audited", Form::fault, 7)
        .gauge("rumor_audited_segments", "Segments of each peer that this peer has made again, whatever came out."),
    figure<&C::agreed>("segments_agreed").shown("agreed", Form::fault, 6),
    figure<&C::untold>("segments_untold").shown("untold", Form::fault, 6)
        .gauge("rumor_untold_segments",
               "Segments among these that could not be told, since updates, data or the state were not to be had."),
    figure<&C::untold_why>("segments_untold_why"),
    figure<&C::withheld>("segments_withheld").shown("withheld", Form::fault, 8)
        .gauge("rumor_withheld_segments",
               "Drawn segments in a row whose state this peer owed and did not give, or gave too late."),
    figure<&C::differ>("segments_differ").shown("differ", Form::fault, 6)
        .gauge("rumor_differing_segments", "Segments among these that are not as their records say."),
    figure<&C::first_seen>("first_seen_unix_s"),
    figure<&C::last_seen>("last_seen_unix_s"),
    figure<C>("first_seen_s", [](const C& c) { return c.seconds_since(c.first_seen); })
        .shown("first", Form::seconds, 8).explained("Time since the first of its updates came to this peer."),
    figure<C>("last_seen_s", [](const C& c) { return c.seconds_since(c.last_seen); })
        .shown("last", Form::seconds, 8).explained("Time since the last of its updates came to this peer."),
};

constexpr FigureRow<C> stream_rows[] = {
    figure<&C::stream>("stream"),
    figure<&C::name>("node_id"),
    figure<&C::updates>("updates"),
    figure<&C::samples>("samples"),
    figure<&C::updates_unknown>("updates_unknown"),
    figure<&C::taken_back>("taken_back"),
    figure<&C::first_seen>("first_seen_unix_s"),
    figure<&C::last_seen>("last_seen_unix_s"),
};

constexpr FigureRow<ContributionTable> unknown_rows[] = {
    figure<&ContributionTable::samples_unknown>("samples_unknown").shown("of unknown peers", Form::fault)
        .gauge("rumor_contribution_unknown_samples",
               "Samples of the run that came within a snapshot, which does not say whose they are."),
};

}  // namespace

void add_contributions(FigureSheet& sheet, const ContributionTable& table) {
  sheet.add({.title = "samples"}, unknown_rows, table);
  sheet.add_list({.object = "contributions", .title = "Who did what", .key = "node",
                  .note = "Counted from the signed updates that this replica holds. Unknown: updates that came within "
                          "a snapshot, which does not say their samples. Back: taken back by the run's owner, the peer "
                          "itself, or a proof. Audited: segments that this peer has made again."},
                 node_rows, table.nodes);
  sheet.add_list({.object = "contribution_streams"}, stream_rows, table.streams);
}

// ---- the file ----

Bytes Contributions::encode(const RunId& run) const {
  ByteWriter out;
  out.raw(table_magic);
  out.raw(run.view());
  counted_.encode(out);
  out.varint(rows_.size());
  for (const auto& [stream, row] : rows_) {
    out.raw(stream.view());
    out.raw(row.node.view());
    for (const std::uint64_t value : {row.samples, row.taken_back, row.first_seen, row.last_seen}) out.u64(value);
  }
  const Hash256 hash = sha256(out.bytes());
  out.raw(hash.view());
  return out.take();
}

Result<Contributions> Contributions::decode(const RunId& run, BytesView bytes) {
  const Error damaged{Errc::corrupt, "it is damaged or cut off"};
  if (bytes.size() < sizeof table_magic + Hash256::size) return damaged;
  const BytesView body = bytes.first(bytes.size() - Hash256::size);
  if (sha256(body) != Hash256::from(bytes.last(Hash256::size))) return damaged;
  if (std::memcmp(body.data(), table_magic, sizeof table_magic) != 0)
    return Error{Errc::mismatch, "it is of another format version"};
  ByteReader in(body.subspan(sizeof table_magic));
  if (in.id<RunId>() != run) return Error{Errc::mismatch, "it is of another run"};
  auto counted = gossip::HaveSet::decode(in);
  if (!counted) return counted.error();
  Contributions made;
  made.counted_ = std::move(counted).value();
  const std::uint64_t count = in.varint();
  for (std::uint64_t i = 0; i < count && !in.failed(); ++i) {
    const auto stream = in.id<StreamId>();
    Row& row = made.rows_[stream];
    row.node = in.id<NodeId>();
    for (std::uint64_t* value : {&row.samples, &row.taken_back, &row.first_seen, &row.last_seen}) *value = in.u64();
  }
  if (!in.done()) return damaged;
  return made;
}

}  // namespace rumor
