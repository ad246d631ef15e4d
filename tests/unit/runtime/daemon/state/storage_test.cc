// Storage: whole files or none, one process a directory, and two generations of checkpoints.
#include "runtime/daemon/state/storage.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <csignal>
#include <fstream>

#include "tests/unit/contains.h"
#include "tests/unit/scratch_folder.h"

namespace rumor::daemon {
namespace {

using rumor::test::contains;

// A checkpoint in the eyes of these tests: 'C', bytes, 'E'.
Bytes checkpoint(std::uint8_t number) {
  return {'C', number, number, 'E'};
}

Result<void> valid(BytesView bytes) {
  if (bytes.size() == 4 && bytes.front() == 'C' && bytes.back() == 'E') return {};
  return Error{Errc::corrupt, "it is cut short"};
}

void cut(const std::string& path) {
  BOOST_REQUIRE(::truncate(path.c_str(), 2) == 0);
}

// Writes of more than `bytes` fail like those on a full disk, until this goes.
class FullDisk {
 public:
  explicit FullDisk(rlim_t bytes) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    handler_ = std::signal(SIGXFSZ, SIG_IGN);
    const rlimit small{bytes, before_.rlim_max};
    BOOST_REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
  }
  ~FullDisk() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit before_{};
  void (*handler_)(int) = nullptr;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(storage)

BOOST_AUTO_TEST_CASE(what_is_written_is_read) {
  const Scratch folder;
  const std::string path = folder.path("file");
  BOOST_REQUIRE(write_atomically(path, Bytes{1, 2, 3}).ok());
  BOOST_TEST((*read_file(path) == Bytes{1, 2, 3}));
  const Bytes large(3 << 20, 7);
  BOOST_REQUIRE(write_atomically(path, large).ok());
  BOOST_TEST((*read_file(path) == large));
  BOOST_REQUIRE(write_atomically(path, {}).ok());
  BOOST_TEST((*read_file(path)).empty());
  BOOST_TEST(folder.entries() == 1u);
}

BOOST_AUTO_TEST_CASE(reading_reports_what_it_cannot_read) {
  const Scratch folder;
  BOOST_TEST((read_file(folder.path("none")).error().code == Errc::not_found));
  BOOST_TEST((read_file(folder.path()).error().code == Errc::io));
  BOOST_REQUIRE(::mkfifo(folder.path("fifo").c_str(), 0600) == 0);
  BOOST_TEST((read_file(folder.path("fifo")).error().code == Errc::io));  // and does not hang
  BOOST_REQUIRE(write_atomically(folder.path("file"), Bytes(11)).ok());
  BOOST_TEST((read_file(folder.path("file"), 10).error().code == Errc::limit));
  BOOST_TEST(read_file(folder.path("file"), 11).ok());
}

BOOST_AUTO_TEST_CASE(a_full_disk_loses_nothing) {
  const Scratch folder;
  BOOST_REQUIRE(write_atomically(folder.path("file"), Bytes{1}).ok());
  BOOST_REQUIRE(save_checkpoint(folder.path(), checkpoint(1)).ok());
  BOOST_REQUIRE(save_checkpoint(folder.path(), checkpoint(2)).ok());
  const std::size_t before = folder.entries();
  {
    const FullDisk full(1000);
    const Result<void> file = write_atomically(folder.path("file"), Bytes(5000));
    BOOST_REQUIRE(!file.ok());
    BOOST_TEST(contains(file.error().text, folder.path("file")));
    BOOST_TEST(contains(file.error().text, "make room"));
    BOOST_TEST(!save_checkpoint(folder.path(), Bytes(5000)).ok());
  }
  BOOST_TEST((*read_file(folder.path("file")) == Bytes{1}));
  BOOST_TEST((*read_file(folder.path("checkpoint.1")) == checkpoint(2)));
  BOOST_TEST((*read_file(folder.path("checkpoint.2")) == checkpoint(1)));
  BOOST_TEST(folder.entries() == before);
}

BOOST_AUTO_TEST_CASE(a_missing_directory_is_an_error) {
  const Scratch folder;
  BOOST_TEST(!write_atomically(folder.path("no/file"), Bytes{1}).ok());
  BOOST_REQUIRE(make_directory(folder.path("a/b")).ok());
  BOOST_TEST(make_directory(folder.path("a/b")).ok());
  BOOST_TEST(write_atomically(folder.path("a/b/file"), Bytes{1}).ok());
  BOOST_TEST(!make_directory(folder.path("a/b/file/c")).ok());
}

BOOST_AUTO_TEST_CASE(one_process_holds_a_directory) {
  const Scratch folder;
  const std::string directory = folder.path("state");
  {
    Result<StateLock> held = StateLock::acquire(directory);
    BOOST_REQUIRE(held.ok());
    const StateLock moved = std::move(held).value();
    const Result<StateLock> second = StateLock::acquire(directory);
    BOOST_REQUIRE(!second.ok());
    BOOST_TEST(second.error().text == "state directory " + directory + " is in use by process " +
                                          std::to_string(::getpid()) +
                                          "; stop that one, or choose another with --state");
  }
  BOOST_TEST(StateLock::acquire(directory).ok());
}

BOOST_AUTO_TEST_CASE(a_dead_process_holds_nothing) {
  const Scratch folder;
  int ready[2];
  BOOST_REQUIRE(::pipe(ready) == 0);
  const pid_t child = ::fork();
  BOOST_REQUIRE(child >= 0);
  if (child == 0) {
    const Result<StateLock> held = StateLock::acquire(folder.path());
    const char answer = held.ok() ? 'y' : 'n';
    if (::write(ready[1], &answer, 1) == 1) ::pause();
    ::_exit(0);
  }
  char answer = 0;
  BOOST_REQUIRE(::read(ready[0], &answer, 1) == 1);
  BOOST_TEST(answer == 'y');
  const Result<StateLock> refused = StateLock::acquire(folder.path());
  BOOST_REQUIRE(!refused.ok());
  BOOST_TEST(contains(refused.error().text, "process " + std::to_string(child)));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  ::close(ready[0]);
  ::close(ready[1]);
  BOOST_TEST(StateLock::acquire(folder.path()).ok());
}

BOOST_AUTO_TEST_CASE(the_newest_two_checkpoints_are_kept) {
  const Scratch folder;
  BOOST_TEST((load_checkpoint(folder.path(), valid).error().code == Errc::not_found));
  for (std::uint8_t number = 1; number <= 4; ++number) {
    BOOST_REQUIRE(save_checkpoint(folder.path(), checkpoint(number)).ok());
    const Result<LoadedCheckpoint> loaded = load_checkpoint(folder.path(), valid);
    BOOST_REQUIRE(loaded.ok());
    BOOST_TEST(((*loaded).bytes == checkpoint(number)));
    BOOST_TEST((*loaded).note.empty());
  }
  BOOST_TEST((*read_file(folder.path("checkpoint.2")) == checkpoint(3)));
  BOOST_TEST(folder.entries() == 2u);
}

BOOST_AUTO_TEST_CASE(a_damaged_checkpoint_falls_back_and_says_so) {
  const Scratch folder;
  BOOST_REQUIRE(save_checkpoint(folder.path(), checkpoint(1)).ok());
  BOOST_REQUIRE(save_checkpoint(folder.path(), checkpoint(2)).ok());
  cut(folder.path("checkpoint.1"));
  Result<LoadedCheckpoint> loaded = load_checkpoint(folder.path(), valid);
  BOOST_REQUIRE(loaded.ok());
  BOOST_TEST((loaded->bytes == checkpoint(1)));
  BOOST_TEST(loaded->note ==
             "checkpoint.1 is of no use: it is cut short; going on from the older checkpoint.2");

  std::filesystem::remove(folder.path("checkpoint.1"));
  loaded = load_checkpoint(folder.path(), valid);
  BOOST_REQUIRE(loaded.ok());
  BOOST_TEST(contains(loaded->note, "checkpoint.1 is missing"));

  cut(folder.path("checkpoint.2"));  // damage is not emptiness
  BOOST_TEST((load_checkpoint(folder.path(), valid).error().code == Errc::corrupt));
}

BOOST_AUTO_TEST_CASE(another_runs_checkpoint_is_not_passed_over) {
  const Scratch folder;
  BOOST_REQUIRE(save_checkpoint(folder.path(), checkpoint(1)).ok());
  BOOST_REQUIRE(save_checkpoint(folder.path(), checkpoint(2)).ok());
  const auto other_run = [](BytesView bytes) -> Result<void> {
    if (bytes[1] == 2) return Error{Errc::mismatch, "it is of run x"};
    return {};
  };
  const Result<LoadedCheckpoint> loaded = load_checkpoint(folder.path(), other_run);
  BOOST_REQUIRE(!loaded.ok());
  BOOST_TEST((loaded.error().code == Errc::mismatch));
}

// Whatever a crash leaves behind, the next start finds a checkpoint and the next save tidies up.
BOOST_AUTO_TEST_CASE(left_overs_of_a_crash_do_no_harm) {
  const Scratch folder;
  BOOST_REQUIRE(save_checkpoint(folder.path(), checkpoint(1)).ok());
  for (const char* name : {"checkpoint.1.tmp", "checkpoint.2.tmp"})
    std::ofstream(folder.path(name)) << "half";
  BOOST_TEST((load_checkpoint(folder.path(), valid)->bytes == checkpoint(1)));
  BOOST_REQUIRE(save_checkpoint(folder.path(), checkpoint(2)).ok());
  BOOST_TEST((*read_file(folder.path("checkpoint.1")) == checkpoint(2)));
  BOOST_TEST((*read_file(folder.path("checkpoint.2")) == checkpoint(1)));
  BOOST_TEST(folder.entries() == 2u);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace rumor::daemon
