// A backend that records every call in the flight recorder and forwards it to the backend that carries it out.
#pragma once

#include <memory>

#include "runtime/src/backend/backend.h"
#include "runtime/src/group.h"
#include "runtime/src/recorder.h"

namespace drun::runtime {

// Wraps `inner`, the backend of the communicator of `group`. Returns `inner` itself without a recorder, or if it is
// null.
std::unique_ptr<Backend> make_recording_backend(std::unique_ptr<Backend> inner, std::shared_ptr<Recorder> recorder,
                                                Group group);

}  // namespace drun::runtime
