// Precompiled for the tests of targets that use JSON; included by no source.
#pragma once

#include <gtest/gtest.h>

#include "cmake/headers/json.hpp"
