#include "tests/fakes/cuda/meeting.h"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <fstream>
#include <iterator>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

namespace drun::fakes {
namespace {

constexpr std::size_t kIdBytes = 128;  // of an NCCL id; after it comes a name for the part of that communicator

class OfThreads final : public Meeting {
 public:
  explicit OfThreads(int size) : size_(size) {}
  void come(int) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    ++n_come_;
    changed_.notify_all();
  }
  int n_come() override {
    const std::lock_guard<std::mutex> lock(mutex_);
    return n_come_;
  }
  void wait_for_all() override {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return n_come_ >= size_; });
  }
  std::vector<std::string> exchange(int number, int rank, std::string own, const GivesUp& gives_up) override {
    std::unique_lock<std::mutex> lock(mutex_);
    Call& call = calls_[number];
    call.brought.resize(static_cast<std::size_t>(size_));
    call.brought[static_cast<std::size_t>(rank)] = std::move(own);
    ++call.n_come;
    changed_.notify_all();
    changed_.wait(lock, [&] { return gives_up() || call.n_come == size_; });
    if (call.n_come < size_) return {};
    auto all = call.brought;
    if (++call.n_done == size_) calls_.erase(number);
    return all;
  }
  void post(int from, int to, std::string letter) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    mail_[{from, to}].push_back(std::move(letter));
    changed_.notify_all();
  }
  std::optional<std::string> receive(int from, int to, const GivesUp& gives_up) override {
    std::unique_lock<std::mutex> lock(mutex_);
    auto& box = mail_[{from, to}];
    changed_.wait(lock, [&] { return gives_up() || !box.empty(); });
    if (box.empty()) return std::nullopt;
    std::string letter = std::move(box.front());
    box.pop_front();
    return letter;
  }
  void end(int rank) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    ended_.insert(rank);
    changed_.notify_all();
  }
  void wait_for_ends() override {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return static_cast<int>(ended_.size()) >= size_; });
  }
  void wake() override {
    const std::lock_guard<std::mutex> lock(mutex_);
    changed_.notify_all();
  }

 private:
  struct Call {
    std::vector<std::string> brought;
    int n_come = 0, n_done = 0;
  };
  const int size_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int n_come_ = 0;
  std::set<int> ended_;
  std::map<int, Call> calls_;
  std::map<std::pair<int, int>, std::deque<std::string>> mail_;  // (from, to) -> letters
};

// Each message is a file, which is complete once it exists.
class OfProcesses final : public Meeting {
 public:
  OfProcesses(std::string folder, int size) : folder_(std::move(folder)), size_(size) {
    ::mkdir(folder_.c_str(), 0700);
  }
  void come(int rank) override { write(name("come", rank), std::to_string(::getpid())); }
  int n_come() override {
    int n = 0;
    for (int rank = 0; rank < size_; ++rank) n += is_there(name("come", rank));
    return n;
  }
  void wait_for_all() override {
    while (n_come() < size_) pause();
  }
  std::vector<std::string> exchange(int number, int rank, std::string own, const GivesUp& gives_up) override {
    const std::string call = "call" + std::to_string(number);
    write(name(call, rank), own);
    std::vector<std::string> all;
    for (int other = 0; other < size_; ++other) {
      if (!wait_for(name(call, other), gives_up)) return {};
      all.push_back(read(name(call, other)));
    }
    // A rank that has reached this call has read all contributions to the previous one.
    ::unlink(name("call" + std::to_string(number - 1), rank).c_str());
    return all;
  }
  void post(int from, int to, std::string letter) override {
    const std::string box = "mail" + std::to_string(from) + "-" + std::to_string(to);
    write(name(box, next(box)), letter);
  }
  std::optional<std::string> receive(int from, int to, const GivesUp& gives_up) override {
    const std::string box = "mail" + std::to_string(from) + "-" + std::to_string(to);
    const std::string file = name(box, next("from " + box));
    if (!wait_for(file, gives_up)) return std::nullopt;
    std::string letter = read(file);
    ::unlink(file.c_str());
    return letter;
  }
  void end(int rank) override { write(name("end", rank), ""); }
  void wait_for_ends() override {
    for (int rank = 0; rank < size_; ++rank) {
      while (!is_there(name("end", rank)) && !is_dead(rank)) pause();
    }
  }
  void wake() override {}

 private:
  static void pause() { std::this_thread::sleep_for(std::chrono::microseconds(200)); }
  static bool is_there(const std::string& file) { return ::access(file.c_str(), F_OK) == 0; }
  static bool wait_for(const std::string& file, const GivesUp& gives_up) {
    while (!is_there(file)) {
      if (gives_up()) return false;
      pause();
    }
    return true;
  }
  static std::string read(const std::string& file) {
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  }
  static void write(const std::string& file, const std::string& bytes) {
    const std::string half = file + ".half";
    std::ofstream(half, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    if (std::rename(half.c_str(), file.c_str()) != 0) std::abort();
  }
  std::string name(const std::string& what, int number) const {
    return folder_ + "/" + what + "." + std::to_string(number);
  }
  int next(const std::string& what) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return counts_[what]++;
  }
  bool is_dead(int rank) const {
    const int pid = std::atoi(read(name("come", rank)).c_str());
    return pid > 0 && ::kill(pid, 0) != 0 && errno == ESRCH;
  }

  const std::string folder_;
  const int size_;
  std::mutex mutex_;
  std::map<std::string, int> counts_;
};

}  // namespace

std::shared_ptr<Meeting> meeting_of(const std::string& name, int size) {
  if (const char* const folder = std::getenv("DRUN_FAKE_NCCL_FOLDER")) {
    static const char* const digits = "0123456789abcdef";
    std::string file = std::string(folder) + "/";
    for (std::size_t i = 0; i < 8 && i < name.size(); ++i) {
      const auto byte = static_cast<unsigned char>(name[i]);
      file += digits[byte >> 4];
      file += digits[byte & 15];
    }
    for (std::size_t i = kIdBytes; i < name.size(); ++i) file += name[i] == ' ' ? '-' : name[i];
    return std::make_shared<OfProcesses>(file, size);
  }
  static std::mutex mutex;
  static auto& known = *new std::map<std::string, std::shared_ptr<Meeting>>;
  const std::lock_guard<std::mutex> lock(mutex);
  auto& meeting = known[name];
  if (!meeting) meeting = std::make_shared<OfThreads>(size);
  return meeting;
}

}  // namespace drun::fakes
