#include "runtime/src/last_error.h"

namespace drun::runtime {
namespace {

Failure& kept() {
  thread_local Failure failure{DRUN_OK, "", -1, ""};
  return failure;
}

}  // namespace

const Failure& last_error() { return kept(); }

int report(const Status& status) {
  if (status) return DRUN_OK;
  kept() = status.error();
  kept().text = with_code(status.error());
  return kept().status;
}

}  // namespace drun::runtime
