// Data-parallel training: tensor fusion, compression, sparse gradients, partial updates, and an optimizer that combines
// them. Header only, C++17, over drun.h. docs/training.md says more.
#pragma once

#include "drun/training/bucketer.hpp"
#include "drun/training/compression.hpp"
#include "drun/training/method.hpp"
#include "drun/training/optimizer.hpp"
#include "drun/training/partial.hpp"
#include "drun/training/sparse.hpp"
#include "drun/training/transport.hpp"
