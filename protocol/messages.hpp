// Every message of the protocol.
#pragma once

#include "protocol/agent_messages.hpp"
#include "protocol/gateway_messages.hpp"
#include "protocol/message.hpp"
#include "protocol/operator_messages.hpp"
