// The one unit that compiles Asio.
#include <boost/asio/impl/src.hpp>
