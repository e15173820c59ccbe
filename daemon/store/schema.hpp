// The tables of troika.sqlite, one migration after the other. A migration that was released is never changed.
#pragma once

#include <string_view>
#include <vector>

namespace troika::daemon {

const std::vector<std::string_view>& store_migrations();

}  // namespace troika::daemon
