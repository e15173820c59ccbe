// Precompiled for the tests of targets that use Asio; included by no source.
#pragma once

#include <gtest/gtest.h>

#include "cmake/headers/asio.hpp"
