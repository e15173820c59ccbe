// The one unit that compiles Asio's TLS.
#include <boost/asio/ssl/impl/src.hpp>
