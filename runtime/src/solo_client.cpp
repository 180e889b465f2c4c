#include "runtime/src/solo_client.h"

#include <unistd.h>

#include <map>

namespace drun::runtime {
namespace {

class SoloClient final : public rendezvous::Client {
 public:
  SoloClient() {
    char name[256] = {};
    if (::gethostname(name, sizeof name - 1) != 0) name[0] = '\0';
    welcome_.job_id = "alone";
    welcome_.host_index_of_rank = {0};
    welcome_.host_names = {name[0] != '\0' ? name : "localhost"};
  }
  const rendezvous::Welcome& welcome() const override { return welcome_; }
  Result<void> set(std::string_view key, std::string_view value, bool overwrite) override {
    const auto [place, is_new] = values_.emplace(key, value);
    if (is_new || place->second == value) return {};
    if (!overwrite) return fail(Errc::kProtocol, "key '" + std::string(key) + "' already has another value");
    place->second = value;
    return {};
  }
  Result<std::string> get(std::string_view key, Milliseconds, int) override {
    const auto found = values_.find(std::string(key));
    if (found != values_.end()) return found->second;
    return fail(Errc::kTimeout, "key '" + std::string(key) + "': no other process can set it");
  }
  Result<bool> erase(std::string_view key) override { return values_.erase(std::string(key)) > 0; }
  Result<void> barrier(std::string_view, Milliseconds) override { return {}; }
  Result<std::string> nccl_id(std::string_view, int, int, const std::function<Result<std::string>()>& make,
                              Milliseconds, int) override {
    return make();
  }
  Result<void> abort(std::string_view) override { return {}; }
  void complain(std::string_view) override {}
  Result<void> leave() override { return {}; }
  int fd() const override { return -1; }
  std::optional<rendezvous::AbortNotice> aborted() override { return std::nullopt; }

 private:
  rendezvous::Welcome welcome_;
  std::map<std::string, std::string> values_;
};

}  // namespace

std::unique_ptr<rendezvous::Client> make_solo_client() { return std::make_unique<SoloClient>(); }

}  // namespace drun::runtime
