// A backend that notes every call in the flight recorder, and hands it on to the one that carries it out.
#pragma once

#include <memory>

#include "runtime/src/backend/backend.h"
#include "runtime/src/group.h"
#include "runtime/src/recorder.h"

namespace drun::runtime {

// For the communicator of `group`. Without a recorder or an inner backend it is `inner` itself.
std::unique_ptr<Backend> make_recording_backend(std::unique_ptr<Backend> inner, std::shared_ptr<Recorder> recorder,
                                                Group group);

}  // namespace drun::runtime
