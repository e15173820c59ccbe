// Troika's own engine, troika-stage.
#pragma once

#include "engine/adapters/adapter.hpp"

namespace troika::adapters {

const EngineAdapter& native_adapter();

}  // namespace troika::adapters
