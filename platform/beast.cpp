// The one unit that compiles Beast.
#include <boost/beast/src.hpp>
